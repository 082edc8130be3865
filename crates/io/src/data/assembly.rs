//! From arrays as they were found to arrays that are checked.

use std::path::Path;

use ndarray::Axis;

use super::array::{Arrays, Found, RowsOf};
use super::groups::Groups;
use super::kept::Kept;
use super::missing::{self, Missing};
use super::{DataRequest, Loaded, constraints};
use crate::budget::Meter;
use crate::error::DataError;

/// Checks what was read, and puts constraints together.
pub(super) fn assemble(
    path: &Path,
    request: &DataRequest,
    arrays: Arrays,
    meter: &Meter,
) -> Result<Loaded, DataError> {
    let Arrays { mut signals, decisions, weights, groups, tensors, kept, .. } = arrays;
    let (keys, unread, mut names) = (arrays.keys, arrays.unread, arrays.names);
    let decision_dim = decisions.as_ref().map(|found| found.values.ncols());
    let limits = arrays.limits.filter(|limits| Some(limits.lower.len()) == decision_dim);
    let places = kept.places();
    let place = |row: usize| places.as_ref().map_or(row, |places| places[row]);
    let fill = filled(&mut signals, &names.signals, request)?;
    let whole = if request.missing == Missing::Keep {
        None
    } else if request.missing == Missing::Drop {
        let both = std::iter::once(&signals).chain(&decisions).map(|found| &found.values);
        missing::whole_rows(both)
    } else {
        let own = missing::gaps(&signals, &names.signals, place);
        let others = decisions.as_ref().map(|d| missing::gaps(d, &names.decisions, place));
        let others = others.unwrap_or_default();
        let of_decisions = !others.is_empty();
        let gaps = [own, others].concat();
        if !gaps.is_empty() {
            let path = path.to_path_buf();
            return Err(DataError::Missing { path, gaps, of_decisions });
        }
        None
    };
    // Rows that are left out may hold anything.
    if request.missing != Missing::Keep {
        let gaps = whole.is_some();
        signals.check(gaps, &names.signals, place)?;
        let of_decisions = |found: &Found| found.check(gaps, &names.decisions, place);
        decisions.as_ref().map(of_decisions).transpose()?;
    }
    let weights = weights.map(|(found, of)| weights_of(path, found, of, &kept)).transpose()?;
    let groups = groups.map(|(groups, of)| match &places {
        Some(places) if of == RowsOf::File => {
            let of_rows = places.iter().map(|&row| groups.of_rows[row]).collect();
            Groups { of_rows, ..groups }
        }
        _ => groups,
    });
    let constraints = if request.wants_constraints() {
        let sizes = (&kept, decision_dim.or(request.decision_dim));
        Some(constraints::assemble(path, tensors, keys, request, sizes, (meter, &mut names))?)
    } else {
        None
    };
    let (decisions, decisions_key) = decisions.map(|found| (found.values, found.key)).unzip();
    let n_dropped = whole.as_ref().map_or(0, |whole| signals.values.nrows() - whole.len());
    let loaded = Loaded {
        signals: signals.values,
        places,
        decisions,
        constraints,
        weights,
        groups,
        signals_key: signals.key,
        decisions_key,
        unread,
        names,
        limits,
        encoding: arrays.encoding,
        fill,
        n_dropped,
    };
    match whole {
        Some(whole) if whole.is_empty() => Err(DataError::Columns {
            path: path.to_path_buf(),
            detail: "every row lacks a value, so that none is left".to_owned(),
        }),
        Some(whole) => Ok(only(loaded, &whole)),
        None => Ok(loaded),
    }
}

/// Fills in signals that are missing, where a model or the request says how; what was put in.
fn filled(
    signals: &mut Found,
    names: &[String],
    request: &DataRequest,
) -> Result<Option<Vec<f64>>, DataError> {
    let fill = if request.fill.len() == signals.values.ncols() {
        request.fill.clone()
    } else if request.missing == Missing::Mean {
        missing::means(signals, names)?
    } else {
        return Ok(None);
    };
    missing::fill(&mut signals.values, &fill);
    Ok(Some(fill))
}

/// The rows listed, of all there are.
fn only(loaded: Loaded, rows: &[usize]) -> Loaded {
    let places = loaded.places;
    let place = |&row: &usize| places.as_ref().map_or(row, |places| places[row]);
    Loaded {
        signals: loaded.signals.select(Axis(0), rows),
        decisions: loaded.decisions.map(|decisions| decisions.select(Axis(0), rows)),
        constraints: loaded.constraints.map(|constraints| constraints.select(rows)),
        weights: loaded.weights.map(|weights| rows.iter().map(|&row| weights[row]).collect()),
        groups: loaded.groups.map(|groups| {
            let of_rows = rows.iter().map(|&row| groups.of_rows[row]).collect();
            Groups { of_rows, ..groups }
        }),
        places: Some(rows.iter().map(place).collect()),
        ..loaded
    }
}

/// One weight a sample, finite and not negative, of the rows that are kept.
fn weights_of(path: &Path, found: Found, of: RowsOf, kept: &Kept) -> Result<Vec<f64>, DataError> {
    let places = kept.places();
    let is_kept = of == RowsOf::Kept;
    let place = |row: usize| places.as_ref().filter(|_| is_kept).map_or(row, |places| places[row]);
    found.check(false, &[], place)?;
    let shape = found.values.dim();
    let values = found.values.into_raw_vec_and_offset().0;
    let n_samples = if is_kept { kept.len() } else { kept.n_rows() };
    let (path, key) = (path.to_path_buf(), found.key);
    if shape != (n_samples, 1) && shape != (1, n_samples) {
        let shape = vec![shape.0 as u64, shape.1 as u64];
        return Err(DataError::WeightCount { path, key, shape, n_samples });
    }
    if let Some(row) = values.iter().position(|weight| *weight < 0.0) {
        return Err(DataError::Weight { path, key, row: place(row), value: values[row] });
    }
    Ok(match places {
        Some(places) if !is_kept => places.into_iter().map(|row| values[row]).collect(),
        _ => values,
    })
}
