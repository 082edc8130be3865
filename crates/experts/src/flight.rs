//! Flights: closed loops of plant and controller, and the demonstrations cut from the expert's.
//!
//! In: a controller and a start. Out: what happened and what it cost by the expert's own measure,
//! `Σ eᵀQe + vᵀRv` over the steps flown.

use super::ExpertError;
use super::mpc::{Expert, Plan};
use super::quadrotor::{Decision, INPUT_DIM, STATE_DIM, State};
use ndarray::{Array2, ArrayView1};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::f64::consts::FRAC_PI_2;

/// Steps in one demonstrated episode: half a second. Short, because flights soon look alike, and
/// many starts show more of the expert than long ends do.
pub const EPISODE_STEPS: usize = 10;
/// Starts are uniform in the ellipsoid with these half-axes, in the order of the state.
pub const START_SPREAD: State = [3.0, 3.0, 0.7, 2.5, 3.0, 3.0];
/// A flight further than this from the target, in metres along x or z, has crashed; so has one
/// pitched beyond 90°.
pub const ARENA: f64 = 10.0;
/// Added to the cost of a flight that crashes: more than any flight of the expert costs.
pub const CRASH_PENALTY: f64 = 10_000.0;

/// One random stream per purpose, so that held-out starts never meet demonstrated ones.
const DEMONSTRATION_STREAM: u64 = 1;
const SCENARIO_STREAM: u64 = 2;

/// What the expert saw and did, episode after episode.
#[derive(Debug, Clone, PartialEq)]
pub struct Demonstrations {
    /// States relative to the target, n_samples × 6.
    pub signals: Array2<f64>,
    /// Thrusts above hover in N, n_samples × 2, within the limits to the bit.
    pub decisions: Array2<f64>,
    /// Least decision of each rotor.
    pub lower: Decision,
    /// Greatest decision of each rotor.
    pub upper: Decision,
    /// Row at which each episode starts, ascending, the first 0.
    pub episode_starts: Vec<usize>,
}

impl Demonstrations {
    /// Share of the decisions with at least one rotor at a limit, 0 to 1.
    pub fn saturated_share(&self) -> f64 {
        let at_limit = |row: &ArrayView1<f64>| {
            (0..INPUT_DIM).any(|i| row[i] <= self.lower[i] || row[i] >= self.upper[i])
        };
        let n_saturated = self.decisions.rows().into_iter().filter(at_limit).count();
        n_saturated as f64 / self.decisions.nrows().max(1) as f64
    }
}

/// One flight.
#[derive(Debug, Clone, PartialEq)]
pub struct Trajectory {
    /// States, (steps flown + 1) × 6; the first is the start.
    pub states: Array2<f64>,
    /// Decisions carried out (thrust above hover, within the limits), steps flown × 2.
    pub inputs: Array2<f64>,
    /// The true objective's stage cost of every step flown.
    pub stage_costs: Vec<f64>,
    /// Sum of the stage costs, plus [`CRASH_PENALTY`] after a crash.
    pub total_cost: f64,
    /// Whether the flight ended early: beyond 90° of pitch, outside the arena, or by a controller
    /// that answered NaN or an infinity.
    pub crashed: bool,
}

impl Expert {
    /// `n_samples` decisions from as many episodes as it takes, each from a random start in
    /// [`START_SPREAD`]. The same seed gives the same rows, and fewer rows are the first of more.
    pub fn demonstrations(
        &self,
        n_samples: usize,
        seed: u64,
    ) -> Result<Demonstrations, ExpertError> {
        let mut rng = stream(seed, DEMONSTRATION_STREAM);
        let mut demonstrations = Demonstrations {
            signals: Array2::zeros((n_samples, STATE_DIM)),
            decisions: Array2::zeros((n_samples, INPUT_DIM)),
            lower: self.lower(),
            upper: self.upper(),
            episode_starts: Vec::new(),
        };
        let mut row = 0;
        while row < n_samples {
            demonstrations.episode_starts.push(row);
            let flight =
                self.fly_expert(&random_start(&mut rng), EPISODE_STEPS.min(n_samples - row))?;
            for (state, input) in flight.states.rows().into_iter().zip(flight.inputs.rows()) {
                demonstrations.signals.row_mut(row).assign(&state);
                demonstrations.decisions.row_mut(row).assign(&input);
                row += 1;
            }
        }
        Ok(demonstrations)
    }

