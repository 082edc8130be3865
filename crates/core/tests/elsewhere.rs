//! A machine that keeps K, its low-rank factor and the vectors of conjugate gradients: dense
//! matrices of this process here, which count what is asked of them.

use argwhy_core::backend::{Backend, Host, Storage, WithTrends};
use argwhy_core::operator::{Descent, KernelOperator, OperatorKind, Precision, RemoteFactor, Step};
use argwhy_core::problem::Problem;
use argwhy_core::solver::{Ignore, NewtonSettings, Observer, Outcome, Status, newton};
use argwhy_core::{DecisionSet, Error, Kernel};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// What was asked for.
#[derive(Debug, Default)]
struct Counts {
    /// Products whose vectors came from the solver, and went back.
    sent: AtomicUsize,
    /// Steps whose vectors stayed.
    stayed: AtomicUsize,
    /// Of these with exact products.
    exact: AtomicUsize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Vectors {
    /// Go to and fro.
    Travel,
    Stay,
    /// Stay, and the working product curves nowhere.
    StayFlat,
}

#[derive(Debug)]
struct Elsewhere {
    counts: Arc<Counts>,
    vectors: Vectors,
}

impl Backend for Elsewhere {
    fn name(&self) -> &'static str {
        "elsewhere"
    }

    fn offers(&self, kernel: &Kernel, n: usize, d: usize, storage: Storage) -> bool {
        Host.offers(kernel, n, d, storage)
    }

    fn operator_bytes(&self, _: &Kernel, _: usize, _: usize, _: Storage) -> u64 {
        0
    }

    fn product_bytes(&self, _: usize, _: usize) -> u64 {
        0
    }

    fn operator(
        &self,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
        storage: Storage,
    ) -> Result<Box<dyn KernelOperator>, Error> {
        let (counts, vectors) = (Arc::clone(&self.counts), self.vectors);
        let inner: Arc<dyn KernelOperator> = Arc::from(Host.operator(features, kernel, storage)?);
        let shared = |is_exact, exact| Watched {
            inner: Arc::clone(&inner),
            counts: Arc::clone(&counts),
            vectors,
            is_exact,
            exact,
        };
        Ok(Box::new(shared(false, Some(Box::new(shared(true, None))))))
    }
}

struct Watched {
    inner: Arc<dyn KernelOperator>,
    counts: Arc<Counts>,
    vectors: Vectors,
    is_exact: bool,
    exact: Option<Box<Watched>>,
}

impl Watched {
    fn operator(&self) -> &dyn KernelOperator {
        if self.is_exact { self.inner.exact() } else { self.inner.as_ref() }
    }
}

impl KernelOperator for Watched {
    fn n_samples(&self) -> usize {
        self.inner.n_samples()
    }

    fn diagonal(&self) -> Result<Vec<f64>, Error> {
        self.inner.diagonal()
    }

    fn rounding(&self) -> Result<Vec<f64>, Error> {
        self.inner.rounding()
    }

    fn apply(&self, v: ArrayView2<'_, f64>, out: ArrayViewMut2<'_, f64>) -> Result<(), Error> {
        self.counts.sent.fetch_add(1, SeqCst);
        self.operator().apply(v, out)
    }

    fn exact(&self) -> &dyn KernelOperator {
        self.exact.as_deref().unwrap_or(self)
    }

    fn is_exact(&self) -> bool {
        self.is_exact
    }

    fn rows_into(
        &self,
        samples: &[usize],
        columns: Range<usize>,
        out: &mut [f64],
    ) -> Result<(), Error> {
        self.operator().rows_into(samples, columns, out)
    }

    fn block_into(&self, samples: &[usize], out: &mut [f64]) -> Result<(), Error> {
        self.operator().block_into(samples, out)
    }

    fn add_columns(
        &self,
        samples: &[usize],
        v: ArrayView2<'_, f64>,
        out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        self.operator().add_columns(samples, v, out)
    }

    fn restrict(&self, samples: &[usize]) -> Result<Box<dyn KernelOperator>, Error> {
        self.operator().restrict(samples)
    }

