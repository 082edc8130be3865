//! The exact minimum of P along a direction, one dimension of a box at a time.
//!
//! P'(t) ∝ f(t) = ⟨Kd, λ(α + td) − û + Π(g + tKd)⟩ is increasing and piecewise linear in t; its root lies in
//! [a/(λb + ‖Kd‖²), a/(λb)] with a = ⟨Kd, r⟩ = −f(0) and b = ⟨Kd, d⟩. Newton's method on f, kept inside the bracket,
//! ends after a few passes over the samples.

/// One dimension's vectors, all of length n_samples.
pub(crate) struct Line<'a> {
    pub(crate) decisions: &'a [f64],
    pub(crate) coefficients: &'a [f64],
    pub(crate) desired: &'a [f64],
    pub(crate) direction: &'a [f64],
    pub(crate) kernel_direction: &'a [f64],
    pub(crate) lower: f64,
    pub(crate) upper: f64,
    pub(crate) ridge: f64,
}

/// What the line looks like at its start.
pub(crate) enum Step {
    /// The minimiser.
    At(f64),
    /// The direction does not descend.
    Uphill,
}

impl Line<'_> {
    /// f(t) and its slope to the right.
    fn slope(&self, t: f64) -> (f64, f64) {
        let (mut value, mut slope) = (0.0, 0.0);
        for i in 0..self.decisions.len() {
            let kd = self.kernel_direction[i];
            let g = self.desired[i] + t * kd;
            let x = g.clamp(self.lower, self.upper);
            let alpha = self.coefficients[i] + t * self.direction[i];
            value += kd * (self.ridge * alpha - self.decisions[i] + x);
            slope += kd * self.ridge * self.direction[i];
            if x == g {
                slope += kd * kd;
            }
        }
        (value, slope)
    }

    /// The exact step.
    pub(crate) fn search(&self) -> Step {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let curvature = dot(self.kernel_direction, self.direction);
        let image = dot(self.kernel_direction, self.kernel_direction);
        let start = -self.slope(0.0).0;
        let rounding = 1e-14 * (image * dot(self.decisions, self.decisions)).sqrt();
        if start.abs() <= rounding || image == 0.0 {
            // Kd is zero to rounding: P is flat along d, while the residual still asks for the full step.
            return Step::At(1.0);
        }
        if start < 0.0 || curvature < 0.0 {
            return Step::Uphill;
        }
        let mut low = start / (self.ridge * curvature + image);
        let mut high = start / (self.ridge * curvature);
        let mut t = 1.0_f64.clamp(low, high);
        for _ in 0..60 {
            let (value, slope) = self.slope(t);
            if value.abs() <= 1e-12 * start {
                break;
            }
            if value < 0.0 {
                low = t;
            } else {
                high = t;
            }
            let next = t - value / slope;
            let inside = low < next && next < high;
            let next = if inside { next } else { 0.5 * (low + high) };
            if next == t || !next.is_finite() {
                break;
            }
            t = next;
        }
        Step::At(t)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_slope_vanishes_at_the_step(seed in 0.0..100.0_f64, n in 1_usize..60, ridge in 1e-3..1.0_f64) {
            // K = diagonal, so Kd is easy to make consistent.
            let wave = |phase: f64| -> Vec<f64> {
                (0..n).map(|i| (i as f64 * 1.7 + phase).sin()).collect()
            };
            let diagonal: Vec<f64> = (0..n).map(|i| 0.1 + (i % 7) as f64).collect();
            let times = |v: &[f64]| -> Vec<f64> {
                v.iter().zip(&diagonal).map(|(v, k)| v * k).collect()
            };
            let (decisions, coefficients) = (wave(seed), wave(seed + 1.0));
            let desired = times(&coefficients);
            let direction: Vec<f64> = (0..n)
                .map(|i| decisions[i] - desired[i].clamp(-0.5, 0.5) - ridge * coefficients[i])
                .collect();
            let kernel_direction = times(&direction);
            let line = Line {
                decisions: &decisions, coefficients: &coefficients, desired: &desired,
                direction: &direction, kernel_direction: &kernel_direction,
                lower: -0.5, upper: 0.5, ridge,
            };
            let Step::At(t) = line.search() else { panic!("the residual always descends") };
            let start = line.slope(0.0).0.abs();
            prop_assert!(line.slope(t).0.abs() <= 1e-9 * start, "t = {t}");
        }
    }
}
