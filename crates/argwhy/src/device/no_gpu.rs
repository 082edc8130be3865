//! No GPU: a static program can't load a driver.

use super::{Examined, Unusable};
use argwhy_core::Kernel;
use argwhy_core::backend::Backend;
use std::sync::Arc;

const WHY: &str = "this build is static and can't load a GPU's driver; build it for glibc, or use \
                   the Python package";

pub(super) fn open(_ordinal: usize, _limit: Option<u64>) -> Result<Arc<dyn Backend>, Unusable> {
    Err(Unusable::Absent(WHY.to_owned()))
}

pub(super) fn open_for(
    ordinal: usize,
    limit: Option<u64>,
    _kernel: &Kernel,
    _sizes: [usize; 2],
) -> Result<Arc<dyn Backend>, Unusable> {
    open(ordinal, limit)
}

pub(super) fn examine() -> Result<Examined, String> {
    Err(WHY.to_owned())
}
