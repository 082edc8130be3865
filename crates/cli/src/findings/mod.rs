//! What demos and ablations found: `commands` fills these records, `pages` and tables tell them.
//! Neither knows the other.

pub mod ablation;
pub mod charging;
pub mod quadrotor;
pub mod tuning;

/// Zero where there is nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Pearson's correlation; zero where one side is constant.
pub fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let (ma, mb) = (mean(a), mean(b));
    let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
        a.iter().zip(b).map(|(a, b)| f(a - ma, b - mb)).sum()
    };
    let size = (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt();
    if size > 0.0 { sum(&|a, b| a * b) / size } else { 0.0 }
}
