//! Columns by the names that a model knows them by.
//!
//! A model that was fitted to named columns finds them again whatever their order; one that is
//! missing is named. Columns chosen by hand are matched by name where they are the model's, and
//! taken in their order where none of them is one of the model's in another place.

use argwhy_core::dataset::Names;

use super::columns::Columns;
use crate::data::origin::Origin;
use crate::error::DataError;

/// Keys under which columns are numbers of a family, not names.
const NAMELESS: [&str; 4] = ["signals", "observations", "decisions", "actions"];

/// The columns of a role and what they are called.
pub(super) struct Named {
    pub columns: Vec<usize>,
    /// Empty where the columns are numbered under one of the usual keys.
    pub names: Vec<String>,
}

impl Named {
    /// The columns of these names, in their order.
    pub fn by_name(
        role: &'static str,
        names: &[String],
        columns: &Columns,
        origin: &Origin<'_>,
    ) -> Result<Self, DataError> {
        let missing = |name: &&String| !columns.contains(name);
        let mut missing: Vec<String> = names.iter().filter(missing).cloned().collect();
        missing.dedup();
        if !missing.is_empty() {
            let (path, found) = (origin.path.to_path_buf(), columns.keys());
            return Err(DataError::NamesMissing { path, role, missing, found });
        }
        let places: Result<_, _> = names.iter().map(|name| columns.exact(name, origin)).collect();
        Ok(Self { columns: places?, names: names.to_vec() })
    }

    /// The columns of a key, in the order of the model's names `known` where they have these.
    /// Patterns leave out what is `taken`.
    pub fn by_key(
        role: &'static str,
        key: &str,
        known: &[String],
        taken: &[usize],
        columns: &Columns,
        origin: &Origin<'_>,
    ) -> Result<Self, DataError> {
        let places = columns.of_others(key, taken, origin)?;
        if NAMELESS.contains(&key) {
            return Ok(Self { columns: places, names: Vec::new() });
        }
        let names: Vec<String> =
            places.iter().map(|&column| columns.name(column).to_owned()).collect();
        if names.len() != known.len() {
            return Ok(Self { columns: places, names });
        }
        if let Ok(order) = Names::places(known, &names) {
            let columns = order.iter().map(|&at| places[at]).collect();
            return Ok(Self { columns, names: known.to_vec() });
        }
        let moved = |(at, name): &(usize, &String)| {
            known.iter().position(|other| other == *name).is_some_and(|own| own != *at)
        };
        if let Some((found, name)) = names.iter().enumerate().find(moved) {
            let expected = known.iter().position(|other| other == name).unwrap_or(found);
            let (path, name) = (origin.path.to_path_buf(), name.clone());
            return Err(DataError::NameMoved { path, role, name, found, expected });
        }
        Ok(Self { columns: places, names })
    }
}
