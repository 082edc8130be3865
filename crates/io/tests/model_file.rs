//! Model files: identity from save to load, and no damaged byte goes unseen.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::files::Folder;
use argwhy_core::Dataset;
use argwhy_core::dataset::Names;
use argwhy_core::decision_set::{BoxLimits, DecisionSet, Prices, RowLabel};
use argwhy_core::features::{Expansion, FeatureMap, FeatureSettings};
use argwhy_core::kernel::Kernel;
use argwhy_core::model::{
    Calibration, FeatureWeights, FitRecord, KeptOut, Law, LearnedTheta, Misfit, Misfits, Seen,
    Support,
};
use argwhy_core::precond::{KeptFactor, KeptGram, Triangle};
use argwhy_core::problem::Certificate;
use argwhy_core::solver::Status;
use argwhy_core::{Model, Predictor};
use argwhy_io::model::Problem;
use argwhy_io::{
    Kept, ModelFileError, decode_model, encode_model, load_model, save_model, save_model_with,
};
use ndarray::{Array2, array};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};
use std::sync::Arc;

/// A model of these signals and coefficients; everything else is made up.
fn model(
    signals: Array2<f64>,
    coefficients: Array2<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
) -> Model {
    let rows = (0..signals.nrows() as u64).map(|row| row * 3).collect();
    let identity = Array2::<f64>::eye(coefficients.ncols());
    Model {
        features: FeatureMap::fit(
            FeatureSettings { expansion: Expansion::Poly2, ..FeatureSettings::default() },
            array![[0.1, 2.0], [0.7, -1.0]].view(),
        )
        .unwrap(),
        law: Law::Kernel(Support {
            kernel: Kernel::Rbf { gamma: 1.0 / 6.0 },
            signals,
            coefficients,
            rows,
            prices: Prices {
                samples: vec![0, 0, 7],
                limits: vec![RowLabel::Equality(1), RowLabel::Upper(0), RowLabel::Inequality(3)],
                values: vec![-1.5, 0.1, 5e-324],
            },
        }),
        set: DecisionSet::Box(BoxLimits::new(lower, upper).unwrap()),
        constrained: true,
        theta: Some(LearnedTheta { theta_uu: 1.5 * &identity, multiplier: 0.1 * identity }),
        names: Names {
            signals: vec!["price".to_owned(), "load \"é\"".to_owned()],
            decisions: vec!["power_kw".to_owned(), "heat, kW".to_owned()],
            ..Names::default()
        },
        seen: Some(Seen {
            lowest: vec![0.1, -1.0],
            highest: vec![0.7, 2.0],
            pivots: array![[0.1, 2.0]],
            left: (0..17).map(|k| f64::from(k) / 7.0).collect(),
        }),
        calibration: Some(Calibration {
            noise: vec![0.1, 1e-300],
            growth: vec![0.0, 2.5],
            spread: vec![1.0 / 3.0, 0.0],
            known: 0.7,
            scores: array![[0.0, 0.5, 1.5], [1e-3, 1e-3, 9.0]],
        }),
        misfits: Some(Misfits {
            by: KeptOut::LeaveOneOut,
            rows: vec![Misfit {
                row: 12,
                dimension: 1,
                decision: 0.1 + 0.2,
                expected: -1e-300,
                times_usual: 4.5,
            }],
        }),
        record: FitRecord {
            status: Status::Solved,
            n_samples: 17,
            regularization: 1e-6,
            certificate: Certificate {
                objective: 0.1 + 0.2,
                primal: f64::MIN_POSITIVE,
                dual: -0.0,
                gap: 5e-324,
                relative_gap: 1e-300,
                rounding: 1e-301,
            },
            iterations: 3,
            kernel_products: 40,
            seconds: 0.123_456_789_012_345_6,
            peak_memory_bytes: Some(u64::MAX),
        },
    }
}

fn small() -> Model {
    let infinite = f64::INFINITY;
    model(
        array![[0.1, 0.2], [0.3, 1e-300]],
        array![[1.5, -0.0], [1e300, 2.0]],
        vec![-1.0, -infinite],
        vec![infinite, 0.3],
    )
}

fn settings() -> Value {
    json!({ "seed": u64::MAX, "gamma": 0.1, "note": "a \"quoted\" \\ {\\\"checksum\\\":\\\" é" })
}

