//! What can be wrong with a data file, in words a user can act on.

use crate::data::Gaps;
use crate::data::data_endings;
use argwhy_core::dataset::Half;
use argwhy_core::wording::{Spelling, count};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why data could not be read, selected or written.
///
/// Every message names the input, what was found in it, and what to do: `{}` names options as in
/// Rust and Python, `{:#}` as the command's flags.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// Nothing exists at the path.
    #[error("no file or folder at `{}`; check the path", path.display())]
    NotFound {
        /// The path asked for.
        path: PathBuf,
    },
    /// The operating system refused to hand over the bytes.
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable {
        /// The path asked for.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
    /// Neither a regular file nor a folder: a pipe, a socket, a device.
    #[error("`{}` is neither a file nor a folder; save the data to a file first", path.display())]
    NotAFile {
        /// The path asked for.
        path: PathBuf,
    },
    /// A file of no bytes.
    #[error("`{}` is empty (0 bytes); fetch or write it again", path.display())]
    Empty {
        /// The empty file.
        path: PathBuf,
    },
    /// Neither the ending nor the first bytes name a format.
    #[error(
        "cannot tell the format of `{}`: it starts with {seen}; \
         give a file ending in {}",
        path.display(), readable_endings()
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// Its first bytes, in words.
        seen: String,
    },
    /// A folder without any of the layouts that can be read.
    #[error(
        "the folder `{}` holds no dataset: expected signals.npy and decisions.npy, \
         observations.npy and actions.npy, or a Minari data/main_data.hdf5; found {}",
        path.display(), listed(found)
    )]
    UnknownFolder {
        /// The folder.
        path: PathBuf,
        /// What lies in it.
        found: Vec<String>,
    },
    /// The bytes are not a well-formed file of the format.
    #[error(
        "`{}` cannot be read as {format}: {detail}; \
         it may be truncated or damaged, fetch or write it again",
        path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The format it was read as.
        format: &'static str,
        /// What was seen.
        detail: String,
    },
    /// A well-formed file that uses something this reader does not know.
    #[error(fmt = unsupported)]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What was seen, and what to do; options are marked for [`Spelling::text`].
        detail: String,
    },
    /// A key was asked for by name and is not there.
    #[error(fmt = key_missing)]
    KeyMissing {
        /// The file.
        path: PathBuf,
        /// `signals`, `decisions`, `weights` or `groups`.
        role: &'static str,
        /// The key asked for.
        key: String,
        /// The keys in the file.
        found: Vec<String>,
    },
    /// Columns that a model knows by name are not there.
    #[error(fmt = names_missing)]
    NamesMissing {
        /// The file.
        path: PathBuf,
        /// `signals`, `decisions`, `lower` or `upper`.
        role: &'static str,
        /// The names that are not there.
        missing: Vec<String>,
        /// The keys in the file.
        found: Vec<String>,
    },
    /// Columns chosen by hand have a name of the model in another place.
    #[error(fmt = name_moved)]
    NameMoved {
        /// The file.
        path: PathBuf,
        /// `signals` or `decisions`.
        role: &'static str,
        /// The column.
        name: String,
        /// Where it was put, from 0.
        found: usize,
        /// Where the model has it.
        expected: usize,
    },
    /// The columns of a matrix are some of the decisions' names, but not all of them.
    #[error(
        "the columns of `{}` are not the decisions': it lacks {}; name them after the decisions \
         ({}), in any order, or give them other names, in that order",
        path.display(), listed(missing), listed(decisions)
    )]
    MatrixColumns {
        /// The file.
        path: PathBuf,
        /// Decisions without a column.
        missing: Vec<String>,
        /// What the decisions are called.
        decisions: Vec<String>,
    },
    /// No key was asked for and none of the usual ones is there.
    #[error(fmt = keys_absent)]
    KeysAbsent {
        /// The file.
        path: PathBuf,
        /// The usual keys, in words.
        expected: &'static str,
        /// The options that choose, marked for [`Spelling::text`].
        choose: &'static str,
        /// The keys in the file.
        found: Vec<String>,
        /// Whether `*` would stand for the columns that are left.
        is_table: bool,
    },
    /// No key was asked for and more than one usual key is there.
    #[error(fmt = keys_ambiguous)]
    KeysAmbiguous {
        /// The file.
        path: PathBuf,
        /// The competing keys, in words.
        both: &'static str,
        /// The options that choose, marked for [`Spelling::text`].
        choose: &'static str,
        /// The keys in the file.
        found: Vec<String>,
    },
    /// An npy file holds one array, so the decisions have to come from another.
    #[error(fmt = no_decisions)]
    NoDecisions {
        /// The npy file.
        path: PathBuf,
    },
    /// A group where an array was expected: a dictionary observation or action space.
    #[error(
        "`{key}` in `{}` is a group ({}), not an array: dictionary spaces are not supported; \
         name one array inside it, or flatten the space when recording",
        path.display(), listed(members)
    )]
    NotAnArray {
        /// The file.
        path: PathBuf,
        /// The key of the group.
        key: String,
        /// What lies in the group.
        members: Vec<String>,
    },
    /// An array that is neither N nor N × d.
    #[error(
        "`{key}` in `{}` has shape {} ({}-D); expected N rows of numbers, \
         that is 2-D, or 1-D for a single column",
        path.display(), shaped(shape), shape.len()
    )]
    Dimensions {
        /// The file.
        path: PathBuf,
        /// The array.
        key: String,
        /// The shape found.
        shape: Vec<u64>,
    },
    /// An array of something that is not a real number.
    #[error(
        "`{key}` in `{}` has dtype {dtype}; \
         expected bool, integers or floats of at most 64 bits, convert it first",
        path.display()
    )]
    Dtype {
        /// The file.
        path: PathBuf,
        /// The array.
        key: String,
        /// The dtype found.
        dtype: String,
    },
    /// A shape the file cannot back, or the machine cannot hold.
    #[error("`{key}` in `{}` has shape {}, {detail}", path.display(), shaped(shape))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The array.
        key: String,
        /// The shape claimed.
        shape: Vec<u64>,
        /// Why it cannot be, and what to do.
        detail: String,
    },
    /// Reading would take more memory than it may.
    #[error(
        "{what} in `{}` takes {}, where {} are left of the memory limit of {}; raise the limit, \
         or read fewer rows",
        path.display(), in_bytes(*needed), in_bytes(*left), in_bytes(*limit)
    )]
    Memory {
        /// The file.
        path: PathBuf,
        /// The part of it.
        what: String,
        /// Bytes that would be needed for this part.
        needed: u64,
        /// Bytes that are left for it.
        left: u64,
        /// The limit for the whole process, in bytes.
        limit: u64,
    },
    /// An array without rows or without columns.
    #[error(
        "`{key}` in `{}` has {rows} rows and {columns} columns; at least one of each is needed",
        path.display()
    )]
    NoValues {
        /// The file.
        path: PathBuf,
        /// The array.
        key: String,
        /// Rows found.
        rows: usize,
        /// Columns found.
        columns: usize,
    },
    /// Signals and decisions do not pair up.
    #[error(
        "`{}`: `{signals_key}` has {signals_rows} rows and `{decisions_key}` has \
         {decisions_rows}; every signal needs exactly one decision",
        path.display()
    )]
    RowCounts {
        /// The file.
        path: PathBuf,
        /// The signals' key.
        signals_key: String,
        /// The signals' rows.
        signals_rows: usize,
        /// The decisions' key.
        decisions_key: String,
        /// The decisions' rows.
        decisions_rows: usize,
    },
    /// Groups of another number of rows.
    #[error(
        "`{key}` in `{}` has shape {}; groups need one value for each of {n_rows} rows",
        path.display(), shaped(shape)
    )]
    GroupCount {
        /// The file.
        path: PathBuf,
        /// The array.
        key: String,
        /// The shape found.
        shape: Vec<u64>,
        /// Rows of the file.
        n_rows: usize,
    },
    /// NaN or infinity among the values.
    #[error(
        "`{key}` in `{}` has {} NaN or infinite, the first ({value}) in row {row}, {} (counted \
         from 0); remove or repair those rows",
        path.display(), argwhy_core::wording::count(*count, "value"),
        name.as_ref().map_or_else(|| format!("column {column}"), |name| format!("`{name}`"))
    )]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// The array.
        key: String,
        /// Row of the first, from 0.
        row: usize,
        /// Column of the first, from 0.
        column: usize,
        /// What that column is called, where it has a name.
        name: Option<String>,
        /// The first.
        value: f64,
        /// How many in all.
        count: usize,
    },
    /// Values that are not there.
    #[error(fmt = missing_values)]
    Missing {
        /// The file.
        path: PathBuf,
        /// Where, column by column.
        gaps: Vec<Gaps>,
        /// Whether any is among the decisions.
        of_decisions: bool,
    },
    /// Constraints were asked for and there are none.
    #[error(fmt = constraints_absent)]
    ConstraintsAbsent {
        /// The file.
        path: PathBuf,
        /// The keys in the file.
        found: Vec<String>,
    },
    /// A matrix without its bound, or a bound without its matrix.
    #[error(fmt = half_given)]
    Half {
        /// The file.
        path: PathBuf,
        /// What is there, and what is missing.
        half: Half,
    },
    /// A matrix in the data and in a file of its own.
    #[error(
        "`{key}` is in `{}` and in `{}`; leave out one of them",
        path.display(), file.display()
    )]
    MatrixTwice {
        /// The data.
        path: PathBuf,
        /// The matrix's own file.
        file: PathBuf,
        /// `M` or `M_eq`.
        key: &'static str,
    },
    /// A matrix in a file of its own, and no bound anywhere.
    #[error(
        "`{}` has the matrix `{key}`, but neither it nor `{}` has the bound `{bound}`; add columns \
         {bound}_0, {bound}_1, … (npz: an array) to the data, or a column {bound} to a csv matrix",
        file.display(), path.display()
    )]
    BoundAbsent {
        /// The data.
        path: PathBuf,
        /// The matrix's own file.
        file: PathBuf,
        /// `M` or `M_eq`.
        key: &'static str,
        /// `W` or `W_eq`.
        bound: &'static str,
    },
    /// An array of constraints has the wrong axes.
    #[error("`{key}` in `{}` has shape {}; expected {expected}", path.display(), shaped(shape))]
    ConstraintShape {
        /// The file.
        path: PathBuf,
        /// The array.
        key: String,
        /// Its shape.
        shape: Vec<u64>,
        /// What would be accepted.
        expected: String,
    },
    /// A matrix and its bound have different numbers of rows.
    #[error(
        "`{}`: `{matrix}` has {rows} rows but `{bound}` has {bounds} bounds; every row needs one",
        path.display()
    )]
    ConstraintRows {
        /// The file.
        path: PathBuf,
        /// `M` or `M_eq`.
        matrix: &'static str,
        /// Its rows.
        rows: usize,
        /// `W` or `W_eq`.
        bound: &'static str,
        /// Its entries.
        bounds: usize,
    },
    /// Constraints on decisions of another length.
    #[error(
        "`{key}` in `{}` has {} where a decision has {}",
        path.display(), count(*width, "column"), count(*decision_dim, "dimension")
    )]
    ConstraintWidth {
        /// The file.
        path: PathBuf,
        /// The array.
        key: String,
        /// Its columns.
        width: usize,
        /// Length of a decision.
        decision_dim: usize,
    },
    /// A value that means nothing in a constraint.
    #[error(
        "`{key}{entry}` in `{}` is {value}{}; {why}",
        path.display(),
        row.map_or(String::new(), |row| format!(" in row {row} (counted from 0)"))
    )]
    ConstraintValue {
        /// The file.
        path: PathBuf,
        /// The array.
        key: String,
        /// The place inside one sample's part, such as `[1][2]`.
        entry: String,
        /// The sample, from 0; none where the array is for all of them.
        row: Option<usize>,
        /// The value.
        value: f64,
        /// What is allowed.
        why: &'static str,
    },
    /// Constraints that do not fit together.
    #[error("`{}`: {source}", path.display())]
    Constraints {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: argwhy_core::Error,
    },
    /// Not one weight a sample.
    #[error(
        "`{key}` in `{}` has shape {}; expected one weight for each of {n_samples} rows",
        path.display(), shaped(shape)
    )]
    WeightCount {
        /// The file.
        path: PathBuf,
        /// The array.
        key: String,
        /// Its shape.
        shape: Vec<u64>,
        /// Samples.
        n_samples: usize,
    },
    /// A weight below zero.
    #[error(
        "`{key}` in `{}` has the weight {value} in row {row} (counted from 0); a weight is how \
         many times a row counts, zero or more",
        path.display()
    )]
    Weight {
        /// The file.
        path: PathBuf,
        /// The array.
        key: String,
        /// Row, from 0.
        row: usize,
        /// The weight.
        value: f64,
    },
    /// The first line of a csv file is numbers.
    #[error(
        "`{}` has no header: its first line is numbers; \
         add a line of column names, such as signals_0,signals_1,decisions_0",
        path.display()
    )]
    NoHeader {
        /// The file.
        path: PathBuf,
    },
    /// The columns of a csv file cannot be told apart or put in order.
    #[error("`{}`: {detail}", path.display())]
    Columns {
        /// The file.
        path: PathBuf,
        /// What was seen, and what to do.
        detail: String,
    },
    /// A csv line of the wrong length.
    #[error(
        "`{}`, line {line}: {found} cells where the header has {expected}; \
         repair or remove that line",
        path.display()
    )]
    Ragged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Cells found.
        found: usize,
        /// Cells in the header.
        expected: usize,
    },
    /// A csv cell that is not a number.
    #[error(fmt = cell_no_number)]
    Cell {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The column's name.
        column: String,
        /// What the cell holds.
        text: String,
        /// What it should, where that is no number.
        expected: Option<String>,
    },
    /// Text in a column of numbers, in a format that knows rows only.
    #[error(fmt = text_no_number)]
    TextCell {
        /// The file.
        path: PathBuf,
        /// The row, from 0.
        row: usize,
        /// The column's name.
        column: String,
        /// What it holds.
        text: String,
        /// What it should, where that is no number.
        expected: Option<String>,
    },
    /// Episodes of one dataset that do not fit together.
    #[error("`{}`, `{episode}`: {detail}", path.display())]
    Episode {
        /// The file.
        path: PathBuf,
        /// The episode's group.
        episode: String,
        /// What was seen, and what to do.
        detail: String,
    },
    /// Row ranges that cannot be understood.
    #[error(
        "row range `{text}`: {detail}; \
         write half-open ranges such as 0:5000,10000:15000, :100 or 100:"
    )]
    RowsSyntax {
        /// The range as given.
        text: String,
        /// What is wrong with it.
        detail: &'static str,
    },
    /// Two row ranges share rows.
    #[error("row ranges `{first}` and `{second}` overlap; give every row at most once")]
    RowsOverlap {
        /// The range given first.
        first: String,
        /// The range given later.
        second: String,
    },
    /// A row range beyond the data.
    #[error("row range `{range}` reaches outside the data, which has {n_rows} rows")]
    RowsOutside {
        /// The range as given.
        range: String,
        /// Rows in the data.
        n_rows: usize,
    },
    /// An output path whose ending names no format.
    #[error(
        "cannot tell which format to write to `{}`; use an ending of {endings}",
        path.display()
    )]
    WriteEnding {
        /// The path asked for.
        path: PathBuf,
        /// Those that do.
        endings: &'static str,
    },
    /// Writing failed; what was at the path before is still there.
    #[error("cannot write `{}`: {source}; nothing was changed there", path.display())]
    Write {
        /// The path asked for.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
}

