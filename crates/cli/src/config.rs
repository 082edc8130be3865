//! What the words mean: command line over config file over defaults.

use crate::args::{FitArgs, FitOptions};
use crate::error::CliError;
use argwhy::FitSettings;
use argwhy::settings::{KernelKind, SolverKind};
use std::fs;
use std::path::Path;

/// Options of the config file, overridden by those of the command line.
pub fn options(args: &FitArgs) -> Result<FitOptions, CliError> {
    match &args.config {
        Some(path) => Ok(merge(args.options.clone(), read(path)?)),
        None => Ok(args.options.clone()),
    }
}

fn read(path: &Path) -> Result<FitOptions, CliError> {
    let wrong = |why: String| CliError::Config { path: path.to_path_buf(), why };
    let text = fs::read_to_string(path).map_err(|e| wrong(format!("cannot read it: {e}")))?;
    toml::from_str(&text).map_err(|e| wrong(e.to_string().trim_end().to_owned()))
}

macro_rules! either {
    ($first:ident, $second:ident, $($field:ident),*) => {
        FitOptions { $($field: $first.$field.or($second.$field),)* ..$first }
    };
}

fn merge(line: FitOptions, mut file: FitOptions) -> FitOptions {
    let limited =
        line.bounds.is_some() || line.lower.is_some() || line.upper.is_some() || line.unbounded;
    if limited {
        // Limits belong together: one of them on the command line replaces all of the file's.
        (file.bounds, file.lower, file.upper, file.unbounded) = (None, None, None, false);
    }
    if let Some(kernel) = &line.kernel {
        // Parameters of the file's kernel go with it where the new one has no use for them.
        file.gamma = file.gamma.filter(|_| kernel.takes("gamma"));
        file.degree = file.degree.filter(|_| kernel.takes("degree"));
        file.offset = file.offset.filter(|_| kernel.takes("offset"));
        let linear = *kernel == KernelKind::Linear.into();
        (file.primal, file.intercept) = (file.primal && linear, file.intercept && linear);
    }
    if line.regularization.is_some() {
        file.path = None;
    }
    if line.path.is_some() {
        file.regularization = None;
    }
    let flags =
        (line.unbounded || file.unbounded, line.json || file.json, line.quiet || file.quiet);
    let (intercept, primal) = (line.intercept || file.intercept, line.primal || file.primal);
    let constraints = line.constraints || file.constraints;
    let merged = either!(
        line,
        file,
        signals,
        decisions,
        rows,
        weights,
        features,
        normalize,
        clip,
        kernel,
        gamma,
        degree,
        offset,
        length_scales,
        bounds,
        lower,
        upper,
        matrix,
        matrix_eq,
        infeasible,
        regularization,
        path,
        solver,
        theta,
        tol,
        max_iterations,
        time_limit,
        block,
        selection,
        warm_up,
        init,
        memory,
        threads,
        precision,
        operator,
        seed,
        trace,
        report
    );
    let (unbounded, json, quiet) = flags;
    FitOptions { intercept, primal, unbounded, constraints, json, quiet, ..merged }
}

/// Settings with every option filled in.
pub fn settings(options: &FitOptions) -> Result<FitSettings, CliError> {
    let default = FitSettings::default();
    let o = options.clone();
    let settings = FitSettings {
        features: o.features.unwrap_or(default.features),
        normalize: o.normalize.unwrap_or(default.normalize),
        clip: o.clip.unwrap_or(default.clip),
        kernel: o.kernel.unwrap_or(default.kernel),
        gamma: o.gamma.unwrap_or(default.gamma),
        degree: o.degree.or(default.degree),
        offset: o.offset.or(default.offset),
        length_scales: o.length_scales.or(default.length_scales),
        intercept: o.intercept,
        primal: o.primal,
        bounds: o.bounds,
        lower: o.lower,
        upper: o.upper,
        unbounded: o.unbounded,
        constraints: o.constraints,
        matrix: o.matrix,
        matrix_eq: o.matrix_eq,
        weights: o.weights,
        infeasible: o.infeasible.unwrap_or(default.infeasible),
        regularization: o.regularization.unwrap_or(default.regularization),
        solver: o.solver.unwrap_or(default.solver),
        theta: o.theta.unwrap_or(default.theta),
        tol: o.tol.unwrap_or(default.tol),
        max_iterations: o.max_iterations.or(default.max_iterations),
        time_limit: o.time_limit.or(default.time_limit),
        block: o.block.unwrap_or(default.block),
        selection: o.selection.unwrap_or(default.selection),
        warm_up: o.warm_up.or(default.warm_up),
        init: o.init.unwrap_or(default.init),
        memory: o.memory.unwrap_or(default.memory),
        threads: o.threads.or(default.threads),
        precision: o.precision.unwrap_or(default.precision),
        operator: o.operator.unwrap_or(default.operator),
        seed: o.seed.unwrap_or(default.seed),
    };
    settings.validate()?;
    Ok(settings)
}