    fn remote_factor(
        &self,
        _: usize,
        decision_dim: usize,
        roots: Option<&[f64]>,
    ) -> Result<Option<Box<dyn RemoteFactor>>, Error> {
        let n = self.n_samples();
        let roots = Array1::from_vec(roots.map_or_else(|| vec![1.0; n], <[f64]>::to_vec));
        let unit = Array2::eye(n);
        let gram = |operator: &dyn KernelOperator| -> Result<Array2<f64>, Error> {
            let mut gram = Array2::zeros((n, n));
            operator.apply(unit.view(), gram.view_mut())?;
            Ok(gram * &roots * roots.view().insert_axis(Axis(1)))
        };
        Ok(Some(Box::new(Factor {
            working: gram(self.inner.as_ref())?,
            exact: gram(self.inner.exact())?,
            rows: Vec::new(),
            n_beside: 0,
            free: Array2::from_elem((decision_dim, n), true),
            inverses: Vec::new(),
            counts: Arc::clone(&self.counts),
            vectors: self.vectors,
        })))
    }
}

/// B, row by row, and K with the weights in it.
struct Factor {
    working: Array2<f64>,
    exact: Array2<f64>,
    rows: Vec<Array1<f64>>,
    /// The first rows, whose squares are no part of K.
    n_beside: usize,
    free: Array2<bool>,
    /// One a dimension.
    inverses: Vec<Array2<f64>>,
    counts: Arc<Counts>,
    vectors: Vectors,
}

impl Factor {
    /// Σ bbᵀv of some of the rows.
    fn low_rank(rows: &[Array1<f64>], v: ArrayView1<'_, f64>) -> Array1<f64> {
        rows.iter().fold(Array1::zeros(v.len()), |sum, row| sum + row * row.dot(&v))
    }

    fn masked(&self, dimension: usize, mut v: Array1<f64>) -> Array1<f64> {
        v.iter_mut().zip(self.free.row(dimension)).for_each(|(v, free)| {
            if !free {
                *v = 0.0;
            }
        });
        v
    }

    /// (λI + B_FᵀB_F)⁻¹v.
    fn precondition(&self, dimension: usize, v: ArrayView1<'_, f64>) -> Array1<f64> {
        self.masked(dimension, self.inverses[dimension].dot(&v))
    }
}

/// The inverse of a positive definite matrix, by sweeps.
fn inverse(mut a: Array2<f64>) -> Array2<f64> {
    let n = a.nrows();
    for k in 0..n {
        let (pivot, row) = (a[[k, k]], a.row(k).to_owned() / a[[k, k]]);
        for i in (0..n).filter(|&i| i != k) {
            let factor = a[[i, k]];
            a.row_mut(i).scaled_add(-factor, &row);
            a[[i, k]] = factor / pivot;
        }
        a.row_mut(k).assign(&row);
        a[[k, k]] = -1.0 / pivot;
    }
    -a
}

impl RemoteFactor for Factor {
    fn rank(&self) -> usize {
        self.rows.len()
    }

    fn n_proposals(&self) -> usize {
        16
    }

    fn gather(&self, samples: &[usize]) -> Result<Vec<f64>, Error> {
        Ok(self.rows.iter().flat_map(|row| samples.iter().map(|&i| row[i])).collect())
    }

    fn append(
        &mut self,
        pivots: &[usize],
        triangle: &[f64],
        diagonal: &mut [f64],
        floor: &[f64],
    ) -> Result<(), Error> {
        let (m, known) = (pivots.len(), self.rows.len());
        for (a, &pivot) in pivots.iter().enumerate() {
            let mut row = self.exact.row(pivot).to_owned();
            for (r, old) in self.rows.iter().enumerate().skip(self.n_beside) {
                let factor = if r < known { old[pivot] } else { triangle[(r - known) * m + a] };
                row.scaled_add(-factor, old);
            }
            row /= triangle[a * m + a];
            diagonal.iter_mut().zip(&row).for_each(|(d, b)| *d = (*d - b * b).max(0.0));
            self.rows.push(row);
        }
        diagonal.iter_mut().zip(floor).for_each(|(d, f)| *d = if *d < *f { 0.0 } else { *d });
        pivots.iter().for_each(|&pivot| diagonal[pivot] = 0.0);
        Ok(())
    }

    fn append_row(&mut self, row: &[f64]) -> Result<(), Error> {
        self.rows.push(Array1::from_vec(row.to_vec()));
        self.n_beside += 1;
        Ok(())
    }