fn unsupported(path: &Path, detail: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let detail = Spelling::of(f).text(detail);
    write!(f, "`{}`: {detail}", path.display())
}

fn names_missing(
    path: &Path,
    role: &&'static str,
    missing: &[String],
    found: &[String],
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let (missing, found, path) = (listed(missing), listed(found), path.display());
    let choose = Spelling::of(f).setting(role);
    if ["lower", "upper"].contains(role) {
        return write!(
            f,
            "`{path}` lacks {missing}, which the {role} limits come from; it holds {found}: rename \
             the column, or fit with {choose} as numbers"
        );
    }
    write!(
        f,
        "`{path}` lacks {missing}, by which the model knows its {role}; it holds {found}: rename \
         the column, or choose columns in the model's order with {choose}"
    )
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that thiserror calls")]
fn name_moved(
    path: &Path,
    role: &&'static str,
    name: &str,
    found: &usize,
    expected: &usize,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let (choose, path) = (Spelling::of(f).setting(role), path.display());
    write!(
        f,
        "{choose} has `{name}` of `{path}` as number {found}, but the model has it as number \
         {expected} of its {role}: leave {choose} out to match by name, or rename the column"
    )
}

fn key_missing(
    path: &Path,
    role: &&'static str,
    key: &str,
    found: &[String],
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let (found, choose) = (listed(found), Spelling::of(f).setting(role));
    let path = path.display();
    write!(
        f,
        "`{path}` has no {role} under the key `{key}`; it holds {found}: choose with {choose}"
    )
}

impl DataError {
    /// Where values are missing, without what a fit could do about it; none of other errors.
    pub fn missing_in_words(&self) -> Option<String> {
        match self {
            Self::Missing { path, gaps, .. } => Some(gaps_in_words(path, gaps)),
            _ => None,
        }
    }

    /// The column that holds words or dates where numbers are needed, and the first of them; none
    /// of other errors.
    pub fn words_of_column(&self) -> Option<(&str, &str)> {
        match self {
            Self::Cell { column, text, expected: None, .. }
            | Self::TextCell { column, text, expected: None, .. } => {
                let is_number = text.replacen(',', ".", 1).parse::<f64>().is_ok();
                (!text.is_empty() && !is_number).then_some((column, text))
            }
            _ => None,
        }
    }

    /// The same of a file with named columns.
    pub(crate) fn of_a_table(mut self) -> Self {
        if let Self::KeysAbsent { is_table, .. } = &mut self {
            *is_table = true;
        }
        self
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that thiserror calls")]
fn keys_absent(
    path: &Path,
    expected: &&'static str,
    choose: &&'static str,
    found: &[String],
    is_table: &bool,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let rest = if *is_table && choose.contains("{signals}") {
        "; as signals, \"*\" is all columns that have no other role"
    } else {
        ""
    };
    let (found, choose) = (listed(found), Spelling::of(f).text(choose));
    write!(
        f,
        "`{}` has no {expected}; it holds {found}: name the keys with {choose}{rest}",
        path.display()
    )
}

fn keys_ambiguous(
    path: &Path,
    both: &&'static str,
    choose: &&'static str,
    found: &[String],
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let (found, choose) = (listed(found), Spelling::of(f).text(choose));
    write!(
        f,
        "`{}` has {both}, so the choice is not clear; it holds {found}: name the keys with \
         {choose}",
        path.display()
    )
}

fn no_decisions(path: &Path, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let second = Spelling::of(f).with_value("decisions", "FILE.npy");
    write!(
        f,
        "`{}` is a single array (the signals); give the decisions as a second file, {second}",
        path.display()
    )
}

fn constraints_absent(path: &Path, found: &[String], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (found, matrix) = (listed(found), Spelling::of(f).setting("matrix"));
    write!(
        f,
        "`{}` has no constraints (M with W, M_eq with W_eq, lower, upper); it holds {found}: add \
         them to the data, or give {matrix}",
        path.display()
    )
}

fn half_given(path: &Path, half: &Half, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Half { has, lacks, rule } = *half;
    write!(f, "`{}` has `{has}` but no `{lacks}`; {rule} needs both", path.display())?;
    let option = match lacks {
        "M" => "matrix",
        "M_eq" => "matrix_eq",
        _ => return Ok(()),
    };
    let from_file = Spelling::of(f).with_value(option, "FILE");
    write!(f, " (a matrix for all rows can come from {from_file})")
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    clippy::ref_option,
    reason = "the signature that thiserror calls"
)]
fn cell_no_number(
    path: &Path,
    line: &u64,
    column: &str,
    text: &str,
    expected: &Option<String>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let (what, remedy) = told(text, column, expected.as_deref(), Spelling::of(f));
    write!(f, "`{}`, line {line}, column `{column}`: {what}; {remedy}", path.display())
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    clippy::ref_option,
    reason = "the signature that thiserror calls"
)]
fn text_no_number(
    path: &Path,
    row: &usize,
    column: &str,
    text: &str,
    expected: &Option<String>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let (what, remedy) = told(text, column, expected.as_deref(), Spelling::of(f));
    write!(f, "`{}`, row {row}, column `{column}`: {what}; {remedy}", path.display())
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that thiserror calls")]
fn missing_values(
    path: &Path,
    gaps: &[Gaps],
    of_decisions: &bool,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let spelling = Spelling::of(f);
    let drop = spelling.with_value("missing", "drop");
    let what = gaps_in_words(path, gaps);
    write!(f, "{what}; repair them, or leave those rows out with {drop}")?;
    if *of_decisions {
        return Ok(());
    }
    write!(f, ", or fill in means with {}", spelling.with_value("missing", "mean"))
}

/// Which values are missing, and where.
fn gaps_in_words(path: &Path, gaps: &[Gaps]) -> String {
    const NAMED: usize = 8;
    let one = |gaps: &Gaps| {
        let rows: Vec<String> = gaps.rows.iter().map(usize::to_string).collect();
        let more = if gaps.count > gaps.rows.len() { ", …" } else { "" };
        let plural = if gaps.count == 1 { "row" } else { "rows" };
        format!("`{}` in {plural} {}{more}", shortened(&gaps.column), rows.join(", "))
    };
    let mut named: Vec<String> = gaps.iter().take(NAMED).map(one).collect();
    if gaps.len() > NAMED {
        named.push(format!("and {} columns more", gaps.len() - NAMED));
    }
    let count: usize = gaps.iter().map(|gaps| gaps.count).sum();
    let values = if count == 1 { "value is" } else { "values are" };
    let (path, named) = (path.display(), named.join("; "));
    format!("`{path}`: {count} {values} missing (NaN or empty): {named} (counted from 0)")
}

/// What a cell holds, and what helps.
fn told(text: &str, column: &str, expected: Option<&str>, spelling: Spelling) -> (String, String) {
    if let Some(expected) = expected {
        return (format!("`{}`", shortened(text)), expected.to_owned());
    }
    let number = "every cell needs a number with a decimal point";
    let remedy = if text.is_empty() {
        number.to_owned()
    } else if text.parse::<f64>().is_ok() {
        format!("numbers have a decimal comma here: leave out {}", spelling.setting("decimal"))
    } else if text.replacen(',', ".", 1).parse::<f64>().is_ok() {
        format!("{number}, or give {}", spelling.with_value("decimal", ","))
    } else if crate::data::is_date(text) {
        let cyclic = spelling.with_value("cyclic", &format!("{column}:day"));
        format!("{number}; for dates give {cyclic} (or week, year), or leave the column out")
    } else {
        let one_hot = spelling.with_value("one_hot", column);
        format!("{number}; for categories give {one_hot}, or leave the column out")
    };
    (cell(text), remedy)
}

/// `.npz, .npy or .csv`.
fn readable_endings() -> String {
    let mut endings: Vec<String> = data_endings().map(|ending| format!(".{ending}")).collect();
    let last = endings.pop().unwrap_or_default();
    format!("{} or {last}", endings.join(", "))
}

/// At most this many names are listed; a csv file may have thousands of columns.
const MAX_LISTED: usize = 24;

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        return "nothing".to_owned();
    }
    let shown: Vec<String> =
        names.iter().take(MAX_LISTED).map(|name| format!("`{}`", shortened(name))).collect();
    let more = match names.len().saturating_sub(MAX_LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    shown.join(", ") + &more
}

/// A number of bytes as people say it.
fn in_bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let mut size = bytes as f64 / 1024.0;
    let mut units = UNITS.iter();
    let mut unit = units.next();
    while size >= 1024.0 && units.len() > 0 {
        size /= 1024.0;
        unit = units.next();
    }
    format!("{size:.1} {}", unit.copied().unwrap_or_default())
}

/// A shape as Python prints it: `()`, `(5,)`, `(5, 3)`.
pub(crate) fn shaped(shape: &[u64]) -> String {
    if let [only] = shape {
        return format!("({only},)");
    }
    let sizes: Vec<String> = shape.iter().map(u64::to_string).collect();
    format!("({})", sizes.join(", "))
}

fn cell(text: &str) -> String {
    if text.is_empty() {
        "the cell is empty".to_owned()
    } else {
        format!("`{}` is not a number", shortened(text))
    }
}

/// Text from a file, fit for one line of a terminal: no control characters, at most 60 characters.
pub(crate) fn shortened(text: &str) -> String {
    const MAX: usize = 60;
    let mut short: String = text
        .chars()
        .take(MAX)
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    if text.chars().nth(MAX).is_some() {
        short.push('…');
    }
    short
}
