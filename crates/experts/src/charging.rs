//! A depot of electric vans that charges over night, and the dispatcher whose reasons are known
//! here and nowhere else.
//!
//! In: a seed. Out: nights with what the dispatcher saw (prices, weather, tomorrow's orders), what
//! the depot allowed (chargers, grid connection, departures), what was decided, and the true cost
//! in euros by which any other plan can be charged.
//!
//! A plan u holds the charging power of the whole depot in kW for each of eight periods of two
//! hours, 16:00 to 08:00.
//!
//! ```text
//! cost(u) = w‖u‖² + h Σ_j (price_j + peak_j + cold_j + late_j − keep)·u_j + keep·need
//! U       = {0 ≤ u_j ≤ chargers_j,  u_j ≤ grid − building_j,
//!            h Σ_{i ≤ d} u_i ≥ need_d,  h Σ u ≤ room}
//! ```
//!
//! in euros, h = 2 hours. w is losses and battery wear; `keep` values what is charged beyond the
//! need, by tomorrow's day tariff; the three surcharges are the dispatcher's own and depend on the
//! signals by curves. The quadratic part is a multiple of the identity, so the best plan is the
//! projection on U of
//!
//! ```text
//! g_j = −(h / 2w) (price_j + peak_j + cold_j + late_j − keep)
//! ```
//!
//! and decisions determine g, in kW, but not w: a cost and twice the cost have the same optimum.
//! Only something known in money, here the price, tells how many euros a unit of the learned
//! objective is.

use argwhy_core::decision_set::{Prices, SampleSets};
use argwhy_core::qp::Metric;
use argwhy_core::{Constraints, DecisionSet, Error};
use ndarray::{Array1, Array2, Axis};
use rand::RngExt;
use std::f64::consts::TAU;

/// Periods of a night, the length of a decision.
pub const PERIODS: usize = 8;
/// Hours of a period.
pub const HOURS: f64 = 2.0;
/// When each period starts.
pub const PERIOD_NAMES: [&str; PERIODS] =
    ["16:00", "18:00", "20:00", "22:00", "00:00", "02:00", "04:00", "06:00"];
/// What a dispatcher sees, in the order of a signal.
pub const SIGNAL_NAMES: [&str; PERIODS + 4] = [
    "price 16:00-18:00, EUR/kWh",
    "price 18:00-20:00, EUR/kWh",
    "price 20:00-22:00, EUR/kWh",
    "price 22:00-00:00, EUR/kWh",
    "price 00:00-02:00, EUR/kWh",
    "price 02:00-04:00, EUR/kWh",
    "price 04:00-06:00, EUR/kWh",
    "price 06:00-08:00, EUR/kWh",
    "outside temperature at 16:00, degrees C",
    "electric load of the building at its evening peak, kW",
    "orders for tomorrow, 1 is a usual day",
    "tariff for charging tomorrow during the day, EUR/kWh",
];
/// Periods by whose end vans may leave, with the hour.
pub const DEPARTURES: [(usize, &str); 4] = [(4, "02:00"), (5, "04:00"), (6, "06:00"), (7, "08:00")];
/// Rows of the matrix M: needs by hour, room, grid period by period.
pub const LIMIT_ROWS: usize = DEPARTURES.len() + 1 + PERIODS;
/// The row of M that says how much the batteries can take.
pub const ROOM_ROW: usize = DEPARTURES.len();
/// The first of the rows of M that keep the grid connection.
pub const GRID_ROW: usize = ROOM_ROW + 1;