#[test]
fn every_flipped_byte_is_refused() {
    let whole = encode_model(&small(), &settings()).unwrap();
    assert_eq!(decode_model(&whole).unwrap().model, small());
    let mut damaged = whole.clone();
    for at in 0..whole.len() {
        for flip in [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff] {
            damaged[at] = whole[at] ^ flip;
            assert!(decode_model(&damaged).is_err(), "byte {at}, flip {flip:#04x}");
        }
        damaged[at] = whole[at];
    }
}

#[test]
fn every_truncation_and_extension_is_refused() {
    let whole = encode_model(&small(), &settings()).unwrap();
    for length in 0..whole.len() {
        assert!(decode_model(&whole[..length]).is_err(), "{length} bytes");
    }
    for more in [vec![0], vec![b' '; 8], whole.clone()] {
        assert!(decode_model(&[whole.clone(), more].concat()).is_err());
    }
    // Two bytes that change places, and a part that is repeated.
    for at in 0..whole.len() - 1 {
        let mut swapped = whole.clone();
        swapped.swap(at, at + 1);
        assert!(swapped == whole || decode_model(&swapped).is_err(), "byte {at}");
    }
}

#[test]
fn a_plain_model_is_read_back_bit_for_bit() {
    for (intercept, rows) in [(false, 6), (true, 7)] {
        let values = Array2::from_shape_fn((rows, 2), |(k, j)| (k as f64 + 0.1) / (j as f64 - 3.0));
        let of =
            |values| Model { law: Law::Primal(FeatureWeights { values, intercept }), ..small() };
        let primal = of(values);
        let bytes = encode_model(&primal, &settings()).unwrap();
        assert_eq!(decode_model(&bytes).unwrap().model, primal);
        // Weights of another length are damage.
        let wide = encode_model(&of(Array2::zeros((rows + 1, 2))), &settings()).unwrap();
        let found = decode_model(&wide);
        assert!(matches!(found, Err(Problem::Damaged(why)) if why.contains("weights")));
    }
    // So are weights beside samples, and weights of a kernel that has none: an array is renamed.
    for kernel in [Kernel::Linear, Kernel::Rbf { gamma: 1.0 }] {
        let both = encode_model(&with_kernel(small(), kernel), &settings()).unwrap();
        let found = decode_model(&altered(&both, "\"theta_uu\":", "\"weights\" :"));
        assert!(matches!(found, Err(Problem::Damaged(why)) if why.contains("weights")));
    }
}

/// The model with another kernel.
fn with_kernel(mut model: Model, kernel: Kernel) -> Model {
    if let Law::Kernel(support) = &mut model.law {
        support.kernel = kernel;
    }
    model
}

#[test]
fn a_newer_format_is_told_apart_from_damage() {
    let whole = encode_model(&small(), &settings()).unwrap();
    let text = r#"\"format\":"#;
    let at = whole.windows(text.len()).position(|w| w == text.as_bytes()).unwrap();
    let mut newer = whole;
    newer[at + text.len()] = b'7';
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.argwhy");
    std::fs::write(&path, &newer).unwrap();
    assert!(matches!(load_model(&path), Err(ModelFileError::Newer { found: 7, .. })));
    assert!(matches!(decode_model(&newer), Err(Problem::Newer { found: 7, .. })));
}

/// The file with one text of its header replaced, and the checksum made to fit.
fn altered(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes.to_vec();
    let find = |bytes: &[u8], text: &str| {
        bytes.windows(text.len().max(1)).position(|w| w.starts_with(text.as_bytes())).unwrap()
    };
    let at = find(&bytes, from);
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    let mark = r#"{\"checksum\":\""#;
    let digits = find(&bytes, mark) + mark.len();
    bytes[digits..digits + 64].fill(b'0');
    let hash = blake3::hash(&bytes).to_hex();
    bytes[digits..digits + 64].copy_from_slice(hash.as_bytes());
    bytes
}

