//! All samples of a data set, packed for every simple kernel of a kernel, and strips of the
//! kernel's values.
//!
//! A kernel without sums and products has one part, and its strips are that part's: nothing is
//! added to what `tile` does. Parts of others are computed strip by strip into spare strips and
//! combined there, so that no more than a strip of each exists.
#![allow(unsafe_code)]

use super::Kernel;
use super::layout::{BLOCK, STRIP};
use super::panels::{self, Panels};
use super::recipe::{Leaf, Node, Operation, Recipe};
use crate::linalg::aligned::Aligned;
use crate::linalg::simd::{Arch, Isa, Lanes, Task, Vectors};
use ndarray::{ArrayView1, ArrayView2};

/// A data set packed for a kernel.
pub(crate) struct Samples<T> {
    recipe: Recipe,
    len: usize,
    n_features: usize,
    parts: Vec<Part<T>>,
}

enum Part<T> {
    Packed(Panels<T>),
    /// Features of a user's kernel, sample by sample, in f64 whatever the precision.
    Custom(Vec<f64>),
}

/// Up to eight rows of a strip.
#[derive(Clone, Copy)]
pub(crate) enum StripRows<'a, T> {
    /// Eight samples of a block from one on (a multiple of eight), as they stand.
    InPlace { block: usize, row: usize },
    /// Rows from anywhere.
    Packed(&'a RowPack<T>),
}

/// Room for eight rows that come from anywhere.
pub(crate) struct RowPack<T> {
    parts: Vec<RowPart<T>>,
}

enum RowPart<T> {
    Packed(panels::RowPack<T>),
    Custom(Vec<f64>),
}

impl<T: Vectors> Samples<T> {
    /// Packs the rows of `features`. Cost: one pass, [`bytes`](Self::bytes) of memory.
    pub(crate) fn new(recipe: Recipe, features: ArrayView2<'_, f64>) -> Self {
        let (len, n_features) = features.dim();
        let parts = recipe
            .leaves
            .iter()
            .map(|leaf| match leaf {
                Leaf::Packed(packing) => Part::Packed(Panels::new(packing.clone(), features)),
                Leaf::Custom(_, scale) => {
                    let mut data = Vec::with_capacity(len * n_features);
                    features.rows().into_iter().for_each(|row| data.extend(scaled(row, scale)));
                    Part::Custom(data)
                }
            })
            .collect();
        Self { recipe, len, n_features, parts }
    }

    /// The listed samples, packed anew.
    pub(crate) fn select(&self, samples: &[usize]) -> Self {
        let d = self.n_features;
        let select = |part: &Part<T>| match part {
            Part::Packed(panels) => Part::Packed(panels.select(samples)),
            Part::Custom(data) => {
                let rows = samples.iter().flat_map(|&i| &data[i * d..(i + 1) * d]);
                Part::Custom(rows.copied().collect())
            }
        };
        Self {
            recipe: self.recipe.clone(),
            len: samples.len(),
            n_features: d,
            parts: self.parts.iter().map(select).collect(),
        }
    }

    /// Bytes the packed samples take.
    pub(crate) fn bytes(kernel: &Kernel, n_samples: usize, n_features: usize) -> u64 {
        // A user's kernel keeps f64; those are counted as if all parts were.
        let one = match kernel.custom_part() {
            None => Panels::<T>::bytes(n_samples, n_features),
            Some(_) => Panels::<f64>::bytes(n_samples, n_features),
        };
        kernel.n_parts() as u64 * one
    }

    pub(crate) fn n_blocks(&self) -> usize {
        self.len.div_ceil(BLOCK)
    }

    /// Samples in `block`, filling included: a multiple of the panel width.
    pub(crate) fn block_len(&self, block: usize) -> usize {
        (self.len.next_multiple_of(T::PANEL) - block * BLOCK).min(BLOCK)
    }

    /// Which parts compare the sample's panel by differences: samples of one kind can be computed
    /// together, and each has the same bits then as from its own panel.
    pub(crate) fn kind(&self, sample: usize) -> u64 {
        let heavy = |part: &Part<T>| match part {
            Part::Packed(panels) => u64::from(panels.is_heavy(sample)),
            Part::Custom(_) => 0,
        };
        self.parts.iter().enumerate().map(|(at, part)| heavy(part) << at).sum()
    }

