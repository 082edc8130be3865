//! Data for a fit, read within the fit's memory limit.
//!
//! The sizes come from the file's headers. Where no plan for them keeps the limit, the fit is
//! refused before any number is read; otherwise reading itself may take what the limit leaves.

use crate::error::Error;
use crate::pipeline::Pipeline;
use crate::plan::{Plan, Sizes, process_bytes};
use crate::settings::{FitSettings, ThetaChoice};
use argwhy_core::backend::WithTrends;
use argwhy_io::{Budget, DataRequest, Loaded, RowRanges, Survey, load_if};
use std::path::Path;

impl Pipeline {
    /// Loads a file to be fitted on `rows` of it, all if none are given, within the settings'
    /// limit. The request's own budget is replaced by the settings'.
    pub fn load(
        &self,
        path: &Path,
        request: &DataRequest,
        rows: Option<&RowRanges>,
    ) -> Result<Loaded, Error> {
        let settings = self.settings();
        let budget = Budget::within(settings.memory.0, process_bytes(settings));
        let request = DataRequest { budget, ..request.clone() };
        load_if(path, &request, |survey| {
            let Some(sizes) = foreseen(survey, &request, settings, rows) else { return Ok(()) };
            let plan = if settings.primal {
                Plan::primal(settings, sizes)
            } else {
                Plan::new(settings, sizes, &WithTrends(self.backend()))
            };
            match plan {
                // What else is wrong is told once the data is known.
                Err(refusal @ argwhy_core::Error::Memory { .. }) => Err(Error::Core(refusal)),
                _ => Ok(()),
            }
        })
    }
}

/// Loads a file to be fitted with `settings` on this machine, as [`Pipeline::load`] does.
pub fn load_for_fit(
    path: &Path,
    request: &DataRequest,
    settings: &FitSettings,
    rows: Option<&RowRanges>,
) -> Result<Loaded, Error> {
    Pipeline::new(settings.clone())?.load(path, request, rows)
}

/// The sizes of the fit, never more than they will be; none where only the data can tell.
fn foreseen(
    survey: &Survey,
    request: &DataRequest,
    settings: &FitSettings,
    rows: Option<&RowRanges>,
) -> Option<Sizes> {
    // Rows of weight zero are left out.
    if survey.weighted {
        return None;
    }
    let n_loaded = survey.n_kept;
    let n_samples = match rows {
        None => n_loaded,
        Some(rows) => rows.resolve(n_loaded).ok()?.iter().map(ExactSizeIterator::len).sum(),
    };
    let own_rows = |key: &str| survey.constraints.iter().any(|(found, _)| *found == key);
    let polyhedra = own_rows("M") || own_rows("M_eq") || request.matrix.is_some();
    let learns_theta = settings.theta == ThetaChoice::Learn;
    let decision_dim = survey.decision_dim?;
    let given = survey.constraint_numbers();
    // Loaded, of the samples, and as sets.
    let of_samples = (given as u128 * n_samples as u128 / n_loaded.max(1) as u128) as usize;
    let set_numbers = (given + 2 * of_samples).max(2 * decision_dim);
    Some(Sizes {
        n_loaded,
        n_samples,
        signal_dim: survey.signal_dim,
        decision_dim,
        n_features: settings.features.n_features(survey.signal_dim),
        set_numbers,
        coupled: learns_theta || polyhedra || request.matrix_eq.is_some(),
        learns_theta,
    })
}
