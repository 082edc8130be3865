//! The expert: linear model-predictive control inside the rotors' limits.
//!
//! In: a state e. Out: the decision that starts the cheapest plan. A decision v is thrust above
//! hover; with the motion linearised there, e⁺ = A e + B v, the expert solves at every step
//!
//! ```text
//! min  Σ_{i<H} ( e_iᵀQe_i + v_iᵀRv_i ) + e_HᵀPe_H     with  lower ≤ v_i ≤ upper
//! ```
//!
//! where P solves the discrete Riccati equation, the cost of flying on without limits. Stacking the
//! plan turns this into one box QP in 2H variables whose linear term is linear in the state.

use super::ExpertError;
use super::program::{BoxProgram, Limits};
use super::quadrotor::{Decision, INPUT_DIM, Quadrotor, STATE_DIM, State};
use ndarray::{Array1, Array2, ArrayView1, array, s};

const MAX_RICCATI_STEPS: usize = 100_000;
const TOL_RICCATI: f64 = 1e-13;

/// What the expert cares about and how far it looks ahead.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpertSettings {
    /// Time between decisions in s.
    pub dt: f64,
    /// Planned steps H, at least 1.
    pub horizon: usize,
    /// Diagonal of Q: cost of each squared state, in the order of the state.
    pub state_weights: State,
    /// What R charges for the sum and for the difference of the two thrusts, positive: `vᵀRv =
    ///  w₀ (v_r + v_l)²/2 + w₁ (v_r − v_l)²/2`.
    pub input_weights: [f64; 2],
}

impl Default for ExpertSettings {
    fn default() -> Self {
        Self {
            dt: 0.05,
            horizon: 25,
            state_weights: [4.0, 20.0, 4.0, 4.0, 4.0, 1.0],
            input_weights: [0.5, 0.5],
        }
    }
}

/// The expert's true objective: the answer inverse optimisation is asked to find.
#[derive(Debug, Clone, PartialEq)]
pub struct Objective {
    /// A, 6 × 6: the motion near hover over one step.
    pub transition: Array2<f64>,
    /// B, 6 × 2: the effect of thrust held over one step.
    pub input: Array2<f64>,
    /// Q, 6 × 6: cost of the state in every stage.
    pub state_cost: Array2<f64>,
    /// R, 2 × 2: cost of thrust away from hover in every stage.
    pub input_cost: Array2<f64>,
    /// P, 6 × 6: cost of the state after the last stage.
    pub terminal_cost: Array2<f64>,
}

impl Objective {
    /// `eᵀQe + vᵀRv` of one stage.
    pub fn stage_cost(&self, state: &State, decision: &Decision) -> f64 {
        quadratic(&self.state_cost, state) + quadratic(&self.input_cost, decision)
    }
}

/// A plan for the next H steps.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Decisions of every stage one after the other, 2H numbers; the first two are taken now.
    pub decisions: Array1<f64>,
    /// Cost of the plan by the expert's own model.
    pub value: f64,
    /// How far the plan is from optimal: the QP's optimality residual, at most 1e-9.
    pub residual: f64,
}

impl Plan {
    /// The decision to take now.
    pub fn decision(&self) -> Decision {
        [self.decisions[0], self.decisions[1]]
    }
}

/// A pilot with a known objective: the source of demonstrations and the measure for imitations.
#[derive(Debug, Clone)]
pub struct Expert {
    plant: Quadrotor,
    settings: ExpertSettings,
    objective: Objective,
    program: BoxProgram,
    /// What the rotors can do in every stage.
    limits: Limits,
    /// How the state enters the linear term, 2H × 6.
    coupling: Array2<f64>,
    /// What the state costs with every decision zero, 6 × 6.
    drift_cost: Array2<f64>,
}

impl Expert {
    /// The expert for a vehicle. Fails on settings without meaning and if the Riccati equation
    /// cannot be solved. Cost: a few milliseconds.
    pub fn new(plant: Quadrotor, settings: ExpertSettings) -> Result<Self, ExpertError> {
        check(&plant, &settings)?;
        let (a, b) = discretized(&plant, settings.dt);
        let q = Array2::from_diag(&ArrayView1::from(&settings.state_weights));
        let [lift, turn] = settings.input_weights.map(|w| w / 2.0);
        let r = array![[lift + turn, lift - turn], [lift - turn, lift + turn]];
        let p = riccati(&a, &b, &q, &r)?;
        let objective =
            Objective { transition: a, input: b, state_cost: q, input_cost: r, terminal_cost: p };
        let condensed = Condensed::new(&objective, settings.horizon);
        let n = INPUT_DIM * settings.horizon;
        Ok(Self {
            program: BoxProgram::new(condensed.hessian)?,
            limits: Limits {
                lower: Array1::from_elem(n, -plant.hover_thrust()),
                upper: Array1::from_elem(n, plant.max_thrust - plant.hover_thrust()),
            },
            coupling: condensed.coupling,
            drift_cost: condensed.drift_cost,
            plant,
            settings,
            objective,
        })
    }

