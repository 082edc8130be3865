//! Decisions to npz, npy or csv, prices to npz or csv, whole or not at all.
//!
//! The bytes go to a temporary file in the target's folder, which takes the target's name only
//! once everything is on disk. Where the system can, that file has no name before.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use ::zip::write::SimpleFileOptions;
use ::zip::{CompressionMethod, ZipWriter};
use argwhy_core::dataset::Names;
use argwhy_core::decision_set::Prices;
use ndarray::ArrayView2;
use tempfile::NamedTempFile;

use super::format::ending;
use crate::error::DataError;
use latch::Latch;

pub use beside::Beside;
pub use data::{DataOut, check_data_ending, write_data};

#[cfg(feature = "arrow")]
mod arrow;
mod beside;
mod data;
#[cfg(feature = "arrow")]
mod flat;
mod latch;
#[cfg(target_os = "linux")]
mod nameless;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "sheets")]
mod xlsx;

/// Writes decisions (n × decision_dim) as float64, in the format of the path's ending.
///
/// `.npz` holds them under the key `decisions`, `.npy` as its array, `.csv` in columns of the given
/// names (`decisions_0, decisions_1, …` where there are none) with digits enough to read back the
/// same numbers. On failure nothing at `path` has changed.
#[allow(clippy::needless_pass_by_value, reason = "views are passed by value, as in ndarray")]
pub fn write_decisions(
    path: &Path,
    decisions: ArrayView2<f64>,
    names: &[String],
) -> Result<(), DataError> {
    write_decisions_beside(path, decisions, names, Beside::default())
}

/// As [`write_decisions`], with more numbers a row; an `.npy` has no room for them.
#[allow(clippy::needless_pass_by_value, reason = "views are passed by value, as in ndarray")]
pub fn write_decisions_beside(
    path: &Path,
    decisions: ArrayView2<f64>,
    names: &[String],
    beside: Beside<'_>,
) -> Result<(), DataError> {
    check_decisions_ending(path)?;
    let is_npy = ending(path).as_deref() == Some("npy");
    if !beside.is_empty() && is_npy {
        let endings = ".npz or .csv (an .npy holds decisions alone)";
        return Err(DataError::WriteEnding { path: path.to_path_buf(), endings });
    }
    replace(path, |out| match ending(path).as_deref() {
        Some("npz") => npz(&decisions, beside, out),
        Some("npy") => npy(&decisions, out),
        _ => csv(&decisions, names, beside, out),
    })
    .map_err(|source| DataError::Write { path: path.to_path_buf(), source })
}

/// Whether [`write_decisions`] knows the path's ending.
pub fn check_decisions_ending(path: &Path) -> Result<(), DataError> {
    if matches!(ending(path).as_deref(), Some("npz" | "npy" | "csv")) {
        return Ok(());
    }
    Err(DataError::WriteEnding { path: path.to_path_buf(), endings: ".npz, .npy or .csv" })
}

/// Writes prices in the format of the path's ending: who (`row`), which limit (`limit`, by its
/// name, else as `M[3]` or `upper[0]`) and how much (`price`).
///
/// `.csv` has these three columns, `.npz` these three arrays (int64, text, float64). On failure
/// nothing at `path` has changed.
pub fn write_prices(path: &Path, prices: &Prices, names: &Names) -> Result<(), DataError> {
    check_prices_ending(path)?;
    let npz = ending(path).as_deref() == Some("npz");
    let limits: Vec<String> = prices.limits.iter().map(|limit| limit.named(names)).collect();
    let limits = limits.as_slice();
    replace(path, |out| {
        if npz { prices_npz(prices, limits, out) } else { prices_csv(prices, limits, out) }
    })
    .map_err(|source| DataError::Write { path: path.to_path_buf(), source })
}

/// Whether [`write_prices`] knows the path's ending.
pub fn check_prices_ending(path: &Path) -> Result<(), DataError> {
    if matches!(ending(path).as_deref(), Some("npz" | "csv")) {
        return Ok(());
    }
    Err(DataError::WriteEnding { path: path.to_path_buf(), endings: ".npz or .csv" })
}

