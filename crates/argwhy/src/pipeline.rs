//! The whole way, wired once: data → features → operator → problem → solver → model.

mod following;
mod plain;

pub use following::{Progress, Silent};

use crate::checkpoint::{Checkpoints, Start, fingerprint};
use crate::device;
use crate::error::Error;
use crate::machine::{peak_memory_bytes, reachable_memory_bytes, thread_pool, total_memory_bytes};
use crate::notes;
use crate::plan::{Plan, Sizes};
use crate::settings::{
    DeviceChoice, FitSettings, MemorySize, Regularization, SolverKind, ThetaChoice,
};
use crate::sources::{DataSources, Provenance, to_stored};
use argwhy_core::backend::{Backend, Host, Origin, Storage, WithTrends};
use argwhy_core::decision_set::{Outside, SampleSets, admit};
use argwhy_core::familiarity;
use argwhy_core::features::FeatureMap;
use argwhy_core::model::Parts;
use argwhy_core::operator::accuracy_for;
use argwhy_core::precond::KeptFactor;
use argwhy_core::problem::Problem;
use argwhy_core::solver::path::Beginning;
use argwhy_core::solver::{NewtonSettings, Outcome, SsoSettings, path, sso, theta};
use argwhy_core::wording::Worded;
use argwhy_core::{Constraints, Dataset, DecisionSet, Model};
use argwhy_io::{Kept, save_model_with};
use following::Forward;
use ndarray::{Axis, s};
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Fits models by one set of settings, on one backend.
#[derive(Clone, Debug)]
pub struct Pipeline {
    settings: FitSettings,
    /// In place of the one that the settings choose.
    backend: Option<Arc<dyn Backend>>,
    /// In place of zeros.
    start: Option<Start>,
    /// In place of those that the data would give.
    features: Option<FeatureMap>,
    checkpoints: Option<Checkpoints>,
    /// What a fit of the first rows has left, and whether this one leaves something.
    factor: Option<Arc<KeptFactor>>,
    leaves: bool,
}

/// A fitted model and how it came about.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The model.
    pub model: Model,
    /// Everything the solver found, for those who want more than the model.
    pub outcome: Outcome,
    /// What was planned.
    pub plan: Plan,
    /// Decisions of the expert that were outside their limits.
    pub outside: Outside,
    /// Rows of the data the model was trained on, in order, counted from zero.
    pub rows: Vec<usize>,
    /// Where the data came from, to be kept with the model; whoever loaded it knows more than that
    /// there were constraints.
    pub sources: DataSources,
    settings: FitSettings,
}

/// Rows a plan's time estimate is measured on.
const PROBE: usize = 960;

impl Pipeline {
    /// Checks the settings.
    pub fn new(settings: FitSettings) -> Result<Self, Error> {
        settings.validate()?;
        Ok(Self {
            settings,
            backend: None,
            start: None,
            features: None,
            checkpoints: None,
            factor: None,
            leaves: false,
        })
    }

    /// The same with kernel values on a machine of one's own, whatever the settings say.
    #[must_use]
    pub fn with_backend(mut self, backend: Arc<dyn Backend>) -> Self {
        self.backend = Some(backend);
        self
    }

    /// The same from what another fit reached.
    #[must_use]
    pub fn starting_from(mut self, start: Start) -> Self {
        self.start = Some(start);
        self
    }

    /// The same with features whose statistics come from elsewhere, such as another model.
    #[must_use]
    pub fn with_features(mut self, features: FeatureMap) -> Self {
        self.features = Some(features);
        self
    }

    /// The same, keeping what it reaches.
    #[must_use]
    pub fn with_checkpoints(mut self, checkpoints: Checkpoints) -> Self {
        self.checkpoints = Some(checkpoints);
        self
    }

    /// The same, whose fits keep what they leave of their preconditioner, for
    /// [`Fit::save_with_data`] and [`Pipeline::growing_from`]: a [`Pipeline::update`] of such a
    /// model takes a third of the products.
    #[must_use]
    pub fn leaving_factor(mut self) -> Self {
        self.leaves = true;
        self
    }