/// Refuses options of SSO where another solver would ignore them, and those of the kernel matrix where there is none.
pub fn check_solver(line: &FitOptions, merged: &FitOptions) -> Result<(), CliError> {
    if merged.primal && line.precision.is_some() {
        return Err(CliError::Usage(
            "--precision is about kernel values, and --primal has none: it computes in f64; leave one of them out"
                .to_owned(),
        ));
    }
    let sso = merged.solver == Some(SolverKind::Sso);
    let said = [
        ("--block", line.block.is_some()),
        ("--selection", line.selection.is_some()),
        ("--warm-up", line.warm_up.is_some()),
        ("--init", line.init.is_some()),
    ];
    match said.iter().find(|(_, said)| *said) {
        Some((name, _)) if !sso => Err(CliError::Usage(format!(
            "{name} belongs to --solver sso; add that or leave it out"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use argwhy::settings::Gamma;

    fn file(text: &str) -> FitOptions {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn the_command_line_wins_and_limits_go_together() {
        let line = FitOptions {
            tol: Some(1e-9),
            upper: Some("3".parse().unwrap()),
            ..FitOptions::default()
        };
        let merged = merge(line, file("tol = 1e-3\nseed = 7\nbounds = [-1, 1]\njson = true"));
        let settings = settings(&merged).unwrap();
        assert_eq!((settings.tol, settings.seed, merged.json), (1e-9, 7, true));
        assert_eq!(settings.bounds, None);
        assert_eq!(settings.upper.unwrap().0, [3.0]);
    }

    #[test]
    fn another_kernel_leaves_the_parameters_of_the_files_kernel_behind() {
        let text = "kernel = \"polynomial\"\ndegree = 2\ngamma = 0.5\nlength-scales = [1, 2]";
        let with = |kernel: &str| {
            let line = FitOptions { kernel: kernel.parse().ok(), ..FitOptions::default() };
            settings(&merge(line, file(text))).unwrap()
        };
        assert_eq!((with("rbf").degree, with("rbf").gamma), (None, Gamma::Value(0.5)));
        assert_eq!((with("linear").degree, with("linear").gamma), (None, Gamma::Auto));
        assert_eq!(with("rbf + polynomial").degree, Some(2));
        assert_eq!(with("rbf").length_scales.unwrap().0, [1.0, 2.0]);
        let plain = |kernel: &str| {
            let line = FitOptions { kernel: kernel.parse().ok(), ..FitOptions::default() };
            let text = "kernel = \"linear\"\nprimal = true\nintercept = true";
            let settings = settings(&merge(line, file(text))).unwrap();
            (settings.primal, settings.intercept)
        };
        assert_eq!((plain("linear"), plain("rbf")), ((true, true), (false, false)));
    }

    #[test]
    fn constraints_add_up_with_those_of_the_file() {
        let line = FitOptions { matrix: Some("mine.csv".into()), ..FitOptions::default() };
        let text = "constraints = true\nmatrix = \"m.csv\"\nmatrix-eq = \"e.csv\"\nweights = \"w\"";
        let settings = settings(&merge(line, file(text))).unwrap();
        assert!(settings.constraints);
        assert_eq!(settings.matrix, Some("mine.csv".into()));
        assert_eq!(settings.matrix_eq, Some("e.csv".into()));
        assert_eq!(settings.weights.as_deref(), Some("w"));
    }

    #[test]
    fn nothing_said_means_the_defaults() {
        assert_eq!(settings(&FitOptions::default()).unwrap(), FitSettings::default());
    }

    /// Every setting can be said in a config file under the name it is stored with.
    #[test]
    fn a_stored_setting_is_a_config_file() {
        let stored = FitSettings {
            bounds: Some("-1,1".parse().unwrap()),
            time_limit: Some(9.0),
            kernel: "rbf + 0.5*polynomial(offset=0)".parse().unwrap(),
            degree: Some(2),
            length_scales: Some("1,2.5".parse().unwrap()),
            threads: Some(2),
            constraints: true,
            matrix: Some("m.csv".into()),
            matrix_eq: Some("e.npy".into()),
            weights: Some("counts".to_owned()),
            ..FitSettings::default()
        };
        let plain = FitSettings {
            kernel: "linear".parse().unwrap(),
            intercept: true,
            primal: true,
            ..FitSettings::default()
        };
        for stored in [stored, plain] {
            let text = toml::to_string(&stored).unwrap();
            assert_eq!(settings(&file(&text)).unwrap(), stored);
        }
    }

    #[test]
    fn unknown_keys_are_refused() {
        assert!(toml::from_str::<FitOptions>("regularisation = 1").is_err());
    }
}
