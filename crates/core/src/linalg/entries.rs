//! Arrays whose entries depend on their place alone, made on all cores.

use ndarray::Array2;
use rayon::prelude::*;

/// Entries that one core makes at a time, and below which no other is asked.
const TOGETHER: usize = 1 << 14;

/// The array with `entry(row, column)` everywhere.
pub(crate) fn filled<T: Copy + Default + Send>(
    (rows, columns): (usize, usize),
    entry: impl Fn(usize, usize) -> T + Sync,
) -> Array2<T> {
    if rows * columns <= TOGETHER {
        return Array2::from_shape_fn((rows, columns), |(j, i)| entry(j, i));
    }
    let mut data = vec![T::default(); rows * columns];
    data.par_chunks_mut(columns).enumerate().for_each(|(j, row)| {
        row.par_chunks_mut(TOGETHER).enumerate().for_each(|(part, out)| {
            for (at, out) in out.iter_mut().enumerate() {
                *out = entry(j, part * TOGETHER + at);
            }
        });
    });
    Array2::from_shape_vec((rows, columns), data).expect("as many as the shape has")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_where_it_belongs_whatever_the_size() {
        for shape in [(0, 5), (3, 0), (2, 7), (3, TOGETHER + 5), (TOGETHER, 3)] {
            let found = filled(shape, |j, i| j * 100_000 + i);
            assert_eq!(found, Array2::from_shape_fn(shape, |(j, i)| j * 100_000 + i));
        }
    }
}
