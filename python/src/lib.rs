//! The compiled half of the Python package: arrays in, the pipeline of the crate `argwhy`, arrays
//! out.
//!
//! No mathematics and no defaults live here or in Python: settings pass through the same reader as
//! the command's config file, errors keep their words. While a solver or a prediction runs, the
//! interpreter is free. The Python half (`argwhy/`) turns whatever people have into NumPy arrays,
//! and the result into an estimator.

mod array;
mod choosing;
mod cluster;
mod constraints;
mod data;
mod error;
mod experts;
mod explain;
mod fit;
mod model;
mod panels;
mod pool;
mod progress;
mod record;
mod search;
mod settings;

use pyo3::prelude::*;

/// The module `argwhy._argwhy`.
#[pymodule]
mod _argwhy {
    #[pymodule_export]
    use crate::choosing::judge;
    #[pymodule_export]
    use crate::cluster::{Shard, add_part, cluster_layout, multiply_pairs};
    #[pymodule_export]
    use crate::data::{describe, load};
    #[pymodule_export]
    use crate::error::panic;
    #[pymodule_export]
    use crate::experts::{charging, quadrotor};
    #[pymodule_export]
    use crate::explain::{explain, explain_one, familiarity};
    #[pymodule_export]
    use crate::fit::{Fit, Left, fit};
    #[pymodule_export]
    use crate::model::{Model, load_model, model_from_bytes, r2};
    #[pymodule_export]
    use crate::panels::{Panels, panel_starts, spread_from};
    #[pymodule_export]
    use crate::progress::Iteration;
    #[pymodule_export]
    use crate::search::Search;
    #[pymodule_export]
    use crate::settings::{defaults, preset, resolved};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