    /// The same for more rows behind those of another fit: with its features, from its coefficients
    /// and with what it has left of its preconditioner ([`Outcome::factor`]), where it has.
    pub fn growing_from(
        self,
        model: &Model,
        factor: Option<Arc<KeptFactor>>,
    ) -> Result<Self, Error> {
        // Gram matrices of another kernel would be of no use.
        let same = self.settings.kernel_for(model.features.n_features())? == model.kernel();
        let factor = factor.filter(|_| same);
        let start = Start::Model(Box::new(model.clone()));
        Ok(Self { factor, ..self.with_features(model.features.clone()).starting_from(start) })
    }

    /// The same by other settings, for fits beside the one that was asked for.
    pub(crate) fn with_settings(&self, settings: FitSettings) -> Result<Self, Error> {
        let own = settings.feature_settings();
        let features = self.features.clone().filter(|features| features.settings() == own);
        Ok(Self { backend: self.backend.clone(), features, ..Self::new(settings)? })
    }

    /// Whether kernel values come from a machine of one's own.
    pub(crate) fn has_backend(&self) -> bool {
        self.backend.is_some()
    }

    /// What it fits by.
    pub fn settings(&self) -> &FitSettings {
        &self.settings
    }

    /// Where a fit of this size runs and what it will take, having said why where that is not where
    /// it was to.
    pub(crate) fn planned(
        &self,
        sizes: Sizes,
        progress: &mut (dyn Progress + Send),
    ) -> Result<(Arc<dyn Backend>, Plan), Error> {
        let settings = &self.settings;
        let plan = |backend: Arc<dyn Backend>| {
            let plan = Plan::new(settings, sizes, &WithTrends(backend.as_ref()))?;
            Ok((backend, plan))
        };
        if let Some(backend) = &self.backend {
            return plan(Arc::clone(backend));
        }
        let chosen = device::choose(settings, sizes)?;
        if let Some(note) = &chosen.note {
            progress.on_note(note);
        }
        match plan(chosen.backend) {
            // The driver of a GPU takes memory of this process too, which a tight limit has no room
            // for.
            Err(Error::Core(argwhy_core::Error::Memory { .. }))
                if settings.device == DeviceChoice::Auto =>
            {
                plan(Arc::new(Host))
            }
            planned => planned,
        }
    }

    /// Fits on all rows.
    pub fn fit(&self, data: &Dataset) -> Result<Fit, Error> {
        let all = 0..data.n_samples();
        self.fit_rows(data, std::slice::from_ref(&all), &mut Silent)
    }

    /// Fits on the listed rows, in their order; the features' statistics come from all rows of
    /// `data`.
    pub fn fit_rows(
        &self,
        data: &Dataset,
        ranges: &[Range<usize>],
        progress: &mut (dyn Progress + Send),
    ) -> Result<Fit, Error> {
        let fitted = self.with_threads(|| {
            let start = Instant::now();
            let task = self.task(data, ranges)?;
            let own = self.of_size(&task);
            let fit = if own.settings.primal {
                own.fit_plain(data, task, start, progress)?
            } else {
                let mut fitted = None;
                let path = [task.problem.regularization()];
                own.fit_kernel(data, task, start, progress, &path, &mut |fit| {
                    fitted = Some(fit);
                    Ok(())
                })?;
                fitted.expect("a path of one regularization has one fit")
            };
            // What was asked for; what came of it is in the model's record.
            Ok(Fit { settings: self.settings.clone(), ..fit })
        });
        fitted.map_err(|error| error.named(data.names()))
    }