    /// Room for rows.
    pub(crate) fn row_pack(&self) -> RowPack<T> {
        let room = |part: &Part<T>| match part {
            Part::Packed(_) => RowPart::Packed(panels::RowPack::new(self.n_features)),
            Part::Custom(_) => RowPart::Custom(vec![0.0; STRIP * self.n_features]),
        };
        RowPack { parts: self.parts.iter().map(room).collect() }
    }

    /// Copies up to eight samples of one [`kind`](Self::kind), wherever they stand, into `rows`.
    pub(crate) fn gather(&self, samples: &[usize], rows: &mut RowPack<T>) {
        let d = self.n_features;
        for (part, rows) in self.parts.iter().zip(&mut rows.parts) {
            match (part, rows) {
                (Part::Packed(panels), RowPart::Packed(rows)) => panels.gather(samples, rows),
                (Part::Custom(data), RowPart::Custom(rows)) => {
                    for (r, &i) in samples.iter().enumerate() {
                        rows[r * d..(r + 1) * d].copy_from_slice(&data[i * d..(i + 1) * d]);
                    }
                }
                _ => unreachable!("rows are made for the samples they are used with"),
            }
        }
    }

    /// Packs up to eight rows of features, which need not be samples.
    pub(crate) fn pack(&self, features: ArrayView2<'_, f64>, rows: &mut RowPack<T>) {
        let d = self.n_features;
        for (leaf, rows) in self.recipe.leaves.iter().zip(&mut rows.parts) {
            match (leaf, rows) {
                (Leaf::Packed(packing), RowPart::Packed(rows)) => rows.pack(packing, features),
                (Leaf::Custom(_, scale), RowPart::Custom(rows)) => {
                    for (r, row) in features.rows().into_iter().enumerate() {
                        let to = &mut rows[r * d..(r + 1) * d];
                        to.iter_mut().zip(scaled(row, scale)).for_each(|(to, z)| *to = z);
                    }
                }
                _ => unreachable!("rows are made for the samples they are used with"),
            }
        }
    }

    /// Numbers that [`compute`](Self::compute) needs room for; none for kernels of one part.
    pub(crate) fn spare_len(&self) -> usize {
        self.recipe.n_spare() * STRIP * BLOCK
    }

    /// That room.
    pub(crate) fn spare(&self) -> Aligned<T> {
        Aligned::zeros(self.spare_len())
    }

    /// out\[r·BLOCK + j\] = κ(row r, sample j of `block`) for the first `n_rows` rows.
    pub(crate) fn compute(
        &self,
        isa: Isa,
        rows: StripRows<'_, T>,
        n_rows: usize,
        block: usize,
        out: &mut [T],
        spare: &mut [T],
    ) {
        let strip = StripTask { samples: self, isa, rows, n_rows, block };
        strip.compute(&self.recipe.root, out, spare);
    }
}

fn scaled<'a>(row: ArrayView1<'a, f64>, scale: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
    row.into_iter().zip(scale).map(|(z, s)| z * s)
}

/// What a strip is made of.
struct StripTask<'a, T> {
    samples: &'a Samples<T>,
    isa: Isa,
    rows: StripRows<'a, T>,
    n_rows: usize,
    block: usize,
}

