//! A preconditioner on workers of this process: the same bits whoever has which panel, and dies.

use argwhy_cluster::{
    Branches, ClusterBackend, Job, Machines, Opening, PanelKeeper, PanelLayout, Panels, Round,
    Shard,
};
use argwhy_core::backend::{Backend, Host, Origin, Storage, WithTrends};
use argwhy_core::features::{FeatureMap, FeatureSettings};
use argwhy_core::operator::{KernelOperator, OperatorKind, Precision};
use argwhy_core::problem::Problem;
use argwhy_core::solver::{Ignore, NewtonSettings, Outcome, Status, newton};
use argwhy_core::{DecisionSet, Error, Kernel};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

const N: usize = 2000;

/// Who has a panel, for the call of that number: any function is right.
type Share = fn(panel: usize, call: usize) -> usize;

/// One matrix, one factor, and workers that forget everything every few calls.
struct Workers {
    share: Share,
    /// Calls after which worker 0 is lost.
    loses: Option<usize>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    shard: Option<Shard>,
    roots: Vec<f64>,
    given: Array2<f32>,
    rounds: Vec<Round>,
    workers: BTreeMap<usize, Panels>,
    calls: usize,
    n_lost: usize,
    n_replayed: usize,
    n_ended: usize,
    n_gathered: usize,
    n_summed: usize,
}

impl std::fmt::Debug for Workers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Workers")
    }
}

impl Workers {
    fn new(share: Share, loses: Option<usize>) -> Arc<Self> {
        Arc::new(Self { share, loses, state: Mutex::default() })
    }

    /// Has each worker that has panels, with all `known` rounds behind them, answer.
    fn each<T>(
        &self,
        state: &mut State,
        known: usize,
        mut question: impl FnMut(&mut Panels, &Shard, &[usize]) -> T,
    ) -> Vec<(Vec<usize>, T)> {
        let layout = PanelLayout::new(N);
        state.calls += 1;
        if self.loses.is_some_and(|every| state.calls.is_multiple_of(every)) {
            state.n_lost += usize::from(state.workers.remove(&0).is_some());
        }
        let mut shares: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for panel in 0..layout.n_panels() {
            shares.entry((self.share)(panel, state.calls)).or_default().push(panel);
        }
        let State { shard, roots, given, rounds, workers, n_replayed, .. } = state;
        let shard = shard.as_ref().unwrap();
        let ask = |(worker, panels): (usize, Vec<usize>)| {
            let held = workers.entry(worker).or_insert_with(|| Panels::new(N));
            held.retain(&panels);
            for &panel in &panels {
                let columns = layout.columns(panel);
                if held.n_rounds(panel).is_none() {
                    let roots = if roots.is_empty() { &[] } else { &roots[columns.clone()] };
                    held.begin(panel, roots, given.slice(s![.., columns.clone()])).unwrap();
                }
                let mut unused = vec![0.0; columns.len()];
                for round in &rounds[held.n_rounds(panel).unwrap()..known] {
                    held.append(shard, panel, round, &mut unused).unwrap();
                    *n_replayed += 1;
                }
            }
            let answer = question(held, shard, &panels);
            (panels, answer)
        };
        shares.into_iter().map(ask).collect()
    }
}

fn whole(branches: Branches) -> Array2<f64> {
    let mut left = branches.into_vec();
    assert_eq!(left.len(), 1, "every panel has answered");
    left.pop().unwrap().values
}

impl PanelKeeper for Workers {
    fn spread_from(&self) -> usize {
        N
    }

    fn begin(
        &self,
        _: u64,
        roots: Option<&[f64]>,
        given: ArrayView2<'_, f32>,
    ) -> Result<u64, String> {
        let mut state = self.state.lock().unwrap();
        state.roots = roots.map_or_else(Vec::new, <[f64]>::to_vec);
        state.given = given.to_owned();
        Ok(7)
    }

    fn append(&self, factor: u64, round: &Round, diagonal: &mut [f64]) -> Result<(), String> {
        assert_eq!(factor, 7);
        let layout = PanelLayout::new(N);
        let mut state = self.state.lock().unwrap();
        let known = state.rounds.len();
        self.each(&mut state, known, |held, shard, panels| {
            for &panel in panels {
                let own = &mut diagonal[layout.columns(panel)];
                held.append(shard, panel, round, own).unwrap();
            }
        });
        state.rounds.push(round.clone());
        Ok(())
    }

