//! Everything a fit can be told, with its defaults: the one place they live.
//!
//! Names are those of the command's options, of the config file and of the model file. Values that
//! people write by hand (`2GiB`, `auto`, `-1,1`) have types of their own that read and print them.
//! Config file, command line and Python's keywords all arrive as tables (`table`), so that a
//! setting added here is a setting of all three.

mod kernel;
mod presets;
mod table;
mod values;

pub use kernel::{
    DEFAULT_DEGREE, DEFAULT_OFFSET, KernelChoice, KernelExpression, KernelKind, Parameters,
};
pub use presets::Preset;
pub use table::{LeftOut, Table, TableError, Value, merge, read_table, value_of};
pub(crate) use values::two_digits;
pub use values::{Block, DeviceChoice, Gamma, MemorySize, Numbers, Regularization};

use argwhy_core::decision_set::{BoxLimits, DecisionSet, Infeasible};
use argwhy_core::features::{Expansion, FeatureSettings, Normalization};
use argwhy_core::operator::Precision;
use argwhy_core::solver::sso::{Initialization, Selection};
use argwhy_core::solver::{NewtonSettings, PrimalSettings, SsoSettings};
use argwhy_core::{Error, Kernel};
use serde::{Deserialize, Serialize};

/// Settings of a fit.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own, by its name on the command line"
)]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FitSettings {
    /// Functions of the signal that are features.
    pub features: Expansion,
    /// How features are scaled.
    pub normalize: Normalization,
    /// Features are cut to ±clip.
    pub clip: f64,
    /// The kernel: a name, or an expression of names such as `rbf + 0.5*linear`.
    pub kernel: KernelChoice,
    /// The kernel's inverse width; automatic is 1/(number of features).
    pub gamma: Gamma,
    /// Degree of polynomial kernels; none means [`DEFAULT_DEGREE`].
    pub degree: Option<u32>,
    /// Offset of polynomial kernels; none means [`DEFAULT_OFFSET`].
    pub offset: Option<f64>,
    /// What each feature is divided by before the kernel sees it, one number a feature; none means
    /// by nothing.
    pub length_scales: Option<Numbers>,
    /// A simple law beside the kernel, which holds where there is no data.
    pub trend: TrendChoice,
    /// Whether the linear kernel has an intercept: aᵀb + 1.
    pub intercept: bool,
    /// Whether to solve for the weights of the features instead of coefficients of the samples; for
    /// the linear kernel.
    pub primal: bool,
    /// One lower and one upper limit for all dimensions.
    pub bounds: Option<Numbers>,
    /// Lower limits, one a dimension.
    pub lower: Option<Numbers>,
    /// Upper limits, one a dimension.
    pub upper: Option<Numbers>,
    /// Says that there are no limits on purpose.
    pub unbounded: bool,
    /// What to do with decisions outside the limits.
    pub infeasible: Infeasible,
    /// k: the weight of simplicity; automatic is 0.3/(number of samples).
    pub regularization: Regularization,
    /// The algorithm.
    pub solver: SolverKind,
    /// Relative duality gap to reach.
    pub tol: f64,
    /// Steps at most; none means the solver's own default.
    pub max_iterations: Option<usize>,
    /// Whether θ_uu is the identity or learned too.
    pub theta: ThetaChoice,
    /// Seconds at most.
    pub time_limit: Option<f64>,
    /// SSO: samples of a block, a share with a decimal point or a number.
    pub block: Block,
    /// SSO: blocks that are solved at once, each from the same responses.
    pub concurrent_blocks: usize,
    /// SSO: how blocks are chosen.
    pub selection: Selection,
    /// SSO: parts of a warm-up; none means two.
    pub warm_up: Option<usize>,
    /// SSO: where the responses start.
    pub init: Initialization,
    /// Memory the whole process may take.
    pub memory: MemorySize,
    /// Threads; none means one a core.
    pub threads: Option<usize>,
    /// Precision of kernel values while iterating.
    pub precision: Precision,
    /// Whether kernel values are kept.
    pub operator: OperatorChoice,
    /// Where kernel values are computed.
    pub device: DeviceChoice,
    /// Memory of a GPU that may be used; none means most of what is free there.
    pub device_memory: Option<MemorySize>,
    /// Seed of everything random.
    #[serde(deserialize_with = "values::whole_number")]
    pub seed: u64,
}

