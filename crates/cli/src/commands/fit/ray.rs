//! `argwhy fit --ray`: the same fit with kernel products on a Ray cluster.
//!
//! Ray is Python's: a process of the Python package is started that has the workers, and is asked
//! once a product. Everything else of a fit stays here.

use crate::args::{FitArgs, OutputOptions, SourceOptions};
use crate::config;
use crate::error::CliError;
use argwhy::core::backend::Backend;
use argwhy::settings::DeviceChoice;
use argwhy::{FitSettings, Pipeline};
use argwhy_cluster::{Bridge, ClusterBackend, Launch, Machines};
use serde_json::{Map, Value, json};
use std::env;
use std::path::Path;
use std::sync::Arc;

/// Where the Python interpreter is named, if `python3` is not the one with argwhy and Ray.
const PYTHON: &str = "ARGWHY_PYTHON";

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

/// The cluster, where one is asked for.
pub fn cluster(
    args: &FitArgs,
    (settings, source): (&FitSettings, &SourceOptions),
    outputs: &OutputOptions,
) -> Result<Option<Cluster>, CliError> {
    let Some(address) = &outputs.ray else {
        if outputs.ray_workers.or(outputs.ray_cpus).is_some() {
            let why = "ray-workers and ray-cpus are about a cluster; say where it is by --ray";
            return Err(CliError::Usage(why.to_owned()));
        }
        return Ok(None);
    };
    check(settings)?;
    let options = json!({
        "address": (address != "auto").then_some(address),
        "workers": outputs.ray_workers,
        "cpus": outputs.ray_cpus,
        "data": by_path(&args.data),
        "reading": by_path(&args.data).map(|_| reading(source, settings.seed)),
    });
    let python = env::var(PYTHON).unwrap_or_else(|_| "python3".to_owned());
    let launch = Launch { python, options, version: env!("CARGO_PKG_VERSION") };
    let bridge = Bridge::new(&launch).map_err(|error| CliError::Usage(error.to_string()))?;
    let bridge = Arc::new(bridge);
    let backend = Arc::new(ClusterBackend::new(Arc::clone(&bridge) as Arc<dyn Machines>));
    Ok(Some(Cluster { backend, bridge }))
}

/// A pipeline on it.
pub fn pipeline(settings: &FitSettings, cluster: Option<&Cluster>) -> Result<Pipeline, CliError> {
    let pipeline = Pipeline::new(settings.clone())?;
    Ok(match cluster {
        Some(cluster) => pipeline.with_backend(Arc::clone(&cluster.backend)),
        None => pipeline,
    })
}

fn check(settings: &FitSettings) -> Result<(), CliError> {
    let refused = |why: &str| Err(CliError::Usage(why.to_owned()));
    if settings.primal {
        return refused(
            "--ray is about kernel values, and --primal has none; leave one of them out",
        );
    }
    if matches!(settings.device, DeviceChoice::Cuda(_)) {
        return refused(
            "--ray computes on the cluster's machines, and --device on one of this machine; leave \
             one of them out",
        );
    }
    Ok(())
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