    /// Fits one model for each regularization of `path` instead of the settings' own, each from the
    /// coefficients of the one before, and hands each to `each` when it is there. An interrupted
    /// fit is the last.
    pub fn fit_path(
        &self,
        data: &Dataset,
        ranges: &[Range<usize>],
        path: &[f64],
        progress: &mut (dyn Progress + Send),
        each: &mut (dyn FnMut(Fit) -> Result<(), Error> + Send),
    ) -> Result<(), Error> {
        if path.is_empty() {
            return Ok(());
        }
        for (at, &regularization) in path.iter().enumerate() {
            FitSettings { regularization: regularization.into(), ..self.settings.clone() }
                .validate()?;
            if path[..at].contains(&regularization) {
                return Err(Error::Core(argwhy_core::Error::Setting {
                    name: "path",
                    found: format!("{regularization:e} twice"),
                    allowed: "different regularizations, such as 1e-4,1e-5,1e-6",
                }));
            }
        }
        let mut of_one = Self::new(FitSettings {
            // What a path holds on to must do for the smallest of them.
            regularization: path.iter().copied().fold(f64::INFINITY, f64::min).into(),
            ..self.settings.clone()
        })?;
        of_one.backend.clone_from(&self.backend);
        of_one.features.clone_from(&self.features);
        let settings = &of_one.settings;
        if settings.primal
            || settings.solver != SolverKind::Newton
            || settings.theta != ThetaChoice::Identity
        {
            return Err(Error::Core(argwhy_core::Error::Setting {
                name: "path",
                found: "together with primal, sso or a learned theta".to_owned(),
                allowed: "for {solver newton}, {theta identity}, without {primal}; fit those one \
                          regularization at a time",
            }));
        }
        of_one.with_threads(|| {
            let start = Instant::now();
            let task = of_one.task(data, ranges)?;
            of_one.fit_kernel(data, task, start, progress, path, each)
        })
    }