impl Default for FitSettings {
    fn default() -> Self {
        let features = FeatureSettings::default();
        let newton = NewtonSettings::default();
        Self {
            features: features.expansion,
            normalize: features.normalization,
            clip: features.clip,
            kernel: KernelChoice::default(),
            gamma: Gamma::Auto,
            degree: None,
            offset: None,
            length_scales: None,
            trend: TrendChoice::default(),
            intercept: false,
            primal: false,
            bounds: None,
            lower: None,
            upper: None,
            unbounded: false,
            infeasible: Infeasible::default(),
            regularization: Regularization::Auto,
            solver: SolverKind::default(),
            tol: newton.tol,
            max_iterations: None,
            theta: ThetaChoice::default(),
            time_limit: newton.time_limit,
            block: Block(SsoSettings::default().block),
            concurrent_blocks: SsoSettings::default().concurrent_blocks,
            selection: Selection::default(),
            warm_up: None,
            init: Initialization::default(),
            memory: MemorySize(2 << 30),
            threads: None,
            precision: Precision::default(),
            operator: OperatorChoice::default(),
            device: DeviceChoice::default(),
            device_memory: None,
            seed: 0,
        }
    }
}

/// Solvers by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SolverKind {
    /// Semismooth Newton: exact, a handful of steps.
    #[default]
    Newton,
    /// Sequential Selection Optimization: the paper's algorithm, block by block.
    Sso,
}

/// A law beside the kernel: far from all data a kernel of distances knows nothing and decides zero,
/// a trend goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrendChoice {
    /// [`Linear`](Self::Linear) beside kernels of distances, which know nothing far from all data;
    /// nothing beside others, beside a kernel made in Rust, or where features are not z-scored.
    #[default]
    Auto,
    /// The kernel alone.
    None,
    /// A level: the kernel 1 is added.
    Constant,
    /// A level and a slope: 1 + [`SLOPE`](Self::SLOPE)·aᵀb/d is added, d the number of features.
    Linear,
}

impl TrendChoice {
    /// Weight of the inner product a feature, beside a kernel that is one at its highest: slopes
    /// are found where the data shows them, and a kernel that fits locally is left its work.
    pub const SLOPE: f64 = 0.1;

    fn beside(self, kernel: Kernel, n_features: usize) -> Kernel {
        let slope = Kernel::Scaled {
            weight: Self::SLOPE / n_features.max(1) as f64,
            kernel: Box::new(Kernel::Linear),
        };
        let own = match self {
            Self::Auto | Self::None => return kernel,
            Self::Constant => vec![Kernel::Constant],
            Self::Linear => vec![Kernel::Constant, slope],
        };
        // A sum takes them in: its terms and those of the trend are told apart again by kind.
        let mut terms = match kernel {
            Kernel::Sum { terms } => terms,
            other => vec![other],
        };
        terms.extend(own);
        Kernel::Sum { terms }
    }
}

/// What θ_uu is, the quadratic part of the objective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThetaChoice {
    /// The identity: decisions are projections of what is desired.
    #[default]
    Identity,
    /// Learned, θ_uu ⪰ I.
    Learn,
}

/// How kernel values are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OperatorChoice {
    /// Stored where they fit into the memory limit, else compact where that fits and rounding
    /// allows it, else tiled.
    #[default]
    Auto,
    /// Kept in memory.
    Stored,
    /// Kept in memory as 16-bit fixed point, corrected with exact values.
    Compact,
    /// Recomputed for each product.
    Tiled,
}

/// Regularization below which f32 costs more than it saves. Rounding kernel values to f32 moves K
/// by 6e-9·N in norm, λ is k·N, and the nearer the two the more steps the f64 correction takes:
/// hopper-expert, N = 4000, takes 1.10 s in f32 and 1.16 s in f64 at k = 3e-7, but 2.4 and 1.9 s at
/// 1e-7.
const F32_RESOLVES: f64 = 2e-7;