    /// The vehicle being flown.
    pub fn plant(&self) -> &Quadrotor {
        &self.plant
    }

    /// The settings it was made with.
    pub fn settings(&self) -> &ExpertSettings {
        &self.settings
    }

    /// The true objective.
    pub fn objective(&self) -> &Objective {
        &self.objective
    }

    /// Least decision in N: rotors at rest.
    pub fn lower(&self) -> Decision {
        [-self.plant.hover_thrust(); INPUT_DIM]
    }

    /// Greatest decision in N: rotors at full thrust.
    pub fn upper(&self) -> Decision {
        [self.plant.max_thrust - self.plant.hover_thrust(); INPUT_DIM]
    }

    /// The expert's decision in a state; what is at a limit is there to the bit.
    pub fn decide(&self, state: &State) -> Result<Decision, ExpertError> {
        Ok(self.plan(state, None)?.decision())
    }

    /// The whole plan behind a decision. `previous`, the plan of the step before, shortens the
    /// search and does not change the answer beyond the tolerance.
    pub fn plan(&self, state: &State, previous: Option<&Plan>) -> Result<Plan, ExpertError> {
        self.solve(&self.limits, state, previous)
    }

    /// The least cost-to-go of a state: the value of the expert's plan.
    pub fn value(&self, state: &State) -> Result<f64, ExpertError> {
        Ok(self.plan(state, None)?.value)
    }

    /// The function the expert minimises over its decision: the cost of taking `decision` now and
    /// planning optimally from then on. The decision must be within its limits.
    pub fn decision_cost(&self, state: &State, decision: &Decision) -> Result<f64, ExpertError> {
        let (lower, upper) = (self.lower(), self.upper());
        if let Some(i) = (0..INPUT_DIM).find(|&i| !(lower[i]..=upper[i]).contains(&decision[i])) {
            return Err(ExpertError::OutsideLimits { rotor: i, decision: decision[i] });
        }
        let mut fixed = self.limits.clone();
        for (i, &value) in decision.iter().enumerate() {
            fixed.lower[i] = value;
            fixed.upper[i] = value;
        }
        Ok(self.solve(&fixed, state, None)?.value)
    }

    fn solve(
        &self,
        limits: &Limits,
        state: &State,
        previous: Option<&Plan>,
    ) -> Result<Plan, ExpertError> {
        if state.iter().any(|v| !v.is_finite()) {
            return Err(ExpertError::NotFinite);
        }
        let linear = self.coupling.dot(&ArrayView1::from(state));
        let guess = match previous {
            Some(plan) => shifted(&plan.decisions),
            None => Array1::zeros(linear.len()),
        };
        let solution = self.program.solve(&linear, limits, &guess)?;
        // The QP has half the cost without its constant: vᵀHv + 2(Fe)ᵀv + eᵀYe.
        let value =
            2.0 * self.program.value(&linear, &solution.point) + quadratic(&self.drift_cost, state);
        Ok(Plan { decisions: solution.point, value, residual: solution.residual })
    }
}

/// The plan one step later: the first stage dropped, the last repeated.
fn shifted(plan: &Array1<f64>) -> Array1<f64> {
    let last = plan.len().saturating_sub(INPUT_DIM);
    (0..plan.len()).map(|i| plan[if i < last { i + INPUT_DIM } else { i }]).collect()
}

/// The plan's cost as a quadratic function of the stacked v and the state e: `vᵀHv + 2(Fe)ᵀv +
/// eᵀYe`.
struct Condensed {
    hessian: Array2<f64>,
    coupling: Array2<f64>,
    drift_cost: Array2<f64>,
}

