//! Factors of K + λI and of its free parts, against solutions written out.

use super::*;
use crate::kernel::Kernel;
use crate::operator::{HostOperator, OperatorKind, Precision};

type Rule = fn(usize) -> bool;

#[test]
fn inverts_the_matrix_of_the_free_samples_as_they_change() {
    let n = 300;
    let features = Array2::from_shape_fn((n, 2), |(i, j)| ((i * (j + 2)) as f64 * 0.37).sin());
    let kernel = Kernel::Rbf { gamma: 2.0 };
    // None bound, a few, others, more than a quarter, all.
    let rules: [[Rule; 3]; 5] = [
        [|_| true, |_| true, |_| true],
        [|i| i % 7 > 0, |i| i > 3, |_| true],
        [|i| i % 7 > 1, |i| i > 3, |i| i % 31 > 0],
        [|i| i % 3 > 0, |i| i > 200, |i| i % 31 > 0],
        [|i| i % 9 > 0, |_| false, |_| true],
    ];
    for kind in [OperatorKind::Stored, OperatorKind::Tiled] {
        let operator =
            HostOperator::new(features.view(), kernel.clone(), Precision::F64, kind).unwrap();
        let ridge = 0.01;
        let mut direct = Direct::new(&operator, ridge, 3).unwrap();
        for rule in rules {
            let free = Array2::from_shape_fn((3, n), |(j, i)| rule[j](i));
            direct.update(&Faces::Box(free.clone())).unwrap();
            let w = Array2::from_shape_fn((3, n), |(j, i)| {
                if free[[j, i]] { ((i + j) as f64).sin() } else { 0.0 }
            });
            let mut v = Array2::zeros((3, n));
            operator.apply(w.view(), v.view_mut()).unwrap();
            let image = v.clone();
            v.scaled_add(ridge, &w);
            v.zip_mut_with(&free, |v, free| *v = if *free { *v } else { 0.0 });
            let mut out = Array2::zeros((3, n));
            direct.apply(&[0, 1, 2], v.view(), out.view_mut()).unwrap();
            let worst = (&out - &w).iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            assert!(worst < 1e-10, "{worst:e}");
            // Without a product, where no dimension is factorised on its own.
            let own = free.rows().into_iter().any(|f| f.iter().filter(|f| !**f).count() > n / 4);
            let solved = direct.solve(ridge, &v);
            assert_eq!(solved.is_none(), own);
            if let Some((found, product)) = solved {
                assert!((&found - &w).iter().all(|d| d.abs() < 1e-10));
                assert!((&product - &image).iter().all(|d| d.abs() < 1e-10));
            }
            assert!(direct.solve(2.0 * ridge, &v).is_none());
            // A choice of dimensions, in another order.
            let mut some = Array2::zeros((2, n));
            let picked = v.select(ndarray::Axis(0), &[2, 1]);
            direct.apply(&[2, 1], picked.view(), some.view_mut()).unwrap();
            let expected = out.select(ndarray::Axis(0), &[2, 1]);
            assert!((&some - &expected).iter().all(|d| d.abs() < 1e-10));
        }
    }
}

#[test]
fn a_singular_matrix_gets_a_larger_shift() {
    let features = Array2::from_elem((60, 2), 0.5);
    let operator =
        HostOperator::new(features.view(), Kernel::Linear, Precision::F64, OperatorKind::Tiled)
            .unwrap();
    let direct = Direct::new(&operator, 0.0, 1).unwrap();
    assert!(direct.indefinite() && direct.factor.iter().all(|l| l.is_finite()));
}