fn kernels() -> Vec<Kernel> {
    let polynomial = Kernel::Polynomial { degree: 2, gamma: 0.1 + 0.2, offset: 0.0 };
    let sum = Kernel::Sum {
        terms: vec![
            Kernel::Matern32 { gamma: 1e-300 },
            Kernel::Scaled { weight: 0.1, kernel: Box::new(Kernel::Matern52 { gamma: 3.0 }) },
        ],
    };
    vec![
        Kernel::Laplace { gamma: 0.1 },
        Kernel::Linear,
        polynomial.clone(),
        Kernel::Product { factors: vec![sum.clone(), polynomial] },
        Kernel::Anisotropic { length_scales: vec![0.1; 6], kernel: Box::new(sum) },
    ]
}

#[test]
fn every_kernel_is_read_back() {
    for kernel in kernels() {
        let model = with_kernel(small(), kernel);
        let bytes = encode_model(&model, &settings()).unwrap();
        assert_eq!(decode_model(&bytes).unwrap().model, model);
    }
}

#[test]
fn a_kernel_of_a_later_version_is_told_apart_from_damage() {
    let simple = encode_model(&small(), &settings()).unwrap();
    let later = altered(&simple, r#"\"kind\":\"rbf\""#, r#"\"kind\":\"foo\""#);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.argwhy");
    std::fs::write(&path, &later).unwrap();
    let message = load_model(&path).unwrap_err().to_string();
    for part in ["the kernel `foo`", "does not know", "update argwhy"] {
        assert!(message.contains(part), "{message}");
    }
    for kernel in kernels().split_off(3) {
        let bytes = encode_model(&with_kernel(small(), kernel), &settings()).unwrap();
        let later = altered(&bytes, r#"\"matern52\""#, r#"\"matern72\""#);
        let found = decode_model(&later).unwrap_err();
        assert!(
            matches!(&found, Problem::UnknownKernel { kind, .. } if kind == "matern72"),
            "{found}"
        );
        // A field that a kernel does not have is damage.
        let wrong = altered(&bytes, r#"\"weight\""#, r#"\"height\""#);
        assert!(matches!(decode_model(&wrong), Err(Problem::Damaged(_))));
    }
}

/// Written before there were kernels beyond three.
/// Two rows that the small model learned from, and what its fit left of a preconditioner.
fn kept() -> Kept {
    let signals = array![[0.1, 0.2], [0.3, 1e-300]];
    let data = Dataset::new(signals, array![[0.1, 0.2], [0.3, 0.1 + 0.2]]).unwrap();
    let names = Names {
        signals: small().names.signals,
        decisions: small().names.decisions,
        ..Names::default()
    };
    let data = data.with_names(names).unwrap();
    let factor = KeptFactor {
        pivots: vec![1, 0],
        trace_left: 0.25,
        owners: vec![0, 1],
        grams: vec![
            KeptGram {
                free: vec![true, false],
                triangle: Triangle::Double(vec![1.0, 0.1, 1e-300]),
            },
            KeptGram { free: vec![true, true], triangle: Triangle::Double(vec![2.0, -0.1, 3.0]) },
        ],
        desired: Some(array![[0.5, -1e-300], [0.1 + 0.2, 2.0]]),
    };
    Kept { data, rows: vec![3, 7], factor: Some(Arc::new(factor)) }
}

#[test]
fn what_a_fit_left_of_its_preconditioner_is_kept_bit_for_bit() {
    let folder = Folder::new();
    let path = folder.write("m.argwhy", []);
    save_model_with(&path, &small(), &settings(), Some(&kept())).unwrap();
    assert_eq!(load_model(&path).unwrap().kept, Some(kept()));
    // Single precision stays single, unless another matrix is double.
    let with = |triangles: [Triangle; 2]| {
        let mut kept = kept();
        let mut factor = KeptFactor::clone(kept.factor.as_ref().unwrap());
        for (gram, triangle) in factor.grams.iter_mut().zip(triangles) {
            gram.triangle = triangle;
        }
        kept.factor = Some(Arc::new(factor));
        save_model_with(&path, &small(), &settings(), Some(&kept)).unwrap();
        let factor = load_model(&path).unwrap().kept.unwrap().factor.unwrap();
        [factor.grams[0].triangle.clone(), factor.grams[1].triangle.clone()]
    };
    let single = || Triangle::Single(vec![1.0, 0.5, 0.25]);
    let double = || Triangle::Double(vec![1.0, 0.5, 0.25]);
    assert_eq!(with([single(), single()]), [single(), single()]);
    assert_eq!(with([single(), double()]), [double(), double()]);
}

#[test]
fn a_kept_factor_that_is_none_is_refused() {
    let folder = Folder::new();
    let path = folder.write("m.argwhy", []);
    let refused = |change: &dyn Fn(&mut KeptFactor)| {
        let mut kept = kept();
        let mut factor = KeptFactor::clone(kept.factor.as_ref().unwrap());
        change(&mut factor);
        kept.factor = Some(Arc::new(factor));
        save_model_with(&path, &small(), &settings(), Some(&kept)).unwrap();
        load_model(&path).unwrap_err().to_string()
    };
    for (said, change) in [
        ("pivots", (|f| f.pivots[0] = 2) as fn(&mut KeptFactor)),
        ("twice", |f| f.pivots[0] = 0),
        ("dimensions", |f| f.owners.truncate(1)),
        ("without a matrix", |f| f.owners[0] = 2),
        ("trace", |f| f.trace_left = -1.0),
        ("numbers", |f| f.grams[0].triangle = Triangle::Double(vec![f64::NAN; 3])),
    ] {
        let error = refused(&change);
        assert!(error.contains("the factor it keeps") && error.contains(said), "{said}: {error}");
    }
}

#[test]
fn rows_are_kept_with_numbers_that_data_can_have() {
    let folder = Folder::new();
    let path = folder.write("m.argwhy", []);
    let largest = Kept { rows: vec![3, 1 << 53], ..kept() };
    save_model_with(&path, &small(), &settings(), Some(&largest)).unwrap();
    assert_eq!(load_model(&path).unwrap().kept, Some(largest));
    // What comes behind it could not be counted.
    let beyond = Kept { rows: vec![3, u64::MAX], ..kept() };
    save_model_with(&path, &small(), &settings(), Some(&beyond)).unwrap();
    let error = load_model(&path).unwrap_err().to_string();
    assert!(error.contains("a row with the number 18446744073709551615"), "{error}");
}

/// Written by `fit --memory 31MiB --keep-data` when the arrays were new.
#[test]
fn models_with_a_kept_factor_are_read_for_ever() {
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/kept-factor.safetensors");
    let kept = load_model(&path).unwrap().kept.unwrap();
    let factor = kept.factor.unwrap();
    assert_eq!((kept.data.n_samples(), factor.n_samples()), (400, 400));
    assert!(factor.rank() > 4 && factor.grams.len() == 1, "{}", factor.rank());
    assert_eq!(factor.validate(400, 1).unwrap(), ());
}

#[test]
fn models_of_earlier_versions_are_read() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/three-kernels.safetensors");
    let stored = load_model(&path).unwrap();
    assert_eq!(stored.model.kernel(), Kernel::Rbf { gamma: 0.25 });
    let predictor = Predictor::new(&stored.model).unwrap();
    let decided = predictor.predict(stored.model.support().unwrap().signals.view()).unwrap();
    assert!(decided.iter().all(|u| u.abs() <= 1.0));
}

#[test]
fn other_files_are_not_models() {
    let header = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    for bytes in [
        Vec::new(),
        b"signals,decisions\n1,2\n".to_vec(),
        vec![0xff; 64],
        vec![0; 64],
        header("{}"),
        header(r#"{"__metadata__":{"other":"x"}}"#),
        u64::MAX.to_le_bytes().to_vec(),
    ] {
        assert!(matches!(decode_model(&bytes), Err(Problem::NotAModel(_))), "{bytes:?}");
    }
    for text in ["", "x", "{}", "[]", r#"{\"format\":1}"#, r#"{\"format\":1,\"version\":\"0\"}"#] {
        let bytes = header(&format!(r#"{{"__metadata__":{{"argwhy":"{text}"}}}}"#));
        assert!(decode_model(&bytes).is_err(), "{text}");
    }
}

/// The file with its metadata replaced, and the checksum made to fit.
fn with_metadata(bytes: &[u8], metadata: &Value) -> Vec<u8> {
    let mut header: Value = serde_json::from_slice(&bytes[8..8 + header_length(bytes)]).unwrap();
    let checksum = metadata["checksum"].as_str().unwrap_or_default();
    let rest = serde_json::to_string(metadata).unwrap();
    // The checksum comes first, as in every file.
    let field = format!("\"checksum\":\"{checksum}\"");
    let rest = rest.replace(&format!("{field},"), "").replace(&field, "");
    let text = format!("{{{field},{}", &rest[1..]);
    header["__metadata__"]["argwhy"] = Value::String(text);
    let mut head = serde_json::to_vec(&header).unwrap();
    head.resize(head.len().next_multiple_of(8), b' ');
    let length = (head.len() as u64).to_le_bytes();
    altered(&[&length[..], &head, &bytes[8 + header_length(bytes)..]].concat(), "", "")
}

fn header_length(bytes: &[u8]) -> usize {
    u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize
}

fn metadata_of(bytes: &[u8]) -> Value {
    let header: Value = serde_json::from_slice(&bytes[8..8 + header_length(bytes)]).unwrap();
    serde_json::from_str(header["__metadata__"]["argwhy"].as_str().unwrap()).unwrap()
}

/// Where every value of a tree stands, groups included.
fn places(value: &Value, path: &str, out: &mut Vec<String>) {
    if !path.is_empty() {
        out.push(path.to_owned());
    }
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, inner)| places(inner, &format!("{path}/{key}"), out));
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(i, inner)| places(inner, &format!("{path}/{i}"), out));
        }
        _ => {}
    }
}