    /// The same with what the settings leave to the number of samples.
    fn of_size(&self, task: &Task) -> Cow<'_, Self> {
        match self.settings.regularization {
            Regularization::Value(_) => Cow::Borrowed(self),
            Regularization::Auto => {
                let mut own = self.clone();
                own.settings.regularization = task.problem.regularization().into();
                Cow::Owned(own)
            }
        }
    }

    pub(crate) fn with_threads<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        thread_pool(self.settings.threads)?.install(work)
    }

    /// Features with the statistics of all rows, unless they come from elsewhere.
    fn features_of(&self, data: &Dataset) -> Result<FeatureMap, Error> {
        if let Some(features) = &self.features {
            return Ok(features.clone());
        }
        let (settings, weights) = (self.settings.feature_settings(), data.weights());
        Ok(FeatureMap::fit_weighted(settings, data.signals(), weights)?)
    }

    /// The problem of the listed rows, and those of them that count.
    pub(crate) fn problem(
        &self,
        data: &Dataset,
        ranges: &[Range<usize>],
    ) -> Result<(Problem, Vec<usize>), Error> {
        let task = self.task(data, ranges)?;
        Ok((task.problem, task.rows))
    }

    /// What there is to fit, checked: rows, their sets and decisions, and how large it all is.
    fn task(&self, data: &Dataset, ranges: &[Range<usize>]) -> Result<Task, Error> {
        let settings = &self.settings;
        let (rows, weights) = samples(data, ranges)?;
        let mut decisions = data.decisions().select(Axis(0), &rows);
        let set = settings.decision_set(decisions.ncols())?;
        let given = data.constraints().map(|given| given.select(&rows));
        let number = |i: usize| data.number(rows[i]);
        let sets = SampleSets::new(set.limits(), given.as_ref(), rows.len(), number)?;
        // Loaded, selected, as sets and, with weights, as sets before and after.
        let set_numbers = data.constraints().map_or(0, Constraints::n_numbers)
            + given.as_ref().map_or(0, Constraints::n_numbers)
            + sets.n_numbers() * if weights.is_some() { 2 } else { 1 };
        let learns_theta = settings.theta == ThetaChoice::Learn;
        let coupled = learns_theta || matches!(sets, SampleSets::Polyhedra(_));
        let outside = admit(decisions.view_mut(), &sets, settings.infeasible, number)?;
        let regularization = settings.regularization.value(counted(rows.len(), weights.as_deref()));
        let mut problem = Problem::new(decisions.view(), sets, regularization)?;
        if let Some(weights) = &weights {
            problem = problem.with_weights(weights)?;
        }
        drop(decisions);
        if learns_theta {
            theta::check_precision(&problem)?;
        }

        let signal_dim = data.signals().ncols();
        let sizes = Sizes {
            n_loaded: data.n_samples(),
            n_samples: rows.len(),
            signal_dim,
            decision_dim: problem.decision_dim(),
            n_features: settings.features.n_features(signal_dim),
            set_numbers,
            coupled,
            learns_theta,
            n_factors: 0,
        };
        let constrained = given.is_some();
        Ok(Task { problem, set, constrained, sizes, outside, rows })
    }

    /// A fit for each of `regularizations`, of which there is one unless the solver is Newton's
    /// with θ_uu = I.
    fn fit_kernel(
        &self,
        data: &Dataset,
        task: Task,
        mut start: Instant,
        progress: &mut (dyn Progress + Send),
        regularizations: &[f64],
        each: &mut dyn FnMut(Fit) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let settings = &self.settings;
        let Task { problem, set, constrained, sizes, outside, rows } = task;
        let fingerprint = fingerprint(data, &rows);
        let sources = sources_of(constrained, &fingerprint);
        let from = self.start.as_ref().map(|start| start.state(data, &rows, &fingerprint));
        let from = from.transpose()?;
        let from = from.as_ref();
        // One that is there is unpacked from a copy of its own.
        let n_factors = usize::from(self.leaves) + 2 * usize::from(self.factor.is_some());
        let sizes = Sizes { n_factors, ..sizes };
        let (backend, mut plan) = self.planned(sizes, progress)?;
        let backend = &WithTrends(backend.as_ref());
        check_machine(&plan)?;
        let features = self.features_of(data)?;
        let kernel = settings.kernel_for(features.n_features())?;
        let signals = data.signals().select(Axis(0), &rows);
        let values = features.transform(signals.view())?;
        let few = values.slice(s![..PROBE.min(rows.len()), ..]);
        plan.estimate(&kernel, few, problem.ridge(), backend)?;
        notes::tell(settings, constrained, &outside, progress);
        let notes = [notes::constant_note(data, &rows), notes::faint_note(settings, data, &rows)];
        notes.iter().flatten().for_each(|note| progress.on_note(note));
        progress.on_plan(&plan, &outside);

        let chosen = *plan.kernel().expect("a kernel fit is planned as one");
        let smallest = regularizations.iter().copied().fold(f64::INFINITY, f64::min);
        let storage = Storage {
            accuracy: accuracy_for(smallest, settings.tol),
            // From near the optimum, and with a preconditioner that is there, few products follow.
            late: from.is_some() && self.factor.is_some() && kernel_is_quick(&features),
            ..chosen.storage(settings.solver)
        };
        let origin = Origin { map: &features, rows: &rows };
        let operator = backend.operator_from(origin, values.view(), &kernel, storage)?;
        let operator = operator.as_ref();
        drop(values);
        let seen = familiarity::seen(&features, &kernel, data.signals(), &rows)?;
        let numbers: Vec<u64> = numbers_of(data, &rows);
        let own = NewtonSettings {
            max_rank: Some(chosen.max_rank),
            spare_bytes: spare_bytes(&plan),
            ..settings.newton()
        };
        let keep = self.checkpoints.as_ref();
        let mut observer = Forward { progress, keep, rows: fingerprint, seen: None };
        let mut finish = |problem: &Problem, mut outcome: Outcome| {
            outcome.seconds = start.elapsed().as_secs_f64();
            let parts = Parts {
                features: features.clone(),
                kernel: kernel.clone(),
                set: set.clone(),
                constrained,
                signals: signals.view(),
                rows: &numbers,
                names: data.names().clone(),
            };
            let mut model = Model::from_outcome(problem, &outcome, parts);
            model.record.peak_memory_bytes = peak_memory_bytes();
            model.seen = Some(seen.clone());
            let regularization = problem.regularization().into();
            let settings = FitSettings { regularization, ..settings.clone() };
            let (rows, sources) = (rows.clone(), sources.clone());
            each(Fit { model, outcome, plan, outside, rows, sources, settings })?;
            start = Instant::now();
            Ok(())
        };
        let seed = settings.seed;
        match (settings.solver, settings.theta) {
            (SolverKind::Newton, ThetaChoice::Identity) => path::solve(
                problem,
                operator,
                regularizations,
                &own,
                seed,
                Beginning {
                    state: from,
                    factor: self.factor.as_deref().cloned(),
                    keep: self.leaves && regularizations.len() == 1,
                },
                &mut observer,
                finish,
            ),
            (SolverKind::Newton, ThetaChoice::Learn) => {
                let outcome =
                    theta::solve_from(&problem, operator, &own, seed, from, &mut observer)?;
                finish(&problem, outcome)
            }
            (SolverKind::Sso, _) => {
                let own = SsoSettings { max_rank: chosen.block_rank(sizes), ..settings.sso() };
                let outcome = sso::solve_from(&problem, operator, &own, seed, from, &mut observer)?;
                finish(&problem, outcome)
            }
        }
    }
}