/// Power of one charger in kW.
const CHARGER: f64 = 11.0;
/// Vans the depot owns.
const VANS: usize = 12;
/// Part of the possible energy that needs may take at most.
const ATTAINABLE: f64 = 0.9;
/// The building's load in each period as a share of its evening peak.
const BUILDING_SHAPE: [f64; PERIODS] = [0.95, 1.0, 0.8, 0.55, 0.45, 0.45, 0.6, 0.85];
/// Degrees by which each period is colder than 16:00.
const COOLING: [f64; PERIODS] = [0.0, 1.5, 3.0, 4.5, 5.5, 6.5, 7.0, 6.0];
/// The usual price of each period above the night's mean, EUR/kWh.
const PRICE_SHAPE: [f64; PERIODS] = [0.03, 0.08, 0.05, 0.01, -0.03, -0.05, -0.06, -0.03];

/// Charging power of the depot in kW, period by period.
pub type Powers = [f64; PERIODS];

/// The dispatcher's true cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Depot {
    /// w: losses and wear, euros for a kW² in one period.
    pub wear: f64,
    /// Standard deviation in kW of what a decision misses the best plan by, before it is moved back
    /// into its limits.
    pub noise: f64,
}

impl Default for Depot {
    fn default() -> Self {
        Self { wear: 0.0025, noise: 3.0 }
    }
}

/// What is allowed in one night.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NightLimits {
    /// kW of the chargers that have a van.
    pub chargers: Powers,
    /// kW of the grid connection, the building's load included.
    pub grid: f64,
    /// kW the building takes.
    pub building: Powers,
    /// kWh that must be in the vans by each of [`DEPARTURES`], cumulated.
    pub needs: [f64; DEPARTURES.len()],
    /// kWh the batteries can take.
    pub room: f64,
}

/// One night: what the dispatcher saw and what was allowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Night {
    /// EUR/kWh in each period.
    pub prices: Powers,
    /// Outside temperature at 16:00.
    pub temperature: f64,
    /// Evening peak of the building's load in kW.
    pub building_peak: f64,
    /// Tomorrow's orders relative to a usual day.
    pub orders: f64,
    /// Tomorrow's day tariff in EUR/kWh.
    pub day_tariff: f64,
    /// What is allowed.
    pub limits: NightLimits,
}

/// Limits nobody has kept yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhatIf {
    /// Limits as they are.
    AsPlanned,
    /// A grid connection that is a fifth smaller.
    SmallerGrid,
    /// One more van, which needs 35 kWh and can take 50.
    OneMoreVan,
    /// Every van leaves two hours earlier.
    EarlierDeparture,
}

impl WhatIf {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::AsPlanned, Self::SmallerGrid, Self::OneMoreVan, Self::EarlierDeparture];

    /// A few words.
    pub fn name(self) -> &'static str {
        match self {
            Self::AsPlanned => "as planned",
            Self::SmallerGrid => "grid connection 20 % smaller",
            Self::OneMoreVan => "one more van",
            Self::EarlierDeparture => "departures two hours earlier",
        }
    }

    /// The night under these limits; none where its needs can then not be met.
    pub fn apply(self, night: &Night) -> Option<Night> {
        let mut changed = *night;
        let limits = &mut changed.limits;
        match self {
            Self::AsPlanned => {}
            Self::SmallerGrid => limits.grid *= 0.8,
            Self::OneMoreVan => {
                limits.chargers.iter_mut().for_each(|power| *power += CHARGER);
                limits.needs[DEPARTURES.len() - 1] += 35.0;
                limits.room += 50.0;
            }
            Self::EarlierDeparture => {
                limits.needs.rotate_left(1);
                limits.needs[DEPARTURES.len() - 1] = limits.needs[DEPARTURES.len() - 2];
                limits.chargers[PERIODS - 1] = 0.0;
            }
        }
        limits.can_be_met().then_some(changed)
    }
}

impl NightLimits {
    /// kW that can be charged in each period; negative where the building alone is too much.
    pub fn capacity(&self) -> Powers {
        std::array::from_fn(|j| self.chargers[j].min(self.grid - self.building[j]))
    }

    /// kWh that can be charged by each departure.
    fn attainable(&self) -> [f64; DEPARTURES.len()] {
        let capacity = self.capacity();
        DEPARTURES.map(|(last, _)| HOURS * capacity[..=last].iter().sum::<f64>())
    }

