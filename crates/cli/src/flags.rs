//! The flags of settings, with their help. Names, types and defaults are those of [`FitSettings`];
//! here are only words for people.

use crate::commands::names::limit_columns;
use argwhy::FitSettings;
use argwhy::core::Kernel;
use argwhy::settings::{MemorySize, Table, Value, value_of};
use argwhy::tuning::scales_asked_for;
use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

/// How the command line shows one setting.
struct Flag {
    name: &'static str,
    /// What stands for its value; nothing for a switch.
    value: &'static str,
    /// `{kernels}` stands for their names.
    help: &'static str,
}

const fn flag(name: &'static str, value: &'static str, help: &'static str) -> Flag {
    Flag { name, value, help }
}

const SECTIONS: [(&str, &[Flag]); 5] = [
    ("Features and kernel", &FEATURES),
    ("Decisions", &DECISIONS),
    ("Problem and solver", &PROBLEM),
    ("SSO", &SSO),
    ("Machine", &MACHINE),
];

const FEATURES: [Flag; 11] = [
    flag(
        "features",
        "FEATURES",
        "Functions of the signal: poly2 (all monomials up to degree two) or raw",
    ),
    flag("normalize", "NORMALIZE", "Scaling of the features: zscore or none"),
    flag("clip", "CLIP", "Features are cut to ±CLIP"),
    flag(
        "kernel",
        "KERNEL",
        "Kernel: {kernels}, or sums and products, as in \"rbf + 0.5*matern52(gamma=0.1)\"",
    ),
    flag(
        "gamma",
        "GAMMA",
        "Inverse width of the kernel, 1/(2·length²) for rbf and matern; auto is 1/(number of \
         features)",
    ),
    flag("degree", "N", "Degree of polynomial kernels, 1 to 32; 3 if not given"),
    flag("offset", "C", "Offset c of polynomial kernels (gamma·a'b + c)^degree; 1 if not given"),
    flag(
        "length-scales",
        "A,B,C",
        "What each feature is divided by before the kernel sees it, one number a feature; nothing \
         if not given. For tune: auto looks for one a signal (raw features)",
    ),
    flag(
        "trend",
        "LAW",
        "A law beside the kernel that holds where there is no data: none, constant, or linear \
         (constant + 0.1/features·a'b). Without one, a kernel of distances decides 0 there, so \
         auto is linear for those and none for others",
    ),
    flag(
        "intercept",
        "",
        "An intercept for the linear kernel: a'b + 1. Z-scored features have none of their own",
    ),
    flag(
        "primal",
        "",
        "Solve for the weights of the features, not for coefficients of the samples: plain inverse \
         optimization with --kernel linear. The same optimum; a million samples in seconds, and a \
         model of a few numbers",
    ),
];

const DECISIONS: [Flag; 5] = [
    flag("bounds", "LO,HI", "One lower and one upper limit for every dimension of a decision"),
    flag(
        "lower",
        "A,B,C",
        "Lower limits, one a dimension; -inf for none. Or the columns of a csv file that have \
         each row's: p_min_kw, or p_min_kw,0 where only some have one",
    ),
    flag("upper", "A,B,C", "Upper limits, one a dimension; inf for none. Or columns, as above"),
    flag(
        "unbounded",
        "",
        "Say that decisions have no limits (as is assumed, with a note, when none are given)",
    ),
    flag("infeasible", "INFEASIBLE", "Decisions outside their limits: error, clip or keep"),
];

const PROBLEM: [Flag; 6] = [
    flag(
        "regularization",
        "K",
        "Weight of simplicity, k in the paper; auto is 0.3/(number of samples), and tune finds \
         better ones",
    ),
    flag(
        "solver",
        "SOLVER",
        "Algorithm: newton (exact, few steps) or sso (the paper's, block by block)",
    ),
    flag(
        "theta",
        "THETA",
        "The quadratic part of the objective, θ_uu: identity, or learn it too (decisions' \
         dimensions may then trade off against each other)",
    ),
    flag("tol", "TOL", "Relative duality gap to reach"),
    flag("max-iterations", "N", "Steps at most: 100 for newton, 1000 blocks for sso if not given"),
    flag(
        "time-limit",
        "SECONDS",
        "Seconds at most; what is reached by then is saved. No limit if not given",
    ),
];

const SSO: [Flag; 5] = [
    flag(
        "block",
        "SIZE",
        "Samples of a block: a share with a decimal point (0.5) or a number (2500)",
    ),
    flag(
        "concurrent-blocks",
        "COUNT",
        "Blocks that are solved at once, each as if the others stayed: for --ray, where each \
         is a worker's. Together no more samples than there are",
    ),
    flag("selection", "SELECTION", "How blocks are chosen: violation, paper, cyclic or random"),
    flag("warm-up", "PARTS", "Parts of the warm-up, two if not given"),
    flag(
        "init",
        "INIT",
        "Start: warm-up (parts one after the other), paper-warm-up (parts on their own), expert or \
         zero",
    ),
];

