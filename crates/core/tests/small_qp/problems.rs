//! Random problems of every awkward kind, each with what is known about it by construction.

use argwhy_core::qp::{Constraints, Metric};
use argwhy_core::random::stream;
use ndarray::Array2;
use rand::{Rng, RngExt};

pub const KINDS: [&str; 16] = [
    "general",
    "duplicated rows",
    "all rows through one vertex",
    "parallel pairs",
    "integers with ties",
    "one point",
    "equalities",
    "dependent equalities",
    "empty",
    "contradictory equalities",
    "nearly parallel rows",
    "rows that never bind",
    "box",
    "simplex",
    "cone",
    "many rows",
];

pub struct Problem {
    pub kind: usize,
    pub n: usize,
    pub metric: Metric,
    pub rows: Vec<f64>,
    pub limits: Vec<f64>,
    pub equalities: usize,
    pub g: Vec<f64>,
    pub empty: bool,
}

impl Problem {
    pub fn set(&self) -> Constraints<'_> {
        Constraints { rows: &self.rows, limits: &self.limits, equalities: self.equalities }
    }

    /// The unit lengths should be measured in: the largest limit, or g where all limits are zero.
    pub fn scale(&self) -> f64 {
        let largest =
            |v: &[f64]| v.iter().filter(|x| x.is_finite()).fold(0.0_f64, |m, x| m.max(x.abs()));
        [largest(&self.limits), largest(&self.g)].into_iter().find(|x| *x > 0.0).unwrap_or(1.0)
    }

    /// uᵀΘu.
    pub fn form(&self, u: &[f64]) -> f64 {
        let mut theta_u = vec![0.0; self.n];
        self.metric.apply(u, &mut theta_u);
        dot(&theta_u, u)
    }

    /// uᵀΘu − 2gᵀu.
    pub fn value(&self, u: &[f64]) -> f64 {
        self.form(u) - 2.0 * dot(&self.g, u)
    }

    pub fn new(index: usize) -> Self {
        let mut rng = stream(index as u64, "small qp");
        let rng = &mut rng;
        let kind = index % KINDS.len();
        let n = match rng.random_range(0..1000) {
            0 => rng.random_range(25..=64),
            1..100 => rng.random_range(9..=24),
            _ => rng.random_range(1..=8),
        };
        let metric = metric(n, rng);
        let integers = kind == 4;
        let at: Vec<f64> = (0..n)
            .map(|_| if integers { rng.random_range(-2..=2).into() } else { normal(rng) })
            .collect();
        let mut build = Build { n, at, rows: Vec::new(), limits: Vec::new(), equalities: 0 };
        let empty = build.fill(kind, rng);
        build.normalise();
        let exponent = if rng.random_bool(0.2) {
            rng.random_range(-12.0..12.0)
        } else {
            rng.random_range(-1.0..1.5)
        };
        let g = (0..n)
            .map(|_| {
                if integers {
                    rng.random_range(-4..=4).into()
                } else {
                    normal(rng) * 10.0_f64.powf(exponent)
                }
            })
            .collect();
        let Build { rows, limits, equalities, .. } = build;
        Self { kind, n, metric, rows: rows.concat(), limits, equalities, g, empty }
    }
}

pub fn normal(rng: &mut impl Rng) -> f64 {
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}

