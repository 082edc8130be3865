//! Which of a file's keys hold the signals, the decisions, the weights and the constraints.
//!
//! `signals`/`decisions`, else `observations`/`actions`; what the request names comes first. Both
//! pairs, or neither, is an error: guessing would train on the wrong array. Constraints have fixed
//! names; those that are there and not asked for are listed, so that nobody overlooks them.

use std::path::Path;

use super::DataRequest;
use super::groups::ENDS;
use crate::error::DataError;

/// The chosen keys.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Keys {
    pub signals: String,
    pub decisions: Option<String>,
    pub weights: Option<String>,
    pub groups: Option<String>,
    /// Marks of the last rows of episodes, where those are asked for.
    pub ends: Vec<String>,
    /// Constraints that are there and asked for.
    pub constraints: Vec<&'static str>,
    /// Constraints that are there and not asked for.
    pub unread: Vec<&'static str>,
}

const SIGNALS: [&str; 2] = ["signals", "observations"];
const DECISIONS: [&str; 2] = ["decisions", "actions"];
/// The arrays of constraints: M·u ≤ W, M_eq·u = W_eq, lower ≤ u ≤ upper.
pub(super) const CONSTRAINTS: [&str; 6] = ["M", "W", "M_eq", "W_eq", "lower", "upper"];

/// Chooses the keys among those `found`; `has` says whether a requested key can be served.
pub(super) fn choose(
    path: &Path,
    found: &[String],
    request: &DataRequest,
    has: impl Fn(&str) -> bool,
) -> Result<Keys, DataError> {
    let named = |role: &'static str, key: &Option<String>| match key {
        Some(key) if has(key) || key.split(',').all(|one| has(one.trim())) => Ok(Some(key.clone())),
        Some(key) => Err(DataError::KeyMissing {
            path: path.to_path_buf(),
            role,
            key: key.clone(),
            found: found.to_vec(),
        }),
        None => Ok(None),
    };
    let among = |usual: [&'static str; 2], texts: Texts| {
        one_of(path, found, usual.map(&has), texts).map(|i| usual[i].to_owned())
    };

    let signals = named("signals", &request.signals)?;
    let weights = named("weights", &request.weights)?;
    let groups = named("groups", &request.groups)?;
    let finish = |signals: String, decisions: Option<String>| {
        // A column may be called `lower` and be a signal.
        let taken = |name: &str| {
            let mut keys = [Some(&signals), decisions.as_ref(), weights.as_ref()].into_iter();
            keys.any(|key| key.is_some_and(|key| key.split(',').any(|one| one.trim() == name)))
        };
        let present: Vec<_> =
            CONSTRAINTS.into_iter().filter(|name| has(name) && !taken(name)).collect();
        let (constraints, unread) =
            if request.wants_arrays() { (present, vec![]) } else { (vec![], present) };
        let asked = request.episodes && groups.is_none();
        let marks = ENDS.into_iter().filter(|name| asked && has(name) && !taken(name));
        let ends = marks.map(ToOwned::to_owned).collect();
        let (weights, groups) = (weights.clone(), groups.clone());
        Keys { signals, decisions, weights, groups, ends, constraints, unread }
    };
    if !request.want_decisions {
        let signals = signals.map_or_else(|| among(SIGNALS, SIGNALS_ONLY), Ok)?;
        return Ok(finish(signals, None));
    }
    let decisions = named("decisions", &request.decisions)?;
    let (signals, decisions) = match (signals, decisions) {
        (Some(signals), Some(decisions)) => (signals, decisions),
        (Some(signals), None) => (signals, among(DECISIONS, DECISIONS_ONLY)?),
        (None, Some(decisions)) => (among(SIGNALS, SIGNALS_ONLY)?, decisions),
        (None, None) => {
            let pairs = [0, 1].map(|i| has(SIGNALS[i]) && has(DECISIONS[i]));
            let i = one_of(path, found, pairs, PAIRS)?;
            (SIGNALS[i].to_owned(), DECISIONS[i].to_owned())
        }
    };
    Ok(finish(signals, Some(decisions)))
}

/// The words of the two ways a choice can fail.
#[derive(Clone, Copy)]
struct Texts {
    expected: &'static str,
    both: &'static str,
    choose: &'static str,
}

