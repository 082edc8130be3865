use super::*;
use crate::kernel::Kernel;
use crate::operator::{HostOperator, OperatorKind, Precision};
use proptest::prelude::*;

fn setup(n: usize, dim: usize, k: f64, seed: f64) -> (Problem, HostOperator) {
    setup_in(Precision::F64, (n, dim), k, seed)
}

fn setup_in(
    precision: Precision,
    (n, dim): (usize, usize),
    k: f64,
    seed: f64,
) -> (Problem, HostOperator) {
    let wave = |rows, columns, phase: f64| {
        Array2::from_shape_fn((rows, columns), |(i, j)| {
            ((i * 5 + j * 11) as f64 * 0.77 + phase).sin()
        })
    };
    let set = DecisionSet::bounds(dim, -0.5, 0.8).unwrap();
    let decisions = wave(n, dim, seed).mapv(|u: f64| u.clamp(-0.5, 0.8));
    let operator = HostOperator::new(
        wave(n, 3, 2.0 * seed).view(),
        Kernel::Rbf { gamma: 0.4 },
        precision,
        OperatorKind::Stored,
    )
    .unwrap();
    (Problem::new(decisions.view(), set, k).unwrap(), operator)
}

proptest! {
    /// Weak duality at any point, and the identity that makes the gap a sum of squares.
    #[test]
    fn the_gap_is_primal_minus_dual_and_never_negative(
        n in 1_usize..40, dim in 1_usize..4, k in 1e-4..1.0_f64, seed in 0.0..6.0_f64
    ) {
        let (problem, operator) = setup(n, dim, k, seed);
        let any = |(j, i)| (i as f64 * 1.3 + j as f64 + seed).cos();
        let any = Array2::from_shape_fn((dim, n), any);
        let responses = problem.responses(any.view()).unwrap();
        let certified = problem.certify(&operator, responses).unwrap();
        let c = certified.certificate;
        prop_assert!(c.gap >= 0.0);
        let scale = c.primal.abs().max(c.dual.abs()).max(c.objective.abs());
        // The bounds are rounded up and down by what sums may be off.
        let rounded = |c: Certificate| c.primal - c.dual - c.gap;
        prop_assert!(rounded(c).abs() <= 1e-11 * scale, "{c:?}");
        // The pair identity, at coefficients that are not those of the responses.
        let other = any.mapv(|a: f64| 0.3 * a);
        let pair = problem.certify_pair(&operator, other, &certified).unwrap();
        let p = pair.certificate;
        let scale = p.primal.abs().max(p.dual.abs()).max(p.objective.abs());
        prop_assert!(p.gap >= 0.0);
        prop_assert!(rounded(p).abs() <= 1e-11 * scale, "{p:?}");
        prop_assert!((p.objective - c.objective).abs() <= 1e-12 * scale);
        // The same without the responses' own certificate before it, for coefficients that differ
        // from theirs everywhere and at a few samples, whose own matrix it makes where working
        // products are not exact.
        let (_, rounded_operator) = setup_in(Precision::F32, (n, dim), k, seed);
        let few = |at: (usize, usize), own: f64| if at.1 % 9 == 4 { own + 0.2 } else { own };
        let own = certified.coefficients.clone();
        let few = Array2::from_shape_fn(own.dim(), |at| few(at, own[at]));
        for other in [any.mapv(|a: f64| 0.3 * a), few] {
            let pair = problem.certify_pair(&operator, other.clone(), &certified).unwrap();
            let responses = certified.responses.clone();
            let pair = pair.certificate;
            for operator in [&operator, &rounded_operator] {
                let (other, responses) = (other.clone(), responses.clone());
                let alone = problem.certify_alone(operator, other, responses).unwrap().certificate;
                prop_assert!((alone.objective - c.objective).abs() <= 1e-10 * scale);
                prop_assert!((alone.primal - pair.primal).abs() <= 1e-12 * scale);
                prop_assert!((alone.gap - pair.gap).abs() <= 1e-10 * scale, "{alone:?} {pair:?}");
            }
        }
        let decided = problem.decide(&certified.desired, None).unwrap().decisions;
        let shares = problem.gap_shares(&certified.responses, &certified.desired, &decided);
        let mean = shares.iter().sum::<f64>() / n as f64;
        prop_assert!((mean + c.rounding - c.gap).abs() <= 2e-12 * c.gap.max(1e-300));
        // What rounding may hide is counted, and little.
        prop_assert!((0.0..1e-9 * scale).contains(&c.rounding), "{c:?}");
    }
}

#[test]
fn refuses_a_regularization_that_is_not_positive() {
    let set = DecisionSet::unbounded(1);
    for k in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let decisions = Array2::zeros((2, 1));
        assert!(matches!(
            Problem::new(decisions.view(), set.clone(), k),
            Err(Error::Setting { name: "regularization", .. })
        ));
    }
}