/// More threads than any machine has cores would only fight each other.
const MAX_THREADS: usize = 1024;

/// Refuses a number of threads that cannot be meant.
pub fn check_threads(threads: Option<usize>) -> Result<(), Error> {
    match threads {
        Some(found) if !(1..=MAX_THREADS).contains(&found) => Err(Error::Setting {
            name: "threads",
            found: found.to_string(),
            allowed: "1 to 1024; leave it out to use every core",
        }),
        _ => Ok(()),
    }
}

impl FitSettings {
    /// Checks what can be checked without data.
    pub fn validate(&self) -> Result<(), Error> {
        let setting = |name, found: &dyn ToString, allowed| {
            Err(Error::Setting { name, found: found.to_string(), allowed })
        };
        if let Regularization::Value(value) = self.regularization
            && !(value > 0.0 && value.is_finite())
        {
            return setting("regularization", &value, "auto or a positive finite number");
        }
        if !(self.clip > 0.0 && self.clip.is_finite()) {
            return setting("clip", &self.clip, "a positive finite number");
        }
        check_threads(self.threads)?;
        let limits =
            [self.bounds.is_some(), self.lower.is_some() || self.upper.is_some(), self.unbounded];
        if limits.iter().filter(|given| **given).count() > 1 {
            return setting(
                "limits",
                &"more than one of bounds, lower/upper and unbounded",
                "one of them",
            );
        }
        if let Some(bounds) = &self.bounds {
            let &[lower, upper] = bounds.0.as_slice() else {
                return setting("bounds", bounds, "two numbers LO,HI");
            };
            DecisionSet::bounds(1, lower, upper)?;
        }
        if self.warm_up.is_some()
            && matches!(self.init, Initialization::Zero | Initialization::Expert)
        {
            return setting(
                "init",
                &"a start without warm-up, together with warm-up",
                "warm-up or paper-warm-up where warm-up gives a number of parts",
            );
        }
        if self.concurrent_blocks == 0 {
            return setting("concurrent-blocks", &0, "1 block or more");
        }
        if self.warm_up == Some(0) {
            return setting("warm-up", &0, "1 part or more, no more parts than samples");
        }
        if self.theta == ThetaChoice::Learn && self.solver == SolverKind::Sso {
            return setting(
                "theta",
                &"learn, together with solver sso",
                "learn with solver newton",
            );
        }
        self.validate_kernel()?;
        self.validate_plain()?;
        self.newton().validate()
    }

    /// That the linear kernel is there for what only it can do, and that nothing is said which
    /// would be ignored.
    fn validate_plain(&self) -> Result<(), Error> {
        let linear = self.kernel == KernelKind::Linear.into()
            || self.kernel == KernelChoice::Given(Kernel::Linear);
        let setting = |name, found: &str, allowed| {
            Err(Error::Setting { name, found: found.to_owned(), allowed })
        };
        if self.intercept && !linear {
            return setting(
                "intercept",
                "asked for with another kernel than linear",
                "{kernel linear} with {intercept}; in sums, add polynomial(degree=1, gamma=1, \
                 offset=1) in place of linear",
            );
        }
        let with_trend = matches!(self.trend, TrendChoice::Constant | TrendChoice::Linear);
        if self.intercept && with_trend {
            return setting(
                "trend",
                "given, together with an intercept",
                "none: the intercept is the linear kernel's trend; leave out {intercept} or \
                 {trend}",
            );
        }
        if !self.primal {
            return Ok(());
        }
        if with_trend {
            return setting(
                "trend",
                "given, together with primal",
                "none: weights of features are a linear law already, and {intercept} is its level",
            );
        }
        if !linear {
            return setting(
                "primal",
                "asked for with another kernel than linear",
                "{kernel linear} with {primal}; other kernels have no weights to solve for, so \
                 leave {primal} out for them",
            );
        }
        if self.solver == SolverKind::Sso {
            return setting(
                "solver",
                "sso, together with primal",
                "newton: without coefficients of samples there are no blocks; leave out {primal} \
                 or {solver sso}",
            );
        }
        if self.theta == ThetaChoice::Learn {
            return setting(
                "theta",
                "learn, together with primal",
                "identity: theta_uu is learned in the dual only; leave out {primal} or {theta \
                 learn}",
            );
        }
        if self.operator != OperatorChoice::Auto {
            return setting(
                "operator",
                "given, together with primal",
                "nothing: the primal has no kernel matrix; leave out {primal} or {operator}",
            );
        }
        if self.length_scales.is_some() {
            return setting(
                "length-scales",
                "given, together with primal",
                "nothing: scale the signals, or leave out {primal}",
            );
        }
        Ok(())
    }