/// What is accepted decides without a panic, inside its limits.
fn decides(bytes: &[u8]) -> bool {
    let Ok(stored) = decode_model(bytes) else { return false };
    let model = stored.model;
    let Ok(predictor) = Predictor::new(&model) else { return false };
    let signals = array![[0.1, 2.0], [0.7, -1.0], [1e3, -1e3]];
    // Constraints come with the data; without them it is refused.
    let sets = predictor.sets(None, 3);
    // Parameters near the largest number overflow on the way, which is told.
    let desired = predictor.desired(signals.view());
    if let (Ok(sets), Ok(desired)) = (sets, desired)
        && let Ok(decided) = predictor.decide(desired.view(), &sets)
    {
        for decision in decided.rows() {
            assert!(model.set.contains(&decision.to_vec()), "{decision}");
        }
    }
    encode_model(&model, &stored.settings).is_ok()
}

#[test]
fn every_field_of_the_header_is_validated() {
    let made = [
        json!(-1),
        json!(0),
        json!(1),
        json!(2),
        json!(-0.5),
        json!(1e308),
        json!(-1e308),
        json!(5e-324),
        json!(u64::MAX),
        json!(i64::MIN),
        Value::Null,
        json!(true),
        json!("x"),
        json!(""),
        json!([]),
        json!({}),
        json!([1.0]),
        json!([[1.0]]),
    ];
    let mut cases = kernels();
    cases.push(Kernel::Rbf { gamma: 0.5 });
    let mut refused = 0;
    for kernel in cases {
        let model = Model { constrained: false, theta: None, ..with_kernel(small(), kernel) };
        let whole = encode_model(&model, &json!({ "seed": 1 })).unwrap();
        let metadata = metadata_of(&whole);
        assert!(decides(&with_metadata(&whole, &metadata)), "the test's own way of writing");
        let mut fields = Vec::new();
        places(&metadata, "", &mut fields);
        for field in fields.iter().filter(|field| *field != "/checksum") {
            let mut variants: Vec<Value> = made.to_vec();
            if let Some(Value::Array(items)) = metadata.pointer(field) {
                let mut longer = items.clone();
                longer.extend(items.first().cloned());
                variants.extend([Value::Array(longer), Value::Array(items[1..].to_vec())]);
            }
            for variant in variants {
                let mut changed = metadata.clone();
                *changed.pointer_mut(field).unwrap() = variant;
                refused += usize::from(!decides(&with_metadata(&whole, &changed)));
            }
        }
    }
    assert!(refused > 500, "{refused}");
}

