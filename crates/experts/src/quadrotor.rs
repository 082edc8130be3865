//! The plant: a quadrotor seen from the side, with its full nonlinear motion.
//!
//! In: a state and two rotor thrusts. Out: the state a moment later. With thrusts `t_r`, `t_l` on
//! the right and left arm,
//!
//! ```text
//! m ẍ = −(t_r + t_l) sin θ ,   m z̈ = (t_r + t_l) cos θ − m g ,   J θ̈ = r (t_r − t_l)
//! ```

use ndarray::{Array2, array};

/// Standard gravity, m/s².
pub const GRAVITY: f64 = 9.806_65;
/// Numbers in a state.
pub const STATE_DIM: usize = 6;
/// Numbers in a decision: one thrust per rotor.
pub const INPUT_DIM: usize = 2;
/// What each number of a state is, with its unit.
pub const STATE_NAMES: [&str; STATE_DIM] =
    ["x [m]", "z [m]", "pitch [rad]", "vx [m/s]", "vz [m/s]", "pitch rate [rad/s]"];
/// What each number of a decision is, with its unit.
pub const INPUT_NAMES: [&str; INPUT_DIM] =
    ["right thrust above hover [N]", "left thrust above hover [N]"];

/// Position, pitch and their rates, in the order of [`STATE_NAMES`]; positions from the target.
pub type State = [f64; STATE_DIM];
/// Right and left rotor thrust in newtons, 0 at rest.
pub type Thrusts = [f64; INPUT_DIM];
/// Right and left thrust above the one that hovers, in newtons: what the expert decides.
pub type Decision = [f64; INPUT_DIM];

/// Longest integration step, s: at full torque one RK4 step is then off by less than 1e-6.
const MAX_RK4_STEP: f64 = 0.01;

/// The vehicle. The default is a half-kilogram quadrotor with half a metre between the rotors and
/// most of its mass out at the motors.
#[derive(Debug, Clone, PartialEq)]
pub struct Quadrotor {
    /// Mass in kg.
    pub mass: f64,
    /// Moment of inertia about the pitch axis in kg m².
    pub inertia: f64,
    /// Distance from the centre of mass to each rotor in m.
    pub arm: f64,
    /// The most each rotor can pull, in N; the least is 0.
    pub max_thrust: f64,
}

impl Default for Quadrotor {
    fn default() -> Self {
        Self { mass: 0.5, inertia: 0.02, arm: 0.25, max_thrust: 4.0 }
    }
}

impl Quadrotor {
    /// The thrust of each rotor that holds the vehicle level and still, in N.
    pub fn hover_thrust(&self) -> f64 {
        self.mass * GRAVITY / 2.0
    }

    /// Time derivative of the state. Thrusts are used as given, within limits or not.
    pub fn derivative(&self, state: &State, thrusts: &Thrusts) -> State {
        let [_, _, pitch, vx, vz, rate] = *state;
        let [right, left] = *thrusts;
        let lift = (right + left) / self.mass;
        [
            vx,
            vz,
            rate,
            -lift * pitch.sin(),
            lift * pitch.cos() - GRAVITY,
            self.arm * (right - left) / self.inertia,
        ]
    }

    /// The state after `dt` seconds of constant thrusts, by classical Runge-Kutta steps of at most
    /// 10 ms. Thrusts beyond a rotor's limits are cut to them: the rotors can do no more.
    pub fn step(&self, state: &State, thrusts: &Thrusts, dt: f64) -> State {
        let thrusts = thrusts.map(|t| t.clamp(0.0, self.max_thrust));
        let n_steps = (dt / MAX_RK4_STEP).ceil().max(1.0);
        let h = dt / n_steps;
        let mut state = *state;
        for _ in 0..n_steps as usize {
            let k1 = self.derivative(&state, &thrusts);
            let k2 = self.derivative(&moved(&state, &k1, h / 2.0), &thrusts);
            let k3 = self.derivative(&moved(&state, &k2, h / 2.0), &thrusts);
            let k4 = self.derivative(&moved(&state, &k3, h), &thrusts);
            state = std::array::from_fn(|i| {
                state[i] + h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i])
            });
        }
        state
    }

    /// The motion near hover, continuous in time: `ẋ = A x + B (thrusts − hover)`; A is 6 × 6, B 6
    /// × 2.
    pub fn linearized(&self) -> (Array2<f64>, Array2<f64>) {
        let mut a = Array2::zeros((STATE_DIM, STATE_DIM));
        for i in 0..3 {
            a[[i, i + 3]] = 1.0;
        }
        a[[3, 2]] = -GRAVITY;
        let (lift, torque) = (1.0 / self.mass, self.arm / self.inertia);
        let b =
            array![[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [lift, lift], [torque, -torque]];
        (a, b)
    }
}

