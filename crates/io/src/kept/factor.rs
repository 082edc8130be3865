//! What a fit left of its preconditioner, beside the rows that a model keeps.

use crate::model::{Problem, Tensor, integers, matrix, numbers, row_numbers};
use argwhy_core::precond::{KeptFactor, KeptGram, Triangle};
use ndarray::Array2;
use safetensors::tensor::{Dtype, SafeTensors};
use std::sync::Arc;

const PIVOTS: &str = "factor_pivots";
const OWNERS: &str = "factor_owners";
const FREE: &str = "factor_free";
const GRAMS: &str = "factor_grams";
const TRACE: &str = "factor_trace";
const DESIRED: &str = "factor_desired";

/// The arrays of a file.
pub(super) fn tensors(factor: &KeptFactor) -> Vec<Tensor> {
    let pivots = factor.pivots.iter().map(|pivot| (*pivot as u64).to_le_bytes());
    let owners = factor.owners.iter().map(|owner| (*owner as u32).to_le_bytes());
    let n_bytes = factor.n_samples().div_ceil(8);
    let bits = |free: &[bool]| -> Vec<u8> {
        let byte = |eight: &[bool]| {
            eight.iter().enumerate().fold(0, |byte, (at, free)| byte | u8::from(*free) << at)
        };
        free.chunks(8).map(byte).collect()
    };
    let free = factor.grams.iter().flat_map(|gram| bits(&gram.free)).collect();
    let single = factor.grams.iter().all(|gram| matches!(gram.triangle, Triangle::Single(_)));
    let (dtype, width) = if single { (Dtype::F32, 4) } else { (Dtype::F64, 8) };
    let len = Triangle::len_of(factor.rank());
    let mut grams = Vec::with_capacity(factor.grams.len() * len * width);
    for gram in &factor.grams {
        match &gram.triangle {
            Triangle::Single(values) if single => {
                values.iter().for_each(|v| grams.extend(v.to_le_bytes()));
            }
            Triangle::Single(values) => {
                values.iter().for_each(|v| grams.extend(f64::from(*v).to_le_bytes()));
            }
            Triangle::Double(values) => values.iter().for_each(|v| grams.extend(v.to_le_bytes())),
        }
    }
    let n_grams = factor.grams.len();
    let mut tensors = vec![
        Tensor::list(PIVOTS, Dtype::U64, pivots),
        Tensor::list(OWNERS, Dtype::U32, owners),
        Tensor::of_bytes(FREE, Dtype::U8, vec![n_grams, n_bytes], free),
        Tensor::of_bytes(GRAMS, dtype, vec![n_grams, len], grams),
        Tensor::matrix(TRACE, &Array2::from_elem((1, 1), factor.trace_left)),
    ];
    tensors.extend(factor.desired.as_ref().map(|desired| Tensor::matrix(DESIRED, desired)));
    tensors
}

/// That of a file that has one, for its rows.
pub(super) fn read(
    file: &SafeTensors<'_>,
    n_samples: usize,
    decision_dim: usize,
) -> Result<Option<Arc<KeptFactor>>, Problem> {
    let wrong = |what: String| Problem::Damaged(format!("the factor it keeps: {what}"));
    let Ok(pivots) = file.tensor(PIVOTS) else { return Ok(None) };
    let other = |name: &str| file.tensor(name).map_err(|e| wrong(format!("`{name}`: {e}")));
    let (owners, free, grams, trace) = (other(OWNERS)?, other(FREE)?, other(GRAMS)?, other(TRACE)?);
    let pivots: Vec<usize> = row_numbers(&pivots)?
        .into_iter()
        .map(|p| usize::try_from(p).unwrap_or(usize::MAX))
        .collect();
    let owners = integers(&owners)?.into_iter().map(|owner| owner as usize).collect();
    let &[n_grams, len] = grams.shape() else {
        return Err(wrong(format!("`{GRAMS}` has shape {:?}", grams.shape())));
    };
    let n_bytes = n_samples.div_ceil(8);
    // Both are as long as their shapes say: no memory is taken for what is not there.
    let right = Some(len) == pivots.len().checked_add(1).map(|n| n * pivots.len() / 2)
        && free.shape() == [n_grams, n_bytes]
        && free.dtype() == Dtype::U8
        && (1..=decision_dim).contains(&n_grams);
    if !right {
        return Err(wrong("its arrays do not fit each other".to_owned()));
    }
    let masks = free.data().chunks(n_bytes.max(1)).map(|bytes| {
        (0..n_samples).map(|i| bytes[i / 8] >> (i % 8) & 1 == 1).collect::<Vec<bool>>()
    });
    let triangle = |at: usize| match grams.dtype() {
        Dtype::F32 => {
            let values = grams.data().as_chunks().0[at * len..(at + 1) * len].iter();
            Ok(Triangle::Single(values.map(|b| f32::from_le_bytes(*b)).collect()))
        }
        Dtype::F64 => {
            let values = grams.data().as_chunks().0[at * len..(at + 1) * len].iter();
            Ok(Triangle::Double(values.map(|b| f64::from_le_bytes(*b)).collect()))
        }
        other => Err(wrong(format!("`{GRAMS}` has type {other:?}"))),
    };
    let grams = masks.enumerate().map(|(at, free)| Ok(KeptGram { free, triangle: triangle(at)? }));
    let grams = grams.collect::<Result<Vec<KeptGram>, Problem>>()?;
    let trace_left = numbers(&trace)?.first().copied().unwrap_or(f64::NAN);
    let desired = file.tensor(DESIRED).ok().map(|tensor| matrix(&tensor)).transpose()?;
    let factor = KeptFactor { pivots, trace_left, owners, grams, desired };
    factor.validate(n_samples, decision_dim).map_err(|e| wrong(e.to_string()))?;
    Ok(Some(Arc::new(factor)))
}