    fn update(&mut self, free: ArrayView2<'_, bool>, ridge: f64) -> Result<(), Error> {
        self.free = free.to_owned();
        self.inverses = (0..free.nrows())
            .map(|j| {
                let mut matrix = Array2::eye(free.ncols()) * ridge;
                for row in &self.rows {
                    let row = self.masked(j, row.clone()).insert_axis(Axis(1));
                    matrix += &row.dot(&row.t());
                }
                inverse(matrix)
            })
            .collect();
        Ok(())
    }

    fn apply(
        &self,
        dimensions: &[usize],
        v: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        for (c, &j) in dimensions.iter().enumerate() {
            out.row_mut(c).assign(&self.precondition(j, v.row(c)));
        }
        Ok(())
    }

    fn descent(
        &self,
        rhs: ArrayView2<'_, f64>,
        ridge: f64,
        exact: bool,
    ) -> Result<Option<Box<dyn Descent + '_>>, Error> {
        if self.vectors == Vectors::Travel {
            return Ok(None);
        }
        let zeros = Array2::zeros(rhs.dim());
        Ok(Some(Box::new(Stay {
            factor: self,
            ridge,
            exact,
            residual: rhs.to_owned(),
            last: vec![None; rhs.nrows()],
            found: zeros.clone(),
            image: zeros,
        })))
    }
}

/// Conjugate gradients as a textbook has them, a row a dimension.
struct Stay<'a> {
    factor: &'a Factor,
    ridge: f64,
    exact: bool,
    residual: Array2<f64>,
    last: Vec<Option<(Array1<f64>, f64)>>,
    found: Array2<f64>,
    image: Array2<f64>,
}

impl Stay<'_> {
    fn step_in(&mut self, j: usize) -> Step {
        let factor = self.factor;
        let z = factor.precondition(j, self.residual.row(j));
        let rho = z.dot(&self.residual.row(j));
        let p = match self.last[j].take() {
            None => z,
            Some((p, before)) => z + p * (rho / before),
        };
        let gram = if self.exact { &factor.exact } else { &factor.working };
        let full = gram.dot(&p) + Factor::low_rank(&factor.rows[..factor.n_beside], p.view());
        let q = factor.masked(j, full.clone()) + self.ridge * &p;
        let flat = factor.vectors == Vectors::StayFlat && !self.exact;
        let curvature = if flat { -1.0 } else { p.dot(&q) };
        if curvature <= 0.0 {
            return Step::Flat { curvature, square: p.dot(&p) };
        }
        let a = rho / curvature;
        self.found.row_mut(j).scaled_add(a, &p);
        self.image.row_mut(j).scaled_add(a, &full);
        self.residual.row_mut(j).scaled_add(-a, &q);
        self.last[j] = Some((p, rho));
        let residual = self.residual.row(j);
        Step::Taken { residual: residual.dot(&residual).sqrt() }
    }
}

impl Descent for Stay<'_> {
    fn step(&mut self, systems: &[usize]) -> Result<Vec<Step>, Error> {
        let Counts { stayed, exact, .. } = &*self.factor.counts;
        stayed.fetch_add(1, SeqCst);
        exact.fetch_add(usize::from(self.exact), SeqCst);
        Ok(systems.iter().map(|&j| self.step_in(j)).collect())
    }

    fn finish(self: Box<Self>) -> Result<(Array2<f64>, Array2<f64>), Error> {
        Ok((self.found, self.image))
    }
}

fn at(i: usize, j: usize) -> f64 {
    ((i * (j + 3)) as f64 * 0.71).sin()
}

