//! Minari's layout: a group per episode.

use std::rc::Rc;

use ::hdf5_pure::Group;

use super::answered;
use super::dataset::Numbers;
use super::members::Members;
use crate::data::DataRequest;
use crate::data::array::{Listing, Opened, Stored};
use crate::data::groups::Belonging;
use crate::data::kept::Kept;
use crate::data::keys::Keys;
use crate::data::origin::Origin;
use crate::data::sink::Sink;
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

/// Opens the episodes' arrays as one, without the signal after each episode's last decision.
pub(super) fn open<'a>(
    groups: &[(&str, &Group)],
    request: &DataRequest,
    origin: Origin<'a>,
) -> Result<Listing<'a>, DataError> {
    let unsupported = |detail: &str| {
        let (path, detail) = (origin.path.to_path_buf(), detail.to_owned());
        Err(DataError::Unsupported { path, detail })
    };
    if request.groups.is_some() {
        return unsupported(
            "its rows are grouped by episode, and no other groups are read; leave out {groups}",
        );
    }
    if request.weights.is_some() {
        return unsupported(
            "weights inside episodes are not read; save signals, decisions and weights as arrays \
             at the top of an HDF5 file or as npz",
        );
    }
    origin.charge_list(groups.len() as u64 * EPISODE_BYTES, "the list of its episodes")?;
    let mut episodes = Vec::with_capacity(groups.len());
    let mut keys: Option<Keys> = None;
    for (name, group) in groups {
        let members = Members::of(group, name, &origin)?;
        // The first episode chooses the keys of all.
        let chosen = match &keys {
            Some(keys) => keys,
            None => keys.insert(members.choose(request, &origin)?),
        };
        episodes.push(Episode::of(&members, chosen, &origin)?);
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

    let lengths = || Belonging::Lengths(episodes.iter().map(|episode| episode.steps).collect());
    let groups = request.episodes.then(lengths);
    let episodes = Rc::new(episodes);
    let signals = Joined { episodes: Rc::clone(&episodes), decisions: false, origin };
    let decisions = Joined { episodes, decisions: true, origin };
    Ok(Listing {
        origin,
        signals: signals.opened(keys.signals)?,
        decisions: keys.decisions.map(|key| decisions.opened(key)).transpose()?,
        weights: None,
        groups,
        tensors: Vec::new(),
        keys: Vec::new(),
        unread: keys.unread,
    })
}

/// Bytes that an episode takes while it is open: its name and the headers of two arrays.
const EPISODE_BYTES: u64 = 4 << 10;

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

/// The signals of all episodes, or their decisions, one after the other.
struct Joined<'a> {
    episodes: Rc<Vec<Episode>>,
    decisions: bool,
    origin: Origin<'a>,
}

impl<'a> Joined<'a> {
    fn opened(self, key: String) -> Result<Opened<'a>, DataError> {
        let columns = self.episodes.iter().find_map(|episode| self.of(episode)).map_or(0, width);
        for episode in self.episodes.iter() {
            let Some(found) = self.of(episode).map(width).filter(|found| *found != columns) else {
                continue;
            };
            return Err(DataError::Episode {
                path: self.origin.path.to_path_buf(),
                episode: episode.name.clone(),
                detail: format!(
                    "`{key}` has {found} columns where earlier episodes have {columns}"
                ),
            });
        }
        let steps = |sum: usize, episode: &Episode| sum.saturating_add(episode.steps);
        let rows = self.episodes.iter().fold(0, steps);
        let shape = vec![rows as u64, columns as u64];
        // The size must fit as well.
        self.origin.matrix_shape(&key, &shape)?;
        let path = self.origin.path.to_path_buf();
        Ok(Opened { path, key, shape, rows, columns, stored: Box::new(self) })
    }

    fn of<'e>(&self, episode: &'e Episode) -> Option<&'e Numbers> {
        if self.decisions { episode.decisions.as_ref() } else { Some(&episode.signals) }
    }
}

fn width(numbers: &Numbers) -> usize {
    numbers.columns
}

impl Stored for Joined<'_> {
    fn read(&self, kept: &Kept) -> Result<Vec<f64>, DataError> {
        let numbers = || self.episodes.iter().filter_map(|episode| self.of(episode));
        let (key, columns) = numbers().next().map_or(("", 0), |n| (n.key.as_str(), n.columns));
        let shape = [kept.n_rows() as u64, columns as u64];
        answered(&self.origin, || {
            let mut sink = Sink::new(key, &shape, columns, kept, &self.origin)?;
            let mut first = 0;
            for (episode, numbers) in self.episodes.iter().zip(numbers()) {
                numbers.read_into(episode.steps, first, kept, &mut sink, &self.origin)?;
                first += episode.steps;
            }
            Ok(sink.into_values())
        })
    }
}
