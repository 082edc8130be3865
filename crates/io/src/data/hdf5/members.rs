//! A group of an HDF5 file and the arrays in it.

use std::collections::BTreeMap;

use ::hdf5_pure::{Dataset, Group};

use super::dataset::{Numbers, is_number};
use super::failed;
use crate::data::DataRequest;
use crate::data::keys::{self, Keys};
use crate::data::origin::Origin;
use crate::error::DataError;

/// What lies in a group, opened once: finding a member by name walks the group again.
pub(super) struct Members {
    /// The group's path; empty for the root.
    pub path: String,
    datasets: BTreeMap<String, Dataset>,
    pub groups: BTreeMap<String, Group>,
}

impl Members {
    pub fn of(group: &Group, path: &str, origin: &Origin<'_>) -> Result<Self, DataError> {
        let datasets = group.iter_datasets().map_err(|error| failed(origin, error))?.collect();
        let groups = group.iter_groups().map_err(|error| failed(origin, error))?.collect();
        Ok(Self { path: path.to_owned(), datasets, groups })
    }

    /// The dataset under a key, which may lead into groups with slashes.
    fn dataset(&self, key: &str) -> Option<Dataset> {
        if let Some(dataset) = self.datasets.get(key) {
            return Some(dataset.clone());
        }
        let (group, rest) = key.split_once('/')?;
        self.groups.get(group)?.dataset(rest).ok()
    }

    pub fn choose(&self, request: &DataRequest, origin: &Origin<'_>) -> Result<Keys, DataError> {
        keys::choose(origin.path, &self.names(), request, |key| self.dataset(key).is_some())
            .map_err(|error| {
                self.dictionary(request).map_or(error, |key| self.not_an_array(key, origin))
            })
    }

    /// A key that was looked for and is there, but as a group: a dictionary space.
    fn dictionary<'a>(&self, request: &'a DataRequest) -> Option<&'a str> {
        let signals =
            request.signals.as_deref().map_or(vec!["signals", "observations"], |k| vec![k]);
        let decisions =
            request.decisions.as_deref().map_or(vec!["decisions", "actions"], |k| vec![k]);
        let wanted =
            signals.into_iter().chain(decisions.into_iter().filter(|_| request.want_decisions));
        wanted.into_iter().find(|key| self.groups.contains_key(*key))
    }

    fn not_an_array(&self, key: &str, origin: &Origin<'_>) -> DataError {
        let mut members = Vec::new();
        if let Some(group) = self.groups.get(key) {
            members.extend(group.datasets().unwrap_or_default());
            members.extend(group.groups().unwrap_or_default());
        }
        DataError::NotAnArray {
            path: origin.path.to_path_buf(),
            key: self.full(key),
            members: members.into_iter().map(|name| format!("{key}/{name}")).collect(),
        }
    }

    /// The array under a key, not read yet; `None` if there is no such key.
    pub fn numbers(&self, key: &str, origin: &Origin<'_>) -> Result<Option<Numbers>, DataError> {
        self.dataset(key).map(|dataset| Numbers::of(dataset, &self.full(key), origin)).transpose()
    }

    /// A part of the constraints, not read yet; `None` if there is no such key.
    pub fn tensor(&self, key: &str, origin: &Origin<'_>) -> Result<Option<Numbers>, DataError> {
        let dataset = self.dataset(key);
        dataset.map(|dataset| Numbers::tensor(dataset, &self.full(key), origin)).transpose()
    }

    /// The names of the arrays.
    pub fn names(&self) -> Vec<String> {
        self.datasets.keys().cloned().collect()
    }

    /// The rows of an array, whatever its type.
    pub fn rows(&self, key: &str) -> Option<usize> {
        let shape = self.dataset(key)?.shape().ok()?;
        usize::try_from(*shape.first()?).ok()
    }

    /// The arrays of a group that are rows of numbers, by their keys, in the order of their names.
    pub fn rows_of_numbers(&self, group: &str) -> Vec<String> {
        let found = self.groups.get(group).and_then(|group| group.iter_datasets().ok());
        let mut keys: Vec<String> = found
            .into_iter()
            .flatten()
            .filter(|(_, dataset)| {
                let axes = dataset.shape().map_or(0, |shape| shape.len());
                (1..=2).contains(&axes) && is_number(dataset)
            })
            .map(|(name, _)| format!("{group}/{name}"))
            .collect();
        keys.sort();
        keys
    }

    pub fn full(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}/{key}", self.path) }
    }
}