    fn gram(&self, _: u64, signs: ArrayView2<'_, i8>) -> Result<Array2<f64>, String> {
        let layout = PanelLayout::new(N);
        let (mut state, mut all) = (self.state.lock().unwrap(), Branches::default());
        state.n_summed += 1;
        let known = state.rounds.len();
        let answers = self.each(&mut state, known, |held, _, panels| {
            held.gram(panels, layout.select(panels, signs).view()).unwrap()
        });
        answers.into_iter().flat_map(|(_, own)| own).for_each(|branch| all.add(branch));
        Ok(whole(all))
    }

    fn gather(&self, _: u64, marks: ArrayView2<'_, i8>) -> Result<Array2<f32>, String> {
        let layout = PanelLayout::new(N);
        let mut state = self.state.lock().unwrap();
        state.n_gathered += 1;
        let known = state.rounds.len();
        let answers = self.each(&mut state, known, |held, _, panels| {
            held.gather(panels, layout.select(panels, marks).view()).unwrap()
        });
        let n_marked = marks.iter().filter(|mark| **mark != 0).count();
        let mut whole = Array2::zeros((answers[0].1.nrows(), n_marked));
        let place = |i: usize| marks.slice(s![0, ..i]).iter().filter(|mark| **mark != 0).count();
        for (panels, own) in answers {
            let mut first = 0;
            for panel in panels {
                let columns = layout.columns(panel);
                let (start, end) = (place(columns.start), place(columns.end));
                let from = own.slice(s![.., first..first + end - start]);
                whole.slice_mut(s![.., start..end]).assign(&from);
                first += end - start;
            }
        }
        Ok(whole)
    }

    fn project(&self, _: u64, v: ArrayView2<'_, f64>) -> Result<Array2<f64>, String> {
        let layout = PanelLayout::new(N);
        let (mut state, mut all) = (self.state.lock().unwrap(), Branches::default());
        let known = state.rounds.len();
        let answers = self.each(&mut state, known, |held, _, panels| {
            held.project(panels, layout.select(panels, v).view()).unwrap()
        });
        answers.into_iter().rev().flat_map(|(_, own)| own).for_each(|branch| all.add(branch));
        Ok(whole(all))
    }

    fn expand(&self, _: u64, w: ArrayView2<'_, f64>) -> Result<Array2<f64>, String> {
        let mut out = Array2::zeros((w.nrows(), N));
        let mut state = self.state.lock().unwrap();
        let known = state.rounds.len();
        let answers = self.each(&mut state, known, |held, _, panels| held.expand(panels, w));
        for (panels, own) in answers {
            PanelLayout::new(N).scatter(&panels, own.unwrap().view(), out.view_mut());
        }
        Ok(out)
    }

    fn end(&self, _: u64) {
        self.state.lock().unwrap().n_ended += 1;
    }
}

impl Machines for Workers {
    fn name(&self) -> &'static str {
        "ray"
    }

    fn n_cores(&self) -> usize {
        2
    }

    fn panels(&self) -> Option<&dyn PanelKeeper> {
        Some(self)
    }

    fn open(&self, opening: Opening<'_>) -> Result<u64, String> {
        let job = serde_json::to_string(opening.job).unwrap();
        let job: Job = serde_json::from_str(&job).unwrap();
        let shard = Shard::new(&job, opening.features).map_err(|error| error.to_string())?;
        self.state.lock().unwrap().shard = Some(shard);
        Ok(0)
    }

    fn product(
        &self,
        _: u64,
        exact: bool,
        v: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), String> {
        let state = self.state.lock().unwrap();
        let shard = state.shard.as_ref().unwrap();
        out.fill(0.0);
        for part in 0..shard.n_parts() {
            let share = shard.part(part, exact, v).unwrap();
            let mut to = out.slice_mut(s![.., share.first..]);
            to += &share.values;
        }
        Ok(())
    }

    fn rows(&self, _: u64, _: &[usize], _: Range<usize>, _: &mut [f64]) -> Result<(), String> {
        Err("no row of K crosses to the driver".to_owned())
    }

    fn add_columns(
        &self,
        _: u64,
        _: bool,
        _: &[usize],
        _: ArrayView2<'_, f64>,
        _: ArrayViewMut2<'_, f64>,
    ) -> Result<(), String> {
        Err("nobody asks for columns".to_owned())
    }

    fn close(&self, _: u64) {}
}

