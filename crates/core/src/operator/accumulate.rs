//! A strip of kernel values times vectors, in f64.
//!
//! For rows r of a strip K and columns c of the right-hand side: sums\[c\]\[r\] += Σ_j K_rj
//! v\[c\]\[j\], and, where the strip stands for its mirror image too, y\[c\]\[j\] += Σ_r K_rj
//! w\[c\]\[r\]. Each kernel value is loaded and widened once for all of that.
#![allow(unsafe_code)]

use crate::kernel::layout::{BLOCK, STRIP};
use crate::linalg::simd::{Arch, Isa, Lanes, Task, Widen, sum_lanes};

/// sums\[c·BLOCK + r\] += Σ_j strip\[r·BLOCK + j\] · v\[c·BLOCK + j\] for r < n_rows, j < len.
pub(crate) fn accumulate_rows<T: Widen>(
    isa: Isa,
    strip: &[T],
    n_rows: usize,
    len: usize,
    v: &[f64],
    sums: &mut [f64],
    n_vectors: usize,
) {
    check(strip.len(), n_rows, len, v.len(), sums.len(), n_vectors);
    let pass = Pass::<T, true, false> {
        strip: strip.as_ptr(),
        n_rows,
        len,
        n_vectors,
        v: v.as_ptr(),
        sums: sums.as_mut_ptr(),
        w: std::ptr::null(),
        y: std::ptr::null_mut(),
    };
    // SAFETY: `isa` was detected on this machine; `check` bounds every access; without COLUMNS
    // neither `w` nor `y` is touched.
    unsafe { isa.run(pass) }
}

/// y\[c·BLOCK + j\] += Σ_r strip\[r·BLOCK + j\] · w\[c·BLOCK + r\] for r < n_rows, j < len.
pub(crate) fn accumulate_columns<T: Widen>(
    isa: Isa,
    strip: &[T],
    n_rows: usize,
    len: usize,
    w: &[f64],
    y: &mut [f64],
    n_vectors: usize,
) {
    check(strip.len(), n_rows, len, y.len(), w.len(), n_vectors);
    let pass = Pass::<T, false, true> {
        strip: strip.as_ptr(),
        n_rows,
        len,
        n_vectors,
        v: std::ptr::null(),
        sums: std::ptr::null_mut(),
        w: w.as_ptr(),
        y: y.as_mut_ptr(),
    };
    // SAFETY: as above; without ROWS neither `v` nor `sums` is touched.
    unsafe { isa.run(pass) }
}

/// Both sides of an off-diagonal strip of eight rows; `w` and `sums` start at the strip's first
/// row.
pub(crate) fn accumulate_both<T: Widen>(
    isa: Isa,
    strip: &[T],
    len: usize,
    (v, y): (&[f64], &mut [f64]),
    (w, sums): (&[f64], &mut [f64]),
    n_vectors: usize,
) {
    check(strip.len(), STRIP, len, v.len(), sums.len(), n_vectors);
    check(strip.len(), STRIP, len, y.len(), w.len(), n_vectors);
    let pass = Pass::<T, true, true> {
        strip: strip.as_ptr(),
        n_rows: STRIP,
        len,
        n_vectors,
        v: v.as_ptr(),
        sums: sums.as_mut_ptr(),
        w: w.as_ptr(),
        y: y.as_mut_ptr(),
    };
    // SAFETY: as above; `y` is borrowed mutably, so it overlaps nothing.
    unsafe { isa.run(pass) }
}

fn check(strip: usize, n_rows: usize, len: usize, long: usize, short: usize, n_vectors: usize) {
    assert!(
        (1..=STRIP).contains(&n_rows) && len <= BLOCK && len.is_multiple_of(8) && n_vectors > 0
    );
    assert!(strip >= (n_rows - 1) * BLOCK + len);
    assert!(long >= (n_vectors - 1) * BLOCK + len);
    assert!(short >= (n_vectors - 1) * BLOCK + n_rows);
}

