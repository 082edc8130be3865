//! `argwhy doctor`: is this machine all right?

use super::{print, print_json};
use crate::End;
use crate::args::DoctorArgs;
use crate::error::CliError;
use argwhy::core::linalg::simd::Isa;
use argwhy::core::operator::{HostOperator, KernelOperator, OperatorKind, Precision};
use argwhy::device::{self, Examined};
use argwhy::settings::{MemorySize, Numbers};
use argwhy::{Dataset, FitSettings, Kernel, Pipeline, Predictor, machine};
use argwhy_experts::{Expert, ExpertSettings, Quadrotor};
use ndarray::Array2;
use serde::Serialize;
use std::fmt::Write;
use std::time::Instant;

#[derive(Serialize)]
struct Check {
    name: &'static str,
    ok: bool,
    found: String,
}

#[derive(Serialize)]
struct Examination {
    version: &'static str,
    healthy: bool,
    checks: Vec<Check>,
}

pub fn run(args: &DoctorArgs) -> Result<End, CliError> {
    let mut checks = vec![processor(), memory()];
    checks.extend(kernels());
    checks.push(speed());
    checks.push(gpu());
    checks.push(threads());
    checks.extend(fit_and_files());
    let failed = checks.iter().filter(|check| !check.ok).count();
    let total = checks.len();
    if args.json {
        let version = env!("CARGO_PKG_VERSION");
        print_json(&Examination { version, healthy: failed == 0, checks })?;
    } else {
        let mut text =
            format!("argwhy {} on {}\n", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
        for check in &checks {
            let mark = if check.ok { "ok  " } else { "FAIL" };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{mark} {:<28}{}", check.name, check.found);
        }
        if failed == 0 {
            text.push_str("everything works\n");
        }
        print(&text)?;
    }
    if failed == 0 { Ok(End::Done) } else { Err(CliError::Unhealthy { failed, total }) }
}

fn processor() -> Check {
    let names: Vec<&str> = Isa::available().into_iter().map(Isa::name).collect();
    let found = format!(
        "{} cores, using {} (of {})",
        machine::n_cores(),
        Isa::detect().name(),
        names.join(", ")
    );
    Check { name: "processor", ok: true, found }
}

fn memory() -> Check {
    let wanted = FitSettings::default().memory;
    match machine::available_memory_bytes() {
        None => Check { name: "memory", ok: true, found: "unknown on this system".to_owned() },
        Some(bytes) if bytes < wanted.0 => Check {
            name: "memory",
            ok: true,
            found: format!(
                "{} available, less than the default limit of {wanted}: use --memory",
                MemorySize(bytes)
            ),
        },
        Some(bytes) => {
            Check { name: "memory", ok: true, found: format!("{} available", MemorySize(bytes)) }
        }
    }
}

fn samples(n: usize, width: usize) -> Array2<f64> {
    Array2::from_shape_fn((n, width), |(i, j)| {
        ((i * 7 + j * 13) as f64 * 0.618).sin() + 0.1 * j as f64
    })
}

/// Every instruction set against the definition, in both precisions.
fn kernels() -> Vec<Check> {
    let (features, v) = (samples(300, 20), samples(2, 300));
    let kernel = Kernel::Rbf { gamma: 0.05 };
    let row = |i: usize| features.row(i).to_vec();
    let gram = Array2::from_shape_fn((300, 300), |(i, j)| kernel.evaluate(&row(i), &row(j)));
    let expected = v.dot(&gram);
    let off = |isa: Isa, precision: Precision| -> f64 {
        let kind = OperatorKind::Tiled;
        let mut out = Array2::zeros(v.dim());
        let applied = HostOperator::with_isa(features.view(), kernel.clone(), precision, kind, isa)
            .and_then(|operator| operator.apply(v.view(), out.view_mut()));
        if applied.is_err() {
            return f64::INFINITY;
        }
        (&out - &expected).iter().fold(0.0, |m: f64, d| m.max(d.abs()))
    };
    Isa::available()
        .into_iter()
        .map(|isa| {
            let (single, double) = (off(isa, Precision::F32), off(isa, Precision::F64));
            Check {
                name: match isa {
                    Isa::Avx512 => "kernels, AVX-512",
                    Isa::Avx2 => "kernels, AVX2+FMA",
                    Isa::Portable => "kernels, portable",
                },
                ok: single < 1e-4 && double < 1e-11,
                found: format!("off by {single:.0e} in f32, {double:.0e} in f64"),
            }
        })
        .collect()
}

fn speed() -> Check {
    let (features, v) = (samples(2400, 78), samples(3, 2400));
    let kernel = Kernel::Rbf { gamma: 1.0 / 78.0 };
    let mut out = Array2::zeros(v.dim());
    let operator = HostOperator::new(features.view(), kernel, Precision::F32, OperatorKind::Tiled);
    let mut best = f64::INFINITY;
    let mut ok = false;
    if let Ok(operator) = operator {
        ok = true;
        for _ in 0..5 {
            let start = Instant::now();
            ok &= operator.apply(v.view(), out.view_mut()).is_ok();
            best = best.min(start.elapsed().as_secs_f64());
        }
    }
    let per_value = best * 1e9 / (2400.0 * 2401.0 / 2.0);
    Check {
        name: "kernel speed",
        ok,
        found: format!("{per_value:.2} ns a value (78 features, all cores)"),
    }
}

/// A GPU against the definition; having none is no fault.
fn gpu() -> Check {
    let (ok, found) = match device::examine() {
        Ok(Examined { what, off: [single, double] }) => (
            single < 1e-5 && double < 1e-13,
            format!("{what}; off by {single:.0e} while iterating, {double:.0e} in f64"),
        ),
        Err(why) => (true, format!("none: {why}")),
    };
    Check { name: "gpu", ok, found }
}

fn threads() -> Check {
    let fit_with = |threads| {
        let settings = FitSettings {
            threads: Some(threads),
            bounds: Some(Numbers(vec![-0.5, 0.5])),
            regularization: 1e-4.into(),
            ..FitSettings::default()
        };
        let decisions = samples(500, 2).mapv(|u| u.clamp(-0.5, 0.5));
        let data = Dataset::new(samples(500, 4), decisions)?;
        let fit = Pipeline::new(settings)?.fit(&data)?;
        Ok::<_, argwhy::Error>(fit.outcome.certified.coefficients)
    };
    let (ok, found) = match (fit_with(1), fit_with(2)) {
        (Ok(one), Ok(two)) if one == two => (true, "one and two give the same bits".to_owned()),
        (Ok(_), Ok(_)) => (false, "one and two give different results".to_owned()),
        (Err(e), _) | (_, Err(e)) => (false, e.to_string()),
    };
    Check { name: "threads", ok, found }
}

/// The whole way: expert, fit, certificate, file, decisions.
fn fit_and_files() -> Vec<Check> {
    match try_fit_and_files() {
        Ok(checks) => checks,
        Err(error) => vec![Check { name: "fit", ok: false, found: error.to_string() }],
    }
}

fn try_fit_and_files() -> Result<Vec<Check>, CliError> {
    let expert = Expert::new(Quadrotor::default(), ExpertSettings::default())?;
    let demos = expert.demonstrations(500, 0)?;
    let data = Dataset::new(demos.signals, demos.decisions)?;
    let settings = FitSettings {
        lower: Some(Numbers(demos.lower.to_vec())),
        upper: Some(Numbers(demos.upper.to_vec())),
        ..FitSettings::default()
    };
    let tol = settings.tol;
    let fit = Pipeline::new(settings)?.fit(&data)?;
    let gap = fit.model.record.certificate.relative_gap;
    let mut checks = vec![Check {
        name: "fit",
        ok: gap <= tol,
        found: format!(
            "relative gap {gap:.1e} on 500 samples in {:.2} s",
            fit.model.record.seconds
        ),
    }];
    let folder = tempfile::tempdir()
        .map_err(|source| CliError::Write { path: std::env::temp_dir(), source })?;
    let path = folder.path().join("check.argwhy");
    fit.save(&path)?;
    let same = argwhy::load_model(&path)?.model == fit.model;
    checks.push(Check {
        name: "model file",
        ok: same,
        found: if same { "written and read back bit for bit" } else { "changed on the way" }
            .to_owned(),
    });
    let decisions = Predictor::new(&fit.model)?.predict(data.signals())?;
    let outside =
        decisions.rows().into_iter().filter(|u| !fit.model.set.contains(&u.to_vec())).count();
    checks.push(Check {
        name: "decisions",
        ok: outside == 0,
        found: format!("{outside} of {} outside their limits", decisions.nrows()),
    });
    Ok(checks)
}