    /// Whether some plan keeps all limits: charge as early as possible until the need is met.
    pub fn can_be_met(&self) -> bool {
        let in_time = self.needs.iter().zip(self.attainable()).all(|(need, most)| *need <= most);
        in_time
            && self.capacity().iter().all(|power| *power >= 0.0)
            && self.needs.iter().all(|need| *need <= self.room)
    }

    /// kWh needed in all.
    pub fn need(&self) -> f64 {
        self.needs[DEPARTURES.len() - 1]
    }

    /// Right-hand sides of the rows of [`limit_matrix`].
    pub fn bounds(&self) -> [f64; LIMIT_ROWS] {
        std::array::from_fn(|row| match row {
            ROOM_ROW => self.room,
            // No need is 0, and −0 would be an odd thing to read in a table.
            row if row < ROOM_ROW => 0.0 - self.needs[row],
            row => self.grid - self.building[row - GRID_ROW],
        })
    }
}

/// M, the same every night: minus the energy by each departure, all energy, the power of each
/// period.
pub fn limit_matrix() -> Array2<f64> {
    Array2::from_shape_fn((LIMIT_ROWS, PERIODS), |(row, j)| match row {
        ROOM_ROW => HOURS,
        row if row < ROOM_ROW => {
            if j <= DEPARTURES[row].0 {
                -HOURS
            } else {
                0.0
            }
        }
        row => f64::from(u8::from(row - GRID_ROW == j)),
    })
}

/// What each row of [`limit_matrix`] keeps.
pub fn limit_name(row: usize) -> String {
    match row {
        ROOM_ROW => "battery room, kWh".to_owned(),
        row if row < ROOM_ROW => format!("minus the need by {}, kWh", DEPARTURES[row].1),
        row => format!("grid connection from {}, kW", PERIOD_NAMES[row - GRID_ROW]),
    }
}

impl Night {
    /// What the dispatcher saw, in the order of [`SIGNAL_NAMES`].
    pub fn signal(&self) -> Array1<f64> {
        let others = [self.temperature, self.building_peak, self.orders, self.day_tariff];
        self.prices.into_iter().chain(others).collect()
    }
}

/// Signals of many nights, one row each.
pub fn signals(nights: &[Night]) -> Array2<f64> {
    let mut all = Array2::zeros((nights.len(), SIGNAL_NAMES.len()));
    for (mut row, night) in all.rows_mut().into_iter().zip(nights) {
        row.assign(&night.signal());
    }
    all
}

/// Limits of many nights, as a data set carries them.
pub fn constraints(nights: &[Night]) -> Result<Constraints, Error> {
    let n = nights.len();
    let bounds: Vec<_> = nights.iter().map(|night| night.limits.bounds()).collect();
    Constraints::new()
        .with_lower(Array2::zeros((n, PERIODS)))?
        .with_upper(Array2::from_shape_fn((n, PERIODS), |(i, j)| nights[i].limits.chargers[j]))?
        .with_inequalities(
            limit_matrix(),
            Array2::from_shape_fn((n, LIMIT_ROWS), |(i, row)| bounds[i][row]),
        )
}

/// Limits of many nights, as decisions are taken in.
pub fn sets(nights: &[Night]) -> Result<SampleSets, Error> {
    let own = DecisionSet::unbounded(PERIODS);
    SampleSets::new(own.limits(), Some(&constraints(nights)?), nights.len(), |i| i)
}

impl Depot {
    /// The dispatcher's own surcharges in EUR/kWh for each period: fear of the building's peak, of
    /// cold batteries, of charging late before a busy day.
    pub fn surcharges(&self, night: &Night) -> Powers {
        std::array::from_fn(|j| {
            let building = night.building_peak * BUILDING_SHAPE[j];
            let peak = 0.10 / (1.0 + (-(building - 45.0) / 5.0).exp());
            let cold = 0.05 * ((2.0 - (night.temperature - COOLING[j])) / 4.0).exp().ln_1p();
            let lateness = j as f64 / (PERIODS - 1) as f64;
            let late = 0.05 * night.orders.powi(3) * lateness.powi(2);
            peak + cold.min(0.25) + late
        })
    }

