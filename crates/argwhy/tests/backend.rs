//! A backend is a value that is handed in. This one lives on the host, counts what is asked of it,
//! dawdles, and fails when told to: what a device that is lost, or a worker that dies, looks like
//! to a fit.

use argwhy::core::backend::{Host, Storage};
use argwhy::core::decision_set::Infeasible;
use argwhy::core::operator::{KernelOperator, OperatorKind, Precision};
use argwhy::core::precond::{LowRank, RankLimits};
use argwhy::core::predict::BatchPredictor;
use argwhy::core::random::stream;
use argwhy::core::{Constraints, Error as CoreError};
use argwhy::io::DataRequest;
use argwhy::settings::{OperatorChoice, SolverKind, ThetaChoice};
use argwhy::{
    Backend, Dataset, Error, Fit, FitSettings, Kernel, Model, Pipeline, Predictor, Silent,
    load_model,
};
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The host, watched.
#[derive(Debug, Default)]
struct Flaky {
    calls: AtomicUsize,
    /// The call that fails, counted from one; none where this is zero.
    fails_at: usize,
}

impl Flaky {
    fn failing_at(fails_at: usize) -> Arc<Shared> {
        Arc::new(Shared(Arc::new(Self { calls: AtomicUsize::new(0), fails_at })))
    }

    fn answer(&self) -> Result<(), CoreError> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if call.is_multiple_of(7) {
            std::thread::sleep(Duration::from_micros(200));
        }
        if call == self.fails_at {
            let what = format!("the device was lost at call {call}; start the fit again");
            return Err(CoreError::Backend { backend: "flaky".to_owned(), what });
        }
        Ok(())
    }
}

/// The backend shares its count with the operators it makes.
#[derive(Clone, Debug)]
struct Shared(Arc<Flaky>);

impl Shared {
    fn calls(&self) -> usize {
        self.0.calls.load(Ordering::SeqCst)
    }
}

impl Backend for Shared {
    fn name(&self) -> &'static str {
        "flaky"
    }

    fn offers(&self, kernel: &Kernel, n: usize, d: usize, storage: Storage) -> bool {
        Host.offers(kernel, n, d, storage)
    }

    fn operator_bytes(&self, kernel: &Kernel, n: usize, d: usize, storage: Storage) -> u64 {
        Host.operator_bytes(kernel, n, d, storage)
    }

    fn product_bytes(&self, n_samples: usize, n_vectors: usize) -> u64 {
        Host.product_bytes(n_samples, n_vectors)
    }

    fn operator(
        &self,
        features: ArrayView2<'_, f64>,
        kernel: &Kernel,
        storage: Storage,
    ) -> Result<Box<dyn KernelOperator>, CoreError> {
        self.0.answer()?;
        let inner = Arc::from(Host.operator(features, kernel, storage)?);
        Ok(Box::new(Watched::new(inner, Arc::clone(&self.0))))
    }

    fn batch_predictor(&self, model: &Model) -> Result<Option<Box<dyn BatchPredictor>>, CoreError> {
        let batches = Batches { inner: Predictor::new(model)?, flaky: Arc::clone(&self.0) };
        Ok(Some(Box::new(batches)))
    }
}

struct Watched {
    inner: Arc<dyn KernelOperator>,
    is_exact_of: bool,
    exact: Option<Box<Watched>>,
    flaky: Arc<Flaky>,
}

impl Watched {
    fn new(inner: Arc<dyn KernelOperator>, flaky: Arc<Flaky>) -> Self {
        let exact = (!inner.is_exact()).then(|| {
            let (inner, flaky) = (Arc::clone(&inner), Arc::clone(&flaky));
            Box::new(Self { inner, is_exact_of: true, exact: None, flaky })
        });
        Self { inner, is_exact_of: false, exact, flaky }
    }

    fn ask(&self) -> Result<&dyn KernelOperator, CoreError> {
        self.flaky.answer()?;
        Ok(if self.is_exact_of { self.inner.exact() } else { self.inner.as_ref() })
    }
}

impl KernelOperator for Watched {
    fn n_samples(&self) -> usize {
        self.inner.n_samples()
    }

    fn diagonal(&self) -> Result<Vec<f64>, CoreError> {
        self.ask()?.diagonal()
    }