    /// The primal solver's part.
    pub fn primal_solver(&self) -> PrimalSettings {
        let default = PrimalSettings::default();
        PrimalSettings {
            tol: self.tol,
            max_iterations: self.max_iterations.unwrap_or(default.max_iterations),
            time_limit: self.time_limit,
        }
    }

    /// Whether nobody has said what limits decisions, not even that nothing does; `constrained`
    /// where limits come with the data.
    pub fn limits_unsaid(&self, constrained: bool) -> bool {
        let said = self.bounds.is_some() || self.lower.is_some() || self.upper.is_some();
        !said && !self.unbounded && !constrained
    }

    /// SSO's part.
    pub fn sso(&self) -> SsoSettings {
        let default = SsoSettings::default();
        SsoSettings {
            tol: self.tol,
            max_iterations: self.max_iterations.unwrap_or(default.max_iterations),
            time_limit: self.time_limit,
            block: self.block.0,
            concurrent_blocks: self.concurrent_blocks,
            selection: self.selection,
            init: self.init,
            warm_up: self.warm_up,
            max_rank: None,
        }
    }

    /// The kernel on `n_features` features. Fails where length scales are not as many.
    pub fn kernel_for(&self, n_features: usize) -> Result<Kernel, Error> {
        let kernel = self.unchecked_kernel(n_features);
        kernel.validate_for(n_features)?;
        Ok(kernel)
    }

    fn unchecked_kernel(&self, n_features: usize) -> Kernel {
        let shared =
            Parameters { gamma: Some(self.gamma), degree: self.degree, offset: self.offset };
        let kernel = match self.kernel.kernel(n_features, shared) {
            Kernel::Linear if self.intercept => Kernel::linear_with_intercept(),
            kernel => self.trend_beside(&kernel).beside(kernel, n_features),
        };
        match &self.length_scales {
            None => kernel,
            Some(Numbers(length_scales)) => Kernel::Anisotropic {
                length_scales: length_scales.clone(),
                kernel: Box::new(kernel),
            },
        }
    }

    /// The trend there will be, where that was left to the kernel too.
    pub fn trend(&self) -> TrendChoice {
        if self.intercept || self.primal {
            return self.trend;
        }
        let alone = Self { trend: TrendChoice::None, length_scales: None, ..self.clone() };
        self.trend_beside(&alone.unchecked_kernel(1))
    }

    /// The trend that is meant beside a kernel.
    fn trend_beside(&self, kernel: &Kernel) -> TrendChoice {
        let complete = matches!(self.kernel, KernelChoice::Given(_));
        // A slope has a scale, which is meant for features with one.
        let scaled = self.normalize == Normalization::Zscore;
        match self.trend {
            TrendChoice::Auto if scaled && !complete && kernel.bound().is_some() => {
                TrendChoice::Linear
            }
            TrendChoice::Auto => TrendChoice::None,
            chosen => chosen,
        }
    }

    /// Ranges, and that no parameter is given that the kernel would ignore.
    fn validate_kernel(&self) -> Result<(), Error> {
        let gamma = match self.gamma {
            Gamma::Auto => None,
            Gamma::Value(gamma) => Some(gamma.to_string()),
        };
        for (name, given, allowed) in [
            (
                "gamma",
                gamma,
                "auto for this kernel: it has no part that takes a gamma, or each has its own in \
                 parentheses",
            ),
            (
                "degree",
                self.degree.map(|degree| degree.to_string()),
                "nothing for this kernel: only polynomial takes a degree, unless it has its own in \
                 parentheses",
            ),
            (
                "offset",
                self.offset.map(|offset| offset.to_string()),
                "nothing for this kernel: only polynomial takes an offset, unless it has its own \
                 in parentheses",
            ),
        ] {
            if let Some(found) = given
                && !self.kernel.takes(name)
            {
                return Err(Error::Setting { name, found, allowed });
            }
        }
        self.unchecked_kernel(1).validate()
    }

