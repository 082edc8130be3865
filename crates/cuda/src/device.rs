//! A GPU that can run the kernels: found, checked, its memory and its loaded programs.
#![allow(unsafe_code)]

use crate::error::Error;
use crate::programs;
use cudarc::driver::sys::{
    CUdevice_attribute, CUfunction_attribute, CUmemPool_attribute, CUresult,
};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaModule, CudaSlice, CudaStream, DeviceRepr, DriverError,
    PinnedHostSlice, ValidAsZeroBits, result,
};
use cudarc::nvrtc::Ptx;
use ndarray::ArrayViewMut2;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// CUDA 12.0, whose PTX is embedded (`kernels/build.py`); a driver loads its own version's PTX and
/// older.
const OLDEST_DRIVER: i32 = 12_000;
/// f16 tensor cores with asynchronous copies: Ampere.
const OLDEST_CAPABILITY: (i32, i32) = (8, 0);

/// What was found out about a GPU that can be used. Displays as one sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// Name as the driver gives it.
    pub name: String,
    /// Compute capability, for example (9, 0).
    pub capability: (i32, i32),
    /// CUDA version of the driver, for example 13000 for 13.0.
    pub driver: i32,
    /// Bytes of memory.
    pub total_memory: usize,
    /// Bytes of it that are free.
    pub free_memory: usize,
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gib = |bytes: usize| bytes as f64 / f64::from(1 << 30);
        let (major, minor) = self.capability;
        let (free, total) = (gib(self.free_memory), gib(self.total_memory));
        let driver = version(self.driver);
        write!(
            f,
            "{} (compute capability {major}.{minor}, driver for CUDA {driver}) has {free:.1} of \
             {total:.1} GiB free",
            self.name
        )
    }
}

/// Whether GPU number `ordinal` can be used, and if not, why, in a sentence.
pub fn probe(ordinal: usize) -> Result<Probe, Error> {
    Device::new(ordinal)?.probe()
}

/// A GPU, ready to run the kernels. Clones share it.
#[derive(Clone)]
pub struct Device {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    driver: i32,
    modules: Arc<Mutex<HashMap<&'static str, Arc<CudaModule>>>>,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.context.ordinal())
    }
}

/// What lies on the GPU is given back by whichever thread drops it, and the driver has to have been
/// told there which GPU is meant; cudarc would keep the driver's complaint for the next call,
/// wherever that is. Whoever holds buffers names its device before them, so that this comes first.
impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: the context lives as long as `self.context` does.
        let _ = unsafe { result::ctx::set_current(self.context.cu_ctx()) };
    }
}

impl Device {
    /// GPU number `ordinal`, from 0, in the driver's order. Opened once a process: fits one after
    /// the other share it and its loaded programs.
    pub fn new(ordinal: usize) -> Result<Self, Error> {
        static OPEN: Mutex<BTreeMap<usize, Device>> = Mutex::new(BTreeMap::new());
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(device) = open.get(&ordinal) {
            return Ok(device.clone());
        }
        let device = Self::open(ordinal)?;
        open.insert(ordinal, device.clone());
        Ok(device)
    }

