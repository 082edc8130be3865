//! The layouts of Minari and robomimic: a group per episode.

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

/// The groups `episode_0`, `episode_1`, … with their full names, in numeric order.
pub(super) fn in_order<'m>(root: &'m Members, prefix: &str) -> Vec<(String, &'m Group)> {
    let mut numbered: Vec<(u64, &str, &Group)> = root
        .groups
        .iter()
        .filter_map(|(name, group)| {
            Some((name.strip_prefix(prefix)?.parse().ok()?, name.as_str(), group))
        })
        .collect();
    numbered.sort_by_key(|&(number, name, _)| (number, name));
    numbered.into_iter().map(|(_, name, group)| (root.full(name), group)).collect()
}

/// Opens the episodes' arrays as one, without the signal after each episode's last decision.
pub(super) fn open<'a>(
    groups: &[(String, &Group)],
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
            None => keys.insert(members.choose(&with_observations(request, &members), &origin)?),
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
        limits: None,
    })
}

/// The request with all arrays of robomimic's `obs` as signals, where nobody chose any.
fn with_observations(request: &DataRequest, members: &Members) -> DataRequest {
    let is_chosen = request.signals.is_some()
        || members.rows("signals").is_some()
        || members.rows("observations").is_some();
    let all = members.rows_of_numbers("obs");
    let signals =
        if is_chosen || all.is_empty() { request.signals.clone() } else { Some(all.join(",")) };
    DataRequest { signals, ..request.clone() }
}

/// Bytes that an episode takes while it is open: its name and the headers of two arrays.
const EPISODE_BYTES: u64 = 4 << 10;

struct Episode {
    name: String,
    steps: usize,
    /// Arrays that stand side by side; one, mostly.
    signals: Vec<Numbers>,
    decisions: Vec<Numbers>,
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
        let all = |key: &str| -> Result<Vec<Numbers>, DataError> {
            if !key.contains(',') || members.rows(key).is_some() {
                return Ok(vec![numbers(key)?]);
            }
            key.split(',').map(|one| numbers(one.trim())).collect()
        };
        let signals = all(&keys.signals)?;
        let decisions = keys.decisions.as_deref().map(all).transpose()?.unwrap_or_default();
        let n_signals = signals.first().map_or(0, |first| first.rows);
        if let Some(other) = decisions.iter().find(|one| one.rows != decisions[0].rows) {
            return Err(wrong(format!("`{}` has another number of rows", other.key)));
        }
        if let Some(other) = signals.iter().find(|one| one.rows != n_signals) {
            return Err(wrong(format!("`{}` has another number of rows", other.key)));
        }
        // Signals alone are cut the same way, so that predictions match the rows of a fit.
        let steps = match decisions.first() {
            Some(decisions) => decisions.rows,
            None => {
                members.rows("decisions").or_else(|| members.rows("actions")).unwrap_or(n_signals)
            }
        };
        if n_signals != steps && n_signals != steps.saturating_add(1) {
            return Err(wrong(format!(
                "`{}` has {} rows for {steps} decisions; expected as many, or one more",
                keys.signals, n_signals
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
        let columns = self.episodes.first().map_or(0, |episode| width(self.of(episode)));
        for episode in self.episodes.iter() {
            let found = width(self.of(episode));
            if found == columns {
                continue;
            }
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

    fn of<'e>(&self, episode: &'e Episode) -> &'e [Numbers] {
        if self.decisions { &episode.decisions } else { &episode.signals }
    }

    /// The rows of the arrays at place `part`, of all episodes.
    fn read_part(&self, part: usize, kept: &Kept) -> Result<(Vec<f64>, usize), DataError> {
        let numbers = || self.episodes.iter().filter_map(|episode| self.of(episode).get(part));
        let (key, columns) = numbers().next().map_or(("", 0), |n| (n.key.as_str(), n.columns));
        let shape = [kept.n_rows() as u64, columns as u64];
        let mut sink = Sink::new(key, &shape, columns, kept, &self.origin)?;
        let mut first = 0;
        for (episode, numbers) in self.episodes.iter().zip(numbers()) {
            if numbers.columns != columns {
                return Err(DataError::Episode {
                    path: self.origin.path.to_path_buf(),
                    episode: episode.name.clone(),
                    detail: format!("`{}` has {} columns, not {columns}", key, numbers.columns),
                });
            }
            numbers.read_into(episode.steps, first, kept, &mut sink, &self.origin)?;
            first += episode.steps;
        }
        Ok((sink.into_values(), columns))
    }
}

fn width(numbers: &[Numbers]) -> usize {
    numbers.iter().map(|one| one.columns).sum()
}

impl Stored for Joined<'_> {
    fn read(&self, kept: &Kept) -> Result<Vec<f64>, DataError> {
        let parts = self.episodes.first().map_or(0, |episode| self.of(episode).len());
        answered(&self.origin, || {
            if parts <= 1 {
                return self.read_part(0, kept).map(|(values, _)| values);
            }
            let columns = self.episodes.first().map_or(0, |episode| width(self.of(episode)));
            let shape = [kept.len() as u64, columns as u64];
            let mut values = self.origin.room("the joined arrays", &shape, kept.len() * columns)?;
            let mut first = 0;
            for part in 0..parts {
                let (own, width) = self.read_part(part, kept)?;
                for (to, from) in values.chunks_mut(columns.max(1)).zip(own.chunks(width.max(1))) {
                    to[first..first + width].copy_from_slice(from);
                }
                first += width;
                self.origin.meter.release(own.len() as u64 * 8);
            }
            Ok(values)
        })
    }
}
