//! `argwhy bench`: how fast a model decides on this machine.

use super::{Rows, Wanted, load_rows, on_threads, print, print_json};
use crate::End;
use crate::args::BenchArgs;
use crate::error::CliError;
use argwhy::core::decision_set::SampleSets;
use argwhy::io::DataRequest;
use argwhy::{Model, Predictor};
use ndarray::{Array2, Axis};
use serde::Serialize;
use std::time::Instant;

const SINGLE: usize = 5000;
const WARM_UP: usize = 500;
const BATCH: usize = 10_000;
const BATCH_RUNS: usize = 5;

#[derive(Serialize)]
struct Speed {
    n_support: usize,
    feature_dim: usize,
    single_us_p50: f64,
    single_us_p90: f64,
    single_us_p99: f64,
    single_us_max: f64,
    batch: usize,
    batch_us_core: f64,
    batch_per_second: f64,
    threads: usize,
    isa: &'static str,
}

/// Signals like those of the training data: support signals in turn, or zeros where there is no
/// support.
fn signals(model: &Model, n: usize) -> Array2<f64> {
    let signals = model.support().map(|support| &support.signals);
    let support = signals.filter(|signals| signals.nrows() > 0);
    Array2::from_shape_fn((n, model.features.signal_dim()), |(i, j)| {
        support.map_or(0.0, |signals| signals[[i * STRIDE % signals.nrows(), j]])
    })
}

/// `n` rows of data in turn, with their sets.
fn in_turn(rows: &Rows, sets: &SampleSets, n: usize) -> (Array2<f64>, SampleSets) {
    let n_rows = rows.signals.nrows();
    let picked: Vec<usize> = (0..n).map(|i| i % n_rows * STRIDE % n_rows).collect();
    (rows.signals.select(Axis(0), &picked), sets.select(&picked))
}

/// Far from one question to the next, so that nothing is left in a cache by chance.
const STRIDE: usize = 7919;

pub fn run(args: &BenchArgs) -> Result<End, CliError> {
    let stored = argwhy::load_model(&args.model)?;
    let model = &stored.model;
    let predictor = Predictor::new(model)?;
    let rows = match &args.data {
        Some(data) => {
            let request = DataRequest { signals: args.signals.clone(), ..DataRequest::default() };
            let wanted = Wanted::of(request, &args.sets);
            Some(load_rows(data, &wanted, (&stored, &predictor), false)?)
        }
        None if args.sets.matrix.is_some() || args.sets.matrix_eq.is_some() => {
            return Err(CliError::Usage("--matrix needs DATA to go with".to_owned()));
        }
        None if predictor.is_constrained() => {
            return Err(CliError::Usage(
                "the model was fitted with constraints, so a decision needs its own: give DATA \
                 with M, W, …"
                    .to_owned(),
            ));
        }
        None => None,
    };
    let sets = rows.as_ref().map(|rows| rows.sets(&predictor)).transpose()?;
    let questions = |n: usize| -> Result<(Array2<f64>, SampleSets), CliError> {
        match rows.as_ref().zip(sets.as_ref()) {
            Some((rows, sets)) => Ok(in_turn(rows, sets, n)),
            None => Ok((signals(model, n), predictor.sets(None, n)?)),
        }
    };

    let (single, single_sets) = questions(SINGLE + WARM_UP)?;
    let mut scratch = predictor.scratch();
    let mut decision = vec![0.0; predictor.decision_dim()];
    let mut micros = Vec::with_capacity(SINGLE);
    for (i, signal) in single.rows().into_iter().enumerate() {
        let signal = signal.to_vec();
        let start = Instant::now();
        predictor.decide_one(&signal, Some((&single_sets, i)), &mut scratch, &mut decision)?;
        if i >= WARM_UP {
            micros.push(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    micros.sort_unstable_by(f64::total_cmp);
    let percentile = |p: usize| micros[(micros.len() - 1) * p / 100];

    let (batch, batch_sets) = questions(BATCH)?;
    // On one core, so that the time is core time; the rate is then measured on all of them.
    let mut best = [f64::INFINITY; 2];
    for _ in 0..BATCH_RUNS {
        for (threads, best) in [Some(1), None].into_iter().zip(&mut best) {
            let elapsed = on_threads(threads, || {
                let start = Instant::now();
                predictor
                    .desired(batch.view())
                    .and_then(|desired| predictor.decide(desired.view(), &batch_sets))
                    .map(|_| start.elapsed().as_secs_f64())
            })??;
            *best = best.min(elapsed);
        }
    }
    let speed = Speed {
        n_support: model.n_support(),
        feature_dim: model.features.n_features(),
        single_us_p50: percentile(50),
        single_us_p90: percentile(90),
        single_us_p99: percentile(99),
        single_us_max: percentile(100),
        batch: BATCH,
        batch_us_core: best[0] * 1e6 / BATCH as f64,
        batch_per_second: BATCH as f64 / best[1],
        threads: argwhy::machine::n_cores(),
        isa: argwhy::core::linalg::simd::Isa::detect().name(),
    };
    if args.json {
        print_json(&speed)?;
    } else {
        let kind = match model.feature_weights() {
            Some(weights) => {
                format!("{} × {} weights", weights.values.nrows(), weights.values.ncols())
            }
            None => format!("{} support points", speed.n_support),
        };
        print(&format!(
            "{kind}, {} features, {} on {} threads\n\
             one decision        {:.1} µs median, {:.1} p90, {:.1} p99, {:.1} largest of {SINGLE}\n\
             {} at once       {:.2} µs of one core each, {:.0} a second on all cores\n",
            speed.feature_dim,
            speed.isa,
            speed.threads,
            speed.single_us_p50,
            speed.single_us_p90,
            speed.single_us_p99,
            speed.single_us_max,
            speed.batch,
            speed.batch_us_core,
            speed.batch_per_second,
        ))?;
    }
    Ok(End::Done)
}
