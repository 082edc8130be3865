//! Rows that do not fit: each of them left out where that is affordable, else those kept aside.

use super::division::ranges_of;
use super::verdict::Judgement;
use crate::error::Error;
use crate::pipeline::Pipeline;
use crate::plan::process_bytes;
use argwhy_core::leave_one_out::{Room, leave_one_out};
use argwhy_core::model::{KeptOut, Misfits, Support};
use argwhy_core::{Dataset, Model};
use ndarray::{Array2, Axis};

/// A model further from its optimum than this has no system to leave rows out of.
const NEAR: f64 = 1e-3;

impl Pipeline {
    /// The rows that a `model` of this pipeline, fitted on `rows` of the data, explains worst: by
    /// leaving each of them out, or where there are too many for that by the rows that were kept
    /// aside for the judgement. None without either. What goes wrong is a reason for having none.
    pub fn misfits(
        &self,
        data: &Dataset,
        rows: &[usize],
        model: &Model,
        judged: Option<&Judgement>,
    ) -> Option<Misfits> {
        let left_out = self.left_out(data, rows, model).ok().flatten();
        left_out.or_else(|| judged.and_then(|judged| judged.misfits.clone()))
    }

    fn left_out(
        &self,
        data: &Dataset,
        rows: &[usize],
        model: &Model,
    ) -> Result<Option<Misfits>, Error> {
        let Some(support) = model.support() else { return Ok(None) };
        if model.record.certificate.relative_gap > NEAR {
            return Ok(None);
        }
        let limit = self.settings().memory.0;
        // Half of it, or of what the program and its threads leave: data and model have the other.
        let beside = limit.saturating_sub(process_bytes(self.settings())) / 2;
        let room = Room { whole: limit / 2, beside };
        let (problem, rows) = self.problem(data, &ranges_of(rows))?;
        let problem = problem.with_theta(model.metric()?);
        let problem = problem.with_regularization(model.record.regularization)?;
        let signals = data.signals().select(Axis(0), &rows);
        let features = model.features.transform(signals.view())?;
        let numbers: Vec<usize> = rows.iter().map(|&row| data.number(row)).collect();
        let Some(coefficients) = coefficients(support, &numbers) else { return Ok(None) };
        let expected = self.with_threads(|| {
            let features = features.view();
            Ok(leave_one_out(&problem, &support.kernel, features, coefficients.view(), room)?)
        })?;
        let decided = data.decisions().select(Axis(0), &rows);
        let told = |expected: Array2<f64>| {
            Misfits::new(KeptOut::LeaveOneOut, &numbers, decided.view(), expected.t())
        };
        Ok(expected.map(told))
    }
}

/// α of every row, decision_dim × n_rows: a model keeps those that are not zero, in order. None
/// where its rows are numbered otherwise.
fn coefficients(support: &Support, rows: &[usize]) -> Option<Array2<f64>> {
    let mut all = Array2::zeros((support.coefficients.ncols(), rows.len()));
    let mut at = 0;
    for (&row, alpha) in support.rows.iter().zip(support.coefficients.rows()) {
        while at < rows.len() && rows[at] as u64 != row {
            at += 1;
        }
        if at == rows.len() {
            return None;
        }
        all.column_mut(at).assign(&alpha);
        at += 1;
    }
    Some(all)
}
