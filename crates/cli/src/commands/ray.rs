//! `--ray`: products of a fit, or trials of a search, on a Ray cluster.
//!
//! Ray is Python's: a process of the Python package is started that has the workers, and is asked
//! once a product or a round of trials. Everything else stays here.

use crate::args::{RayOptions, SourceOptions};
use crate::config;
use crate::error::CliError;
use crate::interrupt;
use argwhy::core::Error as CoreError;
use argwhy::core::backend::Backend;
use argwhy::core::dataset::Relation;
use argwhy::judging::Division;
use argwhy::settings::{DeviceChoice, Table};
use argwhy::tuning::{Attempt, Crew, Judge, Trial, Tuning};
use argwhy::{Dataset, Error, FitSettings, Pipeline};
use argwhy_cluster::{Array, Bridge, ClusterBackend, Launch, Machines};
use ndarray::ArrayView1;
use serde_json::{Map, Value, json};
use std::env;
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Where the Python interpreter is named, if `python3` is not the one with argwhy and Ray.
const PYTHON: &str = "ARGWHY_PYTHON";

/// Between two looks at whether to stop while Ray starts.
const BEAT: Duration = Duration::from_millis(50);
/// How long what stops may still take: longer than a fit, which says in its own words that it did.
const GRACE: Duration = Duration::from_millis(1700);

/// A cluster, and the process that has it.
pub struct Cluster {
    backend: Arc<dyn Backend>,
    bridge: Arc<Bridge>,
}

impl Cluster {
    /// Says how its workers do, for a line of progress.
    pub fn words(&self) -> impl Fn() -> String + Send + 'static {
        let bridge = Arc::clone(&self.bridge);
        move || bridge.progress()
    }
}

/// The cluster for a fit of `data`, where one is asked for.
pub fn cluster(
    options: &RayOptions,
    settings: &FitSettings,
    (data, source): (&Path, &SourceOptions),
) -> Result<Option<Cluster>, CliError> {
    if options.ray.is_some() && settings.primal {
        let why = "--ray is about kernel values, and --primal has none; leave one of them out";
        return Err(CliError::Usage(why.to_owned()));
    }
    let read = by_path(data).map(|path| (path, reading(source, settings.seed)));
    connected(options, settings, read)
}

/// The cluster for a search, where one is asked for.
pub fn for_search(
    options: &RayOptions,
    settings: &FitSettings,
) -> Result<Option<Cluster>, CliError> {
    connected(options, settings, None)
}

fn connected(
    options: &RayOptions,
    settings: &FitSettings,
    read: Option<(&str, Value)>,
) -> Result<Option<Cluster>, CliError> {
    let refused = |why: &str| Err(CliError::Usage(why.to_owned()));
    let Some(address) = &options.ray else {
        let sizes = options.ray_workers.or(options.ray_cpus).or(options.ray_gpus);
        let sizes = sizes.or(options.ray_spread_from);
        if sizes.is_some() || options.ray_timeout.is_some() {
            return refused(
                "ray-workers, ray-cpus, ray-gpus, ray-spread-from and ray-timeout are about a \
                 cluster; say where it is by --ray",
            );
        }
        return Ok(None);
    };
    if matches!(settings.device, DeviceChoice::Cuda(_)) {
        return refused(
            "--ray computes on the cluster's machines, and --device on one of this machine; leave \
             one of them out",
        );
    }
    let (path, reading) = read.unzip();
    let mut said = json!({
        "address": (address != "auto").then_some(address),
        "workers": options.ray_workers,
        "cpus": options.ray_cpus,
        "gpus": options.ray_gpus.unwrap_or(0),
        "spread_from": options.ray_spread_from,
        "data": path,
        "reading": reading,
    });
    if let Some(timeout) = &options.ray_timeout {
        said["timeout"] = timeout.0.as_secs_f64().into();
    }
    let python = env::var(PYTHON).unwrap_or_else(|_| "python3".to_owned());
    let launch = Launch { python, options: said, version: env!("CARGO_PKG_VERSION") };
    let bridge = Arc::new(started(launch)?);
    let backend = Arc::new(ClusterBackend::new(Arc::clone(&bridge) as Arc<dyn Machines>));
    Ok(Some(Cluster { backend, bridge }))
}

/// The process that has the workers. Ray takes seconds to start, or longer to find its cluster, and
/// whoever asks for a stop meanwhile need not wait for it.
fn started(launch: Launch) -> Result<Bridge, CliError> {
    let ended = |why: &dyn Display| CliError::Usage(why.to_string());
    let (to, from) = mpsc::channel();
    thread::spawn(move || {
        // Nobody listens any longer where it was stopped.
        let _ = to.send(Bridge::new(&launch));
    });
    let mut asked: Option<Instant> = None;
    loop {
        match from.recv_timeout(BEAT) {
            Ok(bridge) => return bridge.map_err(|error| ended(&error)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(lost) => return Err(ended(&lost)),
        }
        if interrupt::asked() && asked.get_or_insert_with(Instant::now).elapsed() >= GRACE {
            return Err(CliError::Stopped);
        }
    }
}

/// A pipeline on it.
pub fn pipeline(settings: &FitSettings, cluster: Option<&Cluster>) -> Result<Pipeline, CliError> {
    let pipeline = Pipeline::new(settings.clone())?;
    Ok(match cluster {
        Some(cluster) => pipeline.with_backend(Arc::clone(&cluster.backend)),
        None => pipeline,
    })
}

/// Workers that make the attempts of a search.
pub struct RayCrew<'a>(&'a Cluster);