const MACHINE: [Flag; 7] = [
    flag("memory", "2GiB", "Memory the whole process may take"),
    flag("threads", "N", "Threads; one a core if not given. The result does not depend on it"),
    flag(
        "precision",
        "PRECISION",
        "Precision of kernel values while iterating: f32 where that pays (thousands of samples, k \
         not tiny) or f64 throughout. Certificates are f64 always",
    ),
    flag(
        "operator",
        "OPERATOR",
        "Kernel values: stored, compact (stored in 16 bits, corrected with exact ones), tiled \
         (recomputed, little memory) or auto, the first of these that fits",
    ),
    flag(
        "device",
        "DEVICE",
        "Where kernel values are computed: cpu, cuda (or cuda:N, the GPU of that number), or auto: \
         on a GPU where there is one and from 10,000 samples on",
    ),
    flag(
        "device-memory",
        "16GiB",
        "Memory of the GPU that may be used; most of what is free there if not given. Samples that \
         do not fit stay with the host and pass through",
    ),
    flag("seed", "N", "Seed of everything random"),
];

/// Settings that the command line mentions.
#[derive(Clone, Debug, Default)]
pub struct SettingFlags(pub Table);

fn all() -> impl Iterator<Item = (&'static str, &'static Flag)> {
    SECTIONS.iter().flat_map(|(heading, flags)| flags.iter().map(move |flag| (*heading, flag)))
}

impl Flag {
    fn is_switch(&self) -> bool {
        FitSettings::is_switch(self.name)
    }

    fn arg(&self, heading: &'static str, default: Option<String>) -> Arg {
        let help = self.help.replace("{kernels}", &Kernel::NAMES.join(", "));
        let help = match default {
            Some(default) => format!("{help} [default: {default}]"),
            None => help,
        };
        let arg = Arg::new(self.name).long(self.name).help(help).help_heading(heading);
        let arg = match self.name {
            "regularization" => arg.short('k'),
            // One way to say what limits decisions.
            "bounds" => arg.conflicts_with_all(["lower", "upper", "unbounded"]),
            "lower" | "upper" => arg.conflicts_with("unbounded"),
            _ => arg,
        };
        if self.is_switch() {
            return arg.action(ArgAction::SetTrue);
        }
        let name = self.name;
        let arg = arg.value_name(self.value).value_parser(ValueParser::from(
            move |text: &str| -> Result<Value, String> {
                let value = value_of(text);
                if ["lower", "upper"].contains(&name) && limit_columns(text, name).is_some() {
                    return Ok(Value::from(text));
                }
                // What tune looks for is no setting of a fit.
                let mut searched = Table::from_iter([(name.to_owned(), value.clone())]);
                if !scales_asked_for(&mut searched) {
                    FitSettings::check(name, &value).map_err(|error| error.to_string())?;
                }
                Ok(value)
            },
        ));
        // A list such as -1,1 looks like a flag, and unlike a number.
        if self.value.contains(',') {
            arg.allow_hyphen_values(true)
        } else {
            arg.allow_negative_numbers(true)
        }
    }
}

/// The default of every setting that has one, for people.
fn defaults() -> impl Fn(&str) -> Option<String> {
    let all = serde_json::to_value(FitSettings::default()).unwrap_or_default();
    move |name| match all.get(name)? {
        serde_json::Value::Null | serde_json::Value::Bool(_) => None,
        serde_json::Value::Number(bytes) if name == "memory" => {
            bytes.as_u64().map(|bytes| MemorySize(bytes).to_string())
        }
        serde_json::Value::String(text) => Some(text.clone()),
        serde_json::Value::Number(number) => match number.as_f64() {
            Some(value) if value != 0.0 && value.abs() < 1e-3 => Some(format!("{value:e}")),
            Some(value) => Some(value.to_string()),
            None => Some(number.to_string()),
        },
        other => Some(other.to_string()),
    }
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        let default = defaults();
        command.args(all().map(|(heading, flag)| flag.arg(heading, default(flag.name))))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut given = Table::new();
        for (_, flag) in all() {
            let value = if flag.is_switch() {
                matches.get_flag(flag.name).then_some(Value::Boolean(true))
            } else {
                matches.get_one::<Value>(flag.name).cloned()
            };
            if let Some(value) = value {
                given.insert(flag.name.to_owned(), value);
            }
        }
        Ok(Self(given))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        let Self(given) = Self::from_arg_matches(matches)?;
        self.0.extend(given);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_a_flag_and_every_flag_a_setting() {
        let mut flags: Vec<&str> = all().map(|(_, flag)| flag.name).collect();
        flags.sort_unstable();
        assert_eq!(flags, FitSettings::names());
        for (_, flag) in all() {
            assert_eq!(flag.is_switch(), flag.value.is_empty(), "{}", flag.name);
        }
    }
}
