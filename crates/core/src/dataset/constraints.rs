//! Limits as data brings them: for all samples at once, or one set a sample.

use super::relation::Relation;
use crate::error::Error;
use ndarray::{
    Array, Array1, Array2, Array3, ArrayD, ArrayView2, ArrayView3, Axis, Dimension, Ix1, Ix2, Ix3,
    concatenate,
};

/// matrix·u ≤ bound, equal_matrix·u = equal_bound, lower ≤ u ≤ upper, each part optional and each
/// either for all samples (its first axis has length one) or one a sample.
///
/// Bounds may be infinite where that means no limit; everything else is finite.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Constraints {
    pub(crate) inequalities: Option<Rows>,
    pub(crate) equalities: Option<Rows>,
    pub(crate) lower: Option<Array2<f64>>,
    pub(crate) upper: Option<Array2<f64>>,
}

/// The arrays of constraints, whichever there are, each for all samples or one a sample along its
/// first axis.
#[derive(Clone, Debug, Default)]
pub struct ConstraintArrays {
    /// `M` of M·u ≤ W.
    pub matrix: Option<ArrayD<f64>>,
    /// `W`.
    pub bound: Option<ArrayD<f64>>,
    /// `M_eq` of M_eq·u = W_eq.
    pub equal_matrix: Option<ArrayD<f64>>,
    /// `W_eq`.
    pub equal_bound: Option<ArrayD<f64>>,
    /// `lower`.
    pub lower: Option<ArrayD<f64>>,
    /// `upper`.
    pub upper: Option<ArrayD<f64>>,
}

/// matrix (1 or N × m × n) with its bound (1 or N × m).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rows {
    pub(crate) matrix: Array3<f64>,
    pub(crate) bound: Array2<f64>,
}

impl Rows {
    fn new(relation: Relation, matrix: ArrayD<f64>, bound: ArrayD<f64>) -> Result<Self, Error> {
        let names = (relation.matrix(), relation.bound());
        let matrix = match matrix.ndim() {
            2 => fixed::<Ix2>(matrix).insert_axis(Axis(0)),
            3 => fixed::<Ix3>(matrix),
            _ => {
                return shape(
                    names.0,
                    &matrix,
                    "rows × decision dimensions, or one such matrix a sample",
                );
            }
        };
        let bound = match bound.ndim() {
            1 => fixed::<Ix1>(bound).insert_axis(Axis(0)),
            2 => fixed::<Ix2>(bound),
            _ => return shape(names.1, &bound, "one number a row, or one such list a sample"),
        };
        if matrix.shape()[1] != bound.ncols() {
            return Err(Error::RowCount {
                left: names.0,
                left_rows: matrix.shape()[1],
                right: names.1,
                right_rows: bound.ncols(),
            });
        }
        if let Some(((sample, row, column), value)) =
            matrix.indexed_iter().find(|(_, v)| !v.is_finite())
        {
            let (what, value) = (names.0, *value);
            return Err(Error::Constraint { what, sample, row, column: Some(column), value });
        }
        let refused = |v: f64| !relation.allows(v);
        if let Some(((sample, row), value)) = bound.indexed_iter().find(|(_, v)| refused(**v)) {
            let (what, value) = (names.1, *value);
            return Err(Error::Constraint { what, sample, row, column: None, value });
        }
        Ok(Self { matrix, bound })
    }

    fn select(&self, samples: &[usize]) -> Self {
        Self { matrix: pick(&self.matrix, samples), bound: pick(&self.bound, samples) }
    }
}

/// An array of a number of axes that was checked.
fn fixed<D: Dimension>(array: ArrayD<f64>) -> Array<f64, D> {
    array.into_dimensionality().expect("the number of axes was matched")
}

fn shape<T>(what: &'static str, found: &ArrayD<f64>, expected: &'static str) -> Result<T, Error> {
    let found = found.shape().iter().map(usize::to_string).collect::<Vec<_>>().join(" × ");
    Err(Error::Shape { what, found, expected })
}

