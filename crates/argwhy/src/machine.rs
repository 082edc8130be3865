//! What the machine tells about itself.

use crate::error::Error;
use crate::settings::check_threads;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::fs;

/// Highest resident memory of this process so far, in bytes; none where the system does not tell.
pub fn peak_memory_bytes() -> Option<u64> {
    kibibytes(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// Memory that could be had right now, in bytes; none where the system does not tell.
pub fn available_memory_bytes() -> Option<u64> {
    kibibytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// Memory of this machine, in bytes; none where the system does not tell.
pub fn total_memory_bytes() -> Option<u64> {
    kibibytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")
}

/// Memory this process could reach at most, in bytes: what it has, what is free and what can be
/// swapped out; none where the system does not tell.
pub fn reachable_memory_bytes() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let own = kibibytes(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")?;
    Some(own + kibibytes(&meminfo, "MemAvailable:")? + kibibytes(&meminfo, "SwapFree:")?)
}

/// Cores this process may use.
pub fn n_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Lets the allocator give back what is freed, once for the whole process: a memory limit is about
/// what the process holds, and glibc would keep all that each thread has ever freed, in a place of
/// its own for each. Blocks of `large` bytes or more go back at once, and of smaller ones each
/// place keeps a little; a megabyte suits programs whose vectors nothing else keeps. For programs,
/// before they start threads; a library leaves this to them. Does nothing where the allocator is
/// another.
pub fn give_back_freed_memory(large: usize) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code)]
    // SAFETY: these set limits inside the allocator, and one that it does not know is ignored.
    unsafe {
        let large = libc::c_int::try_from(large).unwrap_or(libc::c_int::MAX);
        // From here on memory comes from the system and goes back at once. Named, it no longer
        // grows to 32 MiB with what is freed.
        libc::mallopt(libc::M_MMAP_THRESHOLD, large);
        libc::mallopt(libc::M_TRIM_THRESHOLD, large.max(LEAST_TRIMMED));
        libc::mallopt(libc::M_ARENA_MAX, MOST_ARENAS);
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = large;
}

/// Asks the system to hold a block, untouched so far, in pages of 2 MiB where these lie in it as a
/// whole: pages of 4 KiB cost a fault each, which takes as long as clearing them does. It may have
/// none; then nothing changes.
///
/// # Safety
/// The block must be allocated, and as long as said.
#[allow(unsafe_code)]
pub unsafe fn prefer_large_pages(block: *mut u8, len: usize) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        let skipped = block.align_offset(PAGE).min(len);
        // SAFETY: whole pages inside the block, and this advice changes nothing a program can
        // read. On systems with larger pages than assumed the call is refused, which is fine.
        unsafe {
            let len = (len - skipped) / PAGE * PAGE;
            libc::madvise(block.add(skipped).cast(), len, libc::MADV_HUGEPAGE);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (block, len);
}

/// What each place may keep at its end, so that small blocks that come and go cost nothing.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LEAST_TRIMMED: libc::c_int = 128 << 10;
/// Places for small allocations: as many as threads are counted in what a plan reserves for the
/// program itself. Further threads share them.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MOST_ARENAS: libc::c_int = 16;

/// As many threads as asked for; none means one a core. Fails for a number nobody can mean, and
/// where the system has no more.
pub fn thread_pool(threads: Option<usize>) -> Result<ThreadPool, Error> {
    check_threads(threads)?;
    let n_threads = threads.unwrap_or(0);
    let built = ThreadPoolBuilder::new().num_threads(n_threads).build();
    built.map_err(|e| Error::Threads { n_threads, why: e.to_string() })
}

fn kibibytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}