const PAIRS: Texts = Texts {
    expected: "`signals` and `decisions`, nor `observations` and `actions`",
    both: "both `signals`, `decisions` and `observations`, `actions`",
    choose: "{signals} and {decisions}",
};
const SIGNALS_ONLY: Texts = Texts {
    expected: "`signals`, nor `observations`",
    both: "both `signals` and `observations`",
    choose: "{signals}",
};
const DECISIONS_ONLY: Texts = Texts {
    expected: "`decisions`, nor `actions`",
    both: "both `decisions` and `actions`",
    choose: "{decisions}",
};

/// The index of the only candidate that is there.
fn one_of(
    path: &Path,
    found: &[String],
    present: [bool; 2],
    texts: Texts,
) -> Result<usize, DataError> {
    let (path, found) = (path.to_path_buf(), found.to_vec());
    let Texts { expected, both, choose } = texts;
    match present {
        [true, false] => Ok(0),
        [false, true] => Ok(1),
        [true, true] => Err(DataError::KeysAmbiguous { path, both, choose, found }),
        [false, false] => {
            Err(DataError::KeysAbsent { path, expected, choose, found, is_table: false })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(found: &[&str], request: &DataRequest) -> Result<(String, Option<String>), String> {
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        choose(Path::new("f"), &found, request, |key| found.iter().any(|name| name == key))
            .map(|keys| (keys.signals, keys.decisions))
            .map_err(|error| error.to_string())
    }

    fn pair(signals: &str, decisions: &str) -> (String, Option<String>) {
        (signals.to_owned(), Some(decisions.to_owned()))
    }

    #[test]
    fn the_usual_pairs_are_found_among_others() {
        let request = DataRequest::default();
        assert_eq!(
            chosen(&["decisions", "M", "signals"], &request),
            Ok(pair("signals", "decisions"))
        );
        assert_eq!(
            chosen(&["rewards", "actions", "observations"], &request),
            Ok(pair("observations", "actions"))
        );
        // Half of the other pair does not compete.
        assert_eq!(
            chosen(&["signals", "decisions", "observations"], &request),
            Ok(pair("signals", "decisions"))
        );
    }

    #[test]
    fn both_pairs_or_neither_is_an_error_that_lists_the_keys() {
        let request = DataRequest::default();
        let both = chosen(&["signals", "decisions", "observations", "actions"], &request);
        assert!(both.unwrap_err().contains("`signals`, `decisions`, `observations`, `actions`:"));
        let neither = chosen(&["signals", "actions", "rewards"], &request);
        assert!(neither.unwrap_err().contains("it holds `signals`, `actions`, `rewards`"));
        assert!(chosen(&[], &request).unwrap_err().contains("it holds nothing"));
    }

    #[test]
    fn a_named_key_wins_and_must_exist() {
        let request = DataRequest { signals: Some("state".to_owned()), ..DataRequest::default() };
        assert_eq!(
            chosen(&["state", "signals", "observations", "actions"], &request),
            Ok(pair("state", "actions"))
        );
        let missing = chosen(&["signals", "decisions"], &request).unwrap_err();
        assert!(missing.contains("no signals under the key `state`"), "{missing}");
        assert!(chosen(&["state", "actions", "decisions"], &request).is_err());
    }

    #[test]
    fn signals_alone_need_no_decisions() {
        let request = DataRequest::signals_only();
        assert_eq!(chosen(&["observations"], &request), Ok(("observations".to_owned(), None)));
        assert!(chosen(&["observations", "signals"], &request).is_err());
        assert!(chosen(&["actions"], &request).is_err());
    }

    #[test]
    fn constraints_are_read_where_asked_for_and_else_reported() {
        let keys = |found: &[&str], request: &DataRequest| {
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            let has = |key: &str| found.iter().any(|name| name == key);
            let keys = choose(Path::new("f"), &found, request, has).unwrap();
            (keys.constraints, keys.unread)
        };
        let found = ["signals", "decisions", "W", "M", "upper"];
        let asked = DataRequest { constraints: true, ..DataRequest::default() };
        assert_eq!(keys(&found, &asked), (vec!["M", "W", "upper"], vec![]));
        assert_eq!(keys(&found, &DataRequest::default()), (vec![], vec!["M", "W", "upper"]));
        let by_file = DataRequest { matrix: Some("m.csv".into()), ..DataRequest::default() };
        assert_eq!(keys(&["signals", "decisions", "W"], &by_file), (vec!["W"], vec![]));
        // A signal of that name is a signal.
        let signals = Some("upper".to_owned());
        assert_eq!(keys(&found, &DataRequest { signals, ..asked }), (vec!["M", "W"], vec![]));
    }
}
