//! Threads for predictions.
//!
//! Rayon's global pool does not survive a fork: a child would wait for threads it does not have.
//! Each process makes its own here.

use argwhy::machine::thread_pool;
use pyo3::PyResult;
use rayon::ThreadPool;
use std::collections::HashMap;
use std::mem;
use std::process;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::exception;

struct Pools {
    process: u32,
    by_threads: HashMap<Option<usize>, Arc<ThreadPool>>,
}

static POOLS: Mutex<Option<Pools>> = Mutex::new(None);

/// The pool with as many threads as asked for; none means one a core.
pub fn pool(threads: Option<usize>) -> PyResult<Arc<ThreadPool>> {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let process = process::id();
    let pools = pools.get_or_insert_with(|| Pools { process, by_threads: HashMap::new() });
    if pools.process != process {
        // Those threads stayed in the parent; waiting for them to end would take forever.
        mem::forget(mem::take(&mut pools.by_threads));
        pools.process = process;
    }
    if let Some(pool) = pools.by_threads.get(&threads) {
        return Ok(Arc::clone(pool));
    }
    let pool = Arc::new(thread_pool(threads).map_err(exception)?);
    pools.by_threads.insert(threads, Arc::clone(&pool));
    Ok(pool)
}