impl Condensed {
    /// e_i = Aⁱe + Σ_{j<i} A^{i−1−j}B v_j, substituted into the stage costs.
    fn new(objective: &Objective, horizon: usize) -> Self {
        let (a, b) = (&objective.transition, &objective.input);
        let n = INPUT_DIM * horizon;
        let mut hessian = Array2::zeros((n, n));
        let mut coupling = Array2::zeros((n, STATE_DIM));
        let mut drift_cost = objective.state_cost.clone();
        let mut drift = Array2::eye(STATE_DIM);
        let mut forced = Array2::<f64>::zeros((STATE_DIM, n));
        for stage in 0..horizon {
            drift = a.dot(&drift);
            forced = a.dot(&forced);
            let columns = INPUT_DIM * stage..INPUT_DIM * (stage + 1);
            forced.slice_mut(s![.., columns.clone()]).assign(b);
            let last = stage + 1 == horizon;
            let cost = if last { &objective.terminal_cost } else { &objective.state_cost };
            let weighted = cost.dot(&forced);
            hessian = hessian + forced.t().dot(&weighted);
            coupling = coupling + weighted.t().dot(&drift);
            drift_cost = drift_cost + drift.t().dot(&cost.dot(&drift));
            let mut block = hessian.slice_mut(s![columns.clone(), columns]);
            block += &objective.input_cost;
        }
        hessian = (&hessian + &hessian.t()) * 0.5;
        Self { hessian, coupling, drift_cost }
    }
}

fn check(plant: &Quadrotor, settings: &ExpertSettings) -> Result<(), ExpertError> {
    let positive = [
        ("mass", plant.mass),
        ("inertia", plant.inertia),
        ("arm", plant.arm),
        ("dt", settings.dt),
        ("input_weights", settings.input_weights[0].min(settings.input_weights[1])),
        ("horizon", settings.horizon as f64),
        // Without lift beyond the weight nothing can be held up.
        ("max_thrust − hover thrust", plant.max_thrust - plant.hover_thrust()),
    ];
    let nonnegative = settings.state_weights.map(|w| ("state_weights", w));
    let bad = positive
        .into_iter()
        .find(|(_, value)| !(value.is_finite() && *value > 0.0))
        .or_else(|| nonnegative.into_iter().find(|(_, w)| !(w.is_finite() && *w >= 0.0)));
    match bad {
        Some((name, value)) => Err(ExpertError::BadSetting { name, value }),
        None => Ok(()),
    }
}

/// A = e^{A_c dt}, B = ∫₀^dt e^{A_c t} dt B_c: exact for thrust held over the step. The series ends
/// by itself, since A_c is a chain of integrators.
fn discretized(plant: &Quadrotor, dt: f64) -> (Array2<f64>, Array2<f64>) {
    let (a, b) = plant.linearized();
    let mut term = Array2::<f64>::eye(STATE_DIM);
    let mut transition = term.clone();
    let mut integral = &term * dt;
    for order in 1..=2 * STATE_DIM {
        term = term.dot(&a) * (dt / order as f64);
        transition += &term;
        integral += &(&term * (dt / (order + 1) as f64));
    }
    (transition, integral.dot(&b))
}

/// P = Q + AᵀP(A − B L), L = (R + BᵀPB)⁻¹BᵀPA, by iteration from P = Q.
fn riccati(
    a: &Array2<f64>,
    b: &Array2<f64>,
    q: &Array2<f64>,
    r: &Array2<f64>,
) -> Result<Array2<f64>, ExpertError> {
    let mut p = q.clone();
    for _ in 0..MAX_RICCATI_STEPS {
        let pb = p.dot(b);
        let curvature = r + &b.t().dot(&pb);
        let gain = inverse(&curvature).dot(&pb.t().dot(a));
        let next = q + &a.t().dot(&p.dot(&(a - &b.dot(&gain))));
        let next = (&next + &next.t()) * 0.5;
        let change = (&next - &p).iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        let size = next.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        p = next;
        if change <= TOL_RICCATI * size {
            return Ok(p);
        }
    }
    Err(ExpertError::Riccati { steps: MAX_RICCATI_STEPS })
}

/// Of a symmetric positive definite 2 × 2 matrix; not finite where it is none, and then nothing
/// settles.
fn inverse(matrix: &Array2<f64>) -> Array2<f64> {
    let [a, b, d] = [matrix[[0, 0]], matrix[[0, 1]], matrix[[1, 1]]];
    array![[d, -b], [-b, a]] / (a * d - b * b)
}