    fn rounding(&self) -> Result<Vec<f64>, CoreError> {
        self.ask()?.rounding()
    }

    fn apply(&self, v: ArrayView2<'_, f64>, out: ArrayViewMut2<'_, f64>) -> Result<(), CoreError> {
        self.ask()?.apply(v, out)
    }

    fn exact(&self) -> &dyn KernelOperator {
        self.exact.as_deref().unwrap_or(self)
    }

    fn is_exact(&self) -> bool {
        self.exact.is_none()
    }

    fn rows_into(
        &self,
        samples: &[usize],
        columns: Range<usize>,
        out: &mut [f64],
    ) -> Result<(), CoreError> {
        self.ask()?.rows_into(samples, columns, out)
    }

    fn block_into(&self, samples: &[usize], out: &mut [f64]) -> Result<(), CoreError> {
        self.ask()?.block_into(samples, out)
    }

    fn add_columns(
        &self,
        samples: &[usize],
        v: ArrayView2<'_, f64>,
        out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), CoreError> {
        self.ask()?.add_columns(samples, v, out)
    }

    fn restrict(&self, samples: &[usize]) -> Result<Box<dyn KernelOperator>, CoreError> {
        let part = Arc::from(self.ask()?.restrict(samples)?);
        Ok(Box::new(Self::new(part, Arc::clone(&self.flaky))))
    }
}

struct Batches {
    inner: Predictor,
    flaky: Arc<Flaky>,
}

impl BatchPredictor for Batches {
    fn desired_into(
        &self,
        signals: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), CoreError> {
        self.flaky.answer()?;
        out.assign(&self.inner.desired(signals)?);
        Ok(())
    }
}

fn wave(i: usize, j: usize) -> f64 {
    ((i * (2 * j + 3)) as f64 * 0.37).sin()
}

fn data(n: usize) -> Dataset {
    let signals = Array2::from_shape_fn((n, 3), |(i, j)| wave(i, j));
    let decisions = Array2::from_shape_fn((n, 2), |(i, j)| {
        (1.4 * wave(i, j) * wave(i, 2) + 0.2 * wave(i, 5)).clamp(-0.6, 0.6)
    });
    Dataset::new(signals, decisions).unwrap()
}

fn settings() -> FitSettings {
    FitSettings {
        bounds: Some("-0.6,0.6".parse().unwrap()),
        regularization: 1e-4.into(),
        threads: Some(2),
        ..FitSettings::default()
    }
}

/// Every solver, and every shape of operator it asks for.
fn fits() -> Vec<(&'static str, FitSettings, Dataset)> {
    let weights = (0..120).map(|i| 0.5 + (i % 3) as f64).collect();
    let sum_limit = Constraints::new()
        .with_inequalities(Array2::from_elem((1, 2), 1.0), Array1::from_elem(1, 0.9))
        .unwrap();
    let sso = FitSettings { solver: SolverKind::Sso, ..settings() };
    let clipped = FitSettings { infeasible: Infeasible::Clip, ..settings() };
    let theta = FitSettings { theta: ThetaChoice::Learn, ..settings() };
    vec![
        ("factorised", settings(), data(120)),
        ("weighted", settings(), data(120).with_weights(weights).unwrap()),
        ("low rank", clipped, data(160).with_constraints(sum_limit).unwrap()),
        ("blocks", sso, data(120)),
        ("theta", theta, data(60)),
    ]
}

fn fit(settings: &FitSettings, data: &Dataset, backend: Arc<Shared>) -> Result<Fit, Error> {
    Pipeline::new(settings.clone()).unwrap().with_backend(backend).fit(data)
}

#[test]
fn another_backend_changes_no_bit_and_no_solver() {
    for (name, settings, data) in fits() {
        let expected = Pipeline::new(settings.clone()).unwrap().fit(&data).unwrap();
        let backend = Flaky::failing_at(0);
        let found = fit(&settings, &data, Arc::clone(&backend)).unwrap();
        assert_eq!(found.model.law, expected.model.law, "{name}");
        assert_eq!(found.model.theta, expected.model.theta, "{name}");
        assert_eq!(found.model.record.certificate, expected.model.record.certificate, "{name}");
        assert_eq!(found.outcome.kernel_products, expected.outcome.kernel_products, "{name}");
        assert!(backend.calls() > 4, "{name}: {} calls", backend.calls());
    }
}