    /// `n` starts for held-out flights, drawn like the demonstrated ones but never the same.
    pub fn scenarios(&self, seed: u64, n: usize) -> Vec<State> {
        let mut rng = stream(seed, SCENARIO_STREAM);
        (0..n).map(|_| random_start(&mut rng)).collect()
    }

    /// The expert's own flight.
    pub fn fly_expert(&self, start: &State, n_steps: usize) -> Result<Trajectory, ExpertError> {
        let mut previous: Option<Plan> = None;
        self.try_fly(
            |signal| {
                let state = std::array::from_fn(|i| signal[i]);
                let plan = self.plan(&state, previous.as_ref())?;
                let decision = plan.decision().to_vec();
                previous = Some(plan);
                Ok(decision)
            },
            start,
            n_steps,
        )
    }

    /// A flight by any controller: from the signal (the state relative to the target) to two
    /// thrusts above hover in N. What is beyond a limit is cut to it, as the rotors would.
    pub fn fly(
        &self,
        mut controller: impl FnMut(&[f64]) -> Vec<f64>,
        start: &State,
        n_steps: usize,
    ) -> Result<Trajectory, ExpertError> {
        self.try_fly(|signal| Ok(controller(signal)), start, n_steps)
    }

    /// [`Expert::fly`] for a controller that may fail; its first error ends the flight and is
    /// returned.
    pub fn try_fly<E: From<ExpertError>>(
        &self,
        mut controller: impl FnMut(&[f64]) -> Result<Vec<f64>, E>,
        start: &State,
        n_steps: usize,
    ) -> Result<Trajectory, E> {
        let (lower, upper) = (self.lower(), self.upper());
        let mut states = vec![*start];
        let mut inputs: Vec<Decision> = Vec::with_capacity(n_steps);
        let mut stage_costs = Vec::with_capacity(n_steps);
        let mut state = *start;
        let mut crashed = has_crashed(&state);
        while !crashed && inputs.len() < n_steps {
            let decision = controller(&state)?;
            let asked: Decision = decision
                .try_into()
                .map_err(|d: Vec<f64>| ExpertError::DecisionShape { found: d.len() })?;
            if asked.iter().any(|t| !t.is_finite()) {
                crashed = true;
                break;
            }
            let input = std::array::from_fn(|i| asked[i].clamp(lower[i], upper[i]));
            stage_costs.push(self.objective().stage_cost(&state, &input));
            let thrusts = input.map(|v| v + self.plant().hover_thrust());
            state = self.plant().step(&state, &thrusts, self.settings().dt);
            inputs.push(input);
            states.push(state);
            crashed = has_crashed(&state);
        }
        let penalty = if crashed { CRASH_PENALTY } else { 0.0 };
        Ok(Trajectory {
            states: Array2::from(states),
            inputs: Array2::from(inputs),
            total_cost: stage_costs.iter().sum::<f64>() + penalty,
            stage_costs,
            crashed,
        })
    }
}

fn has_crashed(state: &State) -> bool {
    let [x, z, pitch, ..] = *state;
    // Written so that NaN is a crash too.
    !(x.abs() <= ARENA && z.abs() <= ARENA && pitch.abs() <= FRAC_PI_2)
}

fn stream(seed: u64, purpose: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(purpose);
    rng
}