fn quadratic(matrix: &Array2<f64>, vector: &[f64]) -> f64 {
    let vector = ArrayView1::from(vector);
    vector.dot(&matrix.dot(&vector))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expert() -> Expert {
        Expert::new(Quadrotor::default(), ExpertSettings::default()).unwrap()
    }

    /// The cost of a plan by stepping the linear model: an oracle without condensing.
    fn rolled_out(expert: &Expert, state: &State, plan: &Array1<f64>) -> f64 {
        let objective = expert.objective();
        let mut e = Array1::from(state.to_vec());
        let mut cost = 0.0;
        for stage in 0..expert.settings().horizon {
            let decision = [plan[2 * stage], plan[2 * stage + 1]];
            let now: State = std::array::from_fn(|i| e[i]);
            cost += objective.stage_cost(&now, &decision);
            let decision = Array1::from(decision.to_vec());
            e = objective.transition.dot(&e) + objective.input.dot(&decision);
        }
        cost + e.dot(&objective.terminal_cost.dot(&e))
    }

    const FAR: State = [2.0, -1.5, 0.3, -1.0, 0.5, 1.0];

    #[test]
    fn hover_is_the_decision_at_the_target() {
        let expert = expert();
        assert_eq!(expert.decide(&[0.0; STATE_DIM]), Ok([0.0; INPUT_DIM]));
        assert!(expert.value(&[0.0; STATE_DIM]).unwrap().abs() < 1e-12);
    }

    #[test]
    fn plan_value_is_the_rolled_out_cost_and_no_neighbour_is_better() {
        let expert = expert();
        let plan = expert.plan(&FAR, None).unwrap();
        let cost = rolled_out(&expert, &FAR, &plan.decisions);
        assert!((plan.value - cost).abs() <= 1e-9 * cost, "{} {cost}", plan.value);
        for i in 0..plan.decisions.len() {
            for shift in [-1e-3, 1e-3] {
                let mut other = plan.decisions.clone();
                other[i] = (other[i] + shift).clamp(expert.lower()[0], expert.upper()[0]);
                assert!(rolled_out(&expert, &FAR, &other) >= cost - 1e-9);
            }
        }
    }

    #[test]
    fn near_hover_it_is_the_unlimited_regulator() {
        // Without an active limit the value is eᵀPe, whatever the horizon.
        let expert = expert();
        let near = FAR.map(|v| v * 1e-3);
        let expected = quadratic(&expert.objective().terminal_cost, &near);
        let got = expert.value(&near).unwrap();
        assert!((got - expected).abs() <= 1e-9 * expected, "{got} {expected}");
    }

    #[test]
    fn decision_cost_is_least_at_the_decision() {
        let expert = expert();
        let best = expert.decide(&FAR).unwrap();
        let value = expert.value(&FAR).unwrap();
        assert!((expert.decision_cost(&FAR, &best).unwrap() - value).abs() <= 1e-9 * value);
        for other in [[-2.4, -2.4], [-1.0, 0.5], [1.5, -0.4], [-0.4, 0.1]] {
            assert!(expert.decision_cost(&FAR, &other).unwrap() > value);
        }
        assert!(matches!(
            expert.decision_cost(&FAR, &[0.0, 1.6]),
            Err(ExpertError::OutsideLimits { rotor: 1, .. })
        ));
    }

    #[test]
    fn a_previous_plan_does_not_change_the_answer() {
        let expert = expert();
        let first = expert.plan(&FAR, None).unwrap();
        let thrusts = first.decision().map(|v| v + expert.plant().hover_thrust());
        let next = expert.plant().step(&FAR, &thrusts, expert.settings().dt);
        let cold = expert.plan(&next, None).unwrap();
        let warm = expert.plan(&next, Some(&first)).unwrap();
        for (a, b) in cold.decision().iter().zip(warm.decision()) {
            assert!((a - b).abs() < 1e-9);
        }
    }

    #[test]
    fn senseless_settings_and_states_are_refused() {
        let heavy = Quadrotor { mass: 5.0, ..Quadrotor::default() };
        assert!(matches!(
            Expert::new(heavy, ExpertSettings::default()),
            Err(ExpertError::BadSetting { .. })
        ));
        let blind = ExpertSettings { horizon: 0, ..ExpertSettings::default() };
        let error = Expert::new(Quadrotor::default(), blind).unwrap_err();
        assert!(error.to_string().contains("horizon"));
        let mut state = FAR;
        state[2] = f64::NAN;
        assert_eq!(expert().decide(&state), Err(ExpertError::NotFinite));
    }
}
