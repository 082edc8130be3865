//! Whole data sets, in any format that is written.

use std::io::{self, Seek, Write};
use std::path::Path;

use ::zip::ZipWriter;
use argwhy_core::dataset::Names;
use ndarray::{Array2, ArrayView2};

use super::latch::Latch;
use super::{blocks, cell, npy, npy_header, replace, stored};
use crate::data::format::ending;
use crate::error::DataError;

/// What is written: all with as many rows.
#[derive(Debug, Clone, Copy)]
pub struct DataOut<'a> {
    /// n_samples × signal_dim.
    pub signals: ArrayView2<'a, f64>,
    /// n_samples × decision_dim.
    pub decisions: Option<ArrayView2<'a, f64>>,
    /// One a row.
    pub weights: Option<&'a [f64]>,
    /// The number of each row's episode, one after the other.
    pub episodes: Option<&'a [u32]>,
    /// What columns are called.
    pub names: &'a Names,
}

/// Writes signals, decisions, weights and the ends of episodes in the format of the path's ending.
///
/// npz and hdf5 have them under `signals`, `decisions`, `weights` and `terminals`; tables have a
/// column for each signal and decision, by its name or as `signals_0`, `decisions_0`, … Numbers are
/// float64. On failure nothing at `path` has changed.
pub fn write_data(path: &Path, data: &DataOut<'_>) -> Result<(), DataError> {
    check_data_ending(path)?;
    let own = ending(path);
    replace(path, |out| match own.as_deref() {
        Some("npz") => npz(data, out),
        Some("hdf5" | "h5") => hdf5(data, out),
        #[cfg(feature = "parquet")]
        Some("parquet") => super::parquet::write(&data.columns(), data.signals.nrows(), out),
        #[cfg(feature = "arrow")]
        Some("feather" | "arrow" | "ipc") => {
            super::arrow::write(&data.columns(), data.signals.nrows(), out)
        }
        #[cfg(feature = "sheets")]
        Some("xlsx") => super::xlsx::write(&data.columns(), data.signals.nrows(), out),
        Some("tsv") => text(data, '\t', out),
        _ => text(data, ',', out),
    })
    .map_err(|source| DataError::Write { path: path.to_path_buf(), source })
}

/// Whether [`write_data`] knows the path's ending.
pub fn check_data_ending(path: &Path) -> Result<(), DataError> {
    let own = ending(path);
    match own.as_deref() {
        Some("npz" | "hdf5" | "h5" | "csv" | "tsv") => return Ok(()),
        Some("parquet") if cfg!(feature = "parquet") => return Ok(()),
        Some("feather" | "arrow" | "ipc") if cfg!(feature = "arrow") => return Ok(()),
        Some("xlsx") if cfg!(feature = "sheets") => return Ok(()),
        _ => {}
    }
    let endings = ".csv, .tsv, .npz, .parquet, .feather, .arrow, .ipc, .xlsx, .hdf5 or .h5";
    Err(DataError::WriteEnding { path: path.to_path_buf(), endings })
}

/// A column: what it is called, and its number in each row.
pub(super) type Column<'a> = (String, Box<dyn Fn(usize) -> f64 + 'a>);

impl<'a> DataOut<'a> {
    /// One after the last row of each episode; empty where there are none.
    fn terminals(&self) -> Vec<f64> {
        let Some(episodes) = self.episodes else { return Vec::new() };
        let is_last = |row: usize| episodes.get(row + 1) != Some(&episodes[row]);
        (0..episodes.len()).map(|row| f64::from(u8::from(is_last(row)))).collect()
    }

    /// All of it as columns.
    pub(super) fn columns(&self) -> Vec<Column<'a>> {
        let mut columns: Vec<Column<'a>> = Vec::new();
        let roles = [
            ("signals", Some(self.signals), &self.names.signals),
            ("decisions", self.decisions, &self.names.decisions),
        ];
        for (role, array, names) in roles {
            let Some(array) = array else { continue };
            for at in 0..array.ncols() {
                let name = names.get(at).cloned().unwrap_or_else(|| format!("{role}_{at}"));
                columns.push((name, Box::new(move |row| array[[row, at]])));
            }
        }
        if let Some(weights) = self.weights {
            columns.push(("weights".to_owned(), Box::new(move |row| weights[row])));
        }
        if self.episodes.is_some() {
            let terminals = self.terminals();
            columns.push(("terminals".to_owned(), Box::new(move |row| terminals[row])));
        }
        columns
    }
}

fn text(data: &DataOut<'_>, separator: char, out: &mut impl Write) -> io::Result<()> {
    let columns = data.columns();
    let quoted = |name: &String| {
        if name.contains(separator) {
            format!("\"{}\"", name.replace('"', "\"\""))
        } else {
            cell(name)
        }
    };
    let header: Vec<String> = columns.iter().map(|(name, _)| quoted(name)).collect();
    writeln!(out, "{}", header.join(&separator.to_string()))?;
    for row in 0..data.signals.nrows() {
        for (at, (_, value)) in columns.iter().enumerate() {
            if at > 0 {
                write!(out, "{separator}")?;
            }
            // The shortest digits that read back as the same f64.
            write!(out, "{:?}", value(row))?;
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn npz(data: &DataOut<'_>, out: &mut (impl Write + Seek)) -> io::Result<()> {
    let mut archive = ZipWriter::new(Latch::new(out));
    let arrays = [("signals", Some(data.signals)), ("decisions", data.decisions)];
    for (key, array) in arrays {
        let Some(array) = array else { continue };
        archive.start_file(format!("{key}.npy"), stored(array.len() as u64 * 8))?;
        npy(&array, &mut archive)?;
    }
    let terminals = data.terminals();
    let ends = data.episodes.map(|_| terminals.as_slice());
    for (key, values) in [("weights", data.weights), ("terminals", ends)] {
        let Some(values) = values else { continue };
        archive.start_file(format!("{key}.npy"), stored(values.len() as u64 * 8))?;
        npy_header("<f8", &format!("({},)", values.len()), &mut archive)?;
        blocks(values.iter().map(|value| value.to_le_bytes()), &mut archive)?;
    }
    archive.finish()?.into_result()
}

fn hdf5(data: &DataOut<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut file = hdf5_pure::FileBuilder::new();
    for (key, array) in [("signals", Some(data.signals)), ("decisions", data.decisions)] {
        let Some(array) = array else { continue };
        let values: Array2<f64> = array.as_standard_layout().into_owned();
        let shape = [array.nrows() as u64, array.ncols() as u64];
        let values = values.into_raw_vec_and_offset().0;
        file.create_dataset(key).with_f64_data(&values).with_shape(&shape);
    }
    let terminals = data.terminals();
    let ends = data.episodes.map(|_| terminals.as_slice());
    for (key, values) in [("weights", data.weights), ("terminals", ends)] {
        let Some(values) = values else { continue };
        file.create_dataset(key).with_f64_data(values).with_shape(&[values.len() as u64]);
    }
    out.write_all(&file.finish().map_err(io::Error::other)?)
}