#[test]
fn a_clip_that_is_not_positive_is_refused() {
    let whole = encode_model(&small(), &settings()).unwrap();
    for (field, wrong) in [
        ("/features/settings/clip", json!(-1)),
        ("/features/settings/clip", json!(0)),
        ("/features/signal_dim", json!(u64::MAX)),
        ("/features/signal_dim", json!(0)),
        ("/features/inverse_scale/0", json!(-1.0)),
        ("/record/regularization", json!(0)),
        ("/record/n_samples", json!(1)),
        ("/record/seconds", json!(-1)),
        ("/format", json!(0)),
    ] {
        let mut metadata = metadata_of(&whole);
        *metadata.pointer_mut(field).unwrap() = wrong.clone();
        let found = decode_model(&with_metadata(&whole, &metadata));
        assert!(matches!(found, Err(Problem::Damaged(_))), "{field} = {wrong}");
    }
}

/// Whoever can make a checksum can make any file: what does not fit together is refused all the
/// same.
#[test]
fn models_that_do_not_fit_together_are_refused() {
    let infinite = f64::INFINITY;
    let (lower, upper) = (vec![-1.0, -infinite], vec![infinite, 0.3]);
    for (what, bad) in [
        (
            "signals too wide",
            model(Array2::ones((2, 3)), Array2::ones((2, 2)), lower.clone(), upper.clone()),
        ),
        (
            "coefficients too few",
            model(Array2::ones((2, 2)), Array2::ones((1, 2)), lower.clone(), upper.clone()),
        ),
        (
            "coefficients too narrow",
            model(Array2::ones((2, 2)), Array2::ones((2, 1)), lower.clone(), upper.clone()),
        ),
        ("NaN", model(Array2::ones((1, 2)), array![[f64::NAN, 1.0]], lower.clone(), upper.clone())),
        ("infinite", model(array![[1.0, infinite]], Array2::ones((1, 2)), lower, upper)),
        ("gamma", with_kernel(small(), Kernel::Rbf { gamma: -1.0 })),
        (
            "length scales",
            with_kernel(
                small(),
                Kernel::Anisotropic {
                    length_scales: vec![1.0; 5],
                    kernel: Box::new(Kernel::Linear),
                },
            ),
        ),
        ("no terms", with_kernel(small(), Kernel::Sum { terms: vec![] })),
    ] {
        let answer = encode_model(&bad, &settings()).map(|bytes| decode_model(&bytes).is_err());
        assert!(answer.unwrap_or(true), "{what}");
    }
}

