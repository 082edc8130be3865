//! Threads for predictions.
//!
//! Rayon's global pool does not survive a fork: a child would wait for threads it does not have. Each process makes its own here.

use argwhy::settings::check_threads;
use pyo3::PyResult;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::HashMap;
use std::mem;
use std::process;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::told;

struct Pools {
    process: u32,
    by_threads: HashMap<usize, Arc<ThreadPool>>,
}

static POOLS: Mutex<Option<Pools>> = Mutex::new(None);

/// The pool with as many threads as asked for; none means one a core.
pub fn pool(threads: Option<usize>) -> PyResult<Arc<ThreadPool>> {
    check_threads(threads).map_err(told)?;
    let n_threads = threads.unwrap_or(0);
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let process = process::id();
    let pools = pools.get_or_insert_with(|| Pools { process, by_threads: HashMap::new() });
    if pools.process != process {
        // Those threads stayed in the parent; waiting for them to end would take forever.
        mem::forget(mem::take(&mut pools.by_threads));
        pools.process = process;
    }
    if let Some(pool) = pools.by_threads.get(&n_threads) {
        return Ok(Arc::clone(pool));
    }
    let pool = ThreadPoolBuilder::new()
        .num_threads(n_threads)
        .build()
        .map_err(|e| told(argwhy::Error::Threads { n_threads, why: e.to_string() }))?;
    let pool = Arc::new(pool);
    pools.by_threads.insert(n_threads, Arc::clone(&pool));
    Ok(pool)
}
