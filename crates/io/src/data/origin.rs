//! Where a value being read comes from, so that every error can say so.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use crate::budget::Meter;
use crate::error::{DataError, shaped};

/// A file being read as a format, and the memory that may take.
#[derive(Clone, Copy)]
pub(super) struct Origin<'a> {
    pub path: &'a Path,
    pub format: &'static str,
    pub meter: &'a Meter,
}

impl Origin<'_> {
    /// The bytes are not what the format asks for.
    pub fn corrupt(&self, detail: impl Display) -> DataError {
        DataError::Corrupt {
            path: self.path.to_path_buf(),
            format: self.format,
            detail: detail.to_string(),
        }
    }

    /// This build leaves out a part that the file needs.
    #[allow(dead_code, reason = "builds with every feature leave nothing out")]
    pub fn not_built(&self, feature: &str) -> DataError {
        DataError::Unsupported {
            path: self.path.to_path_buf(),
            detail: format!("this build cannot read {feature}; build it with that feature"),
        }
    }

    /// A read failed: the system's fault if it gave an error number, the file's otherwise.
    pub fn read_failed(&self, what: &str, source: io::Error) -> DataError {
        if source.raw_os_error().is_some() {
            return DataError::Unreadable { path: self.path.to_path_buf(), source };
        }
        if source.kind() == io::ErrorKind::UnexpectedEof {
            return self.corrupt(format!("{what}: the data ends early"));
        }
        self.corrupt(format!("{what}: {source}"))
    }

    /// The shape as N × d: 1-D is a single column.
    pub fn matrix_shape(&self, key: &str, shape: &[u64]) -> Result<(usize, usize), DataError> {
        let (rows, columns) = match *shape {
            [rows] => (rows, 1),
            [rows, columns] => (rows, columns),
            _ => {
                return Err(DataError::Dimensions {
                    path: self.path.to_path_buf(),
                    key: key.to_owned(),
                    shape: shape.to_vec(),
                });
            }
        };
        match (usize::try_from(rows), usize::try_from(columns)) {
            // The product must fit as well, in bytes of f64.
            (Ok(r), Ok(c)) if r.checked_mul(c).is_some_and(|n| n <= isize::MAX as usize / 8) => {
                Ok((r, c))
            }
            _ => Err(self.too_large(key, shape, "more than a machine can address")),
        }
    }

    /// The shape of an array of constraints: one to three axes, as rows and what each of them
    /// holds.
    pub fn tensor_shape(&self, key: &str, shape: &[u64]) -> Result<(usize, usize), DataError> {
        match *shape {
            [_] | [_, _] => self.matrix_shape(key, shape),
            [rows, inner, columns] => {
                let row = inner
                    .checked_mul(columns)
                    .ok_or_else(|| self.too_large(key, shape, "more than a machine can address"))?;
                self.matrix_shape(key, &[rows, row])
            }
            _ => Err(DataError::ConstraintShape {
                path: self.path.to_path_buf(),
                key: key.to_owned(),
                shape: shape.to_vec(),
                expected: "one, two or three axes".to_owned(),
            }),
        }
    }

    pub fn too_large(&self, key: &str, shape: &[u64], detail: impl Display) -> DataError {
        DataError::TooLarge {
            path: self.path.to_path_buf(),
            key: key.to_owned(),
            shape: shape.to_vec(),
            detail: detail.to_string(),
        }
    }

    /// Zeros for `count` values, charged to the budget, or an error where an ordinary `vec!` would
    /// abort the process. Pages that nothing is written to take no memory.
    pub fn room(&self, key: &str, shape: &[u64], count: usize) -> Result<Vec<f64>, DataError> {
        let what = format!("`{key}`, of shape {},", shaped(shape));
        self.charge((count as u64).saturating_mul(8), &what)?;
        let mut probe: Vec<f64> = Vec::new();
        probe.try_reserve_exact(count).map_err(|_| {
            let gib = count as f64 * 8.0 / (1u64 << 30) as f64;
            self.too_large(key, shape, format!("{gib:.1} GiB as f64: more memory than there is"))
        })?;
        drop(probe);
        Ok(vec![0.0; count])
    }

    /// Takes memory for a list of what is in the file. A short one is part of the program's own.
    pub fn charge_list(&self, bytes: u64, what: &str) -> Result<(), DataError> {
        const SHORT: u64 = 1 << 20;
        if bytes > SHORT { self.charge(bytes, what) } else { Ok(()) }
    }

    /// Takes memory for a part of this file.
    pub fn charge(&self, bytes: u64, what: &str) -> Result<(), DataError> {
        self.meter.charge(bytes, what, self.path)
    }

    /// Exactly these bytes of the file, charged to the budget until they are released.
    pub fn part(&self, file: &mut File, (start, count): (u64, u64)) -> Result<Vec<u8>, DataError> {
        self.charge(count, &format!("a part of the {} file", self.format))?;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(start))
            .and_then(|_| file.take(count).read_to_end(&mut bytes))
            .map_err(|error| self.read_failed(self.format, error))?;
        if bytes.len() as u64 != count {
            return Err(self.corrupt(format!(
                "{count} bytes are expected at byte {start}, but the file ends there"
            )));
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;

    /// A table that claimed 2⁶⁴ − 1 values overflowed the sum of their bytes; found by mutation.
    #[test]
    fn no_claim_is_too_large_to_be_refused() {
        for budget in [Budget::default(), Budget::within(1 << 20, 0)] {
            let meter = Meter::new(budget);
            let origin = Origin { path: Path::new("t.parquet"), format: "parquet", meter: &meter };
            assert!(origin.room("signals", &[u64::MAX], usize::MAX).is_err());
        }
    }
}
