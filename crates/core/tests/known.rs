//! Problems whose optimum CVXPY found on the full semidefinite program: a folder each, with
//! `problem.json` and `answer.json`, beside the script that made them.

use argwhy_core::dataset::ConstraintArrays;
use argwhy_core::decision_set::{BoxLimits, RowLabel, SampleSets};
use argwhy_core::operator::{HostOperator, OperatorKind, Precision};
use argwhy_core::problem::Problem;
use argwhy_core::qp::Metric;
use argwhy_core::{Constraints, Kernel};
use ndarray::{Array1, Array2, Array3, Axis};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::path::{Path, PathBuf};

/// A problem and what the oracle says of it.
pub struct Known<Answer> {
    pub given: Given,
    pub answer: Answer,
}

/// All problems of the folder `tests/{name}`, by name; `at_least` so many must be there.
pub fn load<Answer: DeserializeOwned>(name: &str, at_least: usize) -> Vec<Known<Answer>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name);
    let mut folders: Vec<PathBuf> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("problem.json").exists())
        .collect();
    folders.sort();
    assert!(folders.len() >= at_least, "only {} known optima", folders.len());
    folders
        .iter()
        .map(|folder| Known {
            given: read(&folder.join("problem.json")),
            answer: read(&folder.join("answer.json")),
        })
        .collect()
}

/// A JSON file.
pub fn read<T: DeserializeOwned>(path: &Path) -> T {
    let text = fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Every way to hold K.
pub const WAYS: [(Precision, OperatorKind); 4] = [
    (Precision::F64, OperatorKind::Stored),
    (Precision::F64, OperatorKind::Tiled),
    (Precision::F32, OperatorKind::Stored),
    (Precision::F32, OperatorKind::Tiled),
];

pub type Row = Vec<Option<f64>>;

/// For all samples, or one a sample.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub enum Limits {
    Shared(Row),
    Own(Vec<Row>),
}

#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub enum Rows {
    Own(Vec<Vec<Vec<f64>>>),
    Shared(Vec<Vec<f64>>),
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Given {
    pub name: String,
    pub kernel: Kernel,
    pub regularization: f64,
    #[serde(default)]
    pub lower: Option<Limits>,
    #[serde(default)]
    pub upper: Option<Limits>,
    #[serde(default)]
    pub matrix: Option<Rows>,
    #[serde(default)]
    pub bound: Option<Limits>,
    #[serde(default)]
    pub equal_matrix: Option<Rows>,
    #[serde(default)]
    pub equal_bound: Option<Limits>,
    #[serde(default)]
    pub weights: Option<Vec<f64>>,
    #[serde(default)]
    pub theta_uu: Option<Vec<Vec<f64>>>,
    pub features: Vec<Vec<f64>>,
    pub decisions: Vec<Vec<f64>>,
}

pub fn array2(rows: &[Vec<f64>]) -> Array2<f64> {
    Array2::from_shape_fn((rows.len(), rows[0].len()), |(i, j)| rows[i][j])
}

impl Limits {
    /// As an array with a first axis of samples, one where all share it.
    pub fn array(&self, none: f64) -> Array2<f64> {
        let rows = match self {
            Self::Shared(row) => std::slice::from_ref(row),
            Self::Own(rows) => rows,
        };
        Array2::from_shape_fn((rows.len(), rows[0].len()), |(i, j)| rows[i][j].unwrap_or(none))
    }

    pub fn select(&self, samples: &[usize]) -> Self {
        match self {
            Self::Shared(_) => self.clone(),
            Self::Own(rows) => Self::Own(samples.iter().map(|&i| rows[i].clone()).collect()),
        }
    }
}

impl Rows {
    pub fn array(&self) -> Array3<f64> {
        match self {
            Self::Shared(rows) => array2(rows).insert_axis(Axis(0)),
            Self::Own(sets) => {
                let shape = (sets.len(), sets[0].len(), sets[0][0].len());
                Array3::from_shape_fn(shape, |(i, r, j)| sets[i][r][j])
            }
        }
    }

    pub fn select(&self, samples: &[usize]) -> Self {
        match self {
            Self::Shared(_) => self.clone(),
            Self::Own(sets) => Self::Own(samples.iter().map(|&i| sets[i].clone()).collect()),
        }
    }
}