/// Whether kernel values of so few features take less to compute a few times than fresh memory to
/// keep them in (ADR 0024).
fn kernel_is_quick(features: &FeatureMap) -> bool {
    const FEW: usize = 32;
    features.n_features() <= FEW
}

/// Refuses a plan that this machine has no memory for: an allocation that fails ends the whole
/// process.
fn check_machine(plan: &Plan) -> Result<(), Error> {
    match reachable_memory_bytes() {
        Some(reachable) if plan.memory_bytes > reachable => Err(Error::Machine {
            needed: MemorySize(plan.memory_bytes).to_string(),
            reachable: MemorySize(reachable).to_string(),
        }),
        _ => Ok(()),
    }
}

/// What the limit and the machine leave beside what is planned, for factors of systems that turn
/// out to be hard. Not what is free just now: the same fit has the same bits on a busy machine.
/// With another machine's products, which are quick, they are not worth it.
fn spare_bytes(plan: &Plan) -> u64 {
    let on_host = plan.kernel().is_some_and(|plan| plan.device.is_none());
    let most = total_memory_bytes().map_or(plan.limit_bytes, |has| has.min(plan.limit_bytes));
    if on_host { most.saturating_sub(plan.memory_bytes) } else { 0 }
}

/// The rows to train on, those of weight zero left out, and their weights.
fn samples(
    data: &Dataset,
    ranges: &[Range<usize>],
) -> Result<(Vec<usize>, Option<Vec<f64>>), Error> {
    let mut rows: Vec<usize> = ranges.iter().cloned().flatten().collect();
    if let Some(&row) = rows.iter().find(|&&row| row >= data.n_samples()) {
        return Err(Error::Row { row, n_rows: data.n_samples() });
    }
    // A weight of zero leaves a row out.
    let weights = data.weights().map(|weights| -> Vec<f64> {
        rows.retain(|&row| weights[row] > 0.0);
        rows.iter().map(|&row| weights[row]).collect()
    });
    if rows.is_empty() && weights.is_some() {
        return Err(Error::Core(argwhy_core::Error::Weights {
            what: "every row has the weight zero; there is nothing to fit".to_owned(),
        }));
    }
    Ok((rows, weights))
}

/// How many samples there are where rows have weights. Small whole numbers are repetitions: weights
/// of 1, 2 and 3 are six rows. Others are shares, and the largest counts as one row. Only their
/// ratios matter.
pub(crate) fn counted(n_rows: usize, weights: Option<&[f64]>) -> usize {
    let Some(weights) = weights else { return n_rows };
    let largest = weights.iter().copied().fold(0.0, f64::max);
    let whole = weights.iter().copied().reduce(common_divisor).filter(|unit| unit.fract() == 0.0);
    let unit = whole.filter(|unit| largest / unit <= MOST_REPEATED).unwrap_or(largest);
    weights.iter().map(|weight| weight / unit).sum::<f64>().round() as usize
}

/// Whole numbers up to this count repetitions; beyond, they are amounts of something.
const MOST_REPEATED: f64 = 100.0;