/// Refuses a target that is there and is no regular file: renaming would replace a folder, a pipe
/// or a device.
pub fn check_regular(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"))
        }
        Ok(found) if !found.is_file() => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a device or a pipe, not a file"))
        }
        _ => Ok(()),
    }
}

/// Gives `path` these bytes, or leaves it as it was.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, |out| out.write_all(bytes))
}

/// Gives `path` the bytes that `encode` writes, or leaves it as it was.
fn replace(
    path: &Path,
    encode: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    let fresh = Fresh::beside(path)?;
    let mut out = BufWriter::new(fresh.file());
    encode(&mut out)?;
    out.flush()?;
    drop(out);
    fresh.file().sync_all()?;
    fresh.take_the_place().map(|_| ())
}

/// Whether `path` can be given a new content: everything that [`write_whole`] does to it but the
/// last step, undone.
pub fn check_writable(path: &Path) -> io::Result<()> {
    Fresh::beside(path).map(|_| ())
}

/// Gives `path` the content `first`, or leaves it as it was; what is written to the file afterwards
/// is added.
pub fn write_onward(path: &Path, first: &[u8]) -> io::Result<File> {
    let fresh = Fresh::beside(path)?;
    fresh.file().write_all(first)?;
    fresh.take_the_place()
}

/// A file that is to take the place of another once it is complete.
struct Fresh {
    file: Unplaced,
    folder: PathBuf,
    /// The place it is to take.
    target: PathBuf,
}

enum Unplaced {
    /// Without a name, so that nothing is left whatever ends the process.
    #[cfg(target_os = "linux")]
    Nameless(File),
    /// With one of its own, where the system knows no other way.
    Named(NamedTempFile),
}

impl Fresh {
    /// In the folder of `path`.
    fn beside(path: &Path) -> io::Result<Self> {
        // Through a symbolic link, the file it points to is replaced, not the link.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        check_regular(&target)?;
        let folder = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
            _ => PathBuf::from("."),
        };
        if !folder.is_dir() {
            let message = format!("there is no folder `{}`", folder.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        }
        // A file that is write-protected is so on purpose, though a folder would let it be
        // replaced.
        if target.exists() {
            File::options().write(true).open(&target)?;
        }
        #[cfg(target_os = "linux")]
        if let Some(file) = nameless::create(&folder) {
            return Ok(Self { file: Unplaced::Nameless(file), folder, target });
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".argwhy-").suffix(".tmp");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // Temporary files are private by default; the result should obey the umask instead.
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(&folder).map_err(|e| without_temporary_name(&e))?;
        Ok(Self { file: Unplaced::Named(file), folder, target })
    }

    fn file(&self) -> &File {
        match &self.file {
            #[cfg(target_os = "linux")]
            Unplaced::Nameless(file) => file,
            Unplaced::Named(file) => file.as_file(),
        }
    }

    /// The file, open, where it belongs.
    fn take_the_place(self) -> io::Result<File> {
        let Self { file, folder, target } = self;
        let file = match file {
            #[cfg(target_os = "linux")]
            Unplaced::Nameless(file) => {
                nameless::name(&file, &folder, &target)?;
                file
            }
            Unplaced::Named(file) => file.persist(&target).map_err(|error| error.error)?,
        };
        // The new name is durable once the folder is; file systems that cannot do this still have
        // a complete file, so a refusal is not an error.
        let _ = File::open(&folder).and_then(|folder| folder.sync_all());
        Ok(file)
    }
}

/// `tempfile` adds the path of a file the user never asked for to its messages.
fn without_temporary_name(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.kind().to_string())
}