impl<'a> RayCrew<'a> {
    /// Hands them what attempts are made on: the data, its rows, how these are divided, and what
    /// the space of settings was made of.
    pub fn new(
        cluster: &'a Cluster,
        (data, rows): (&Dataset, &[usize]),
        (given, grid): (&Table, Option<&Table>),
        tuning: &Tuning,
    ) -> Result<Self, CliError> {
        let judge = match tuning.judge {
            Judge::Error => "error",
            Judge::Regret => "regret",
        };
        let words = json!({
            "given": given,
            "grid": grid,
            "in_time": tuning.division == Division::Time,
            "folds": tuning.n_parts,
            "judge": judge,
        });
        let arrays = arrays(data, rows, &tuning.division);
        cluster.bridge.search(&words, arrays).map_err(failed)?;
        Ok(Self(cluster))
    }
}

/// Everything that a search has numbers for, by the names of the Python package.
fn arrays(data: &Dataset, rows: &[usize], division: &Division) -> Vec<(&'static str, Array)> {
    let mut arrays = vec![
        ("signals", data.signals().into()),
        ("decisions", data.decisions().into()),
        ("rows", rows.into()),
    ];
    if let Division::Groups(groups) = division {
        arrays.push(("groups", Array::Indices(groups.of_rows.iter().map(|&g| g.into()).collect())));
    }
    if let Some(weights) = data.weights() {
        arrays.push(("weights", ArrayView1::from(weights).into()));
    }
    let Some(given) = data.constraints() else { return arrays };
    let pairs = Relation::ALL.into_iter().zip([given.inequalities(), given.equalities()]);
    for (relation, pair) in pairs {
        if let Some((matrix, bound)) = pair {
            arrays.extend([(relation.matrix(), matrix.into()), (relation.bound(), bound.into())]);
        }
    }
    let sides = [("lower", given.lower()), ("upper", given.upper())];
    arrays.extend(sides.into_iter().filter_map(|(name, side)| Some((name, side?.into()))));
    arrays
}

fn failed(what: String) -> Error {
    CoreError::Backend { backend: "ray".to_owned(), what }.into()
}

impl Crew for RayCrew<'_> {
    fn attempt_all(
        &mut self,
        attempts: &[Attempt],
        stops: &mut dyn FnMut() -> bool,
        done: &mut dyn FnMut(usize, Vec<Trial>),
    ) -> Result<(), Error> {
        let texts: Result<Vec<String>, _> = attempts.iter().map(serde_json::to_string).collect();
        let texts = texts.map_err(|why| failed(why.to_string()))?;
        let mut wrong = None;
        let mut take = |at: usize, text: &str| match serde_json::from_str::<Vec<Trial>>(text) {
            // None came of an attempt that was stopped.
            Ok(trials) if trials.is_empty() => {}
            Ok(trials) => done(at, trials),
            Err(why) => wrong = Some(why),
        };
        self.0.bridge.attempts(&texts, stops, &mut take).map_err(failed)?;
        wrong.map_or(Ok(()), |why| Err(failed(why.to_string())))
    }
}

/// The path workers read from; none where there is nothing they could open.
fn by_path(data: &Path) -> Option<&str> {
    data.to_str().filter(|_| data.exists())
}

/// How workers are to read it: as this process does, by the names of the Python package.
fn reading(source: &SourceOptions, seed: u64) -> Value {
    let request = config::request(source, seed);
    let text = |value: Option<String>| value.map_or(Value::Null, Value::from);
    let mut reading = Map::new();
    let mut say = |name: &str, value: Value| {
        if !value.is_null() {
            reading.insert(name.to_owned(), value);
        }
    };
    say("signals", text(request.signals));
    say("decisions", text(request.decisions));
    say("weights", text(request.weights));
    say("rows", text(request.rows.map(|rows| rows.to_string())));
    say("episodes", text(request.thinning.episodes.map(|rows| rows.to_string())));
    say("every", json!(request.thinning.every));
    say("sample", json!(request.thinning.sample));
    say("seed", json!(seed));
    say("missing", json!(source.missing));
    say("one_hot", json!(source.one_hot));
    let cyclic = source.cyclic.as_ref();
    say("cyclic", json!(cyclic.map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>())));
    say("sheet", text(request.sheet));
    say("decimal", json!(source.decimal));
    Value::Object(reading)
}