/// The listed samples of an array that is for all of them (first axis of length one) or one a
/// sample.
fn pick<D: Dimension + ndarray::RemoveAxis>(
    array: &Array<f64, D>,
    samples: &[usize],
) -> Array<f64, D> {
    if array.shape()[0] == 1 { array.clone() } else { array.select(Axis(0), samples) }
}

/// Both of two parts, or neither.
fn both<T>(what: &'static str, a: Option<T>, b: Option<T>) -> Result<Option<(T, T)>, Error> {
    match (a, b) {
        (Some(a), Some(b)) => Ok(Some((a, b))),
        (None, None) => Ok(None),
        _ => Err(Error::OneSided { what }),
    }
}

/// One array behind the other along the first axis, each for all samples or one a sample.
fn join<D: Dimension + ndarray::RemoveAxis>(
    what: &'static str,
    a: &Array<f64, D>,
    b: &Array<f64, D>,
    counts: (usize, usize),
) -> Result<Array<f64, D>, Error> {
    if a.shape()[0] == 1 && a == b {
        return Ok(a.clone());
    }
    let each = |array: &Array<f64, D>, count: usize| {
        let rows: Vec<usize> =
            if array.shape()[0] == 1 { vec![0; count] } else { (0..count).collect() };
        array.select(Axis(0), &rows)
    };
    let (a, b) = (each(a, counts.0), each(b, counts.1));
    concatenate(Axis(0), &[a.view(), b.view()]).map_err(|_| Error::OneSided { what })
}

impl Constraints {
    /// No limits yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Of whichever arrays there are; a matrix needs its bound.
    pub fn from_arrays(given: ConstraintArrays) -> Result<Self, Error> {
        let mut all = Self::new();
        if let Some((matrix, bound)) = Relation::AtMost.pair(given.matrix, given.bound)? {
            all = all.with_inequalities(matrix, bound)?;
        }
        if let Some((matrix, bound)) =
            Relation::Equal.pair(given.equal_matrix, given.equal_bound)?
        {
            all = all.with_equalities(matrix, bound)?;
        }
        if let Some(lower) = given.lower {
            all = all.with_lower(lower)?;
        }
        if let Some(upper) = given.upper {
            all = all.with_upper(upper)?;
        }
        Ok(all)
    }

    /// Adds matrix·u ≤ bound: `matrix` rows × n or N × rows × n, `bound` rows or N × rows.
    pub fn with_inequalities<A: Dimension, B: Dimension>(
        mut self,
        matrix: Array<f64, A>,
        bound: Array<f64, B>,
    ) -> Result<Self, Error> {
        let (matrix, bound) = (matrix.into_dyn(), bound.into_dyn());
        self.inequalities = Some(Rows::new(Relation::AtMost, matrix, bound)?);
        Ok(self)
    }

    /// Adds matrix·u = bound, shaped as inequalities are.
    pub fn with_equalities<A: Dimension, B: Dimension>(
        mut self,
        matrix: Array<f64, A>,
        bound: Array<f64, B>,
    ) -> Result<Self, Error> {
        let (matrix, bound) = (matrix.into_dyn(), bound.into_dyn());
        self.equalities = Some(Rows::new(Relation::Equal, matrix, bound)?);
        Ok(self)
    }

    /// Adds lower ≤ u, with n limits or N × n.
    pub fn with_lower<D: Dimension>(mut self, lower: Array<f64, D>) -> Result<Self, Error> {
        self.lower = Some(side("lower", lower.into_dyn(), f64::INFINITY)?);
        Ok(self)
    }

    /// Adds u ≤ upper, with n limits or N × n.
    pub fn with_upper<D: Dimension>(mut self, upper: Array<f64, D>) -> Result<Self, Error> {
        self.upper = Some(side("upper", upper.into_dyn(), f64::NEG_INFINITY)?);
        Ok(self)
    }

    /// {u ≥ 0, Σu = total}.
    pub fn simplex(decision_dim: usize, total: f64) -> Result<Self, Error> {
        Self::new()
            .with_lower(Array1::zeros(decision_dim))?
            .with_equalities(Array2::ones((1, decision_dim)), Array1::from_elem(1, total))
    }