#[test]
fn what_cannot_be_read_back_is_not_written() {
    let infinite_clip = FeatureSettings { clip: f64::INFINITY, ..FeatureSettings::default() };
    let Ok(features) = FeatureMap::fit(infinite_clip, array![[0.1, 2.0], [0.7, -1.0]].view())
    else {
        return;
    };
    if let Ok(bytes) = encode_model(&Model { features, ..small() }, &settings()) {
        decode_model(&bytes).unwrap();
    }
}

#[test]
fn saving_fails_without_leaving_anything() {
    let folder = tempfile::tempdir().unwrap();
    let error =
        save_model(&folder.path().join("none/m.argwhy"), &small(), &settings()).unwrap_err();
    assert!(matches!(error, ModelFileError::Write { .. }));
    assert!(save_model(folder.path(), &small(), &settings()).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(matches!(load_model(&folder.path().join("no")), Err(ModelFileError::NotFound { .. })));
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_filter("finite", |v| v.is_finite()),
        any::<f32>().prop_filter("finite", |v| v.is_finite()).prop_map(f64::from),
        Just(-0.0),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 128,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn save_and_load_is_identity(
        n in 0_usize..6,
        signals in prop::collection::vec(number(), 12),
        coefficients in prop::collection::vec(number(), 12),
        gap in number(),
        limit in number(),
    ) {
        let part = |values: &[f64]| {
            Array2::from_shape_vec((n, 2), values[..2 * n].to_vec()).unwrap()
        };
        let mut original = model(
            part(&signals),
            part(&coefficients),
            vec![limit.min(0.0), f64::NEG_INFINITY],
            vec![f64::INFINITY, limit],
        );
        original.record.certificate.gap = gap;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.argwhy");
        save_model(&path, &original, &settings()).unwrap();
        let stored = load_model(&path).unwrap();
        prop_assert_eq!(&stored.settings, &settings());
        prop_assert_eq!(&stored.model, &original);
        // −0 = 0 to the comparison above, not to this one.
        let again = encode_model(&stored.model, &settings()).unwrap();
        prop_assert!(again == std::fs::read(&path).unwrap());
        let _ = Predictor::new(&stored.model).unwrap();
    }
}
