//! Slices that start on a cache line, large ones on large pages where the system has them.
//!
//! A vector of 64 bytes read from any other place touches two lines, which halves the rate at which
//! a processor can load. And with pages of 4 KiB a matrix of some gigabytes costs a fault for each
//! when it is made and a look-up for each when it is read.
#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};

const LINE: usize = 64;

/// A fixed number of elements from the start of a cache line on.
pub(crate) struct Aligned<T> {
    data: Vec<T>,
    start: usize,
    len: usize,
}

impl<T: Copy + Default> Aligned<T> {
    /// `len` times the default, which for numbers is zero.
    pub(crate) fn zeros(len: usize) -> Self {
        let data = vec![T::default(); len + Self::SPARE];
        prefer_large_pages(&data);
        // What cannot be aligned is still right.
        let start = match data.as_ptr().align_offset(LINE) {
            start if start < Self::SPARE => start,
            _ => 0,
        };
        Self { data, start, len }
    }

    const SPARE: usize = LINE / size_of::<T>();
}

/// Bytes from which large pages are worth asking for.
#[cfg(target_os = "linux")]
const LARGE: usize = 4 << 20;

/// Asks the system to hold `data`, untouched so far, in large pages. It may have none; then nothing
/// changes.
#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
pub(crate) fn prefer_large_pages<T>(data: &[T]) {
    #[cfg(target_os = "linux")]
    if size_of_val(data) >= LARGE {
        const PAGE: usize = 4096;
        let first = data.as_ptr().cast::<u8>();
        let skipped = first.align_offset(PAGE).min(size_of_val(data));
        let len = (size_of_val(data) - skipped) / PAGE * PAGE;
        // SAFETY: whole pages inside a live allocation, and this advice changes nothing a program
        // can read. On systems with larger pages than assumed the call is refused, which is fine.
        unsafe {
            libc::madvise(first.add(skipped).cast_mut().cast(), len, libc::MADV_HUGEPAGE);
        }
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.data[self.start..self.start + self.len]
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.data[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_on_a_cache_line_whatever_its_length() {
        for len in [0, 1, 7, 100, 4097] {
            let (single, mut double) = (Aligned::<f32>::zeros(len), Aligned::<f64>::zeros(len));
            assert_eq!((single.len(), double.len()), (len, len));
            assert_eq!(single.as_ptr() as usize % LINE, 0);
            assert_eq!(double.as_ptr() as usize % LINE, 0);
            double.iter_mut().for_each(|v| *v += 1.0);
            assert_eq!(double.iter().sum::<f64>(), len as f64);
        }
    }
}