    /// {0 ≤ u ≤ cap, pricesᵀu ≤ budget}.
    pub fn budget(prices: &[f64], budget: f64, cap: f64) -> Result<Self, Error> {
        let n = prices.len();
        let row = Array2::from_shape_fn((1, n), |(_, j)| prices[j]);
        Self::new()
            .with_lower(Array1::zeros(n))?
            .with_upper(Array1::from_elem(n, cap))?
            .with_inequalities(row, Array1::from_elem(1, budget))
    }

    /// Those of the listed samples, in their order.
    #[must_use]
    pub fn select(&self, samples: &[usize]) -> Self {
        let side = |a: &Option<Array2<f64>>| a.as_ref().map(|a| pick(a, samples));
        Self {
            inequalities: self.inequalities.as_ref().map(|r| r.select(samples)),
            equalities: self.equalities.as_ref().map(|r| r.select(samples)),
            lower: side(&self.lower),
            upper: side(&self.upper),
        }
    }

    /// Those of `counts.0` samples with those of `counts.1` others behind them. Parts that are for
    /// all samples stay so where both sides say the same.
    ///
    /// Fails where one side has a part that the other lacks, or another number of rows.
    pub fn joined(&self, other: &Self, counts: (usize, usize)) -> Result<Self, Error> {
        let rows = |a: &Option<Rows>, b: &Option<Rows>, relation: Relation| {
            let Some((a, b)) = both(relation.matrix(), a.as_ref(), b.as_ref())? else {
                return Ok(None);
            };
            Ok::<_, Error>(Some(Rows {
                matrix: join(relation.matrix(), &a.matrix, &b.matrix, counts)?,
                bound: join(relation.bound(), &a.bound, &b.bound, counts)?,
            }))
        };
        let side = |what, a: &Option<Array2<f64>>, b: &Option<Array2<f64>>| {
            let pair = both(what, a.as_ref(), b.as_ref())?;
            pair.map(|(a, b)| join(what, a, b, counts)).transpose()
        };
        Ok(Self {
            inequalities: rows(&self.inequalities, &other.inequalities, Relation::AtMost)?,
            equalities: rows(&self.equalities, &other.equalities, Relation::Equal)?,
            lower: side("lower", &self.lower, &other.lower)?,
            upper: side("upper", &self.upper, &other.upper)?,
        })
    }

    /// matrix (1 or N × rows × n) and bound (1 or N × rows) of matrix·u ≤ bound.
    pub fn inequalities(&self) -> Option<(ArrayView3<'_, f64>, ArrayView2<'_, f64>)> {
        self.inequalities.as_ref().map(|rows| (rows.matrix.view(), rows.bound.view()))
    }

    /// matrix and bound of matrix·u = bound, shaped as those of the inequalities.
    pub fn equalities(&self) -> Option<(ArrayView3<'_, f64>, ArrayView2<'_, f64>)> {
        self.equalities.as_ref().map(|rows| (rows.matrix.view(), rows.bound.view()))
    }

