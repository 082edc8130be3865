//! What can go wrong in the mathematics, with the data a message needs.

use crate::wording::{Spelling, count};
use std::fmt;
use thiserror::Error;

/// An input the core cannot work with. `{}` names settings as in Rust and Python, `{:#}` as the
/// command's flags. Not converging is a [`Status`](crate::solver::Status), never an error.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// There are no samples.
    #[error("the data has no rows; at least one sample is needed")]
    NoSamples,
    /// Two arrays that belong together have different lengths.
    #[error(
        "{left} has {left_rows} rows but {right} has {right_rows}; they must have one row per \
         sample"
    )]
    RowCount {
        /// Name of the first array.
        left: &'static str,
        /// Its rows.
        left_rows: usize,
        /// Name of the second array.
        right: &'static str,
        /// Its rows.
        right_rows: usize,
    },
    /// An array has the wrong number of columns.
    #[error("{what} has {} where {owner} has {expected}", count(*found, "column"))]
    Width {
        /// Name of the array.
        what: &'static str,
        /// Who prescribes the width.
        owner: &'static str,
        /// Columns expected.
        expected: usize,
        /// Columns found.
        found: usize,
    },
    /// A value is NaN or infinite.
    #[error(
        "{what} has the value {value} at row {row}, column {column}; every value must be finite"
    )]
    NotFinite {
        /// Name of the array.
        what: &'static str,
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
        /// The value.
        value: f64,
    },
    /// A lower limit lies above its upper limit.
    #[error(
        "dimension {dimension} has the lower limit {lower} above the upper limit {upper}; no \
         decision fits between them"
    )]
    EmptyBox {
        /// Dimension, from 0.
        dimension: usize,
        /// Lower limit.
        lower: f64,
        /// Upper limit.
        upper: f64,
    },
    /// Decisions of the expert lie outside their set.
    #[error(fmt = infeasible)]
    Infeasible {
        /// Decisions outside.
        count: usize,
        /// Decisions in all.
        total: usize,
        /// Relative tolerance applied.
        tolerance: f64,
        /// The first rows concerned, as text.
        rows: String,
        /// The first row.
        first_row: usize,
        /// What is wrong there.
        seen: String,
    },
    /// An array of constraints has the wrong number of axes.
    #[error("{what} has the shape {found}; expected: {expected}")]
    Shape {
        /// Name of the array.
        what: &'static str,
        /// Its shape, as text.
        found: String,
        /// What would be accepted.
        expected: &'static str,
    },
    /// A constraint has a value that means nothing there.
    #[error(
        "{what} has the value {value} in the set of sample {sample}, row {row}{}; that excludes \
         every decision or none",
        column.map_or(String::new(), |column| format!(", column {column}"))
    )]
    Constraint {
        /// Name of the array.
        what: &'static str,
        /// Sample, from 0; 0 also where one set is for all.
        sample: usize,
        /// Row of the set, from 0.
        row: usize,
        /// Column, where the array has any.
        column: Option<usize>,
        /// The value.
        value: f64,
    },
    /// A matrix without its bound, or the other way round.
    #[error("constraints: `{has}` is given but no `{lacks}`; {rule} needs both")]
    HalfConstraint {
        /// The array there is.
        has: &'static str,
        /// The array there is not.
        lacks: &'static str,
        /// What the two say together.
        rule: &'static str,
    },
    /// No decision satisfies all limits.
    #[error(
        "no decision satisfies the limits{}: {labels} contradict each other",
        row.map_or(String::new(), |row| format!(" of row {row}"))
    )]
    EmptySet {
        /// The row in the data; none where one set is for all rows.
        row: Option<usize>,
        /// Limits that contradict each other, as text.
        labels: String,
    },
    /// A model whose decision sets come with the data got none.
    #[error(
        "the model was fitted with constraints from its data, so decisions need theirs: {what} \
         (arrays M and W, M_eq and W_eq, lower, upper)"
    )]
    ConstraintsMissing {
        /// What is missing.
        what: &'static str,
    },
    /// θ_uu would be made of rounding.
    #[error(
        "theta_uu can't be learned with the regularization {regularization:e}: rounding alone \
         would move it visibly; use at least {least:.1e}"
    )]
    ThetaPrecision {
        /// k.
        regularization: f64,
        /// The least that would do.
        least: f64,
    },
    /// A weight is negative or not a number, or all are zero.
    #[error("{what}")]
    Weights {
        /// What was seen.
        what: String,
    },
    /// Data that is put behind other data has other limits.
    #[error(
        "`{what}` is not the same on both sides; old and new rows need limits of the same kinds"
    )]
    OneSided {
        /// The part.
        what: &'static str,
    },
    /// A state does not fit the problem that is to start from it.
    #[error("{what}")]
    Start {
        /// What was seen.
        what: String,
    },
    /// A setting is out of its range.
    #[error(fmt = setting)]
    Setting {
        /// Name as in settings files.
        name: &'static str,
        /// What was given.
        found: String,
        /// What would be accepted; settings are marked for [`Spelling::text`].
        allowed: &'static str,
    },
    /// Length scales that do not fit the features.
    #[error(
        "there are {found} length scales but {n_features} features; give one length scale for each \
         feature, in the feature map's order (poly2: 1, then the signals, then their products)"
    )]
    LengthScales {
        /// Length scales given.
        found: usize,
        /// Features there are.
        n_features: usize,
    },
    /// A kernel for which there is no theory, let alone an optimum.
    #[error(
        "the kernel is not positive semidefinite: {0}; check its formula (samples are counted from \
         0)"
    )]
    NotPositiveSemidefinite(KernelFault),
    /// The memory limit is below what the fit needs.
    #[error(fmt = memory)]
    Memory {
        /// The limit, as text.
        limit: String,
        /// The least that would do, as text.
        least: String,
        /// How slow that would be, and what would be quick, in brackets; empty where it is as quick
        /// as any.
        speed: String,
        /// Samples.
        n_samples: usize,
        /// Features.
        n_features: usize,
    },
    /// Decisions whose squares leave the range of double precision.
    #[error(
        "decisions of dimension {dimension} reach {largest:e}: their squares leave the range of \
         double precision; give them in another unit, so that the largest lies between 1e-75 and \
         1e75"
    )]
    DecisionRange {
        /// The dimension.
        dimension: usize,
        /// Its largest decision.
        largest: f64,
    },
    /// The machine that kernel values live on could not go on: a device that is gone, a worker that
    /// died, memory of its own that is full.
    #[error("the {backend} backend failed: {what}")]
    Backend {
        /// Its name.
        backend: String,
        /// What happened, with the remedy where there is one.
        what: String,
    },
    /// Numbers overflowed or lost their meaning.
    #[error(fmt = numerical)]
    Numerical {
        /// What was seen.
        what: String,
    },
    /// Signals so large that a feature of them, or its variance, is beyond the numbers there are.
    #[error(fmt = signal_range)]
    SignalRange {
        /// The feature.
        feature: usize,
        /// The largest signal.
        largest: f64,
        /// Whether features are products of signals.
        products: bool,
    },
    /// The model does not know how far it is from the expert on rows it has not seen.
    #[error(fmt = no_ranges)]
    NoRanges,
    /// Too few rows were kept aside for a range of this probability.
    #[error(fmt = few_for_range)]
    FewForRange {
        /// The probability.
        level: f64,
        /// Rows that were kept aside.
        n_rows: usize,
        /// The fewest that would do.
        needed: usize,
    },
}