/// A machine that is lost, at whichever call: an error that names it and what happened, not advice
/// about precision.
#[test]
fn a_lost_backend_ends_a_fit_with_an_error_that_names_it() {
    for (name, settings, data) in fits() {
        let whole = Flaky::failing_at(0);
        fit(&settings, &data, Arc::clone(&whole)).unwrap();
        let calls = whole.calls();
        for fails_at in (1..=calls).step_by((calls / 15).max(1)) {
            let error = fit(&settings, &data, Flaky::failing_at(fails_at)).err();
            let error = error.unwrap_or_else(|| panic!("{name}: call {fails_at} of {calls}"));
            assert!(matches!(error, Error::Core(CoreError::Backend { .. })), "{name}: {error}");
            let expected = format!(
                "the flaky backend failed: the device was lost at call {fails_at}; start the fit \
                 again"
            );
            assert_eq!(error.to_string(), expected, "{name}");
        }
    }
}

/// Models that were there stay, models that were finished before the loss are whole, and there is
/// nothing else.
#[test]
fn a_lost_backend_leaves_finished_models_and_no_half_ones() {
    let folder = tempfile::tempdir().unwrap();
    let (data, all) = (data(120), 0..120);
    let regularizations = [1e-2, 1e-3, 1e-4];
    let file = |k: f64| folder.path().join(format!("{k:e}.argwhy"));
    let run = |backend: Arc<Shared>, saved: &mut usize| {
        let pipeline = Pipeline::new(settings()).unwrap().with_backend(backend);
        pipeline.fit_path(
            &data,
            std::slice::from_ref(&all),
            &regularizations,
            &mut Silent,
            &mut |fit| {
                *saved += 1;
                fit.save(file(fit.model.record.regularization))
            },
        )
    };
    let whole = Flaky::failing_at(0);
    run(Arc::clone(&whole), &mut 0).unwrap();
    let before: Vec<Vec<u8>> =
        regularizations.iter().map(|&k| std::fs::read(file(k)).unwrap()).collect();
    let mut most = 0;
    for fails_at in (1..=whole.calls()).step_by((whole.calls() / 20).max(1)) {
        let mut saved = 0;
        let error = run(Flaky::failing_at(fails_at), &mut saved).unwrap_err();
        assert!(error.to_string().contains("flaky"), "{error}");
        assert!(saved < regularizations.len());
        for (&k, before) in regularizations.iter().zip(&before).skip(saved) {
            assert_eq!(&std::fs::read(file(k)).unwrap(), before, "{k} after call {fails_at}");
        }
        for &k in &regularizations {
            assert_eq!(load_model(&file(k)).unwrap().model.record.regularization, k);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), regularizations.len());
        most = most.max(saved);
    }
    assert!(most > 0, "some fit of a path was finished before the loss");
}

/// A launch or a message for every round of pivots, however many samples there are: not one for
/// every 240 of them.
#[test]
fn a_preconditioner_asks_for_panels() {
    let calls = |n: usize| {
        let features = Array2::from_shape_fn((n, 3), |(i, j)| wave(i, j) + (i as f64 * 0.01).cos());
        let backend = Flaky::failing_at(0);
        let storage = Storage::new(OperatorKind::Tiled, Precision::F32);
        let kernel = Kernel::Laplace { gamma: 2.0 };
        let operator = backend.operator(features.view(), &kernel, storage).unwrap();
        let limits = RankLimits { max_rank: 300, enough_trace: 0.0 };
        let factor = LowRank::build(&*operator, limits, &mut stream(0, "test"), || true).unwrap();
        assert_eq!(factor.rank(), 300);
        backend.calls()
    };
    let (few, many) = (calls(1000), calls(5000));
    assert!(few <= 20 && many <= 20, "{few} and {many} calls");
    // Where all of K is factorised: 2500 samples in panels of 240, beside the diagonal, products
    // and what is bound.
    let backend = Flaky::failing_at(0);
    fit(&settings(), &data(720), Arc::clone(&backend)).unwrap();
    assert!(backend.calls() < 80, "{} calls", backend.calls());
}