    /// What the next kWh costs in each period when nothing is charged yet, euros: the price with
    /// its surcharges, less what energy is worth tomorrow.
    pub fn first_kwh(&self, night: &Night) -> Powers {
        let surcharges = self.surcharges(night);
        std::array::from_fn(|j| night.prices[j] + surcharges[j] - night.day_tariff)
    }

    /// g: what the dispatcher would do without limits, kW.
    pub fn desired(&self, night: &Night) -> Powers {
        self.first_kwh(night).map(|cost| -HOURS * cost / (2.0 * self.wear))
    }

    /// The true cost of a plan in euros.
    pub fn cost(&self, night: &Night, plan: &[f64]) -> f64 {
        let energy: f64 = plan.iter().zip(self.first_kwh(night)).map(|(u, c)| HOURS * c * u).sum();
        let squares: f64 = plan.iter().map(|u| u * u).sum();
        self.wear * squares + energy + night.day_tariff * night.limits.need()
    }

    /// The best plans, n_nights × 8.
    pub fn best_plans(&self, nights: &[Night]) -> Result<Array2<f64>, Error> {
        nearest(&sets(nights)?, self.all_desired(nights))
    }

    /// What each limit costs on the best plans, in euros for a unit of the limit.
    pub fn prices(&self, nights: &[Night]) -> Result<Prices, Error> {
        let columns = self.all_desired(nights).t().as_standard_layout().into_owned();
        let mut prices = sets(nights)?.prices(&Metric::identity(PERIODS), &columns)?;
        // cost = w·(‖u‖² − 2gᵀu) + constant.
        prices.values.iter_mut().for_each(|value| *value *= self.wear);
        Ok(prices)
    }

    /// g of many nights, n_nights × 8.
    pub fn all_desired(&self, nights: &[Night]) -> Array2<f64> {
        let desired: Vec<_> = nights.iter().map(|night| self.desired(night)).collect();
        Array2::from_shape_fn((nights.len(), PERIODS), |(i, j)| desired[i][j])
    }

    /// What the dispatcher really decided: the best plan, missed by noise and moved back into the
    /// limits.
    pub fn decisions(&self, nights: &[Night], seed: u64) -> Result<Array2<f64>, Error> {
        let mut rng = argwhy_core::random::stream(seed, "charging decisions");
        let mut plans = self.best_plans(nights)?;
        plans.iter_mut().for_each(|u| *u += self.noise * normal(&mut rng));
        nearest(&sets(nights)?, plans)
    }
}

/// What one does with a price list alone: for each departure in turn, fill the cheapest hours left
/// until the need is met.
pub fn cheapest_hours(night: &Night) -> Powers {
    let capacity = night.limits.capacity();
    let mut order: Vec<usize> = (0..PERIODS).collect();
    order.sort_by(|&i, &j| night.prices[i].total_cmp(&night.prices[j]));
    let mut plan = [0.0; PERIODS];
    for ((last, _), need) in DEPARTURES.into_iter().zip(night.limits.needs) {
        for &j in order.iter().filter(|j| **j <= last) {
            let missing = need / HOURS - plan[..=last].iter().sum::<f64>();
            plan[j] = (plan[j] + missing.max(0.0)).min(capacity[j]);
        }
    }
    plan
}

/// Each row of `points` moved to the nearest point of its set.
pub fn nearest(sets: &SampleSets, mut points: Array2<f64>) -> Result<Array2<f64>, Error> {
    for (i, mut row) in points.axis_iter_mut(Axis(0)).enumerate() {
        let mut point = row.to_vec();
        sets.project(i, &mut point)?;
        row.assign(&Array1::from(point));
    }
    Ok(points)
}

