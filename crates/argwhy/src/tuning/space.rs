//! What is searched: combinations of settings, and the regularizations each is tried with.

use super::scales::asked_for;
use crate::error::Error;
use crate::settings::{FitSettings, Regularization, Table, Value, merge};
use argwhy_core::features::Expansion;

/// Regularizations that are tried where nobody says which, from simple to detailed: a path is
/// quickest that way.
const REGULARIZATIONS: [f64; 8] = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8];
/// Widths of kernels, as multiples of γ = 1/(number of features).
const WIDTHS: [f64; 5] = [0.03, 0.1, 0.3, 1.0, 3.0];
const KERNELS: [&str; 3] = ["rbf", "matern52", "laplace"];
const TRENDS: [&str; 3] = ["none", "constant", "linear"];
/// Signals beyond which all their products would be too many features to try by default.
const MOST_FOR_PRODUCTS: usize = 40;

/// One combination of everything but the regularization.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// What was chosen for it, by the settings' names.
    pub chosen: Table,
    /// Everything; or why these settings do not go together.
    pub settings: Result<FitSettings, String>,
}

/// What is searched.
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    /// The combinations; the first is what a fit would do without tuning.
    pub candidates: Vec<Candidate>,
    /// What each is tried with, from large to small.
    pub regularizations: Vec<f64>,
    /// Whether regularizations between these may be tried too.
    pub refines: bool,
    /// Whether a length scale a signal is looked for, where a kernel has a width for it.
    pub scales: bool,
    /// What is said and so not searched.
    pub(super) given: Table,
}

impl Space {
    /// The search that `given` settings leave open on so many rows and signals: what is said is not
    /// searched.
    pub fn usual(given: &Table, (n_rows, signal_dim): (usize, usize)) -> Result<Self, Error> {
        let mut given = given.clone();
        let asked = asked_for(&mut given);
        let given = &given;
        let open = |name: &str| !given.contains_key(name);
        let mut chosen = vec![Table::new()];
        if open("features") {
            let few = signal_dim <= MOST_FOR_PRODUCTS;
            let words = ["raw", "poly2"].into_iter().filter(|word| few || *word == "raw");
            chosen = product(&chosen, "features", &words.map(Value::from).collect::<Vec<_>>());
        }
        let without_kernel = chosen.clone();
        if open("kernel") {
            chosen = product(&chosen, "kernel", &KERNELS.map(Value::from));
        }
        if open("gamma") && takes_gamma(given)? {
            chosen = chosen.iter().flat_map(|one| with_widths(one, given, signal_dim)).collect();
        }
        if open("kernel") && open("gamma") {
            let linear = product(&without_kernel, "kernel", &["linear"].map(Value::from));
            chosen.extend(linear);
        }
        if open("trend") && open("intercept") && open("primal") {
            chosen = product(&chosen, "trend", &TRENDS.map(Value::from));
        }
        let refines = open("regularization");
        let regularizations = match given.get("regularization") {
            None => around(Regularization::Auto.value(n_rows)),
            Some(_) => vec![own_regularization(given, n_rows)?],
        };
        let scales = (asked || refines) && open("length-scales");
        if asked && given.get("features").and_then(Value::as_str) == Some("poly2") {
            let what = "a length scale a signal needs {features raw}, but poly2 was given; leave \
                        {features} out, or {length-scales auto}";
            return Err(refused(what.to_owned()));
        }
        Ok(Self { scales, ..Self::of(given, chosen, regularizations, refines) })
    }

    /// The product of the lists in a table, such as `kernel = ["rbf", "laplace"]`.
    pub fn grid(given: &Table, grid: &Table, n_rows: usize) -> Result<Self, Error> {
        let mut chosen = vec![Table::new()];
        let mut regularizations = vec![own_regularization(given, n_rows)?];
        for (name, values) in grid {
            let values = match values {
                Value::Array(values) => values.clone(),
                one => vec![one.clone()],
            };
            if values.is_empty() {
                return Err(refused(format!("`{name}` has no values; list at least one")));
            }
            for value in &values {
                FitSettings::check(name, value).map_err(wrong)?;
            }
            if name == "regularization" {
                let number = |value: &Value| {
                    let mut alone = Table::new();
                    alone.insert(name.clone(), value.clone());
                    own_regularization(&alone, n_rows)
                };
                regularizations = values.iter().map(number).collect::<Result<_, _>>()?;
                regularizations.sort_by(|a, b| b.total_cmp(a));
                regularizations.dedup();
            } else {
                chosen = product(&chosen, name, &values);
            }
        }
        Ok(Self::of(given, chosen, regularizations, false))
    }

    fn of(given: &Table, chosen: Vec<Table>, regularizations: Vec<f64>, refines: bool) -> Self {
        let mut candidates: Vec<Candidate> = Vec::new();
        // What would be done without tuning comes first, so that no search ends worse than it
        // began.
        let own = if refines { vec![Table::new()] } else { Vec::new() };
        for chosen in own.into_iter().chain(chosen) {
            let settings = settings_of(given, &chosen);
            let twice = |other: &Candidate| other.settings == settings && settings.is_ok();
            if !candidates.iter().any(twice) {
                candidates.push(Candidate { chosen, settings });
            }
        }
        Self { candidates, regularizations, refines, scales: false, given: given.clone() }
    }
}

