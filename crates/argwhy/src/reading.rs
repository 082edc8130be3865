//! Data for a fit, read within the fit's memory limit.
//!
//! The sizes come from the file's headers. Where no plan for them keeps the limit, the fit is
//! refused before any number is read; otherwise reading itself may take what the limit leaves.
//!
//! Features have the statistics of all rows, also where the fit is to some of them. Of a large file
//! these are computed while its rows go by, and only the rows of the fit are kept.

use crate::error::Error;
use crate::pipeline::{Pipeline, Silent};
use crate::plan::{Plan, Sizes, process_bytes};
use crate::settings::{FitSettings, ThetaChoice};
use argwhy_core::features::FeatureMap;
use argwhy_io::{
    Budget, DataError, DataRequest, Loaded, Missing, RowRanges, Survey, Thinning, load, load_if,
    survey, walk_signals,
};
use std::ops::Range;
use std::path::Path;
use std::time::SystemTime;

/// Bytes of signals and decisions up to which all rows are loaded, whichever are fitted: another
/// walk through the file would take longer than the room is worth.
const SMALL: usize = 32 << 20;

/// Data as a fit takes it.
#[derive(Debug)]
pub struct ToFit {
    /// What was loaded: all rows, or those of the fit alone.
    pub loaded: Loaded,
    /// The rows of the fit among those loaded.
    pub rows: Vec<Range<usize>>,
    /// The features of all rows, where only some were loaded.
    pub features: Option<FeatureMap>,
}

impl ToFit {
    /// The numbers that the loaded rows have in the file; none where they are counted as loaded.
    pub fn numbers(&self) -> Option<Vec<usize>> {
        self.features.as_ref().and_then(|_| self.loaded.places.clone())
    }
}

impl Pipeline {
    /// Loads a file to be fitted on `rows` of it, all if none are given, within the settings'
    /// limit. Rows that the fit does not need are not kept, where the file is large and nothing but
    /// the statistics of features depends on them.
    pub fn load_to_fit(
        &self,
        path: &Path,
        request: &DataRequest,
        rows: Option<&RowRanges>,
    ) -> Result<ToFit, Error> {
        let stamp = stamp(path);
        if let Some(rows) = rows.filter(|_| self.can_leave_out(path, request))
            && let Some(features) = self.features_in_passing(path, request)
        {
            let request = DataRequest { rows: Some(rows.clone()), ..request.clone() };
            let loaded = self.load(path, &request, None)?;
            let all = 0..loaded.signals.nrows();
            // Statistics and rows of different contents would be a mixture.
            if stamp == self::stamp(path) {
                return Ok(ToFit { loaded, rows: vec![all], features: Some(features) });
            }
        }
        self.load_all_to_fit(path, request, rows)
    }

    /// The same with all rows, for fits by other features beside it.
    pub fn load_all_to_fit(
        &self,
        path: &Path,
        request: &DataRequest,
        rows: Option<&RowRanges>,
    ) -> Result<ToFit, Error> {
        let loaded = self.load(path, request, rows)?;
        let n_rows = loaded.signals.nrows();
        let every = || Ok(std::iter::once(0..n_rows).collect());
        let rows = rows.map_or_else(every, |rows| rows.resolve(n_rows))?;
        Ok(ToFit { loaded, rows, features: None })
    }

    /// Whether rows outside of the fit matter for the statistics of features alone. Others'
    /// machines read the file themselves, and know its rows by their numbers.
    fn can_leave_out(&self, path: &Path, request: &DataRequest) -> bool {
        request.rows.is_none()
            && request.thinning.is_empty()
            && request.encoding.is_empty()
            && request.missing == Missing::default()
            && request.weights.is_none()
            && !request.wants_constraints()
            && path != Path::new("-")
            && !self.has_backend()
    }

    /// The features of all rows of a large file, none of which are kept. None where the file is
    /// small, and where something is wrong with it: loading it all tells what.
    fn features_in_passing(&self, path: &Path, request: &DataRequest) -> Option<FeatureMap> {
        let request = DataRequest { budget: self.budget(), ..request.clone() };
        let sizes = survey(path, &request).ok()?;
        let width = sizes.signal_dim + sizes.decision_dim.unwrap_or(0);
        if sizes.n_rows.saturating_mul(width).saturating_mul(8) <= SMALL {
            return None;
        }
        let every = Some(FeatureMap::stride(sizes.n_rows));
        let thinning = Thinning { every, ..Thinning::default() };
        let few = DataRequest { thinning, ..request.clone() };
        let some = load(path, &few).ok()?.signals;
        let settings = self.settings().feature_settings();
        let features = self.with_threads(|| {
            FeatureMap::fit_walking(settings, sizes.n_rows, some.view(), |take| {
                let mut n_rows = 0;
                let whole = walk_signals(path, &request, FeatureMap::UNIT, |rows| {
                    n_rows += rows.nrows();
                    take(rows);
                })?;
                // A file that changes while it is read is read again, whole.
                let unchanged = whole && n_rows == sizes.n_rows;
                let path = path.to_path_buf();
                if unchanged { Ok(()) } else { Err(Error::from(DataError::Empty { path })) }
            })
        });
        features.ok()
    }

    fn budget(&self) -> Budget {
        let settings = self.settings();
        Budget::within(settings.memory.0, process_bytes(settings))
    }

    /// Loads a file to be fitted on `rows` of it, all if none are given, within the settings'
    /// limit. The request's own budget is replaced by the settings'.
    pub fn load(
        &self,
        path: &Path,
        request: &DataRequest,
        rows: Option<&RowRanges>,
    ) -> Result<Loaded, Error> {
        let settings = self.settings();
        let request = DataRequest { budget: self.budget(), ..request.clone() };
        load_if(path, &request, |survey| {
            let Some(sizes) = foreseen(survey, &request, settings, rows) else { return Ok(()) };
            let plan = if settings.primal {
                Plan::primal(settings, sizes).map_err(Error::Core)
            } else {
                self.planned(sizes, &mut Silent).map(|(_, plan)| plan)
            };
            match plan {
                // What else is wrong is told once the data is known.
                Err(refusal @ Error::Core(argwhy_core::Error::Memory { .. })) => Err(refusal),
                _ => Ok(()),
            }
        })
    }
}

/// What changes where a file, or one in a folder, is written anew: lengths, and when that was.
fn stamp(path: &Path) -> Vec<(u64, Option<SystemTime>)> {
    let mut stamps = Vec::new();
    let mut folders = vec![path.to_path_buf()];
    while let Some(path) = folders.pop() {
        let Ok(about) = path.metadata() else { continue };
        stamps.push((about.len(), about.modified().ok()));
        if let Ok(inside) = path.read_dir() {
            folders.extend(inside.flatten().map(|entry| entry.path()));
            folders.sort();
        }
    }
    stamps
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