    /// The precision to iterate in. f32 where it was asked for and pays: not for kernels whose
    /// values have no bound, a trend aside, and not for a regularization close to what rounding
    /// adds to kernel values as large as theirs.
    pub fn working_precision(&self, n_samples: usize) -> Precision {
        let bound = self.unchecked_kernel(1).without_trend().bound();
        let regularization = self.regularization.value(n_samples);
        let resolved = bound.is_some_and(|bound| regularization >= F32_RESOLVES * bound);
        if resolved { self.precision } else { Precision::F64 }
    }

    /// The set of decisions with `decision_dim` entries.
    pub fn decision_set(&self, decision_dim: usize) -> Result<DecisionSet, Error> {
        if let Some(bounds) = &self.bounds {
            return match bounds.0.as_slice() {
                &[lower, upper] => DecisionSet::bounds(decision_dim, lower, upper),
                _ => Err(Error::Setting {
                    name: "bounds",
                    found: bounds.to_string(),
                    allowed: "two numbers LO,HI",
                }),
            };
        }
        let expand = |what, numbers: &Option<Numbers>, infinite: f64| match numbers {
            None => Ok(vec![infinite; decision_dim]),
            Some(Numbers(values)) if values.len() == decision_dim => Ok(values.clone()),
            Some(Numbers(values)) => Err(Error::Width {
                what,
                owner: "a decision",
                expected: decision_dim,
                found: values.len(),
            }),
        };
        let lower = expand("the list of lower limits", &self.lower, f64::NEG_INFINITY)?;
        let upper = expand("the list of upper limits", &self.upper, f64::INFINITY)?;
        Ok(DecisionSet::Box(BoxLimits::new(lower, upper)?))
    }

    /// The feature map's part.
    pub fn feature_settings(&self) -> FeatureSettings {
        FeatureSettings { expansion: self.features, normalization: self.normalize, clip: self.clip }
    }

