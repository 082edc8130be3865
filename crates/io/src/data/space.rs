//! The limits of an action space, as Minari writes it beside its episodes.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::Value;

/// Bytes of metadata that are looked at.
const MOST: u64 = 16 << 20;

/// Limits of all decisions that the data itself knows.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// The least of each dimension; minus infinity where there is none.
    pub lower: Vec<f64>,
    /// The greatest of each dimension; infinity where there is none.
    pub upper: Vec<f64>,
    /// Where they were found.
    pub found_in: String,
}

/// The limits in `metadata.json` beside a file of Minari's; none where it does not say.
pub(super) fn beside(data: &Path) -> Option<Limits> {
    let path = data.with_file_name("metadata.json");
    let mut text = String::new();
    File::open(&path).ok()?.take(MOST).read_to_string(&mut text).ok()?;
    let metadata: Value = serde_json::from_str(&finite(&text)).ok()?;
    let found_in = format!("the action space in `{}`", path.display());
    match metadata.get("action_space")? {
        Value::String(space) => of_space(space, found_in),
        space => of_value(space, found_in),
    }
}

/// The limits of a space that is written as JSON.
pub(super) fn of_space(text: &str, found_in: String) -> Option<Limits> {
    of_value(&serde_json::from_str(&finite(text)).ok()?, found_in)
}

fn of_value(space: &Value, found_in: String) -> Option<Limits> {
    if space.get("type")? != "Box" {
        return None;
    }
    let side = |name: &str, none: f64| {
        let mut numbers = Vec::new();
        flatten(space.get(name)?, none, &mut numbers)?;
        Some(numbers)
    };
    let lower = side("low", f64::NEG_INFINITY)?;
    let upper = side("high", f64::INFINITY)?;
    let fits = lower.len() == upper.len() && lower.iter().zip(&upper).all(|(l, u)| l <= u);
    let says = lower.iter().chain(&upper).any(|limit| limit.is_finite());
    (fits && says).then_some(Limits { lower, upper, found_in })
}

/// Numbers in lists in lists, row after row.
fn flatten(value: &Value, none: f64, out: &mut Vec<f64>) -> Option<()> {
    match value {
        Value::Array(values) => values.iter().try_for_each(|value| flatten(value, none, out)),
        Value::Null => {
            out.push(none);
            Some(())
        }
        _ => {
            // Spaces of no limit write the largest float32 there is.
            let number = value.as_f64()?;
            let is_none = number.abs() >= f64::from(f32::MAX);
            out.push(if is_none { none } else { number });
            Some(())
        }
    }
}

/// Python writes infinity, which JSON does not have.
fn finite(text: &str) -> String {
    text.replace("-Infinity", "null").replace("Infinity", "null")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(text: &str) -> Option<(Vec<f64>, Vec<f64>)> {
        of_space(text, String::new()).map(|limits| (limits.lower, limits.upper))
    }

    #[test]
    fn boxes_have_limits_and_others_have_none() {
        let text = r#"{"type": "Box", "shape": [2], "low": [-1.0, -2.0], "high": [1.0, 0.5]}"#;
        assert_eq!(limits(text), Some((vec![-1.0, -2.0], vec![1.0, 0.5])));
        let open = r#"{"type": "Box", "low": [-Infinity, 0], "high": [3.4028235e38, 1]}"#;
        let (lower, upper) = limits(open).unwrap();
        assert_eq!((lower, upper), (vec![f64::NEG_INFINITY, 0.0], vec![f64::INFINITY, 1.0]));
        assert_eq!(limits(r#"{"type": "Discrete", "n": 4}"#), None);
        assert_eq!(limits(r#"{"type": "Box", "low": [-Infinity], "high": [Infinity]}"#), None);
        assert_eq!(limits(r#"{"type": "Box", "low": [2], "high": [1]}"#), None);
        assert_eq!(limits("[[[["), None);
    }
}