pub(super) fn settings_of(given: &Table, chosen: &Table) -> Result<FitSettings, String> {
    let (table, _) = merge(given.clone(), chosen);
    let settings = FitSettings::from_table(&table).map_err(|error| error.to_string())?;
    settings.validate().map_err(|error| format!("{error:#}"))?;
    // By its name, so that what is automatic and the same in words are one candidate.
    Ok(FitSettings { trend: settings.trend(), ..settings })
}

/// The regularization of some settings.
fn own_regularization(settings: &Table, n_rows: usize) -> Result<f64, Error> {
    Ok(FitSettings::from_table(settings).map_err(wrong)?.regularization.value(n_rows))
}

/// The usual regularizations with `own` in place of the one nearest to it.
fn around(own: f64) -> Vec<f64> {
    let away = |k: &f64| (k.ln() - own.ln()).abs();
    let nearest = REGULARIZATIONS.into_iter().min_by(|a, b| away(a).total_cmp(&away(b)));
    REGULARIZATIONS.map(|k| if Some(k) == nearest { own } else { k }).to_vec()
}

/// Each of `tables` with each of `values`.
fn product(tables: &[Table], name: &str, values: &[Value]) -> Vec<Table> {
    let with = |table: &Table, value: &Value| {
        let mut table = table.clone();
        table.insert(name.to_owned(), value.clone());
        table
    };
    tables.iter().flat_map(|table| values.iter().map(move |value| with(table, value))).collect()
}

/// One combination with each of the kernel's usual widths.
fn with_widths(one: &Table, given: &Table, signal_dim: usize) -> Vec<Table> {
    let (table, _) = merge(given.clone(), one);
    let features = match table.get("features").and_then(Value::as_str) {
        Some("raw") => Expansion::Raw,
        Some(_) => Expansion::Poly2,
        None => FitSettings::default().features,
    };
    let n_features = features.n_features(signal_dim) as f64;
    let widths = WIDTHS.map(|width| {
        if width == 1.0 { Value::from("auto") } else { rounded(width / n_features).into() }
    });
    product(std::slice::from_ref(one), "gamma", &widths)
}

/// Three digits: a width that people can read is as good.
fn rounded(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

/// Whether a kernel that was given has a width left open.
fn takes_gamma(given: &Table) -> Result<bool, Error> {
    Ok(FitSettings::from_table(given).map_err(wrong)?.kernel.takes("gamma"))
}

fn wrong(error: crate::settings::TableError) -> Error {
    refused(error.to_string())
}

fn refused(what: String) -> Error {
    Error::Tuning { what }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::TrendChoice;

    fn table(text: &str) -> Table {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_said_is_not_searched() {
        let free = Space::usual(&Table::new(), (5000, 5)).unwrap();
        let own = FitSettings { trend: TrendChoice::Linear, ..FitSettings::default() };
        assert_eq!(free.candidates[0].settings, Ok(own));
        // What a fit would do is among the regularizations, too.
        assert_eq!(free.regularizations, [1e-1, 1e-2, 1e-3, 6e-5, 1e-5, 1e-6, 1e-7, 1e-8]);
        // Two kinds of features, three kernels of five widths and the linear one, three trends; the
        // first is among them.
        assert_eq!(free.candidates.len(), 2 * (3 * 5 + 1) * 3);
        assert!(free.refines && free.candidates.iter().all(|one| one.settings.is_ok()));
        let given = table("kernel = \"rbf\"\nfeatures = \"raw\"\nregularization = 1e-3");
        let some = Space::usual(&given, (100, 5)).unwrap();
        assert_eq!((some.candidates.len(), some.regularizations.as_slice()), (15, &[1e-3][..]));
        let linear = Space::usual(&table("kernel = \"linear\"\nprimal = true"), (100, 5)).unwrap();
        assert_eq!(linear.candidates.len(), 2);
        // Products of very many signals are left alone.
        assert_eq!(Space::usual(&Table::new(), (100, 500)).unwrap().candidates.len(), 16 * 3);
    }

    #[test]
    fn a_grid_is_the_product_of_its_lists() {
        let grid = table(
            "kernel = [\"rbf\", \"linear\"]\ngamma = [0.1, 0.2]\nregularization = [1e-5, 1e-3]",
        );
        let space = Space::grid(&table("bounds = [-1, 1]"), &grid, 100).unwrap();
        assert_eq!(space.regularizations, [1e-3, 1e-5]);
        let fine = space.candidates.iter().filter(|one| one.settings.is_ok()).count();
        // The linear kernel takes no gamma.
        assert_eq!((space.candidates.len(), fine), (4, 2));
        let told =
            |text: &str| Space::grid(&Table::new(), &table(text), 9).unwrap_err().to_string();
        assert!(told("krenel = [\"rbf\"]").contains("`kernel`"));
        assert!(told("gamma = []").contains("no values"));
        assert!(told("trend = [\"cubic\"]").contains("cubic"));
    }
}
