use super::*;
use crate::kernel::Kernel;
use crate::operator::{HostOperator, OperatorKind, Precision};

fn wave(rows: usize, columns: usize, phase: f64) -> Array2<f64> {
    Array2::from_shape_fn((rows, columns), |(i, j)| ((i * 7 + j * 3) as f64 + phase).sin())
}

fn worst(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    (a - b).iter().fold(0.0, |m: f64, x| m.max(x.abs()))
}

/// Every way through the operator carries the whole kernel.
#[test]
fn a_trend_is_in_every_product_row_and_block() {
    let (n, d) = (700, 5);
    let features = wave(n, d, 0.3);
    let affine = Kernel::Polynomial { degree: 1, gamma: 0.4, offset: 1.5 };
    let kernel = Kernel::Sum { terms: vec![Kernel::Matern52 { gamma: 0.2 }, affine] };
    let row = |i: usize| features.row(i).to_vec();
    let gram = Array2::from_shape_fn((n, n), |(i, j)| kernel.evaluate(&row(i), &row(j)));
    let (rest, trend) = kernel.split_trend().unwrap();
    for (precision, tol) in [(Precision::F64, 1e-11), (Precision::F32, 1e-3)] {
        let kind = OperatorKind::Stored;
        let host = HostOperator::new(features.view(), rest.clone(), precision, kind).unwrap();
        let operator = Trended::new(Box::new(host), trend.clone(), features.view());
        assert_eq!(operator.is_exact(), precision == Precision::F64);
        let v = wave(2, n, 1.0);
        let expected = v.dot(&gram);
        let mut out = Array2::zeros(v.dim());
        operator.apply(v.view(), out.view_mut()).unwrap();
        assert!(worst(&out, &expected) < tol);
        operator.exact().apply(v.view(), out.view_mut()).unwrap();
        let r = operator.rounding().unwrap();
        for ((c, i), found) in out.indexed_iter() {
            let bound: f64 = (0..n).map(|j| r[i] * r[j] * v[[c, j]].abs()).sum();
            assert!((found - expected[[c, i]]).abs() <= bound && bound < 1e-9);
        }
        let samples = [7, 600, 3];
        let (mut rows, mut block) = (vec![0.0; 3 * 30], vec![0.0; 9]);
        operator.rows_into(&samples, 20..50, &mut rows).unwrap();
        operator.block_into(&samples, &mut block).unwrap();
        for (a, &i) in samples.iter().enumerate() {
            assert!((0..30).all(|c| (rows[a * 30 + c] - gram[[i, 20 + c]]).abs() < tol));
            assert!((0..3).all(|b| (block[a * 3 + b] - gram[[i, samples[b]]]).abs() < tol));
            assert!((operator.diagonal().unwrap()[i] - gram[[i, i]]).abs() < tol);
        }
        let part = v.select(Axis(1), &samples);
        let mut added = Array2::zeros((2, n));
        operator.add_columns(&samples, part.view(), added.view_mut()).unwrap();
        assert!(worst(&added, &part.dot(&gram.select(Axis(0), &samples))) < tol);
        let first = v.slice(ndarray::s![.., ..650]);
        let mut at = Array2::zeros((2, 40));
        operator.apply_at(655..695, first, at.view_mut()).unwrap();
        let few = gram.slice(ndarray::s![..650, 655..695]);
        assert!(worst(&at, &first.dot(&few)) < tol);
        let restricted = operator.restrict(&samples).unwrap();
        let mut small = Array2::zeros((2, 3));
        restricted.exact().apply(part.view(), small.view_mut()).unwrap();
        let inner = gram.select(Axis(0), &samples).select(Axis(1), &samples);
        assert!(worst(&small, &part.dot(&inner)) < 1e-12);
    }
}

/// Another machine's factor, of dense numbers here.
struct Dense {
    rest: Array2<f64>,
    /// Rows that no pivot brought, of another part of the matrix.
    n_beside: usize,
    rows: Arc<std::sync::Mutex<Vec<Vec<f64>>>>,
}

impl RemoteFactor for Dense {
    fn rank(&self) -> usize {
        self.rows.lock().unwrap().len()
    }

    fn n_proposals(&self) -> usize {
        16
    }

    fn gather(&self, samples: &[usize]) -> Result<Vec<f64>, Error> {
        let rows = self.rows.lock().unwrap();
        Ok(rows.iter().flat_map(|row| samples.iter().map(|&i| row[i])).collect())
    }

