//! How messages name settings.
//!
//! What a message tells to change is a setting, and every front end spells settings its own way.
//! Printed with `{}`, an error names them as Rust, Python and config files do (`max_iterations`,
//! `infeasible="clip"`); printed with `{:#}`, as the command's flags (`--max-iterations`,
//! `--infeasible clip`).

use std::fmt;

/// `1 row`, `2 rows`.
pub fn count(n: usize, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

/// The spelling that a formatter asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// `max_iterations`, `infeasible="clip"`.
    Names,
    /// `--max-iterations`, `--infeasible clip`.
    Flags,
}

impl Spelling {
    /// Flags for `{:#}`, names otherwise.
    pub fn of(f: &fmt::Formatter<'_>) -> Self {
        if f.alternate() { Self::Flags } else { Self::Names }
    }

    /// The setting as something to give or to change.
    pub fn setting(self, name: &str) -> String {
        match self {
            Self::Names => name.replace('-', "_"),
            Self::Flags if name == "regularization" => "-k".to_owned(),
            Self::Flags => format!("--{}", name.replace('_', "-")),
        }
    }

    /// The setting with a value.
    pub fn with_value(self, name: &str, value: &str) -> String {
        let name = self.setting(name);
        match self {
            Self::Names => format!("{name}=\"{value}\""),
            Self::Flags => format!("{name} {value}"),
        }
    }

    /// The setting as what a sentence is about. Flags lose their dashes: the value may stand in a
    /// config file.
    pub fn subject(self, name: &str) -> String {
        match self {
            Self::Names => name.replace('-', "_"),
            Self::Flags => name.to_owned(),
        }
    }

    /// `text` with each mark, `{max_iterations}` or `{infeasible clip}`, spelled out. Other braces
    /// stay as they are.
    pub fn text(self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let (before, from) = rest.split_at(open);
            out.push_str(before);
            if let Some((Some((name, value)), close)) =
                from.find('}').map(|close| (mark(&from[1..close]), close))
            {
                out.push_str(
                    &value.map_or_else(|| self.setting(name), |value| self.with_value(name, value)),
                );
                rest = &from[close + 1..];
            } else {
                out.push('{');
                rest = &from[1..];
            }
        }
        out + rest
    }
}

/// Name and value of a mark.
fn mark(inside: &str) -> Option<(&str, Option<&str>)> {
    let (name, value) = match inside.split_once(' ') {
        Some((name, value)) => (name, Some(value)),
        None => (inside, None),
    };
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    is_name.then_some((name, value))
}

/// A text with marks, spelled by the formatter that prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worded<'a>(pub &'a str);

impl fmt::Display for Worded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Spelling::of(f).text(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_spelled_and_other_braces_left_alone() {
        let text =
            "raise {max_iterations} or {regularization}, or use {infeasible clip}; {} {A} {x";
        let told = Worded(text);
        assert_eq!(
            format!("{told}"),
            "raise max_iterations or regularization, or use infeasible=\"clip\"; {} {A} {x"
        );
        assert_eq!(
            format!("{told:#}"),
            "raise --max-iterations or -k, or use --infeasible clip; {} {A} {x"
        );
    }

    #[test]
    fn an_error_names_its_setting_both_ways() {
        let error = crate::Error::Setting {
            name: "time-limit",
            found: "0".to_owned(),
            allowed: "seconds above zero; leave out {time_limit} for none",
        };
        assert_eq!(
            format!("{error}"),
            "time_limit is 0; allowed: seconds above zero; leave out time_limit for none"
        );
        assert_eq!(
            format!("{error:#}"),
            "time-limit is 0; allowed: seconds above zero; leave out --time-limit for none"
        );
    }
}