    /// The solver's part.
    pub fn newton(&self) -> NewtonSettings {
        NewtonSettings {
            tol: self.tol,
            max_iterations: self.max_iterations.unwrap_or(NewtonSettings::default().max_iterations),
            time_limit: self.time_limit,
            ..NewtonSettings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_json() {
        let settings = FitSettings {
            gamma: Gamma::Value(0.25),
            lower: Some(Numbers(vec![f64::NEG_INFINITY, 0.1])),
            upper: Some(Numbers(vec![1.0, f64::INFINITY])),
            time_limit: Some(1.5),
            ..FitSettings::default()
        };
        let text = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<FitSettings>(&text).unwrap(), settings);
        assert!(serde_json::from_str::<FitSettings>(r#"{"regularisation": 1}"#).is_err());
    }

    #[test]
    fn a_trend_is_there_where_it_makes_sense() {
        let trend = |kernel: &str, normalize| {
            let kernel = kernel.parse().unwrap();
            FitSettings { normalize, kernel, ..FitSettings::default() }.trend()
        };
        assert_eq!(trend("rbf", Normalization::Zscore), TrendChoice::Linear);
        assert_eq!(trend("rbf*matern52", Normalization::Zscore), TrendChoice::Linear);
        assert_eq!(trend("rbf", Normalization::None), TrendChoice::None);
        for kernel in ["linear", "polynomial", "rbf + 0.5*linear"] {
            assert_eq!(trend(kernel, Normalization::Zscore), TrendChoice::None, "{kernel}");
        }
        let given = Kernel::Rbf { gamma: 1.0 }.into();
        let own = FitSettings { kernel: given, ..FitSettings::default() };
        assert_eq!(own.trend(), TrendChoice::None);
    }

    #[test]
    fn single_precision_is_for_kernels_with_a_bound_that_it_resolves() {
        let precision = |kernel: &str, regularization| {
            let kernel = kernel.parse().unwrap();
            FitSettings { kernel, regularization, ..FitSettings::default() }.working_precision(1000)
        };
        for kernel in ["rbf", "matern32", "0.5*rbf + laplace", "rbf*matern52"] {
            assert_eq!(precision(kernel, 1e-6.into()), Precision::F32, "{kernel}");
            assert_eq!(precision(kernel, 1e-8.into()), Precision::F64, "{kernel}");
        }
        // A trend is no part of the matrix that is iterated with.
        assert_eq!(precision("rbf + 0.1*linear", 1e-6.into()), Precision::F32);
        for kernel in ["linear", "polynomial", "rbf*linear", "rbf*polynomial", "100*rbf"] {
            assert_eq!(precision(kernel, 1e-6.into()), Precision::F64, "{kernel}");
        }
    }

    #[test]
    fn bad_settings_name_themselves() {
        let default = FitSettings::default;
        let bounds = |text: &str| Some(text.parse().unwrap());
        let kernel = |text: &str| text.parse::<KernelChoice>().unwrap();
        let plain = || FitSettings { primal: true, kernel: KernelKind::Linear.into(), ..default() };
        for (settings, name) in [
            (FitSettings { regularization: 0.0.into(), ..default() }, "regularization"),
            (FitSettings { clip: f64::NAN, ..default() }, "clip"),
            (FitSettings { threads: Some(0), ..default() }, "threads"),
            (FitSettings { threads: Some(100_000), ..default() }, "threads"),
            (FitSettings { tol: -1.0, ..default() }, "tol"),
            (FitSettings { gamma: Gamma::Value(-1.0), ..default() }, "gamma"),
            (FitSettings { degree: Some(2), ..default() }, "degree"),
            (FitSettings { offset: Some(2.0), kernel: kernel("linear"), ..default() }, "offset"),
            (
                FitSettings { gamma: Gamma::Value(1.0), kernel: kernel("linear"), ..default() },
                "gamma",
            ),
            (
                FitSettings {
                    degree: Some(2),
                    kernel: kernel("rbf + polynomial(degree=3)"),
                    ..default()
                },
                "degree",
            ),
            (
                FitSettings { degree: Some(0), kernel: kernel("polynomial"), ..default() },
                "degree is 0",
            ),
            (
                FitSettings {
                    gamma: Gamma::Value(1.0),
                    kernel: Kernel::Linear.into(),
                    ..default()
                },
                "gamma",
            ),
            (
                FitSettings { length_scales: Some(Numbers(vec![1.0, -1.0])), ..default() },
                "length_scales",
            ),
            (FitSettings { kernel: kernel("0*rbf"), ..default() }, "weight"),
            (FitSettings { primal: true, ..default() }, "kernel=\"linear\""),
            (FitSettings { intercept: true, ..default() }, "kernel=\"linear\""),
            (
                FitSettings { intercept: true, kernel: kernel("rbf + linear"), ..default() },
                "polynomial(degree=1",
            ),
            (FitSettings { primal: true, kernel: kernel("0.5*linear"), ..default() }, "primal"),
            (FitSettings { solver: SolverKind::Sso, ..plain() }, "sso"),
            (FitSettings { theta: ThetaChoice::Learn, ..plain() }, "theta"),
            (FitSettings { operator: OperatorChoice::Tiled, ..plain() }, "operator"),
            (FitSettings { length_scales: Some(Numbers(vec![1.0])), ..plain() }, "length_scales"),
            (FitSettings { bounds: bounds("1,2,3"), ..default() }, "bounds"),
            (FitSettings { bounds: bounds("1,-1"), ..default() }, "lower limit"),
            (FitSettings { bounds: bounds("0,1"), unbounded: true, ..default() }, "limits"),
        ] {
            let message = settings.validate().unwrap_err().to_string();
            assert!(message.contains(name), "{message}");
        }
        default().validate().unwrap();
        plain().validate().unwrap();
        FitSettings { kernel: Kernel::Linear.into(), intercept: true, ..plain() }
            .validate()
            .unwrap();
    }
}