fn wave(rows: usize, columns: usize) -> Array2<f64> {
    Array2::from_shape_fn((rows, columns), |(i, j)| ((i * (2 * j + 3)) as f64 * 0.37).sin())
}

fn storage() -> Storage {
    Storage::new(OperatorKind::Tiled, Precision::F32)
}

/// The operator of a cluster, and that of this machine.
fn both(kernel: &Kernel, workers: &Arc<Workers>) -> [Box<dyn KernelOperator>; 2] {
    let signals = wave(N, 3);
    let map = FeatureMap::fit(FeatureSettings::default(), signals.view()).unwrap();
    let features = map.transform(signals.view()).unwrap();
    let rows: Vec<usize> = (0..N).collect();
    let origin = Origin { map: &map, rows: &rows };
    let cluster = ClusterBackend::new(Arc::<Workers>::clone(workers));
    let there = WithTrends(&cluster);
    assert!(there.factor_rank(kernel, N, features.ncols(), 2).is_some());
    assert!(there.factor_rank(kernel, N - 1, features.ncols(), 2).is_none());
    [
        there.operator_from(origin, features.view(), kernel, storage()).unwrap(),
        WithTrends(&Host).operator(features.view(), kernel, storage()).unwrap(),
    ]
}

const SHARES: [(Share, Option<usize>); 5] = [
    (|_, _| 0, None),
    (|panel, _| panel / 2, None),
    (|panel, _| panel % 3, None),
    // Worker 0 is lost every third call, and what it had is made again.
    (|panel, _| panel / 2, Some(3)),
    // Panels wander.
    (|panel, call| (panel + call / 4) % 2, Some(5)),
];

/// A fit of two dimensions on a preconditioner of rank 150, with what its products are made with.
fn fit(operator: &dyn KernelOperator, weighted: bool) -> Outcome {
    let signals = wave(N, 3);
    let decisions = Array2::from_shape_fn((N, 2), |(i, j)| {
        let z = signals.row(i);
        (1.5 * (2.0 * z[0] * z[1] + z[j + 1]).sin() + 0.3 * (7.1 * i as f64).sin()).clamp(-1.0, 1.0)
    });
    let set = DecisionSet::bounds(2, -1.0, 1.0).unwrap();
    let mut problem = Problem::new(decisions.view(), set, 1e-5).unwrap();
    if weighted {
        let weights: Vec<f64> = (0..N).map(|i| 0.5 + (i % 3) as f64).collect();
        problem = problem.with_weights(&weights).unwrap();
    }
    let settings = NewtonSettings { max_rank: Some(150), ..NewtonSettings::default() };
    newton::solve(&problem, operator, &settings, 0, &mut Ignore).unwrap()
}

#[test]
fn neither_shares_nor_losses_change_a_bit_and_the_hosts_fit_ends_at_the_same_optimum() {
    let rest = Kernel::Rbf { gamma: 0.5 };
    let affine = Kernel::Polynomial { degree: 1, gamma: 0.4, offset: 1.5 };
    let trended = Kernel::Sum { terms: vec![rest.clone(), affine] };
    for (kernel, weighted) in [(&rest, false), (&trended, true)] {
        let mut expected: Option<Outcome> = None;
        for (share, loses) in SHARES {
            let workers = Workers::new(share, loses);
            let [there, here] = both(kernel, &workers);
            let found = fit(there.as_ref(), weighted);
            assert_eq!(found.status, Status::Solved);
            let state = workers.state.lock().unwrap();
            assert_eq!((state.n_lost > 0, state.n_ended), (loses.is_some(), 1));
            assert_eq!(state.n_replayed > 0, loses.is_some());
            assert!(state.calls > 20, "{}", state.calls);
            assert!(state.n_summed > 0 && state.n_gathered > 0, "both ways to follow samples");
            let first = expected.get_or_insert_with(|| {
                let host = fit(here.as_ref(), weighted);
                let [a, b] = [&host, &found].map(|outcome| outcome.certified.certificate);
                assert!((a.objective / b.objective - 1.0).abs() < 2e-6, "{a:?} {b:?}");
                let products = [&host, &found].map(|outcome| outcome.kernel_products as f64);
                assert!(products[1] < 1.3 * products[0] + 4.0, "{products:?}");
                found.clone()
            });
            assert!(first.certified.coefficients == found.certified.coefficients, "other bits");
            assert_eq!(first.kernel_products, found.kernel_products);
        }
    }
}