#[test]
fn batches_are_decided_where_the_backend_says() {
    let data = data(120);
    let model = Pipeline::new(settings()).unwrap().fit(&data).unwrap().model;
    let here = Predictor::new(&model).unwrap();
    let there = |fails_at| {
        let batches = Flaky::failing_at(fails_at).batch_predictor(&model).unwrap();
        Predictor::new(&model).unwrap().with_batches(batches)
    };
    let decisions = there(0).predict(data.signals()).unwrap();
    assert_eq!(decisions, here.predict(data.signals()).unwrap());
    let error = there(1).predict(data.signals()).unwrap_err().to_string();
    assert!(error.starts_with("the flaky backend failed"), "{error}");
    // One decision is not worth a message: it does not notice.
    let (predictor, mut one) = (there(1), [0.0; 2]);
    let signal = data.signals().row(3).to_vec();
    predictor.decide_one(&signal, None, &mut predictor.scratch(), &mut one).unwrap();
    assert_eq!(one[..], decisions.row(3).to_vec());
}

/// What a backend does not have is said before anything starts.
#[test]
fn what_a_backend_does_not_offer_is_refused_with_its_name() {
    #[derive(Debug)]
    struct Nothing;
    impl Backend for Nothing {
        fn name(&self) -> &'static str {
            "small"
        }
        fn offers(&self, _: &Kernel, _: usize, _: usize, storage: Storage) -> bool {
            storage.kind == OperatorKind::Tiled
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
        ) -> Result<Box<dyn KernelOperator>, CoreError> {
            assert_eq!(storage.kind, OperatorKind::Tiled);
            Host.operator(features, kernel, storage)
        }
    }
    let asked = FitSettings { operator: OperatorChoice::Stored, ..settings() };
    let fit = |settings: FitSettings| {
        Pipeline::new(settings).unwrap().with_backend(Arc::new(Nothing)).fit(&data(50))
    };
    let error = fit(asked).unwrap_err().to_string();
    assert!(error.starts_with("the small backend failed: it can't hold the matern52"), "{error}");
    let planned = fit(settings()).unwrap().plan;
    assert_eq!(planned.kernel().unwrap().operator, OperatorKind::Tiled);
}

/// A machine that holds everything elsewhere.
#[derive(Debug)]
struct Elsewhere;

impl Backend for Elsewhere {
    fn name(&self) -> &'static str {
        "elsewhere"
    }

    fn offers(&self, _: &Kernel, _: usize, _: usize, _: Storage) -> bool {
        true
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
    ) -> Result<Box<dyn KernelOperator>, CoreError> {
        Host.operator(features, kernel, storage)
    }
}

/// Data used to be refused for the memory that this machine would have needed.
#[test]
fn data_is_loaded_by_the_plan_of_the_backend_that_will_fit_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.csv");
    let names: Vec<String> = (0..20).map(|j| format!("signals_{j}")).collect();
    let mut text = format!("{},decisions_0\n", names.join(","));
    for i in 0..3000 {
        let numbers: Vec<String> = (0..21).map(|j| format!("{:.3}", wave(i, j))).collect();
        text.push_str(&numbers.join(","));
        text.push('\n');
    }
    std::fs::write(&path, text).unwrap();
    let load = |memory: &str, backend: Arc<dyn Backend>| {
        let settings = FitSettings { memory: memory.parse().unwrap(), ..FitSettings::default() };
        let pipeline = Pipeline::new(settings).unwrap().with_backend(backend);
        pipeline.load(&path, &DataRequest::default(), None)
    };
    let least = |backend| match load("1MiB", backend) {
        Err(Error::Core(CoreError::Memory { least, .. })) => least,
        other => panic!("{other:?}"),
    };
    let (here, there) = (least(Arc::new(Host)), least(Arc::new(Elsewhere)));
    assert!(load(&there, Arc::new(Host)).is_err(), "{there} of {here} is not enough here");
    assert_eq!(load(&there, Arc::new(Elsewhere)).unwrap().signals.nrows(), 3000);
    assert_eq!(load(&here, Arc::new(Host)).unwrap().signals.nrows(), 3000);
}