impl Given {
    pub fn n(&self) -> usize {
        self.decisions[0].len()
    }

    pub fn theta(&self) -> Array2<f64> {
        self.theta_uu.as_ref().map_or_else(|| Array2::eye(self.n()), |theta| array2(theta))
    }

    pub fn weight(&self, i: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |w| w[i])
    }

    pub fn constraints(&self) -> Constraints {
        let rows = |rows: &Option<Rows>| rows.as_ref().map(|rows| rows.array().into_dyn());
        let limits = |limits: &Option<Limits>, none: f64| {
            limits.as_ref().map(|limits| limits.array(none).into_dyn())
        };
        Constraints::from_arrays(ConstraintArrays {
            matrix: rows(&self.matrix),
            bound: limits(&self.bound, f64::INFINITY),
            equal_matrix: rows(&self.equal_matrix),
            equal_bound: limits(&self.equal_bound, f64::NAN),
            lower: limits(&self.lower, f64::NEG_INFINITY),
            upper: limits(&self.upper, f64::INFINITY),
        })
        .unwrap()
    }

    pub fn sets(&self) -> SampleSets {
        let constraints = self.constraints();
        let n_samples = self.decisions.len();
        SampleSets::new(&BoxLimits::none(self.n()), Some(&constraints), n_samples, |i| i).unwrap()
    }

    pub fn problem(&self) -> Problem {
        let decisions = array2(&self.decisions);
        let problem = Problem::new(decisions.view(), self.sets(), self.regularization).unwrap();
        let problem = problem.with_theta(Metric::new(self.theta().view()).unwrap());
        match &self.weights {
            None => problem,
            Some(weights) => problem.with_weights(weights).unwrap(),
        }
    }

    pub fn operator(&self, precision: Precision, kind: OperatorKind) -> HostOperator {
        let features = array2(&self.features);
        HostOperator::new(features.view(), self.kernel.clone(), precision, kind).unwrap()
    }

    /// The samples in another order.
    pub fn permuted(&self, order: &[usize]) -> Self {
        let pick = |rows: &[Vec<f64>]| order.iter().map(|&i| rows[i].clone()).collect();
        let limits = |l: &Option<Limits>| l.as_ref().map(|l| l.select(order));
        let rows = |r: &Option<Rows>| r.as_ref().map(|r| r.select(order));
        Self {
            features: pick(&self.features),
            decisions: pick(&self.decisions),
            weights: self.weights.as_ref().map(|w| order.iter().map(|&i| w[i]).collect()),
            lower: limits(&self.lower),
            upper: limits(&self.upper),
            matrix: rows(&self.matrix),
            bound: limits(&self.bound),
            equal_matrix: rows(&self.equal_matrix),
            equal_bound: limits(&self.equal_bound),
            ..self.clone()
        }
    }

    /// A limit's row and bound as the data wrote it.
    pub fn limit(&self, i: usize, label: RowLabel) -> (Array1<f64>, f64) {
        let at = |length: usize| if length == 1 { 0 } else { i };
        let row = |rows: &Option<Rows>, bounds: &Option<Limits>, r: u32| {
            let (rows, bounds) = (rows.as_ref().unwrap().array(), bounds.as_ref().unwrap());
            let bounds = bounds.array(f64::INFINITY);
            let found = rows.index_axis(Axis(0), at(rows.shape()[0])).row(r as usize).to_owned();
            (found, bounds[[at(bounds.nrows()), r as usize]])
        };
        let side = |limits: &Option<Limits>, j: u32, sign: f64| {
            let limits = limits.as_ref().unwrap().array(f64::NAN);
            let mut row = Array1::zeros(self.n());
            row[j as usize] = sign;
            (row, sign * limits[[at(limits.nrows()), j as usize]])
        };
        match label {
            RowLabel::Equality(r) => row(&self.equal_matrix, &self.equal_bound, r),
            RowLabel::Inequality(r) => row(&self.matrix, &self.bound, r),
            RowLabel::Lower(j) => side(&self.lower, j, -1.0),
            RowLabel::Upper(j) => side(&self.upper, j, 1.0),
        }
    }
}