fn no_ranges(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("the model has no ranges, which come from rows kept aside: ")?;
    let spelling = Spelling::of(f);
    f.write_str(&spelling.text(match spelling {
        Spelling::Flags => {
            "it was fitted with {holdout 0}, with {path}, by an earlier version, or had too few \
             rows or too little time to be judged; fit it again with {holdout 0.1}"
        }
        Spelling::Names => {
            "`fit` keeps none aside by itself; judge it on the data it was fitted to (`judge`) \
             first"
        }
    }))
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that thiserror calls")]
fn few_for_range(
    level: &f64,
    n_rows: &usize,
    needed: &usize,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let holdout = Spelling::of(f).setting("holdout");
    let most = *n_rows as f64 / (*n_rows + 1) as f64;
    write!(
        f,
        "a range of {level} needs at least {needed} rows kept aside, and the model has {n_rows}; \
         ask for {:.3} at most, or keep more aside with a larger {holdout}",
        (most * 1000.0).floor() / 1000.0
    )
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that thiserror calls")]
fn infeasible(
    count: &usize,
    total: &usize,
    tolerance: &f64,
    rows: &str,
    first_row: &usize,
    seen: &str,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let spelling = Spelling::of(f);
    write!(
        f,
        "{count} of {total} decisions lie outside their limits by more than {tolerance:e} of the \
         limits' scale (first rows: {rows}; row {first_row}: {seen}); check the limits, or use {} \
         to move them to the nearest limit, or {} to fit them as they are",
        spelling.with_value("infeasible", "clip"),
        spelling.with_value("infeasible", "keep"),
    )
}

fn setting(
    name: &&'static str,
    found: &str,
    allowed: &&'static str,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let spelling = Spelling::of(f);
    let (name, allowed) = (spelling.subject(name), spelling.text(allowed));
    write!(f, "{name} is {found}; allowed: {allowed}")
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that thiserror calls")]
fn memory(
    limit: &str,
    least: &str,
    speed: &str,
    n_samples: &usize,
    n_features: &usize,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let memory = Spelling::of(f).setting("memory");
    write!(
        f,
        "a memory limit of {limit} can't be kept: {n_samples} samples with {n_features} features \
         need at least {least}; raise {memory}{speed}, use fewer rows or simpler features"
    )
}

fn numerical(what: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let precise = Spelling::of(f).with_value("precision", "f64");
    write!(f, "{what}; try {precise}, a larger regularization or normalised features")
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that thiserror calls")]
fn signal_range(
    feature: &usize,
    largest: &f64,
    products: &bool,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let raw = Spelling::of(f).with_value("features", "raw");
    write!(
        f,
        "feature {feature} overflows: signals of up to {largest:.1e} are too large to be squared; \
         divide them by a constant"
    )?;
    if *products { write!(f, ", or use {raw}, which takes them as they are") } else { Ok(()) }
}

/// What shows that a kernel is not positive semidefinite.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum KernelFault {
    /// A value is NaN or infinite.
    NotFinite {
        /// The samples compared.
        samples: [usize; 2],
        /// κ of them.
        value: f64,
    },
    /// κ(a, a) < 0.
    NegativeDiagonal {
        /// a.
        sample: usize,
        /// κ(a, a).
        value: f64,
    },
    /// κ(a, b) ≠ κ(b, a).
    Asymmetric {
        /// a, b.
        samples: [usize; 2],
        /// κ(a, b), κ(b, a).
        values: [f64; 2],
    },
    /// κ(a, b)² > κ(a, a) κ(b, b).
    Minor {
        /// a, b.
        samples: [usize; 2],
        /// κ(a, b)².
        square: f64,
        /// κ(a, a) κ(b, b).
        product: f64,
    },
    /// vᵀKv < 0 for some v of length one.
    Curvature {
        /// Samples v combines.
        n_samples: usize,
        /// vᵀKv.
        value: f64,
        /// vᵀKv relative to K's trace.
        relative: f64,
    },
}

impl fmt::Display for KernelFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFinite { samples: [i, j], value } => {
                write!(f, "κ(sample {i}, sample {j}) is {value}")
            }
            Self::NegativeDiagonal { sample, value } => {
                write!(f, "κ(sample {sample}, sample {sample}) = {value} is negative")
            }
            Self::Asymmetric { samples: [i, j], values: [ij, ji] } => write!(
                f,
                "κ(sample {i}, sample {j}) = {ij} but κ(sample {j}, sample {i}) = {ji}, {:e} apart",
                (ij - ji).abs()
            ),
            Self::Minor { samples: [i, j], square, product } => {
                write!(f, "for samples {i} and {j}, κ² = {square} exceeds κ_ii·κ_jj = {product}")
            }
            Self::Curvature { n_samples, value, relative } => write!(
                f,
                "a combination v of {n_samples} samples with ‖v‖ = 1 has vᵀKv = {value:e} \
                 ({relative:.1e} of the trace)"
            ),
        }
    }
}
