use super::*;
use ndarray::{array, s};

#[test]
fn weights_count_rows() {
    let signals = array![[1.0, 2.0], [3.0, -1.0], [0.5, 9.0]];
    let repeated = signals.select(ndarray::Axis(0), &[1, 2, 1, 1]);
    let settings = FeatureSettings { expansion: Expansion::Poly2, ..FeatureSettings::default() };
    let weighted =
        FeatureMap::fit_weighted(settings, signals.view(), Some(&[0.0, 3.0, 1.0])).unwrap();
    let plain = FeatureMap::fit(settings, repeated.view()).unwrap();
    for (a, b) in weighted.mean.iter().zip(&plain.mean) {
        assert!((a - b).abs() < 1e-13 * b.abs().max(1.0), "{a} {b}");
    }
    for (a, b) in weighted.inverse_scale.iter().zip(&plain.inverse_scale) {
        assert!((a - b).abs() < 1e-13 * b.abs(), "{a} {b}");
    }
}

#[test]
fn expands_in_the_order_constant_linear_quadratic() {
    let settings = FeatureSettings {
        expansion: Expansion::Poly2,
        normalization: Normalization::None,
        ..FeatureSettings::default()
    };
    let map = FeatureMap::fit(settings, array![[2.0, 3.0]].view()).unwrap();
    let z = map.transform(array![[2.0, 3.0]].view()).unwrap();
    assert_eq!(z, array![[1.0, 2.0, 3.0, 4.0, 6.0, 9.0]]);
    assert_eq!(map.names(), ["1", "s0", "s1", "s0*s0", "s0*s1", "s1*s1"]);
    assert_eq!(Expansion::Raw.names(2), ["s0", "s1"]);
}

#[test]
fn scores_have_mean_zero_and_deviation_one_and_constants_vanish() {
    let signals =
        Array2::from_shape_fn((50, 3), |(i, j)| if j == 2 { 7.0 } else { (i * (j + 1)) as f64 });
    let map = FeatureMap::fit(
        FeatureSettings { expansion: Expansion::Poly2, ..FeatureSettings::default() },
        signals.view(),
    )
    .unwrap();
    let z = map.transform(signals.view()).unwrap();
    for (k, column) in z.columns().into_iter().enumerate() {
        let mean = column.sum() / 50.0;
        let variance = column.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / 50.0;
        assert!(mean.abs() < 1e-12);
        let constant = [0, 3, 9].contains(&k);
        assert!(if constant { variance < 1e-12 } else { (variance - 1.0).abs() < 1e-6 });
    }
}

#[test]
fn statistics_are_right_where_the_rows_looked_at_first_say_nothing() {
    // Every fourth row, all that is looked at first, is 0; the others are a million and hardly
    // vary.
    let n = 4 * ROWS;
    let signals =
        Array2::from_shape_fn(
            (n, 1),
            |(i, _)| {
                if i % 4 == 0 { 0.0 } else { 1e6 + (i as f64 * 0.7).sin() }
            },
        );
    for signals in [signals.view(), signals.slice(s![1..;2, ..])] {
        let raw = FeatureSettings { expansion: Expansion::Raw, ..FeatureSettings::default() };
        let map = FeatureMap::fit(raw, signals).unwrap();
        let n = signals.nrows() as f64;
        let mean = signals.sum() / n;
        let deviation = (signals.mapv(|s| (s - mean) * (s - mean)).sum() / n).sqrt();
        assert!((map.mean[0] / mean - 1.0).abs() < 1e-14);
        assert!((map.inverse_scale[0] * (deviation + STD_FLOOR) - 1.0).abs() < 1e-9);
    }
    // A constant becomes exactly zero.
    let constant = Array2::from_elem((n, 1), 0.1);
    let map = FeatureMap::fit(
        FeatureSettings { expansion: Expansion::Poly2, ..FeatureSettings::default() },
        constant.view(),
    )
    .unwrap();
    assert!(map.transform(constant.view()).unwrap().iter().all(|z| z.abs() < 1e-8));
}

#[test]
fn clips_and_refuses_bad_input() {
    let settings =
        FeatureSettings { expansion: Expansion::Poly2, clip: 1.5, ..FeatureSettings::default() };
    let signals = array![[0.0], [0.0], [0.0], [0.0], [0.0], [0.0], [100.0]];
    let map = FeatureMap::fit(settings, signals.view()).unwrap();
    assert_eq!(map.transform(signals.view()).unwrap()[[6, 1]], 1.5);
    assert!(matches!(
        map.transform(array![[1.0, 2.0]].view()),
        Err(Error::Width { expected: 1, found: 2, .. })
    ));
    assert!(FeatureMap::fit(FeatureSettings { clip: 0.0, ..settings }, signals.view()).is_err());
    assert!(FeatureMap::fit(settings, array![[1e300]].view()).is_err());
}

#[test]
fn statistics_of_rows_that_come_in_pieces_are_the_same_bits() {
    let n = 5 * ROWS + 77;
    for base in [0.0, 1e7] {
        let signals = Array2::from_shape_fn((n, 3), |(i, j)| {
            if i % 6 == 0 { 0.1 } else { base + ((i * (j + 1)) as f64 * 0.7).sin() }
        });
        for expansion in [Expansion::Raw, Expansion::Poly2] {
            let settings = FeatureSettings { expansion, ..FeatureSettings::default() };
            let some = signals.slice(s![..;FeatureMap::stride(n), ..]);
            let map = FeatureMap::fit_walking(settings, n, some, |take| {
                for first in (0..n).step_by(2 * FeatureMap::UNIT) {
                    take(signals.slice(s![first..n.min(first + 2 * FeatureMap::UNIT), ..]));
                }
                Ok::<(), Error>(())
            });
            assert_eq!(map.unwrap(), FeatureMap::fit(settings, signals.view()).unwrap());
        }
    }
    let huge = array![[1e300], [-3e300]];
    let walk = |take: &mut dyn FnMut(ArrayView2<'_, f64>)| {
        take(huge.view());
        Ok(())
    };
    let settings = FeatureSettings::default();
    assert_eq!(
        FeatureMap::fit_walking(settings, 2, huge.view(), walk),
        FeatureMap::fit(settings, huge.view())
    );
}
