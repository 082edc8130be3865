//! Settings by a name: those of the paper's experiments, its table of hyperparameters (appendix B).
//!
//! A preset says every setting that moves the optimum, defaults too: it stays what the paper did
//! when a default changes. It is the weakest table; config file and command line lie above it.

use super::{FitSettings, Table, TableError, Value};
use toml::toml;

/// Settings of one of the paper's experiments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    /// The dataset's name in D4RL, without its version.
    pub name: &'static str,
    /// The rows of D4RL's file that the paper trained on, as `rows` takes them. None of the
    /// settings: other files have other rows.
    pub rows: &'static str,
    /// k.
    pub regularization: f64,
    /// SSO: the share of the samples in a block, the paper's p/N.
    pub block: f64,
}

const fn preset(name: &'static str, rows: &'static str, regularization: f64, block: f64) -> Preset {
    Preset { name, rows, regularization, block }
}

impl Preset {
    /// All there are. Medium-expert: the first and the last 50,000 of the rows that D4RL's files
    /// have (hopper 1,999,906, walker2d 1,999,995, halfcheetah 2,000,000).
    pub const ALL: [Self; 9] = [
        preset("hopper-expert", "0:5000", 1e-6, 0.5),
        preset("hopper-medium", "0:5000", 1e-6, 0.5),
        preset("hopper-medium-expert", "0:50000,1949906:1999906", 1e-6, 0.1),
        preset("walker2d-expert", "0:5000,10000:15000", 1e-5, 0.5),
        preset("walker2d-medium", "15000:20000", 1e-5, 0.5),
        preset("walker2d-medium-expert", "0:50000,1949995:1999995", 1e-5, 0.1),
        preset("halfcheetah-expert", "325000:330000,345000:350000", 5e-6, 0.5),
        preset("halfcheetah-medium", "10000:15000", 5e-6, 0.5),
        preset("halfcheetah-medium-expert", "0:50000,1950000:2000000", 1e-6, 0.1),
    ];

    /// The preset of that name, as D4RL spells it; a version at its end (`-v2`) changes nothing.
    pub fn named(name: &str) -> Result<Self, TableError> {
        let is_version = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let plain = match name.rsplit_once("-v") {
            Some((plain, version)) if is_version(version) => plain,
            _ => name,
        };
        Self::ALL.into_iter().find(|preset| preset.name == plain).ok_or_else(|| {
            let all = Self::ALL.map(|preset| preset.name).join("`, `");
            let why = format!("there is no preset `{name}`; there are `{all}`");
            TableError { name: "preset".to_owned(), why: Some(why), known: Vec::new() }
        })
    }

    /// What it says, by the names of a config file.
    pub fn table(&self) -> Table {
        let mut table = toml! {
            features = "poly2"
            normalize = "zscore"
            clip = 1000.0
            kernel = "rbf"
            gamma = "auto"
            trend = "none"
            theta = "identity"
            bounds = [-1.0, 1.0]
        };
        table.insert("regularization".to_owned(), Value::Float(self.regularization));
        table.insert("block".to_owned(), Value::Float(self.block));
        table
    }

    /// The settings it describes.
    pub fn settings(&self) -> Result<FitSettings, TableError> {
        FitSettings::from_table(&self.table())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_a_fit_that_can_be_made_and_has_a_name_of_its_own() {
        for preset in Preset::ALL {
            let settings = preset.settings().unwrap();
            settings.validate().unwrap();
            assert_eq!(settings.regularization, preset.regularization.into(), "{}", preset.name);
            assert_eq!(settings.bounds.unwrap().0, [-1.0, 1.0]);
            assert_eq!(Preset::named(preset.name), Ok(preset));
            assert_eq!(Preset::named(&format!("{}-v2", preset.name)), Ok(preset));
        }
    }

    #[test]
    fn an_unknown_preset_is_refused_with_those_that_there_are() {
        for name in ["hopper", "hopper-expert-v", "ant-expert-v2", "", "-v2"] {
            let error = Preset::named(name).unwrap_err().to_string();
            assert!(error.contains(&format!("`{name}`")), "{error}");
            assert!(error.contains("`halfcheetah-medium-expert`"), "{error}");
        }
    }
}