    fn open(ordinal: usize) -> Result<Self, Error> {
        // SAFETY: loads libcuda, which runs its initialisers; it is the vendor's own library.
        if !unsafe { cudarc::driver::sys::is_culib_present() } {
            return Err(Error::NoDriver);
        }
        let driver = driver_version()?;
        check_driver(driver)?;
        // Without any GPU, or with a driver that does not fit its kernel module, this is what
        // fails.
        let count = match result::init().and_then(|()| CudaContext::device_count()) {
            Ok(count) => count.unsigned_abs() as usize,
            Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE)) => 0,
            Err(error) => return Err(Error::from_driver("starting", error)),
        };
        if ordinal >= count {
            return Err(Error::NoDevice { ordinal, count });
        }
        let context = CudaContext::new(ordinal).map_err(|error| match error.0 {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                Error::NoMemory { what: "a context", needed: CONTEXT_BYTES, free: 0 }
            }
            _ => Error::from_driver("opening the GPU", error),
        })?;
        let doing = |error| Error::from_driver("asking the GPU for its kind", error);
        let capability = context.compute_capability().map_err(doing)?;
        check_capability(&context.name().map_err(doing)?, capability)?;
        let stream = context.default_stream();
        let device = Self { context, stream, driver, modules: Arc::default() };
        device.keep_freed_memory()?;
        Ok(device)
    }

    /// Buffers come and go with every product: the driver is to keep what is freed, not to give it
    /// back and ask for it again.
    fn keep_freed_memory(&self) -> Result<(), Error> {
        if !self.context.has_async_alloc() {
            return Ok(());
        }
        let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        let mut all = u64::MAX;
        // SAFETY: the device is that of a living context, and the attribute is a 64-bit number.
        unsafe {
            result::device::get_default_mem_pool(self.context.cu_device())
                .and_then(|pool| {
                    result::mem_pool::set_attribute(pool, attribute, (&raw mut all).cast())
                })
                .map_err(pooling)
        }
    }

    /// Gives back what was freed and kept, so that [`probe`](Self::probe) counts it.
    pub(crate) fn trim(&self) -> Result<(), Error> {
        if !self.context.has_async_alloc() {
            return Ok(());
        }
        self.synchronize()?;
        // SAFETY: as in `keep_freed_memory`; nothing in use is given back.
        unsafe {
            result::device::get_default_mem_pool(self.context.cu_device())
                .and_then(|pool| result::mem_pool::trim_to(pool, 0))
                .map_err(pooling)
        }
    }

    /// Multiprocessors.
    pub(crate) fn n_multiprocessors(&self) -> Result<usize, Error> {
        let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        let doing = |error| Error::from_driver("asking for multiprocessors", error);
        Ok(self.context.attribute(attribute).map_err(doing)?.unsigned_abs() as usize)
    }

    /// What this GPU is, and how much memory it has left.
    pub fn probe(&self) -> Result<Probe, Error> {
        let doing = |error| Error::from_driver("asking the GPU for its memory", error);
        let (free_memory, total_memory) = self.context.mem_get_info().map_err(doing)?;
        Ok(Probe {
            name: self.context.name().map_err(doing)?,
            capability: self.context.compute_capability().map_err(doing)?,
            driver: self.driver,
            total_memory,
            free_memory,
        })
    }

    /// Waits until everything asked for so far is done.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.stream.synchronize().map_err(|error| Error::from_driver("computing", error))
    }

    pub(crate) fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// A stream beside the one that kernels run in.
    pub(crate) fn new_stream(&self) -> Result<Arc<CudaStream>, Error> {
        self.context.new_stream().map_err(|error| Error::from_driver("opening a stream", error))
    }

    /// Memory of the host that copies go to and from at full speed, not set to anything.
    pub(crate) fn pinned<T: DeviceRepr>(&self, len: usize) -> Result<PinnedHostSlice<T>, Error> {
        // SAFETY: callers write to all of it before they read.
        unsafe { self.context.alloc_pinned(len) }
            .map_err(|error| Error::from_driver("pinning memory of the host", error))
    }

    /// Bytes of shared memory: the most of one block, and all of a multiprocessor.
    pub(crate) fn shared_memory(&self) -> Result<(usize, usize), Error> {
        let ask = |attribute| {
            let found = self.context.attribute(attribute);
            let found = found.map_err(|e| Error::from_driver("asking for shared memory", e))?;
            Ok(found.unsigned_abs() as usize)
        };
        Ok((
            ask(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            ask(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
        ))
    }

    /// The entry point `function` of an embedded program, which may then use `shared_bytes` of
    /// shared memory.
    pub(crate) fn function(
        &self,
        program: &'static str,
        function: &str,
        shared_bytes: usize,
    ) -> Result<CudaFunction, Error> {
        let doing = |error| Error::from_driver("loading a kernel", error);
        // Other threads than the one that opened the GPU may ask.
        self.context.bind_to_thread().map_err(doing)?;
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if !modules.contains_key(program) {
            let ptx = Ptx::from_src(programs::ptx(program));
            modules.insert(program, self.context.load_module(ptx).map_err(doing)?);
        }
        let function = modules[program].load_function(function).map_err(doing)?;
        if shared_bytes > 48 * 1024 {
            let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            function.set_attribute(attribute, int(shared_bytes)).map_err(doing)?;
        }
        Ok(function)
    }

    /// Zeros on the GPU.
    pub(crate) fn zeros<T: DeviceRepr + ValidAsZeroBits>(
        &self,
        what: &'static str,
        len: usize,
    ) -> Result<CudaSlice<T>, Error> {
        let bytes = len * size_of::<T>();
        // The driver has no buffers of nothing.
        self.stream.alloc_zeros(len.max(1)).map_err(|error| self.no_memory(what, bytes, error))
    }

    /// A copy on the GPU.
    pub(crate) fn upload<T: DeviceRepr>(
        &self,
        what: &'static str,
        data: &[T],
    ) -> Result<CudaSlice<T>, Error> {
        let bytes = size_of_val(data);
        self.stream.clone_htod(data).map_err(|error| self.no_memory(what, bytes, error))
    }

    /// A copy on the host, once everything before it is done.
    pub(crate) fn download<T: DeviceRepr + Clone + Default>(
        &self,
        data: &CudaSlice<T>,
    ) -> Result<Vec<T>, Error> {
        let copy = self.stream.clone_dtoh(data).map_err(|e| Error::from_driver("computing", e))?;
        self.synchronize()?;
        Ok(copy)
    }

    /// As [`download`](Self::download), into room that is there.
    pub(crate) fn download_into<T: DeviceRepr>(
        &self,
        data: &CudaSlice<T>,
        out: &mut [T],
    ) -> Result<(), Error> {
        let copied = self.stream.memcpy_dtoh(data, out);
        copied.map_err(|e| Error::from_driver("computing", e))?;
        self.synchronize()
    }

    /// The same for rows of vectors, however they lie in memory.
    pub(crate) fn download_rows(
        &self,
        data: &CudaSlice<f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        if let Some(out) = out.as_slice_mut() {
            return self.download_into(data, out);
        }
        let found = self.download(data)?;
        out.iter_mut().zip(found).for_each(|(out, found)| *out = found);
        Ok(())
    }

    fn no_memory(&self, what: &'static str, needed: usize, error: DriverError) -> Error {
        if error.0 != CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            return Error::from_driver("reserving memory", error);
        }
        let free = self.context.mem_get_info().map_or(0, |(free, _)| free);
        Error::NoMemory { what, needed, free }
    }
}