fn npz(
    array: &ArrayView2<f64>,
    beside: Beside<'_>,
    out: &mut (impl Write + Seek),
) -> io::Result<()> {
    let mut archive = ZipWriter::new(Latch::new(out));
    let ranges = beside.range.iter().flat_map(|(low, high)| [("_low", low), ("_high", high)]);
    for (end, array) in [("", array)].into_iter().chain(ranges) {
        archive.start_file(format!("decisions{end}.npy"), stored(array.len() as u64 * 8))?;
        npy(array, &mut archive)?;
    }
    if let Some(values) = beside.familiarity {
        archive.start_file("familiarity.npy", stored(values.len() as u64 * 8))?;
        npy_header("<f8", &format!("({},)", values.len()), &mut archive)?;
        blocks(values.iter().map(|value| value.to_le_bytes()), &mut archive)?;
    }
    archive.finish()?.into_result()
}

/// How an entry of so many bytes is stored.
fn stored(bytes: u64) -> SimpleFileOptions {
    // Archives beyond 4 GiB need the long sizes; the header's length is far below the slack.
    let large = bytes > u64::from(u32::MAX) - (1 << 16);
    SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(large)
}

fn npy(array: &ArrayView2<f64>, out: &mut impl Write) -> io::Result<()> {
    let (rows, columns) = array.dim();
    npy_header("<f8", &format!("({rows}, {columns})"), out)?;
    blocks(array.iter().map(|value| value.to_le_bytes()), out)
}

fn npy_header(descr: &str, shape: &str, out: &mut impl Write) -> io::Result<()> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    // Magic, version and length take 10 bytes; the numbers start at a multiple of 64.
    let padded = (10 + text.len() + 1).next_multiple_of(64) - 10;
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&(padded as u16).to_le_bytes())?;
    writeln!(out, "{text:<width$}", width = padded - 1)
}

/// Writes small pieces some thousand at a time.
fn blocks(pieces: impl Iterator<Item = impl AsRef<[u8]>>, out: &mut impl Write) -> io::Result<()> {
    let mut block = Vec::with_capacity(1 << 16);
    for piece in pieces {
        block.extend_from_slice(piece.as_ref());
        if block.len() >= 1 << 16 {
            out.write_all(&block)?;
            block.clear();
        }
    }
    out.write_all(&block)
}

/// Characters that a limit's name has room for at least: `M_eq[1073741823]`.
const NAME: usize = 16;

fn prices_npz(prices: &Prices, limits: &[String], out: &mut (impl Write + Seek)) -> io::Result<()> {
    let width = limits.iter().map(|name| name.chars().count()).fold(NAME, usize::max);
    let mut archive = ZipWriter::new(Latch::new(out));
    let shape = format!("({},)", prices.len());
    let start = |archive: &mut ZipWriter<_>, name: &str, descr: &str, size: usize| {
        archive.start_file(format!("{name}.npy"), stored((prices.len() * size) as u64))?;
        npy_header(descr, &shape, archive)
    };
    start(&mut archive, "row", "<i8", 8)?;
    blocks(prices.samples.iter().map(|row| row.to_le_bytes()), &mut archive)?;
    start(&mut archive, "limit", &format!("<U{width}"), 4 * width)?;
    let name = |limit: &String| {
        // NumPy's text: four bytes a character, zeros at the end.
        let mut bytes: Vec<u8> = limit.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
        bytes.resize(4 * width, 0);
        bytes
    };
    blocks(limits.iter().map(name), &mut archive)?;
    start(&mut archive, "price", "<f8", 8)?;
    blocks(prices.values.iter().map(|price| price.to_le_bytes()), &mut archive)?;
    archive.finish()?.into_result()
}

fn prices_csv(prices: &Prices, limits: &[String], out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "row,limit,price")?;
    for ((row, limit), price) in prices.samples.iter().zip(limits).zip(&prices.values) {
        writeln!(out, "{row},{},{price:?}", cell(limit))?;
    }
    Ok(())
}

/// A text as a cell: in quotes where it holds what ends a cell.
fn cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