impl<T: Vectors> StripTask<'_, T> {
    fn compute(&self, node: &Node, out: &mut [T], spare: &mut [T]) {
        match &node.operation {
            Operation::Leaf(at) => self.leaf(*at, out),
            Operation::Sum(parts) => self.combine::<true>(parts, out, spare),
            Operation::Product(parts) => self.combine::<false>(parts, out, spare),
        }
        if node.weight != 1.0 {
            self.run(Weigh { weight: T::from_f64(node.weight) }, out, None);
        }
    }

    fn combine<const ADD: bool>(&self, parts: &[Node], out: &mut [T], spare: &mut [T]) {
        self.compute(&parts[0], out, spare);
        for part in &parts[1..] {
            let (strip, spare) = spare.split_at_mut(STRIP * BLOCK);
            self.compute(part, strip, spare);
            self.run(Join::<ADD>, out, Some(strip));
        }
    }

    fn leaf(&self, at: usize, out: &mut [T]) {
        let (samples, block) = (self.samples, self.block);
        match (&samples.recipe.leaves[at], &samples.parts[at]) {
            (Leaf::Packed(packing), Part::Packed(panels)) => {
                let rows = match self.rows {
                    StripRows::InPlace { block, row } => panels.strip(block, row),
                    StripRows::Packed(pack) => match &pack.parts[at] {
                        RowPart::Packed(rows) => rows.rows(),
                        RowPart::Custom(_) => unreachable!("rows are made for their samples"),
                    },
                };
                packing.compute(self.isa, rows, self.n_rows, panels.block(block), out);
            }
            (Leaf::Custom(kernel, _), Part::Custom(data)) => {
                let d = samples.n_features;
                let columns = block * BLOCK..samples.len.min((block + 1) * BLOCK);
                let n_columns = columns.len();
                let columns = &data[columns.start * d..columns.end * d];
                let (rows, n_rows) = match self.rows {
                    StripRows::InPlace { block, row } => {
                        let first = (block * BLOCK + row).min(samples.len);
                        (&data[first * d..], samples.len - first)
                    }
                    StripRows::Packed(pack) => match &pack.parts[at] {
                        RowPart::Custom(rows) => (&rows[..], STRIP),
                        RowPart::Packed(_) => unreachable!("rows are made for their samples"),
                    },
                };
                let mut values = [0.0; BLOCK];
                let len = samples.block_len(block);
                for r in 0..self.n_rows {
                    let out = &mut out[r * BLOCK..r * BLOCK + len];
                    // What fills up a panel is no sample; its values are masked by callers and must
                    // only be finite.
                    values.fill(0.0);
                    if r < n_rows {
                        let row = &rows[r * d..(r + 1) * d];
                        kernel.evaluate_row(row, columns, &mut values[..n_columns]);
                    }
                    out.iter_mut().zip(&values).for_each(|(out, v)| *out = T::from_f64(*v));
                }
            }
            _ => unreachable!("samples are packed by their recipe"),
        }
    }

    /// Runs a step on every row of a strip.
    fn run<S: Step<T>>(&self, step: S, out: &mut [T], other: Option<&[T]>) {
        let len = self.samples.block_len(self.block);
        let size = (self.n_rows - 1) * BLOCK + len;
        assert!(out.len() >= size && other.is_none_or(|other| other.len() >= size));
        assert!(len.is_multiple_of(T::PANEL));
        let other = other.map_or(std::ptr::null(), <[T]>::as_ptr);
        let task = Rowwise { step, n_rows: self.n_rows, len, out: out.as_mut_ptr(), other };
        // SAFETY: `isa` was detected on this machine; the assertions bound every access, and a
        // panel is a multiple of every vector.
        unsafe { self.isa.run(task) }
    }
}

/// An operation on two vectors; the second is null where it is not read.
trait Step<T: Vectors>: Copy {
    /// # Safety
    /// The processor must support `A`; both point to a vector where they are used.
    unsafe fn step<A: Arch>(self, out: *mut T, other: *const T);
}

/// out ← weight · out.
#[derive(Clone, Copy)]
struct Weigh<T> {
    weight: T,
}

/// out ← out + other, or out · other.
#[derive(Clone, Copy)]
struct Join<const ADD: bool>;

impl<T: Vectors> Step<T> for Weigh<T> {
    #[inline(always)]
    unsafe fn step<A: Arch>(self, out: *mut T, _: *const T) {
        // SAFETY: the caller's.
        unsafe {
            let weight = T::On::<A>::splat(self.weight);
            T::On::<A>::store(out, T::On::<A>::mul(weight, T::On::<A>::load(out)));
        }
    }
}

impl<T: Vectors, const ADD: bool> Step<T> for Join<ADD> {
    #[inline(always)]
    unsafe fn step<A: Arch>(self, out: *mut T, other: *const T) {
        // SAFETY: the caller's.
        unsafe {
            let (a, b) = (T::On::<A>::load(out), T::On::<A>::load(other));
            let value = if ADD { T::On::<A>::add(a, b) } else { T::On::<A>::mul(a, b) };
            T::On::<A>::store(out, value);
        }
    }
}

struct Rowwise<T, S> {
    step: S,
    n_rows: usize,
    len: usize,
    out: *mut T,
    other: *const T,
}