/// `n` nights in a row from 1 January on. The same seed gives the same nights, and fewer are the
/// first of more.
pub fn nights(n: usize, seed: u64) -> Vec<Night> {
    let mut rng = argwhy_core::random::stream(seed, "charging nights");
    (0..n).map(|day| night(day, &mut rng)).collect()
}

fn night(day: usize, rng: &mut impl RngExt) -> Night {
    let season = (TAU * day as f64 / 365.25).cos();
    let temperature = rounded(11.0 - 9.0 * season + 4.0 * normal(rng), 1);
    // Less wind and more cold make power dear; the evening is dear above all when it is dark early.
    let level = 0.22 + 0.02 * season + 0.035 * normal(rng);
    let swing = 1.0 + 0.3 * season + 0.35 * normal(rng);
    let mut prices = [0.0; PERIODS];
    let mut wave = 0.0;
    for (price, shape) in prices.iter_mut().zip(PRICE_SHAPE) {
        wave = 0.6 * wave + 0.018 * normal(rng);
        *price = rounded((level + swing * shape + wave).max(0.01), 4);
    }
    let weekend = day % 7 >= 5;
    let orders =
        rounded((if weekend { 0.75 } else { 1.05 } + 0.15 * normal(rng)).clamp(0.4, 1.6), 2);
    let building_peak = if weekend { 32.0 } else { 44.0 } + 4.0 * season + 6.0 * normal(rng);
    // Even a curtailed connection carries the building.
    let building_peak = rounded(building_peak.clamp(10.0, 60.0), 1);
    let day_tariff = rounded((0.34 + 0.02 * season + 0.05 * normal(rng)).max(0.05), 4);
    let limits = limits(orders, temperature, building_peak, rng);
    Night { prices, temperature, building_peak, orders, day_tariff, limits }
}

/// Vans come home between 16:00 and 20:00, leave between 04:00 and 08:00, and need energy for
/// tomorrow.
fn limits(orders: f64, temperature: f64, building_peak: f64, rng: &mut impl RngExt) -> NightLimits {
    let in_workshop = rng.random_range(0..=3);
    let curtailed: f64 = rng.random();
    let early: f64 = rng.random();
    let (mut chargers, mut needs, mut room) = ([0.0; PERIODS], [0.0; DEPARTURES.len()], 0.0);
    for van in 0..VANS {
        // Drawn for every van, so that the stream does not depend on how many are away.
        let (home, leaves): (f64, f64) = (rng.random(), rng.random());
        let (used, share): (f64, f64) = (rng.random_range(40.0..70.0), rng.random_range(0.4..0.8));
        if van < in_workshop {
            continue;
        }
        let first = if home < 0.35 {
            0
        } else if home < 0.8 {
            1
        } else {
            2
        };
        let departure = if leaves < 0.8 * early {
            1
        } else if leaves < 0.4 + 0.5 * early {
            2
        } else {
            3
        };
        let last = DEPARTURES[departure].0;
        chargers[first..=last].iter_mut().for_each(|power| *power += CHARGER);
        // Busy and cold days take more.
        let heating = 1.0 + 0.012 * (15.0 - temperature).max(0.0);
        let used = used * (0.6 + 0.4 * orders) * heating;
        needs[departure..].iter_mut().for_each(|need| *need += share * used);
        room += used;
    }
    let building = BUILDING_SHAPE.map(|shape| rounded(building_peak * shape, 1));
    // On some nights the network operator curtails the connection.
    let grid = if curtailed < 0.12 { 65.0 } else { 80.0 };
    let room = rounded(room, 1);
    let mut limits = NightLimits { chargers, grid, building, needs, room };
    let attainable = limits.attainable();
    for (need, most) in limits.needs.iter_mut().zip(attainable) {
        // Tours that cannot be charged for are driven by somebody else.
        *need = rounded(need.min(ATTAINABLE * most), 1);
    }
    limits
}

