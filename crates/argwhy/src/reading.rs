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
use std::fs::Metadata;
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
        self.load_to_fit_after(path, request, rows, || ())
    }

    /// The same, with something done between the walk for statistics and the reading of rows.
    fn load_to_fit_after(
        &self,
        path: &Path,
        request: &DataRequest,
        rows: Option<&RowRanges>,
        between: impl FnOnce(),
    ) -> Result<ToFit, Error> {
        let stamp = stamp(path);
        if let Some(rows) = rows.filter(|_| self.can_leave_out(path, request))
            && let Some(features) = self.features_in_passing(path, request)
        {
            between();
            let request = DataRequest { rows: Some(rows.clone()), ..request.clone() };
            let loaded = self.load(path, &request, None);
            // Statistics and rows of different contents would be a mixture; what is there now is
            // read once more, whole.
            if stamp == self::stamp(path) {
                let loaded = loaded?;
                let all = 0..loaded.signals.nrows();
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

/// What changes where a file, or one in a folder, is written anew or replaced.
#[derive(PartialEq)]
struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
    identity: [i64; 3],
}

/// Those of all files at a path.
fn stamp(path: &Path) -> Vec<Stamp> {
    let mut stamps = Vec::new();
    let mut folders = vec![path.to_path_buf()];
    while let Some(path) = folders.pop() {
        let Ok(about) = path.metadata() else { continue };
        let modified = about.modified().ok();
        stamps.push(Stamp { len: about.len(), modified, identity: identity(&about) });
        if let Ok(inside) = path.read_dir() {
            folders.extend(inside.flatten().map(|entry| entry.path()));
            folders.sort();
        }
    }
    stamps
}

/// Which file it is, and when anything about it changed last, which nobody can set.
#[cfg(unix)]
fn identity(about: &Metadata) -> [i64; 3] {
    use std::os::unix::fs::MetadataExt;
    [about.ino().cast_signed(), about.ctime(), about.ctime_nsec()]
}

/// Other systems tell when it was written, and no more.
#[cfg(not(unix))]
fn identity(_: &Metadata) -> [i64; 3] {
    [0; 3]
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
        n_factors: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Rows enough to be walked through for statistics first.
    fn table(n_rows: usize, turn: usize) -> String {
        let digit = |i: usize, j: usize| (i * (j + 2) + turn) % 7;
        let row = |i: usize| {
            let [a, b, c, d, e, u] = [0, 1, 2, 3, 4, 5].map(|j| digit(i, j));
            format!("{a},{b},{c},{d},{e},{u}\n")
        };
        let names = "signals_0,signals_1,signals_2,signals_3,signals_4,decisions_0\n";
        names.to_owned() + &(0..n_rows).map(row).collect::<String>()
    }

    #[test]
    fn a_large_file_that_changes_between_its_readings_is_read_once_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.csv");
        let n_rows = SMALL / 8 / 6 + 1000;
        let old = table(n_rows, 0);
        let pipeline = Pipeline::new(FitSettings::default()).unwrap();
        let (request, rows) = (DataRequest::default(), "10:60".parse().unwrap());
        let load = |between: &dyn Fn()| {
            fs::write(&path, &old).unwrap();
            pipeline.load_to_fit_after(&path, &request, Some(&rows), between)
        };
        let unchanged = load(&|| ()).unwrap();
        assert!(unchanged.features.is_some() && unchanged.loaded.signals.nrows() == 50);

        let written = path.metadata().unwrap().modified().unwrap();
        let same_length = table(n_rows, 3);
        let replaced = load(&|| {
            fs::write(&path, &same_length).unwrap();
            fs::File::options().append(true).open(&path).unwrap().set_modified(written).unwrap();
        });
        let (replaced, whole) = (replaced.unwrap(), pipeline.load(&path, &request, None).unwrap());
        assert!(replaced.features.is_none() && replaced.rows.first() == Some(&(10..60)));
        assert!(replaced.loaded.signals == whole.signals);
        assert!(replaced.loaded.signals.row(12) != unchanged.loaded.signals.row(2));

        // Rows that are gone, and a file that is.
        let cut = load(&|| fs::write(&path, table(30, 0)).unwrap()).unwrap_err().to_string();
        assert!(cut.contains("30"), "{cut}");
        let gone = load(&|| fs::remove_file(&path).unwrap()).unwrap_err().to_string();
        assert!(gone.contains("large.csv"), "{gone}");
    }
}