impl<T: Vectors, S: Step<T>> Task for Rowwise<T, S> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<A: Arch>(self) {
        for r in 0..self.n_rows {
            for at in (0..self.len).step_by(T::On::<A>::LANES) {
                let at = r * BLOCK + at;
                // SAFETY: inside both strips, as `StripTask::run` asserted.
                unsafe { self.step.step::<A>(self.out.add(at), self.other.wrapping_add(at)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    fn simple(n_features: usize) -> Vec<Kernel> {
        let gamma = 1.0 / n_features as f64;
        let mut kernels = vec![
            Kernel::Rbf { gamma },
            Kernel::Laplace { gamma },
            Kernel::Linear,
            Kernel::Matern32 { gamma },
            Kernel::Matern52 { gamma },
        ];
        for degree in [1, 2, 3, 4, 7, 12] {
            kernels.push(Kernel::Polynomial { degree, gamma, offset: 0.5 });
        }
        kernels.push(Kernel::Product { factors: kernels[3..6].to_vec() });
        kernels.push(Kernel::Anisotropic {
            length_scales: (0..n_features).map(|k| 0.7 + 0.1 * (k % 9) as f64).collect(),
            kernel: Box::new(Kernel::Sum { terms: kernels[1..5].to_vec() }),
        });
        kernels
    }

    /// 130 samples with each tenth a copy of the one before, and the one after that nearly so:
    /// roots of distances near zero.
    fn samples(n_features: usize) -> Array2<f64> {
        let mut z = Array2::from_shape_fn((130, n_features), |(i, k)| {
            ((i * 13 + k * 7) as f64 * 0.618).sin() * 1.4 + 0.2 * (k % 3) as f64
        });
        for i in (10..130).step_by(10) {
            let (copy, near) = (z.row(i - 1).to_owned(), z.row(i - 1).mapv(|z| z + 1e-5));
            z.row_mut(i).assign(&copy);
            z.row_mut(i - 2).assign(&near);
        }
        z
    }

    fn worst<T: Vectors>(kernel: &Kernel, features: &Array2<f64>, isa: Isa) -> f64 {
        let samples = Samples::<T>::new(Recipe::new(kernel, features.view()), features.view());
        let row = |i: usize| features.row(i).to_vec();
        let (mut out, mut spare) = (Aligned::zeros(STRIP * BLOCK), samples.spare());
        let mut pack = samples.row_pack();
        let mut worst = 0.0_f64;
        for first in (0..120).step_by(STRIP) {
            let picked: Vec<usize> = (first..first + STRIP).collect();
            samples.gather(&picked, &mut pack);
            for (rows, n_rows) in [
                (StripRows::InPlace { block: 0, row: first }, STRIP),
                (StripRows::Packed(&pack), STRIP),
                (StripRows::Packed(&pack), 3),
                (StripRows::Packed(&pack), 1),
            ] {
                samples.compute(isa, rows, n_rows, 0, &mut out, &mut spare);
                for (r, &i) in picked.iter().enumerate().take(n_rows) {
                    for j in 0..features.nrows() {
                        let expected = kernel.evaluate(&row(i), &row(j));
                        let scale = (kernel.evaluate(&row(i), &row(i))
                            * kernel.evaluate(&row(j), &row(j)))
                        .sqrt();
                        let found = out[r * BLOCK + j].to_f64();
                        worst = worst.max((found - expected).abs() / scale);
                    }
                }
            }
        }
        worst
    }

    #[test]
    fn every_kernel_agrees_with_its_definition_on_every_path() {
        for n_features in [1, 2, 3, 7, 16, 33, 78, 200] {
            let features = samples(n_features);
            for kernel in simple(n_features) {
                for isa in Isa::available() {
                    let single = worst::<f32>(&kernel, &features, isa);
                    let double = worst::<f64>(&kernel, &features, isa);
                    assert!(single < 1e-5, "{kernel} {n_features} {isa:?} f32: {single:e}");
                    assert!(double < 2e-14, "{kernel} {n_features} {isa:?} f64: {double:e}");
                }
            }
        }
    }

    /// A root magnifies rounding near zero, but a Matérn kernel is flat there.
    #[test]
    fn matern_values_of_near_copies_keep_their_digits() {
        let features = samples(40);
        for kernel in [Kernel::Matern32 { gamma: 0.05 }, Kernel::Matern52 { gamma: 0.05 }] {
            for isa in Isa::available() {
                assert!(worst::<f32>(&kernel, &features, isa) < 4e-6);
                assert!(worst::<f64>(&kernel, &features, isa) < 1e-14);
            }
        }
    }
}
