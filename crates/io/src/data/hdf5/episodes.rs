//! Minari's layout: a group per episode.

use ::hdf5_pure::Group;
use ndarray::Array2;

use super::dataset::Numbers;
use super::members::Members;
use crate::data::DataRequest;
use crate::data::array::{Arrays, Found};
use crate::data::keys::Keys;
use crate::data::origin::Origin;
use crate::error::DataError;

/// The groups `episode_0`, `episode_1`, … with their names, in numeric order.
pub(super) fn in_order(root: &Members) -> Vec<(&str, &Group)> {
    let mut numbered: Vec<(u64, &str, &Group)> = root
        .groups
        .iter()
        .filter_map(|(name, group)| {
            Some((name.strip_prefix("episode_")?.parse().ok()?, name.as_str(), group))
        })
        .collect();
    numbered.sort_by_key(|&(number, name, _)| (number, name));
    numbered.into_iter().map(|(_, name, group)| (name, group)).collect()
}

/// Joins the episodes' arrays, dropping the signal after each episode's last decision.
pub(super) fn load(
    groups: &[(&str, &Group)],
    request: &DataRequest,
    origin: &Origin<'_>,
) -> Result<Arrays, DataError> {
    let unsupported = |detail: &str| {
        let (path, detail) = (origin.path.to_path_buf(), detail.to_owned());
        Err(DataError::Unsupported { path, detail })
    };
    if request.weights.is_some() {
        return unsupported(
            "weights inside episodes are not read; save signals, decisions and weights as arrays \
             at the top of an HDF5 file or as npz",
        );
    }
    // The first pass looks at shapes alone, so that the result is allocated once.
    let mut episodes = Vec::with_capacity(groups.len());
    let mut keys: Option<Keys> = None;
    for (name, group) in groups {
        let members = Members::of(group, name, origin)?;
        // The first episode chooses the keys of all.
        let chosen = match &keys {
            Some(keys) => keys,
            None => keys.insert(members.choose(request, origin)?),
        };
        episodes.push(Episode::of(&members, chosen, origin)?);
    }
    let Some(keys) = keys else { return Err(origin.corrupt("it has no episodes")) };
    // A matrix with bounds from files of their own needs nothing of the episodes.
    let from_files = request.matrix.is_some() || request.matrix_eq.is_some();
    if !keys.constraints.is_empty() || (request.constraints && !from_files) {
        return unsupported(
            "constraints inside episodes are not read; save signals, decisions, M and W as arrays \
             at the top of an HDF5 file or as npz",
        );
    }

    let signals = join(&episodes, &keys.signals, |episode| Some(&episode.signals), origin)?;
    let decisions = keys
        .decisions
        .map(|key| join(&episodes, &key, |episode| episode.decisions.as_ref(), origin))
        .transpose()?;
    let (tensors, found) = (Vec::new(), Vec::new());
    Ok(Arrays { signals, decisions, weights: None, tensors, keys: found, unread: keys.unread })
}

struct Episode {
    name: String,
    steps: usize,
    signals: Numbers,
    decisions: Option<Numbers>,
}

impl Episode {
    fn of(members: &Members, keys: &Keys, origin: &Origin<'_>) -> Result<Self, DataError> {
        let wrong = |detail| DataError::Episode {
            path: origin.path.to_path_buf(),
            episode: members.path.clone(),
            detail,
        };
        let numbers = |key: &str| {
            members.numbers(key, origin)?.ok_or_else(|| {
                wrong(format!("it has no array `{key}`, which earlier episodes have"))
            })
        };
        let signals = numbers(&keys.signals)?;
        let decisions = keys.decisions.as_deref().map(numbers).transpose()?;
        // Signals alone are cut the same way, so that predictions match the rows of a fit.
        let steps = match &decisions {
            Some(decisions) => decisions.rows,
            None => members
                .rows("decisions")
                .or_else(|| members.rows("actions"))
                .unwrap_or(signals.rows),
        };
        if signals.rows != steps && signals.rows != steps.saturating_add(1) {
            return Err(wrong(format!(
                "`{}` has {} rows for {steps} decisions; expected as many, or one more",
                keys.signals, signals.rows
            )));
        }
        Ok(Self { name: members.path.clone(), steps, signals, decisions })
    }
}

fn join(
    episodes: &[Episode],
    key: &str,
    pick: impl Fn(&Episode) -> Option<&Numbers>,
    origin: &Origin<'_>,
) -> Result<Found, DataError> {
    let columns = episodes.iter().find_map(&pick).map_or(0, |numbers| numbers.columns);
    let rows = episodes.iter().fold(0usize, |sum, episode| sum.saturating_add(episode.steps));
    let shape = [rows as u64, columns as u64];
    let mut values = origin.reserve(key, &shape, rows.saturating_mul(columns))?;
    for episode in episodes {
        let Some(numbers) = pick(episode) else { continue };
        if numbers.columns != columns {
            return Err(DataError::Episode {
                path: origin.path.to_path_buf(),
                episode: episode.name.clone(),
                detail: format!(
                    "`{key}` has {} columns where earlier episodes have {columns}",
                    numbers.columns
                ),
            });
        }
        numbers.read_into(episode.steps, &mut values, origin)?;
    }
    let values =
        Array2::from_shape_vec((rows, columns), values).map_err(|error| origin.corrupt(error))?;
    Ok(Found { path: origin.path.to_path_buf(), key: key.to_owned(), values })
}
