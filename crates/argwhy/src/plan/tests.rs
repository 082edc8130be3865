//! What plans choose, count and say.

use super::choice::LEAST_RANK;
use super::memory::THREAD_BYTES;
use super::*;
use crate::settings::{FitSettings, OperatorChoice, TrendChoice};
use argwhy_core::Error;
use argwhy_core::backend::Host;

fn planned(settings: &FitSettings, sizes: Sizes) -> Result<Plan, Error> {
    Plan::new(settings, sizes, &Host)
}

fn kernel_plan(settings: &FitSettings, sizes: Sizes) -> KernelPlan {
    *planned(settings, sizes).unwrap().kernel().unwrap()
}

fn sizes(n_samples: usize) -> Sizes {
    Sizes {
        n_loaded: n_samples,
        n_samples,
        signal_dim: 11,
        decision_dim: 3,
        n_features: 78,
        set_numbers: 6,
        coupled: false,
        learns_theta: false,
        n_factors: 0,
    }
}

fn with(memory: &str, operator: OperatorChoice) -> FitSettings {
    let trend = TrendChoice::None;
    FitSettings { memory: memory.parse().unwrap(), operator, trend, ..FitSettings::default() }
}

#[test]
fn stores_what_fits_and_recomputes_what_does_not() {
    let settings = |memory| with(memory, OperatorChoice::Auto);
    let plan = |n, memory| kernel_plan(&settings(memory), sizes(n));
    assert_eq!(plan(5000, "2GiB").operator, OperatorKind::Stored);
    assert_eq!(plan(100_000, "2GiB").operator, OperatorKind::Tiled);
    for (n, memory) in [(5000, "2GiB"), (5000, "100MiB"), (100_000, "2GiB"), (20_000, "300MB")] {
        let plan = planned(&settings(memory), sizes(n)).unwrap();
        assert!(plan.memory_bytes <= plan.limit_bytes, "{plan:?}");
    }
}

#[test]
fn sixteen_bits_come_between_stored_and_recomputed() {
    let auto = with("16GiB", OperatorChoice::Auto);
    assert_eq!(kernel_plan(&auto, sizes(100_000)).operator, OperatorKind::Compact);
    assert_eq!(kernel_plan(&auto, sizes(50_000)).operator, OperatorKind::Stored);
    // Not where rounding to 16 bits would drown λ, nor for kernels that leave [0, 1].
    let small = FitSettings { regularization: 3e-7.into(), ..auto.clone() };
    let linear = FitSettings { kernel: "polynomial".parse().unwrap(), ..auto.clone() };
    assert_eq!(kernel_plan(&small, sizes(100_000)).operator, OperatorKind::Compact);
    let tiny = FitSettings { regularization: 2e-7.into(), ..with("400MiB", OperatorChoice::Auto) };
    assert_eq!(kernel_plan(&tiny, sizes(13_000)).operator, OperatorKind::Tiled);
    assert_eq!(kernel_plan(&linear, sizes(100_000)).operator, OperatorKind::Tiled);
    for settings in [tiny, linear] {
        let asked = FitSettings { operator: OperatorChoice::Compact, ..settings };
        let refused = planned(&asked, sizes(13_000)).unwrap_err().to_string();
        assert!(refused.contains("compact"), "{refused}");
    }
}

#[test]
fn factorises_what_is_small_unless_memory_forbids_it() {
    let plan = |n, memory| kernel_plan(&with(memory, OperatorChoice::Auto), sizes(n));
    let small = plan(2000, "2GiB");
    assert_eq!((small.max_rank, small.precision), (2000, Precision::F64));
    let tight = plan(2000, "100MB");
    assert!(tight.max_rank < 2000 && tight.precision == Precision::F32, "{tight:?}");
    assert!(plan(5000, "2GiB").max_rank < 5000);
}

#[test]
fn every_part_of_a_kernel_keeps_samples_of_its_own() {
    let memory = |kernel: &str| {
        let settings = FitSettings { kernel: kernel.parse().unwrap(), ..FitSettings::default() };
        planned(&settings, sizes(20_000)).unwrap().memory_bytes
    };
    // 78 features in f32 for the iteration and in f64 for certificates, beside what both have.
    let packed = 20_000 * 78 * 12;
    let more = memory("rbf + matern32") - memory("rbf");
    assert!((packed..packed + packed / 50).contains(&more), "{more} {packed}");
    assert_eq!(memory("2*rbf"), memory("rbf"));
}

#[test]
fn the_primal_grows_with_samples_not_with_their_square() {
    let settings = |memory: &str| FitSettings {
        kernel: "linear".parse().unwrap(),
        primal: true,
        ..with(memory, OperatorChoice::Auto)
    };
    let plan = Plan::primal(&settings("2GiB"), sizes(1_000_000)).unwrap();
    assert!(plan.method == Method::Primal && plan.memory_bytes < 1 << 30, "{plan:?}");
    let coupled = Sizes { coupled: true, ..sizes(20_000) };
    let Err(Error::Memory { least, .. }) = Plan::primal(&settings("1MiB"), coupled) else {
        panic!("1 MiB is not enough")
    };
    assert!(Plan::primal(&settings(&least), coupled).is_ok(), "{least}");
}