/// ROWS: add to `sums`; COLUMNS: add to `y`.
struct Pass<T, const ROWS: bool, const COLUMNS: bool> {
    strip: *const T,
    n_rows: usize,
    len: usize,
    n_vectors: usize,
    v: *const f64,
    sums: *mut f64,
    w: *const f64,
    y: *mut f64,
}

impl<T: Widen, const ROWS: bool, const COLUMNS: bool> Task for Pass<T, ROWS, COLUMNS> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<A: Arch>(self) {
        let mut c = 0;
        // SAFETY: groups of vectors stay below n_vectors, groups of rows below n_rows.
        unsafe {
            while c < self.n_vectors {
                // Sums, factors and vectors of four rows and three vectors are 31 registers: all
                // that AVX-512 has.
                c += match self.n_vectors - c {
                    1 => self.rows::<A, 1>(c),
                    2 | 4 => self.rows::<A, 2>(c),
                    _ => self.rows::<A, 3>(c),
                };
            }
        }
    }
}

impl<T: Widen, const ROWS: bool, const COLUMNS: bool> Pass<T, ROWS, COLUMNS> {
    #[inline(always)]
    unsafe fn rows<A: Arch, const C: usize>(&self, c: usize) -> usize {
        let mut r = 0;
        // SAFETY: the caller's.
        unsafe {
            if A::WIDE {
                while r + 4 <= self.n_rows {
                    self.group::<A, 4, C>(r, c);
                    r += 4;
                }
            }
            while r + 2 <= self.n_rows {
                self.group::<A, 2, C>(r, c);
                r += 2;
            }
            if r < self.n_rows {
                self.group::<A, 1, C>(r, c);
            }
        }
        C
    }

    #[inline(always)]
    unsafe fn group<A: Arch, const R: usize, const C: usize>(&self, r: usize, c: usize) {
        let zero = || {
            // SAFETY: arithmetic of the instruction set the caller vouches for.
            unsafe { A::F64::splat(0.0) }
        };
        // SAFETY: rows r..r+R and vectors c..c+C exist; len is a multiple of every vector length.
        unsafe {
            let at = |p: *const f64, k: usize, i: usize| p.wrapping_add((c + k) * BLOCK + i);
            let strip = self.strip.add(r * BLOCK);
            let mut acc = [[zero(); C]; R];
            // Loaded before the loop: the compiler cannot know that nothing stored there changes
            // them.
            let mut w = [[zero(); C]; R];
            if COLUMNS {
                for (i, w) in w.iter_mut().enumerate() {
                    for (k, w) in w.iter_mut().enumerate() {
                        *w = A::F64::splat(*at(self.w, k, r + i));
                    }
                }
            }
            let mut j = 0;
            while j < self.len {
                let mut v = [zero(); C];
                let mut y = [zero(); C];
                for k in 0..C {
                    if ROWS {
                        v[k] = A::F64::load(at(self.v, k, j));
                    }
                    if COLUMNS {
                        y[k] = A::F64::load(at(self.y, k, j));
                    }
                }
                for (i, (acc, w)) in acc.iter_mut().zip(&w).enumerate() {
                    let value = T::load_wide::<A>(strip.add(i * BLOCK + j));
                    A::prefetch(strip.wrapping_add(i * BLOCK + j + STRIP * BLOCK));
                    for k in 0..C {
                        if ROWS {
                            acc[k] = A::F64::fma(value, v[k], acc[k]);
                        }
                        if COLUMNS {
                            y[k] = A::F64::fma(value, w[k], y[k]);
                        }
                    }
                }
                if COLUMNS {
                    for (k, &y) in y.iter().enumerate() {
                        A::F64::store(self.y.add((c + k) * BLOCK + j), y);
                    }
                }
                j += A::F64::LANES;
            }
            if ROWS {
                for (i, acc) in acc.iter().enumerate() {
                    for (k, &lanes) in acc.iter().enumerate() {
                        *self.sums.add((c + k) * BLOCK + r + i) += sum_lanes::<A::F64>(lanes);
                    }
                }
            }
        }
    }
}