    fn append(
        &mut self,
        pivots: &[usize],
        triangle: &[f64],
        diagonal: &mut [f64],
        floor: &[f64],
    ) -> Result<(), Error> {
        let (m, mut rows) = (pivots.len(), self.rows.lock().unwrap());
        let known = rows.len();
        for (a, &pivot) in pivots.iter().enumerate() {
            let mut row = self.rest.row(pivot).to_vec();
            for (r, old) in rows.iter().enumerate().skip(self.n_beside) {
                let factor = if r < known { old[pivot] } else { triangle[(r - known) * m + a] };
                row.iter_mut().zip(old).for_each(|(v, b)| *v -= factor * b);
            }
            row.iter_mut().for_each(|v| *v /= triangle[a * m + a]);
            diagonal.iter_mut().zip(&row).for_each(|(d, b)| *d = (*d - b * b).max(0.0));
            rows.push(row);
        }
        diagonal.iter_mut().zip(floor).for_each(|(d, f)| *d = if *d < *f { 0.0 } else { *d });
        pivots.iter().for_each(|&pivot| diagonal[pivot] = 0.0);
        Ok(())
    }

    fn append_row(&mut self, row: &[f64]) -> Result<(), Error> {
        // As another machine would: in f32.
        let row = row.iter().map(|v| f64::from(*v as f32)).collect();
        self.rows.lock().unwrap().push(row);
        self.n_beside += 1;
        Ok(())
    }

    fn update(&mut self, _: ArrayView2<'_, bool>, _: f64) -> Result<(), Error> {
        Ok(())
    }

    fn apply(
        &self,
        _: &[usize],
        _: ArrayView2<'_, f64>,
        _: ArrayViewMut2<'_, f64>,
    ) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn a_remote_factor_of_the_rest_becomes_one_of_the_sum() {
    use crate::precond::{LowRank, RankLimits};
    let (n, d) = (120, 3);
    let features = wave(n, d, 0.3) * 2.0;
    let affine = Kernel::Polynomial { degree: 1, gamma: 0.4, offset: 1.5 };
    let kernel = Kernel::Sum { terms: vec![Kernel::Rbf { gamma: 0.2 }, affine] };
    let row = |i: usize| features.row(i).to_vec();
    let roots: Vec<f64> = (0..n).map(|i| 1.0 + (i % 3) as f64).collect();
    let gram = |kernel: &Kernel| {
        let value = |i, j| kernel.evaluate(&row(i), &row(j)) * roots[i] * roots[j];
        Array2::from_shape_fn((n, n), |(i, j)| value(i, j))
    };
    let (rest, trend) = kernel.split_trend().unwrap();
    let exact = (Precision::F64, OperatorKind::Stored);
    let host = HostOperator::new(features.view(), rest.clone(), exact.0, exact.1).unwrap();
    let operator = Trended::new(Box::new(host), trend, features.view());
    let rows = Arc::new(std::sync::Mutex::new(Vec::new()));
    let inner = Box::new(Dense { rest: gram(&rest), n_beside: 0, rows: Arc::clone(&rows) });
    let trend = Arc::clone(&operator.trend);
    let place = TrendedFactor::new(inner, trend, Some(roots.clone())).unwrap();
    let first = rows.lock().unwrap().clone();
    assert_eq!(first.len(), d + 1, "the trend's rows come before all pivots'");
    let own = place.gather(&[7]).unwrap();
    assert_eq!(own, (0..=d).map(|r| place.entry(r, 7)).collect::<Vec<_>>());
    let weighted = crate::operator::Weighted::new(&operator, Some(&roots));
    let limits = RankLimits { max_rank: n, enough_trace: 1e-6 };
    let mut rng = crate::random::stream(0, "pivots");
    let factor =
        LowRank::build_there(&weighted, Box::new(place), limits, &mut rng, || true).unwrap();
    let mut factor = factor.into_rows().ok().unwrap();
    let rank = factor.rank();
    assert!(rank < n, "{rank}");
    factor.update(Array2::from_elem((1, n), true).view(), 1.0).unwrap();
    assert_eq!((factor.rank(), rows.lock().unwrap().len()), (rank, rank));
    let mut product = Array2::<f64>::zeros((n, n));
    for b in rows.lock().unwrap().iter() {
        product += &Array2::from_shape_fn((n, n), |(i, j)| b[i] * b[j]);
    }
    assert!(worst(&product, &gram(&kernel)) < 1e-3);
    assert_eq!(factor.gather(&[3, 5]).unwrap().len(), 2 * rank);
}