#[test]
fn a_limit_too_small_names_one_that_works() {
    for operator in [OperatorChoice::Auto, OperatorChoice::Stored] {
        let Err(Error::Memory { least, .. }) = planned(&with("1MiB", operator), sizes(20_000))
        else {
            panic!("1 MiB is not enough")
        };
        assert!(planned(&with(&least, operator), sizes(20_000)).is_ok(), "{least}");
    }
}

/// A least limit that makes a fit slow says so, and names one that does not; so does a fit that
/// is given it.
#[test]
fn the_least_limit_says_how_slow_it_is() {
    let auto = |memory: &str| with(memory, OperatorChoice::Auto);
    let error = planned(&auto("1MiB"), sizes(20_000)).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("(the least takes up to 62 times the products that "), "{text}");
    let Error::Memory { least, speed, .. } = error else { panic!("1 MiB is not enough") };
    let quick = speed.split("products that ").nth(1).unwrap().split(' ').next().unwrap();
    let slow = planned(&auto(&least), sizes(20_000)).unwrap();
    // Limits are told in tenths of a mebibyte, which leaves room for a few rows more.
    let rank = slow.kernel().unwrap().max_rank;
    assert!((LEAST_RANK..LEAST_RANK + 8).contains(&rank), "{rank}");
    assert!(slow.summary().ends_with(&format!("(slow for want of memory; {quick} would do)")));
    let plan = planned(&auto(quick), sizes(20_000)).unwrap();
    assert_eq!(plan.kernel().unwrap().max_rank, NewtonSettings::partial_rank_for(20_000));
    assert!(!plan.summary().contains("slow"), "{}", plan.summary());
}

/// What a plain fit does not have is not shown as zero.
#[test]
fn a_plain_plan_is_no_kernel_plan_with_zeros() {
    let settings =
        FitSettings { kernel: "linear".parse().unwrap(), primal: true, ..FitSettings::default() };
    let plain = serde_json::to_value(Plan::primal(&settings, sizes(1000)).unwrap()).unwrap();
    assert_eq!(plain["method"], "primal");
    assert!(plain.get("max_rank").is_none() && plain.get("operator").is_none(), "{plain}");
    let settings = FitSettings::default();
    let kernel = serde_json::to_value(planned(&settings, sizes(1000)).unwrap()).unwrap();
    assert_eq!((&kernel["method"], &kernel["max_rank"]), (&"kernel".into(), &1000.into()));
}

#[test]
fn every_further_thread_is_counted() {
    let memory = |threads| {
        let settings = FitSettings { threads: Some(threads), ..FitSettings::default() };
        planned(&settings, sizes(1000)).unwrap().memory_bytes
    };
    assert_eq!(memory(1), memory(16));
    assert_eq!(memory(256) - memory(16), 240 * THREAD_BYTES);
}

#[test]
fn constraints_have_their_own_preconditioner_and_count() {
    let settings = |memory: &str| with(memory, OperatorChoice::Auto);
    let constrained =
        |n, rows: usize| Sizes { coupled: true, set_numbers: 3 * n * rows * 4, ..sizes(n) };
    // Nothing is factorised outright, and the rank is that of one system of all dimensions.
    let whole = planned(&settings("2GiB"), constrained(2000, 5)).unwrap();
    let plan = whole.kernel().unwrap();
    let own = NewtonSettings::default();
    assert_eq!(plan.max_rank, own.coupled_rank_for(2000, 3));
    assert_eq!(plan.precision, Precision::F32);
    // Every row of every set is paid for.
    let more = planned(&settings("2GiB"), constrained(2000, 6)).unwrap();
    assert_eq!(more.memory_bytes - whole.memory_bytes, 3 * 2000 * 4 * 8);
    // A tight limit takes a smaller rank, and one too tight is refused with one that works.
    let tight = planned(&settings("100MiB"), constrained(5000, 5)).unwrap();
    assert!(tight.memory_bytes <= tight.limit_bytes, "{tight:?}");
    assert!(tight.kernel().unwrap().max_rank < 800, "{tight:?}");
    for solver in [SolverKind::Newton, SolverKind::Sso] {
        let with = |memory: &str| FitSettings { solver, ..settings(memory) };
        let Err(Error::Memory { least, .. }) = planned(&with("1MiB"), constrained(5000, 5)) else {
            panic!("1 MiB is not enough")
        };
        assert!(planned(&with(&least), constrained(5000, 5)).is_ok(), "{least}");
    }
}