    /// Lower limits, 1 or N × n.
    pub fn lower(&self) -> Option<ArrayView2<'_, f64>> {
        self.lower.as_ref().map(|side| side.view())
    }

    /// Upper limits, 1 or N × n.
    pub fn upper(&self) -> Option<ArrayView2<'_, f64>> {
        self.upper.as_ref().map(|side| side.view())
    }

    /// Whether nothing is limited.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Samples it has sets for: none where every part is for all of them.
    pub fn n_samples(&self) -> Option<usize> {
        self.lengths().into_iter().map(|(_, length)| length).find(|&length| length != 1)
    }

    /// Numbers held.
    pub fn n_numbers(&self) -> usize {
        let rows = |part: &Option<Rows>| {
            part.as_ref().map_or(0, |rows| rows.matrix.len() + rows.bound.len())
        };
        let side = |part: &Option<Array2<f64>>| part.as_ref().map_or(0, Array2::len);
        rows(&self.inequalities) + rows(&self.equalities) + side(&self.lower) + side(&self.upper)
    }

    /// Checks that every part is for all samples or for `n_samples`, and for decisions of length
    /// `decision_dim`.
    pub fn check(&self, n_samples: usize, decision_dim: usize) -> Result<(), Error> {
        for (what, length) in self.lengths() {
            if length != 1 && length != n_samples {
                return Err(Error::RowCount {
                    left: what,
                    left_rows: length,
                    right: "signals",
                    right_rows: n_samples,
                });
            }
        }
        let widths = [
            (Relation::AtMost.matrix(), self.inequalities.as_ref().map(|r| r.matrix.shape()[2])),
            (Relation::Equal.matrix(), self.equalities.as_ref().map(|r| r.matrix.shape()[2])),
            ("lower", self.lower.as_ref().map(Array2::ncols)),
            ("upper", self.upper.as_ref().map(Array2::ncols)),
        ];
        for (what, width) in widths {
            if let Some(found) = width.filter(|&width| width != decision_dim) {
                let owner = "a decision";
                return Err(Error::Width { what, owner, expected: decision_dim, found });
            }
        }
        Ok(())
    }

    fn lengths(&self) -> Vec<(&'static str, usize)> {
        let mut lengths = Vec::new();
        for (relation, rows) in
            Relation::ALL.into_iter().zip([&self.inequalities, &self.equalities])
        {
            if let Some(rows) = rows {
                lengths.push((relation.matrix(), rows.matrix.shape()[0]));
                lengths.push((relation.bound(), rows.bound.nrows()));
            }
        }
        for (name, side) in [("lower", &self.lower), ("upper", &self.upper)] {
            lengths.extend(side.as_ref().map(|side| (name, side.nrows())));
        }
        lengths
    }
}

/// Limits of one side: NaN and the infinity that excludes everything are refused.
fn side(what: &'static str, limits: ArrayD<f64>, excludes: f64) -> Result<Array2<f64>, Error> {
    let limits = match limits.ndim() {
        1 => fixed::<Ix1>(limits).insert_axis(Axis(0)),
        2 => fixed::<Ix2>(limits),
        _ => return shape(what, &limits, "one number a dimension, or one such list a sample"),
    };
    match limits.indexed_iter().find(|(_, v)| v.is_nan() || **v == excludes) {
        Some(((sample, column), &value)) => {
            Err(Error::Constraint { what, sample, row: 0, column: Some(column), value })
        }
        None => Ok(limits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn refuses_what_does_not_fit() {
        let new = Constraints::new;
        let matrix = array![[1.0, 2.0], [0.0, 1.0]];
        assert!(matches!(
            new().with_inequalities(matrix.clone(), array![1.0, 2.0, 3.0]),
            Err(Error::RowCount { left: "M", left_rows: 2, right: "W", right_rows: 3 })
        ));
        assert!(matches!(
            new().with_inequalities(array![1.0, 2.0], array![1.0]),
            Err(Error::Shape { what: "M", .. })
        ));
        assert!(matches!(
            new().with_inequalities(array![[1.0, f64::NAN]], array![1.0]),
            Err(Error::Constraint { what: "M", row: 0, column: Some(1), .. })
        ));
        assert!(new().with_inequalities(matrix.clone(), array![1.0, f64::NEG_INFINITY]).is_err());
        assert!(new().with_equalities(matrix.clone(), array![1.0, f64::INFINITY]).is_err());
        assert!(new().with_lower(array![f64::INFINITY]).is_err());
        assert!(new().with_upper(array![f64::NAN]).is_err());
        let given = new().with_inequalities(matrix, array![1.0, f64::INFINITY]).unwrap();
        given.check(7, 2).unwrap();
        assert!(matches!(
            given.check(7, 3),
            Err(Error::Width { what: "M", expected: 3, found: 2, .. })
        ));
        let five = given.with_lower(Array2::zeros((5, 2))).unwrap();
        assert_eq!(five.n_samples(), Some(5));
        assert!(matches!(
            five.check(7, 2),
            Err(Error::RowCount { left: "lower", left_rows: 5, right_rows: 7, .. })
        ));
        assert_eq!(five.select(&[4, 1]).n_samples(), Some(2));
    }
}