fn moved(state: &State, rate: &State, dt: f64) -> State {
    std::array::from_fn(|i| state[i] + dt * rate[i])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hover_stays_where_it_is() {
        let plant = Quadrotor::default();
        let start = [0.3, -0.2, 0.0, 0.0, 0.0, 0.0];
        let end = plant.step(&start, &[plant.hover_thrust(); 2], 1.0);
        for (a, b) in start.iter().zip(end) {
            assert!((a - b).abs() < 1e-12);
        }
    }

    #[test]
    fn free_fall_follows_the_parabola() {
        let plant = Quadrotor::default();
        let end = plant.step(&[0.0, 0.0, 0.4, 1.0, 2.0, -0.5], &[0.0, 0.0], 0.7);
        let t = 0.7;
        let expected =
            [t, 2.0 * t - GRAVITY * t * t / 2.0, 0.4 - 0.5 * t, 1.0, 2.0 - GRAVITY * t, -0.5];
        for (a, b) in expected.iter().zip(end) {
            assert!((a - b).abs() < 1e-12, "{a} {b}");
        }
    }

    #[test]
    fn thrust_beyond_the_limit_is_thrust_at_the_limit() {
        let plant = Quadrotor::default();
        let start = [0.0, 0.0, 0.1, 0.0, 0.0, 0.0];
        assert_eq!(
            plant.step(&start, &[-3.0, 99.0], 0.05),
            plant.step(&start, &[0.0, plant.max_thrust], 0.05)
        );
    }

    #[test]
    fn runge_kutta_error_is_below_a_micrometre() {
        let plant = Quadrotor::default();
        let start = [0.0, 0.0, 0.5, 1.0, -1.0, 3.0];
        let thrusts = [plant.max_thrust, 0.0];
        let coarse = plant.step(&start, &thrusts, 0.05);
        let mut fine = start;
        for _ in 0..500 {
            fine = plant.step(&fine, &thrusts, 1e-4);
        }
        for (a, b) in coarse.iter().zip(fine) {
            assert!((a - b).abs() < 1e-6, "{a} {b}");
        }
    }

    #[test]
    fn linearization_is_the_derivative_at_hover() {
        let plant = Quadrotor::default();
        let (a, b) = plant.linearized();
        let hover = [plant.hover_thrust(); INPUT_DIM];
        let eps = 1e-6;
        for j in 0..STATE_DIM {
            let (mut up, mut down) = ([0.0; STATE_DIM], [0.0; STATE_DIM]);
            up[j] = eps;
            down[j] = -eps;
            let (fu, fd) = (plant.derivative(&up, &hover), plant.derivative(&down, &hover));
            for i in 0..STATE_DIM {
                assert!((a[[i, j]] - (fu[i] - fd[i]) / (2.0 * eps)).abs() < 1e-6);
            }
        }
        for j in 0..INPUT_DIM {
            let (mut up, mut down) = (hover, hover);
            up[j] += eps;
            down[j] -= eps;
            let level = [0.0; STATE_DIM];
            let (fu, fd) = (plant.derivative(&level, &up), plant.derivative(&level, &down));
            for i in 0..STATE_DIM {
                assert!((b[[i, j]] - (fu[i] - fd[i]) / (2.0 * eps)).abs() < 1e-6);
            }
        }
    }
}