/// The greatest common divisor of whole numbers; of others something that is not whole.
fn common_divisor(a: f64, b: f64) -> f64 {
    if a.fract() != 0.0 || b.fract() != 0.0 {
        return 0.5;
    }
    let (mut a, mut b) = (a, b);
    while b > 0.0 {
        (a, b) = (b, a % b);
    }
    a
}

/// What a fit starts from.
struct Task {
    problem: Problem,
    set: DecisionSet,
    constrained: bool,
    sizes: Sizes,
    outside: Outside,
    rows: Vec<usize>,
}

/// The numbers that rows of the data have where it came from.
fn numbers_of(data: &Dataset, rows: &[usize]) -> Vec<u64> {
    rows.iter().map(|&row| data.number(row) as u64).collect()
}

/// What a fit itself knows of where its data came from.
fn sources_of(constrained: bool, fingerprint: &str) -> DataSources {
    let provenance = Provenance::of_rows(fingerprint.to_owned());
    DataSources { constraints: constrained, provenance, ..DataSources::default() }
}

impl Fit {
    /// Writes the model with its settings, whole or not at all. Fails for kernels of one's own.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.write(path.as_ref(), None)
    }

    /// The same with the rows of `data` that it learned from, and what it left of its
    /// preconditioner where it was to ([`Pipeline::leaving_factor`]), for
    /// [`Pipeline::update`](crate::Pipeline::update).
    pub fn save_with_data(&self, path: impl AsRef<Path>, data: &Dataset) -> Result<(), Error> {
        let rows = numbers_of(data, &self.rows);
        let factor = self.outcome.factor.clone();
        self.write(path.as_ref(), Some(&Kept { data: data.select(&self.rows), rows, factor }))
    }

    fn write(&self, path: &Path, kept: Option<&Kept>) -> Result<(), Error> {
        if let Some(kernel) = self.model.kernel().custom_part() {
            return Err(Error::CustomKernel { name: kernel.name().to_owned() });
        }
        let stored = to_stored(&self.settings, &self.sources)?;
        Ok(save_model_with(path, &self.model, &stored, kept)?)
    }

    /// Why the solver stopped, in words, with what to change where it stopped short; `{:#}` names
    /// it as the command's flags.
    pub fn verdict(&self) -> Worded<'static> {
        self.model.record.verdict()
    }

    /// The settings of the fit.
    pub fn settings(&self) -> &FitSettings {
        &self.settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, array};

    #[test]
    fn what_was_in_force_is_recorded_whoever_asked_for_it() {
        let wave = |i: usize, j: usize| ((i * 3 + j) as f64 * 0.7).sin();
        let signals = Array2::from_shape_fn((20, 2), |(i, j)| wave(i, j));
        let decisions = Array2::from_shape_fn((20, 1), |(i, _)| 0.5 * wave(i, 0));
        let data = Dataset::new(signals, decisions).unwrap();
        let pipeline = Pipeline::new(FitSettings::default()).unwrap();
        assert!(!pipeline.fit(&data).unwrap().sources.constraints);
        let given = Constraints::new().with_inequalities(array![[1.0]], array![9.0]).unwrap();
        let fit = pipeline.fit(&data.with_constraints(given).unwrap()).unwrap();
        assert!(fit.sources.constraints && fit.model.constrained);
    }

    #[test]
    fn weights_count_as_repetitions_or_as_shares() {
        assert_eq!(counted(7, None), 7);
        assert_eq!(counted(3, Some(&[2.0, 3.0, 1.0])), 6);
        assert_eq!(counted(3, Some(&[4.0, 6.0, 2.0])), 6);
        assert_eq!(counted(3, Some(&[0.25, 0.5, 0.25])), 2);
        assert_eq!(counted(3, Some(&[1.5, 1.0, 3.0])), 2);
        assert_eq!(counted(2, Some(&[1e6, 999_999.0])), 2);
        for same in [1e-310, 0.3, 1.0, 7.0, 1.7e308] {
            assert_eq!(counted(4, Some(&[same; 4])), 4, "{same:e}");
        }
    }
}