fn random_start(rng: &mut ChaCha8Rng) -> State {
    // One draw in twelve lands in the ball: simpler than a transformation, and exact.
    loop {
        let unit: State = std::array::from_fn(|_| rng.random_range(-1.0..=1.0));
        if unit.iter().map(|v| v * v).sum::<f64>() <= 1.0 {
            return std::array::from_fn(|i| unit[i] * START_SPREAD[i]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ExpertSettings, Quadrotor};
    use super::*;

    fn expert() -> Expert {
        Expert::new(Quadrotor::default(), ExpertSettings::default()).unwrap()
    }

    #[test]
    fn demonstrations_repeat_by_seed_and_keep_the_limits() {
        let expert = expert();
        let demo = expert.demonstrations(500, 7).unwrap();
        assert_eq!(demo, expert.demonstrations(500, 7).unwrap());
        assert_ne!(demo.signals, expert.demonstrations(500, 8).unwrap().signals);
        let fewer = expert.demonstrations(130, 7).unwrap();
        assert_eq!(fewer.signals, demo.signals.slice(ndarray::s![..130, ..]));
        assert_eq!(fewer.episode_starts, (0..130).step_by(EPISODE_STEPS).collect::<Vec<_>>());
        for row in demo.decisions.rows() {
            for i in 0..INPUT_DIM {
                assert!(row[i] >= demo.lower[i] && row[i] <= demo.upper[i]);
            }
        }
        let share = demo.saturated_share();
        assert!((0.3..=0.5).contains(&share), "{share}");
    }

    #[test]
    fn a_demonstrated_row_is_what_decide_says() {
        let expert = expert();
        let demo = expert.demonstrations(80, 3).unwrap();
        for row in 0..80 {
            let state = std::array::from_fn(|i| demo.signals[[row, i]]);
            let plan = expert.plan(&state, None).unwrap();
            assert!(plan.residual <= 1e-9);
            for (i, t) in plan.decision().iter().enumerate() {
                assert!((t - demo.decisions[[row, i]]).abs() < 1e-8);
            }
        }
    }

    #[test]
    fn the_expert_arrives_from_every_held_out_start() {
        let expert = expert();
        for start in expert.scenarios(0, 200) {
            let flight = expert.fly_expert(&start, 120).unwrap();
            assert!(!flight.crashed, "{start:?}");
            let end = flight.states.row(120);
            assert!(end[0].hypot(end[1]) < 0.1, "{start:?} {end}");
            assert!(flight.total_cost < CRASH_PENALTY);
        }
    }

    #[test]
    fn held_out_starts_are_not_demonstrated_ones() {
        let expert = expert();
        let demo = expert.demonstrations(400, 0).unwrap();
        let starts = expert.scenarios(0, 50);
        assert_eq!(starts, expert.scenarios(0, 60)[..50]);
        for &row in &demo.episode_starts {
            let shown = demo.signals.row(row).to_vec();
            assert!(starts.iter().all(|s| s[..] != shown[..]));
        }
    }

    #[test]
    fn crashes_end_the_flight_and_are_charged() {
        let expert = expert();
        let start = [0.0; STATE_DIM];
        let spin = expert.fly(|_| vec![1.5, -1.5], &start, 100).unwrap();
        assert!(spin.crashed && spin.inputs.nrows() < 20);
        assert!(spin.total_cost >= CRASH_PENALTY);
        assert_eq!(spin.states.nrows(), spin.inputs.nrows() + 1);
        assert_eq!(spin.stage_costs.len(), spin.inputs.nrows());
        let nan = expert.fly(|_| vec![f64::NAN, 0.0], &start, 100).unwrap();
        assert!(nan.crashed && nan.inputs.nrows() == 0);
        assert_eq!(
            expert.fly(|_| vec![1.0], &start, 100),
            Err(ExpertError::DecisionShape { found: 1 })
        );
    }

    #[test]
    fn nothing_asked_nothing_flown() {
        let expert = expert();
        assert_eq!(expert.demonstrations(0, 0).unwrap().signals.dim(), (0, STATE_DIM));
        let flight = expert.fly_expert(&[0.0; STATE_DIM], 0).unwrap();
        assert_eq!((flight.total_cost, flight.crashed), (0.0, false));
    }
}