fn vector(n: usize, rng: &mut impl Rng) -> Vec<f64> {
    (0..n).map(|_| normal(rng)).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Half the time the identity, else with eigenvalues from 1 to as much as 10⁶.
fn metric(n: usize, rng: &mut impl Rng) -> Metric {
    if rng.random_bool(0.5) {
        return Metric::identity(n);
    }
    let mut theta = Array2::<f64>::eye(n);
    let spread = rng.random_range(0.0..6.0);
    for i in 0..n {
        let share = i as f64 / (n - 1).max(1) as f64;
        theta[[i, i]] = 10.0_f64.powf(spread * share);
    }
    for _ in 0..2 {
        let mut v = vector(n, rng);
        let length = dot(&v, &v).sqrt();
        v.iter_mut().for_each(|x| *x /= length);
        let mirror =
            Array2::from_shape_fn((n, n), |(i, j)| f64::from(u8::from(i == j)) - 2.0 * v[i] * v[j]);
        theta = mirror.dot(&theta).dot(&mirror);
    }
    let symmetric = (&theta + &theta.t()) / 2.0;
    Metric::new(symmetric.view()).unwrap()
}

struct Build {
    n: usize,
    /// A point of the set, where it has one.
    at: Vec<f64>,
    rows: Vec<Vec<f64>>,
    limits: Vec<f64>,
    equalities: usize,
}

impl Build {
    /// A row that leaves the known point `slack` room.
    fn push(&mut self, row: Vec<f64>, slack: f64) {
        self.limits.push(dot(&row, &self.at) + slack);
        self.rows.push(row);
    }

    fn general(&mut self, count: usize, rng: &mut impl Rng) {
        for _ in 0..count {
            let slack = rng.random_range(0.0..1.5);
            self.push(vector(self.n, rng), slack);
        }
    }

    /// Row number `i` turned around, leaving a strip of this width.
    fn opposite(&mut self, i: usize, width: f64) {
        let row = self.rows[i].iter().map(|a| -a).collect();
        self.limits.push(width - self.limits[i]);
        self.rows.push(row);
    }

    fn unit(&self, i: usize) -> Vec<f64> {
        (0..self.n).map(|j| f64::from(u8::from(i == j))).collect()
    }

    /// Adds the rows of `kind`; whether they contradict each other.
    fn fill(&mut self, kind: usize, rng: &mut impl Rng) -> bool {
        let n = self.n;
        let few = rng.random_range(0..=3 * n + 2);
        match kind {
            1 => self.duplicates(few, rng),
            2 => (0..few).for_each(|_| self.push(vector(n, rng), 0.0)),
            3 => self.strips(few / 2, rng),
            4 => self.integers(few, rng),
            5 => self.one_point(rng),
            6 => self.equality_rows(rng.random_range(1..=n), 0, few, rng),
            7 => self.equality_rows(rng.random_range(1..=n), 3, few, rng),
            8 => return self.contradict(few, rng),
            9 => return self.contradict_equalities(few, rng),
            10 => self.nearly_parallel(few, rng),
            11 => self.never_binding(few, rng),
            12 => self.limits_of_a_box(rng),
            13 => self.simplex(rng),
            14 => {
                self.at.fill(0.0);
                (0..few).for_each(|_| self.push(vector(n, rng), 0.0));
            }
            15 => self.general(6 * n + few, rng),
            _ => self.general(few, rng),
        }
        false
    }

    fn duplicates(&mut self, count: usize, rng: &mut impl Rng) {
        self.general(count.div_ceil(2), rng);
        for _ in 0..count / 2 {
            let i = rng.random_range(0..self.rows.len());
            // Another length rounds differently once normalised.
            let factor = if rng.random_bool(0.5) { 1.0 } else { rng.random_range(0.1..10.0) };
            self.rows.push(self.rows[i].iter().map(|a| a * factor).collect());
            self.limits.push(self.limits[i] * factor);
        }
    }

    fn strips(&mut self, pairs: usize, rng: &mut impl Rng) {
        for _ in 0..pairs {
            let slack = if rng.random_bool(0.5) { 0.0 } else { rng.random_range(0.0..1.0) };
            self.push(vector(self.n, rng), slack);
            let width = [0.0, 1e-9, 0.5][rng.random_range(0..3)];
            self.opposite(self.rows.len() - 1, slack + width);
        }
    }

    fn integers(&mut self, count: usize, rng: &mut impl Rng) {
        for _ in 0..count {
            let row = (0..self.n).map(|_| rng.random_range(-1..=1).into()).collect();
            let slack: i32 = rng.random_range(0..=2);
            self.push(row, slack.into());
        }
    }

    fn one_point(&mut self, rng: &mut impl Rng) {
        let axes = rng.random_bool(0.3);
        for i in 0..self.n {
            let row = if axes { self.unit(i) } else { vector(self.n, rng) };
            self.push(row, 0.0);
            self.opposite(2 * i, 0.0);
        }
        self.general(rng.random_range(0..=self.n), rng);
    }

    fn equality_rows(&mut self, count: usize, dependent: usize, more: usize, rng: &mut impl Rng) {
        for _ in 0..count {
            self.push(vector(self.n, rng), 0.0);
        }
        for _ in 0..dependent {
            let weights = vector(count, rng);
            let row: Vec<f64> = (0..self.n)
                .map(|j| weights.iter().zip(&self.rows).map(|(w, row)| w * row[j]).sum())
                .collect();
            self.push(row, 0.0);
        }
        self.equalities = self.rows.len();
        self.general(more, rng);
    }

    fn contradict(&mut self, more: usize, rng: &mut impl Rng) -> bool {
        self.general(more, rng);
        let involved = rng.random_range(1..=self.n);
        let mut last = vec![0.0; self.n];
        let mut limit = -10.0_f64.powf(rng.random_range(-6.0..1.0));
        for _ in 0..involved {
            let row = vector(self.n, rng);
            let weight = rng.random_range(0.1..1.0);
            last.iter_mut().zip(&row).for_each(|(last, a)| *last -= weight * a);
            self.push(row, 0.0);
            limit -= weight * self.limits[self.limits.len() - 1];
        }
        self.rows.push(last);
        self.limits.push(limit);
        true
    }

    fn contradict_equalities(&mut self, more: usize, rng: &mut impl Rng) -> bool {
        self.equality_rows(rng.random_range(1..=self.n), 1, more, rng);
        self.limits[self.equalities - 1] += if rng.random_bool(0.5) { 0.1 } else { -0.1 };
        true
    }

    fn nearly_parallel(&mut self, count: usize, rng: &mut impl Rng) {
        self.general(count.div_ceil(2), rng);
        for _ in 0..count / 2 {
            let i = rng.random_range(0..self.rows.len());
            let angle = 10.0_f64.powf(rng.random_range(-14.0..-2.0));
            let sign = if rng.random_bool(0.3) { -1.0 } else { 1.0 };
            let row = self.rows[i].iter().map(|a| sign * a + angle * normal(rng)).collect();
            let slack = self.limits[i] - dot(&self.rows[i], &self.at);
            self.push(row, slack * if rng.random_bool(0.5) { 1.0 } else { 0.9 });
        }
    }

    fn never_binding(&mut self, count: usize, rng: &mut impl Rng) {
        self.general(count, rng);
        for i in 0..count {
            if rng.random_bool(0.3) {
                self.limits[i] = f64::INFINITY;
            } else if rng.random_bool(0.2) {
                self.rows[i].fill(0.0);
                self.limits[i] = [0.0, 1.0][rng.random_range(0..2)];
            }
        }
    }

    fn limits_of_a_box(&mut self, rng: &mut impl Rng) {
        for i in 0..self.n {
            let (row, slack) = (self.unit(i), rng.random_range(0.0..1.0));
            self.push(row, slack);
            let width = if rng.random_bool(0.1) { 0.0 } else { rng.random_range(0.0..1.0) };
            self.opposite(2 * i, slack + width);
        }
    }

    fn simplex(&mut self, rng: &mut impl Rng) {
        self.at.fill(1.0 / self.n as f64);
        self.push(vec![1.0; self.n], 0.0);
        self.equalities = rng.random_range(0..=1);
        for i in 0..self.n {
            self.rows.push(self.unit(i).iter().map(|a| -a).collect());
            self.limits.push(0.0);
        }
    }

    fn normalise(&mut self) {
        for (row, limit) in self.rows.iter_mut().zip(&mut self.limits) {
            let length = dot(row, row).sqrt();
            if length > 0.0 {
                row.iter_mut().for_each(|a| *a /= length);
                *limit /= length;
            } else {
                *limit = limit.max(0.0);
            }
        }
    }
}