/// A fit of 160 samples in two dimensions: how it ended, and what was asked for.
fn fit(
    kernel: &Kernel,
    weighted: bool,
    vectors: Vectors,
    observer: &mut dyn Observer,
) -> (Outcome, Arc<Counts>) {
    let n = 160;
    let features = Array2::from_shape_fn((n, 3), |(i, j)| at(i, j) + 0.2 * at(i * i, j));
    let decisions = Array2::from_shape_fn((n, 2), |(i, j)| {
        let z = features.row(i);
        (1.2 * (2.0 * z[0] * z[1] + z[j + 1]).sin() + 0.2 * at(7 * i + 1, j)).clamp(-1.0, 1.0)
    });
    let set = DecisionSet::bounds(2, -1.0, 1.0).unwrap();
    let mut problem = Problem::new(decisions.view(), set, 1e-3).unwrap();
    if weighted {
        let weights: Vec<f64> = (0..n).map(|i| 0.5 + (i % 3) as f64).collect();
        problem = problem.with_weights(&weights).unwrap();
    }
    let counts = Arc::<Counts>::default();
    let backend = Elsewhere { counts: Arc::clone(&counts), vectors };
    let storage = Storage::new(OperatorKind::Stored, Precision::F32);
    let operator = WithTrends(&backend).operator(features.view(), kernel, storage).unwrap();
    let settings = NewtonSettings { max_rank: Some(40), ..NewtonSettings::default() };
    let outcome = newton::solve(&problem, operator.as_ref(), &settings, 0, observer).unwrap();
    (outcome, counts)
}

fn kernels() -> [Kernel; 2] {
    let rest = Kernel::Rbf { gamma: 0.5 };
    let affine = Kernel::Polynomial { degree: 1, gamma: 0.4, offset: 1.5 };
    [rest.clone(), Kernel::Sum { terms: vec![rest, affine] }]
}

/// The matrix there is the whole one: with the trend, with the weights, with both.
#[test]
fn vectors_that_stay_elsewhere_end_where_those_that_travel_do() {
    for (kernel, weighted) in kernels().iter().flat_map(|k| [(k, false), (k, true)]) {
        let (travelled, before) = fit(kernel, weighted, Vectors::Travel, &mut Ignore);
        let (stayed, after) = fit(kernel, weighted, Vectors::Stay, &mut Ignore);
        assert_eq!([travelled.status, stayed.status], [Status::Solved; 2], "{kernel} {weighted}");
        assert_eq!(stayed.iterations, travelled.iterations, "{kernel} {weighted}");
        let [a, b] = [&travelled, &stayed].map(|outcome| outcome.certified.certificate);
        assert!((a.objective / b.objective - 1.0).abs() < 1e-9, "{a:?} {b:?}");
        assert!((a.primal / b.primal - 1.0).abs() < 1e-9, "{a:?} {b:?}");
        // All that conjugate gradients multiply with stayed, and nothing else did. Two products
        // more or less are those of an offset that is zero or rounding.
        let [sent, steps] = [&after.sent, &after.stayed].map(|count| count.load(SeqCst));
        assert!(steps > stayed.iterations, "{steps} steps in {} systems", stayed.iterations);
        assert!(stayed.kernel_products.abs_diff(travelled.kernel_products) <= 2);
        let uncounted = before.sent.load(SeqCst) - travelled.kernel_products;
        assert_eq!(sent + steps, stayed.kernel_products + uncounted, "{kernel} {weighted}");
        assert_eq!(before.stayed.load(SeqCst), 0);
    }
}

#[test]
fn a_working_product_that_is_flat_elsewhere_gives_way_to_the_exact_one() {
    let [kernel, _] = kernels();
    let (flat, counts) = fit(&kernel, false, Vectors::StayFlat, &mut Ignore);
    let (expected, _) = fit(&kernel, false, Vectors::Stay, &mut Ignore);
    assert_eq!(flat.status, Status::Solved);
    let [stayed, exact] = [&counts.stayed, &counts.exact].map(|count| count.load(SeqCst));
    assert_eq!(stayed, exact + 1, "one step says that it is flat");
    let [a, b] = [flat, expected].map(|outcome| outcome.certified.certificate);
    assert!((a.objective / b.objective - 1.0).abs() < 1e-6, "{a:?} {b:?}");
}

/// Breaks when it is asked for the so-manieth time.
struct Impatient(usize);

impl Observer for Impatient {
    fn poll(&mut self) -> ControlFlow<()> {
        self.0 = self.0.saturating_sub(1);
        if self.0 == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// A step elsewhere is as long as a product, and between two of them a fit can be stopped.
#[test]
fn an_interrupt_is_heard_between_two_steps_elsewhere() {
    let [kernel, _] = kernels();
    for polls in 5..12 {
        let (outcome, counts) = fit(&kernel, false, Vectors::Stay, &mut Impatient(polls));
        assert_eq!(outcome.status, Status::Interrupted, "{polls}");
        assert!(counts.stayed.load(SeqCst) < polls, "{polls}");
    }
}