/// What the panels hold is B by its definition, and the inverse is that of λI + BᵀB.
#[test]
fn the_factor_is_what_it_is_defined_as() {
    let workers = Workers::new(|panel, _| panel % 2, None);
    let [there, here] = both(&Kernel::Rbf { gamma: 0.3 }, &workers);
    let mut factor = there.remote_factor(60, 2, None).unwrap().unwrap();
    let mut diagonal = there.diagonal().unwrap();
    let floor = vec![0.0; N];
    let pivots = [5, 700, 1300, 1999];
    let mut block = vec![0.0; 16];
    there.block_into(&pivots, &mut block).unwrap();
    let mut triangle = vec![0.0; 16];
    for j in 0..4 {
        let known: f64 = (0..j).map(|k| triangle[k * 4 + j] * triangle[k * 4 + j]).sum();
        triangle[j * 4 + j] = (block[j * 5] - known).sqrt();
        for i in j + 1..4 {
            let known: f64 = (0..j).map(|k| triangle[k * 4 + i] * triangle[k * 4 + j]).sum();
            triangle[j * 4 + i] = (block[i * 4 + j] - known) / triangle[j * 5];
        }
    }
    let whole = there.diagonal().unwrap();
    factor.append(&pivots, &triangle, &mut diagonal, &floor).unwrap();
    // K_S: = L B, and the diagonal is that of K − BᵀB.
    let all: Vec<usize> = (0..N).collect();
    let b = Array2::from_shape_vec((4, N), factor.gather(&all).unwrap()).unwrap();
    let mut rows = vec![0.0; 4 * N];
    here.rows_into(&pivots, 0..N, &mut rows).unwrap();
    for i in 0..N {
        for r in 0..4 {
            let found: f64 = (0..=r).map(|k| triangle[k * 4 + r] * b[[k, i]]).sum();
            assert!((found - rows[r * N + i]).abs() < 1e-5, "{r} {i}");
        }
        let left = whole[i] - b.column(i).iter().map(|v| v * v).sum::<f64>();
        assert!((diagonal[i] - left.max(0.0)).abs() < 1e-5, "{i}");
    }
    // (λI + BᵀB) undoes its inverse.
    let (ridge, v) = (0.05, wave(1, N));
    factor.update(Array2::from_elem((2, N), true).view(), ridge).unwrap();
    let mut out = Array2::zeros((1, N));
    factor.apply(&[1], v.view(), out.view_mut()).unwrap();
    let back = &out * ridge + out.dot(&b.t()).dot(&b);
    assert!((&back - &v).iter().all(|off| off.abs() < 1e-6));
    let product = factor.product(v.view()).unwrap().unwrap();
    let expected = v.dot(&b.t()).dot(&b);
    assert!((&product - &expected).iter().all(|off| off.abs() < 1e-6));
}

#[test]
fn what_a_worker_does_not_have_is_an_error() {
    let mut panels = Panels::new(N);
    let said = |error: Error| error.to_string();
    let v = Array2::zeros((1, 500));
    assert!(said(panels.project(&[0], v.view()).unwrap_err()).contains("panel 0"));
    let given = Array2::zeros((0, 3));
    assert!(said(panels.begin(0, &[], given.view()).unwrap_err()).contains("3 instead of"));
    assert!(panels.begin(99, &[], given.view()).is_err());
    let own = PanelLayout::new(N).columns(0).len();
    panels.begin(0, &[], Array2::zeros((0, own)).view()).unwrap();
    assert_eq!(panels.n_rounds(0), Some(0));
    assert!(panels.gram(&[0], Array2::zeros((1, own - 1)).view()).is_err());
    assert!(panels.expand(&[0], Array2::zeros((1, 4)).view()).is_err());
    let columns = Array2::<f64>::zeros((2, N)).select(Axis(0), &[0]);
    assert_eq!(PanelLayout::new(N).select(&[0], columns.view()).ncols(), own);
    panels.retain(&[]);
    assert_eq!(panels.n_rounds(0), None);
}