fn rounded(value: f64, decimals: i32) -> f64 {
    let unit = 10_f64.powi(decimals);
    (value * unit).round() / unit
}

/// A draw from the standard normal distribution (Box and Muller).
fn normal(rng: &mut impl RngExt) -> f64 {
    let (radius, angle): (f64, f64) = (rng.random(), rng.random());
    // 1 − radius is in (0, 1].
    (-2.0 * (1.0 - radius).ln()).sqrt() * (TAU * angle).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use argwhy_core::decision_set::RowLabel;

    #[test]
    fn nights_repeat_by_seed_and_fewer_are_the_first_of_more() {
        let all = nights(40, 3);
        assert_eq!(all, nights(40, 3));
        assert_eq!(all[..25], nights(25, 3));
        assert_ne!(all, nights(40, 4));
        let depot = Depot::default();
        let decided = depot.decisions(&all, 3).unwrap();
        assert_eq!(decided, depot.decisions(&all, 3).unwrap());
        assert_eq!(decided.slice(ndarray::s![..25, ..]), depot.decisions(&all[..25], 3).unwrap());
        assert_ne!(decided, depot.decisions(&all, 4).unwrap());
    }

    /// The limits, written out once more from what they mean.
    fn keeps(limits: &NightLimits, plan: &[f64]) -> bool {
        let by = |last: usize| HOURS * plan[..=last].iter().sum::<f64>();
        let tolerance = 1e-9 * (1.0 + limits.room);
        let powers = plan.iter().enumerate().all(|(j, u)| {
            *u >= -tolerance
                && *u <= limits.chargers[j] + tolerance
                && *u + limits.building[j] <= limits.grid + tolerance
        });
        let needs = DEPARTURES.iter().zip(limits.needs);
        powers
            && needs.clone().all(|((last, _), need)| by(*last) >= need - tolerance)
            && by(PERIODS - 1) <= limits.room + tolerance
    }

    #[test]
    fn the_best_plan_satisfies_the_optimality_conditions_of_the_true_cost() {
        let (depot, nights) = (Depot::default(), nights(400, 1));
        let plans = depot.best_plans(&nights).unwrap();
        let prices = depot.prices(&nights).unwrap();
        let matrix = limit_matrix();
        let mut held_by = std::collections::BTreeSet::new();
        for (i, (night, plan)) in nights.iter().zip(plans.rows()).enumerate() {
            let plan = plan.to_vec();
            assert!(keeps(&night.limits, &plan), "{i}: {night:?} {plan:?}");
            // ∇cost + Σ price·row = 0, prices ≥ 0, and only where the limit is reached.
            let first = depot.first_kwh(night);
            let mut rest: Vec<f64> =
                (0..PERIODS).map(|j| 2.0 * depot.wear * plan[j] + HOURS * first[j]).collect();
            let own = |k: &usize| prices.samples[*k] == i as u64;
            for k in (0..prices.len()).filter(own) {
                let (label, price) = (prices.limits[k], prices.values[k]);
                assert!(price >= 0.0, "{i}: {label} costs {price}");
                held_by.insert(label);
                let (value, limit) = match label {
                    RowLabel::Lower(j) => {
                        rest[j as usize] -= price;
                        (plan[j as usize], 0.0)
                    }
                    RowLabel::Upper(j) => {
                        rest[j as usize] += price;
                        (plan[j as usize], night.limits.chargers[j as usize])
                    }
                    RowLabel::Inequality(row) => {
                        let row = row as usize;
                        (0..PERIODS).for_each(|j| rest[j] += price * matrix[[row, j]]);
                        let value: f64 = (0..PERIODS).map(|j| matrix[[row, j]] * plan[j]).sum();
                        (value, night.limits.bounds()[row])
                    }
                    RowLabel::Equality(_) => panic!("there are no equalities"),
                };
                assert!((value - limit).abs() < 1e-8, "{i}: {label} {value} {limit}");
            }
            assert!(rest.iter().all(|r| r.abs() < 1e-10), "{i}: {rest:?}");
        }
        // Every kind of limit matters somewhere: chargers, grid, two departures and the room.
        assert!(held_by.iter().any(|l| matches!(l, RowLabel::Lower(_))));
        assert!(held_by.iter().any(|l| matches!(l, RowLabel::Upper(_))));
        for row in [1, 2, 3, ROOM_ROW, GRID_ROW + 1] {
            assert!(held_by.contains(&RowLabel::Inequality(row as u32)), "{row} {held_by:?}");
        }
    }

    #[test]
    fn decisions_keep_the_limits_and_cost_more_than_the_best_plan() {
        let (depot, nights) = (Depot::default(), nights(300, 2));
        let (best, decided) =
            (depot.best_plans(&nights).unwrap(), depot.decisions(&nights, 2).unwrap());
        for (i, night) in nights.iter().enumerate() {
            let plan = decided.row(i).to_vec();
            assert!(keeps(&night.limits, &plan), "{i}");
            let least = depot.cost(night, &best.row(i).to_vec());
            assert!(least > 0.0 && depot.cost(night, &plan) > least, "{i}: {least}");
        }
        let exact = Depot { noise: 0.0, ..depot };
        assert!((exact.decisions(&nights, 2).unwrap() - best).iter().all(|d| d.abs() < 1e-9));
    }

    #[test]
    fn a_price_is_what_one_more_unit_saves() {
        let (depot, nights) = (Depot::default(), nights(60, 5));
        let prices = depot.prices(&nights).unwrap();
        let cost = |night: &Night| -> f64 {
            let plan = depot.best_plans(&[*night]).unwrap();
            depot.cost(night, &plan.row(0).to_vec())
        };
        let step = 1e-4;
        let mut compared = 0;
        for (i, night) in nights.iter().enumerate() {
            let worth: f64 = (0..prices.len())
                .filter(|&k| prices.samples[k] == i as u64)
                .filter(|&k| {
                    matches!(prices.limits[k], RowLabel::Inequality(r) if r as usize >= GRID_ROW)
                })
                .map(|k| prices.values[k])
                .sum();
            let with =
                |grid: f64| cost(&Night { limits: NightLimits { grid, ..night.limits }, ..*night });
            let saved =
                (with(night.limits.grid - step) - with(night.limits.grid + step)) / (2.0 * step);
            assert!((saved - worth).abs() < 1e-3 * (1.0 + worth), "{i}: {saved} {worth}");
            compared += usize::from(worth > 0.01);
        }
        assert!(compared >= 5, "{compared}");
    }

    #[test]
    fn the_cheapest_hours_meet_every_need_and_no_more() {
        for night in nights(300, 6) {
            let plan = cheapest_hours(&night);
            assert!(keeps(&night.limits, &plan), "{night:?} {plan:?}");
            let energy = HOURS * plan.iter().sum::<f64>();
            assert!((energy - night.limits.need()).abs() < 1e-9 * (1.0 + energy));
        }
    }

    #[test]
    fn what_ifs_are_refused_where_no_plan_can_keep_them() {
        let nights = nights(200, 0);
        for what_if in WhatIf::ALL {
            let kept: Vec<Night> = nights.iter().filter_map(|night| what_if.apply(night)).collect();
            assert!(kept.len() > 120, "{what_if:?} {}", kept.len());
            sets(&kept).unwrap();
            for night in nights.iter().filter(|night| what_if.apply(night).is_none()) {
                let mut changed = *night;
                if what_if == WhatIf::SmallerGrid {
                    changed.limits.grid *= 0.8;
                    assert!(sets(&[changed]).is_err());
                }
            }
        }
        let earlier = WhatIf::EarlierDeparture.apply(&nights[0]).unwrap();
        assert_eq!(earlier.limits.needs[0], nights[0].limits.needs[1]);
        assert_eq!(earlier.limits.need(), nights[0].limits.need());
    }
}