fn pooling(error: DriverError) -> Error {
    Error::from_driver("asking for the pool of memory", error)
}

/// What a context takes, about, on GPUs of today.
const CONTEXT_BYTES: usize = 500 << 20;

fn driver_version() -> Result<i32, Error> {
    let mut version = 0;
    // SAFETY: libcuda is there (see `Device::new`) and writes one int.
    let answer = unsafe { cudarc::driver::sys::cuDriverGetVersion(&raw mut version) };
    answer
        .result()
        .map_err(|error| Error::from_driver("asking for the driver's version", error))?;
    Ok(version)
}

fn check_driver(found: i32) -> Result<(), Error> {
    if found >= OLDEST_DRIVER {
        return Ok(());
    }
    Err(Error::OldDriver { found: version(found), needed: version(OLDEST_DRIVER) })
}

fn check_capability(name: &str, found: (i32, i32)) -> Result<(), Error> {
    if found >= OLDEST_CAPABILITY {
        return Ok(());
    }
    Err(Error::OldDevice { name: name.to_owned(), found: format!("{}.{}", found.0, found.1) })
}

/// A count as kernels take it.
pub(crate) fn int(count: usize) -> i32 {
    i32::try_from(count).expect("counts other than those of samples are far below 2^31")
}

/// 12040 is 12.4.
fn version(number: i32) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_answers_in_one_sentence_with_or_without_a_gpu() {
        let sentence = match probe(0) {
            Ok(found) => found.to_string(),
            Err(error) => error.to_string(),
        };
        assert!(!sentence.contains('\n') && sentence.len() > 30, "{sentence}");
        if let Err(Error::NoDriver) = probe(0) {
            assert!(sentence.contains("no NVIDIA driver on this machine"), "{sentence}");
        }
    }

    #[test]
    fn an_old_driver_is_refused_with_both_versions() {
        assert_eq!(check_driver(OLDEST_DRIVER), Ok(()));
        let message = check_driver(11_080).unwrap_err().to_string();
        assert!(message.contains("supports CUDA 11.8 and 12.0 is needed"), "{message}");
    }

    #[test]
    fn a_gpu_before_ampere_is_refused_by_name() {
        assert_eq!(check_capability("H200", (9, 0)), Ok(()));
        assert_eq!(check_capability("B200", (10, 0)), Ok(()));
        let message = check_capability("Tesla V100", (7, 0)).unwrap_err().to_string();
        assert!(message.starts_with("Tesla V100 has compute capability 7.0"), "{message}");
    }

    #[test]
    fn a_full_gpu_says_what_did_not_fit() {
        let error = Error::NoMemory { what: "the features", needed: 640, free: 100 };
        let message = error.to_string();
        assert!(message.starts_with("the features needs 640 bytes on the GPU and 100 are free"));
    }
}
