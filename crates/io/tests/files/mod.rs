//! Test files: those committed under `tests/data`, and bytes written on the spot.

#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(dead_code, reason = "every test binary uses its own part")]

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use argwhy_io::{DataError, DataRequest, Loaded, load};
use ndarray::Array2;

/// A committed file made by `tests/data/make.py`.
pub fn committed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// The values `make.py` writes.
pub fn signals(rows: usize, columns: usize) -> Array2<f64> {
    Array2::from_shape_fn((rows, columns), |(i, j)| i as f64 + j as f64 / 8.0)
}

/// The values `make.py` writes.
pub fn decisions(rows: usize, columns: usize) -> Array2<f64> {
    Array2::from_shape_fn((rows, columns), |(i, j)| i as f64 / 4.0 - j as f64)
}

/// A request by keys.
pub fn keys(signals: &str, decisions: &str) -> DataRequest {
    DataRequest {
        signals: Some(signals.to_owned()),
        decisions: Some(decisions.to_owned()),
        ..DataRequest::default()
    }
}

/// A request for signals alone.
pub fn only(signals: &str) -> DataRequest {
    DataRequest { signals: Some(signals.to_owned()), ..DataRequest::signals_only() }
}

/// A folder that lasts as long as the test.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A new file each time: ext4 waits for the disk when an old one is cut to nothing and closed.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Writes a file and loads it.
    pub fn load(
        &self,
        name: &str,
        bytes: impl AsRef<[u8]>,
        request: &DataRequest,
    ) -> Result<Loaded, DataError> {
        load(&self.write(name, bytes), request)
    }

    /// Writes a file that must not load, and gives the message with the folder's name cut out.
    pub fn refusal(&self, name: &str, bytes: impl AsRef<[u8]>, request: &DataRequest) -> String {
        let error = self.load(name, bytes, request).unwrap_err();
        self.short(&error)
    }

    pub fn short(&self, error: &DataError) -> String {
        error.to_string().replace(&format!("{}/", self.0.path().display()), "")
    }
}

/// An npy file: a header as NumPy writes it, then the bytes given.
pub fn npy(descr: &str, shape: &str, body: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(body);
    bytes
}

/// An npy file of f64 with any number of axes.
pub fn npy_tensor(shape: &[usize], values: &[f64]) -> Vec<u8> {
    let body: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    npy("<f8", &format!("({}{comma})", sizes.join(", ")), &body)
}

/// An npy file of f64.
pub fn npy_of(array: &Array2<f64>) -> Vec<u8> {
    let body: Vec<u8> = array.iter().flat_map(|value| value.to_le_bytes()).collect();
    npy("<f8", &format!("({}, {})", array.nrows(), array.ncols()), &body)
}

/// A zip archive of the entries given.
pub fn npz(entries: &[(&str, Vec<u8>)], deflated: bool) -> Vec<u8> {
    let method =
        if deflated { zip::CompressionMethod::Deflated } else { zip::CompressionMethod::Stored };
    let options = zip::write::SimpleFileOptions::default().compression_method(method);
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (key, bytes) in entries {
        archive.start_file(format!("{key}.npy"), options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// An HDF5 file in D4RL's layout.
pub fn flat_hdf5(signals: &Array2<f64>, decisions: &Array2<f64>, deflated: bool) -> Vec<u8> {
    let mut file = hdf5_pure::FileBuilder::new();
    for (name, array) in [("observations", signals), ("actions", decisions)] {
        let shape = [array.nrows() as u64, array.ncols() as u64];
        let values: Vec<f32> = array.iter().map(|&value| value as f32).collect();
        let dataset = file.create_dataset(name).with_f32_data(&values).with_shape(&shape);
        if deflated {
            dataset.with_chunks(&[2, shape[1]]).with_deflate(6);
        }
    }
    file.finish().unwrap()
}

/// An HDF5 file in Minari's layout, of the episode lengths given.
pub fn episodes_hdf5(steps: &[usize]) -> Vec<u8> {
    let mut file = hdf5_pure::FileBuilder::new();
    let mut first = 0;
    for (e, &t) in steps.iter().enumerate() {
        let mut group = file.create_group(&format!("episode_{e}"));
        let observations: Vec<f64> = (0..=t).map(|i| (first + i) as f64).collect();
        let actions: Vec<f64> = (0..t).map(|i| (first + i) as f64 / 4.0).collect();
        group
            .create_dataset("observations")
            .with_f64_data(&observations)
            .with_shape(&[t as u64 + 1, 1]);
        group.create_dataset("actions").with_f64_data(&actions).with_shape(&[t as u64, 1]);
        file.add_group(group.finish());
        first += t;
    }
    file.finish().unwrap()
}
