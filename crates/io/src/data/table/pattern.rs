//! Several columns at once: `s*`, `price:load`, `0:5`.

/// The columns that a pattern or range stands for, in the file's order; none where `text` is
/// neither, or stands for nothing. A column's own name goes first.
pub(super) fn of(names: &[String], text: &str) -> Option<Vec<usize>> {
    if text.is_empty() || names.iter().any(|name| name == text) {
        return None;
    }
    let found: Vec<usize> = if is_open(text) {
        let fits = |column: &usize| fits(text.as_bytes(), names[*column].as_bytes());
        (0..names.len()).filter(fits).collect()
    } else {
        range(names, text)?.collect()
    };
    (!found.is_empty()).then_some(found)
}

/// Whether `text` stands for whatever fits, rather than for columns that are named.
pub(super) fn is_open(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// Whether `text` is the name of a column, or a pattern or range that stands for some.
pub(super) fn has(names: &[String], text: &str) -> bool {
    names.iter().any(|name| name == text) || of(names, text).is_some()
}

/// `first:last` by names, the last one included; `0:5` by numbers, half-open, as rows are.
fn range(names: &[String], text: &str) -> Option<std::ops::Range<usize>> {
    let place = |name: &str| names.iter().position(|own| own == name.trim());
    let by_names = text.match_indices(':').find_map(|(at, _)| {
        let (first, last) = (place(&text[..at])?, place(&text[at + 1..])?);
        (first <= last).then_some(first..last + 1)
    });
    by_names.or_else(|| {
        let (first, end) = text.split_once(':')?;
        let number = |digits: &str, none: usize| match digits.trim() {
            "" => Some(none),
            digits => digits.parse::<usize>().ok(),
        };
        let (first, end) = (number(first, 0)?, number(end, names.len())?);
        (first < end && end <= names.len()).then_some(first..end)
    })
}

/// Whether a name fits: `*` stands for any characters, `?` for one.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    // Where the last star was, and what it has swallowed so far.
    let (mut at, mut of, mut star) = (0, 0, None);
    while of < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, of));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[of] => (at, of) = (at + 1, of + 1),
            _ => {
                let Some((star_at, swallowed)) = star else { return false };
                star = Some((star_at, swallowed + 1));
                (at, of) = (star_at + 1, swallowed + 1);
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<Vec<usize>> {
        let names = ["s_0", "price", "s_1", "load", "a:b", "*"].map(ToOwned::to_owned);
        of(&names, text)
    }

    #[test]
    fn stars_and_question_marks_stand_for_columns_in_their_order() {
        assert_eq!(found("s*"), Some(vec![0, 2]));
        assert_eq!(found("?_1"), Some(vec![2]));
        assert_eq!(found("*o*d"), Some(vec![3]));
        assert_eq!(found("*ice"), Some(vec![1]));
        assert_eq!(found("x*"), None);
        // A column may be called so.
        assert_eq!(found("*"), None);
    }

    #[test]
    fn ranges_are_by_names_or_numbers() {
        assert_eq!(found("price:load"), Some(vec![1, 2, 3]));
        assert_eq!(found("load:price"), None);
        assert_eq!(found("s_1:a:b"), Some(vec![2, 3, 4]));
        assert_eq!(found("0:2"), Some(vec![0, 1]));
        assert_eq!(found("4:"), Some(vec![4, 5]));
        assert_eq!((found("4:9"), found("a:b"), found("2:2")), (None, None, None));
    }
}