fn csv(
    array: &ArrayView2<f64>,
    names: &[String],
    beside: Beside<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let numbered = (0..array.ncols()).map(|i| format!("decisions_{i}"));
    let names: Vec<String> = if names.is_empty() { numbered.collect() } else { names.to_vec() };
    let mut header = names.clone();
    if beside.range.is_some() {
        header.extend(
            names.iter().flat_map(|name| ["low", "high"].map(|end| format!("{name}_{end}"))),
        );
    }
    header.extend(beside.familiarity.map(|_| "familiarity".to_owned()));
    let header: Vec<String> = header.iter().map(|name| cell(name)).collect();
    writeln!(out, "{}", header.join(","))?;
    for (at, row) in array.rows().into_iter().enumerate() {
        let ends = |(low, high): &(ArrayView2<f64>, ArrayView2<f64>)| {
            let pairs = low.row(at).into_iter().zip(high.row(at)).flat_map(|(l, h)| [*l, *h]);
            pairs.collect::<Vec<_>>()
        };
        let ends = beside.range.as_ref().map(ends).unwrap_or_default();
        let last = beside.familiarity.map(|values| values[at]);
        for (i, value) in row.iter().copied().chain(ends).chain(last).enumerate() {
            if i > 0 {
                out.write_all(b",")?;
            }
            // The shortest digits that read back as the same f64.
            write!(out, "{value:?}")?;
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_failure_half_way_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        fs::write(&path, "old").unwrap();
        let failure = replace(&path, |out| {
            out.write_all(&vec![b'x'; 1 << 20])?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(failure.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(folder.path()), ["out.csv"]);

        replace(&path, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(names(folder.path()), ["out.csv"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_unfinished_file_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        if nameless::create(folder.path()).is_none() {
            return; // A file system that cannot do this.
        }
        let path = folder.path().join("out.csv");
        for expected in [&[][..], &["out.csv"]] {
            replace(&path, |out| {
                out.write_all(&vec![b'x'; 1 << 20])?;
                out.flush()?;
                assert_eq!(names(folder.path()), expected);
                Ok(())
            })
            .unwrap();
            assert_eq!(names(folder.path()), ["out.csv"]);
        }
    }

    #[test]
    fn every_format_reports_a_full_disk() {
        let array = ndarray::Array2::<f64>::ones((20, 2));
        let mut whole = io::Cursor::new(Vec::new());
        npz(&array.view(), Beside::default(), &mut whole).unwrap();
        for length in 0..whole.get_ref().len() {
            let mut room = vec![0u8; length];
            let failure =
                npz(&array.view(), Beside::default(), &mut io::Cursor::new(&mut room[..]));
            assert_eq!(failure.unwrap_err().kind(), io::ErrorKind::WriteZero);
            let mut room = vec![0u8; length.min(100)];
            assert!(npy(&array.view(), &mut &mut room[..]).is_err());
            let header = ["a".to_owned(), "b".to_owned()];
            assert!(csv(&array.view(), &header, Beside::default(), &mut &mut room[..]).is_err());
        }
    }

    #[test]
    fn a_place_is_checked_without_touching_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        check_writable(&path).unwrap();
        assert!(names(folder.path()).is_empty());
        fs::write(&path, "old").unwrap();
        check_writable(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(folder.path()), ["out.csv"]);
        for wrong in ["out.csv/x.csv", "none/x.csv", ""] {
            assert!(check_writable(&folder.path().join(wrong)).is_err(), "{wrong}");
        }
        #[cfg(target_os = "linux")]
        assert!(check_writable(Path::new("/proc/out.csv")).is_err());
    }

    #[test]
    fn a_stream_replaces_the_old_file_with_its_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.jsonl");
        fs::write(&path, "old").unwrap();
        let mut file = write_onward(&path, b"one\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\n");
        file.write_all(b"two\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        assert_eq!(names(folder.path()), ["out.jsonl"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_files_are_not_private() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.csv"), folder.path().join("link.csv"));
        fs::write(&real, "old").unwrap();
        symlink(&real, &link).unwrap();
        replace(&link, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());

        // As permissive as a file made the ordinary way under the same umask.
        let plain = folder.path().join("plain");
        fs::write(&plain, "").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&real), mode(&plain));
    }
}
