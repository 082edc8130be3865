//! Dates as text, in seconds since the beginning of 1970.

/// Days from 1970 that have a year.
const FARTHEST: f64 = 1e9;
/// Seconds of a day.
pub(super) const DAY: f64 = 86_400.0;

/// `2024-05-31`, with a time of day (`13:05`, `13:05:07.5`) after a space or T, and a zone (`Z`,
/// `+02:00`) after that, where given.
pub(super) fn seconds(text: &[u8]) -> Option<f64> {
    let text = str::from_utf8(text).ok()?.trim();
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, Some(time.trim())),
        None => (text, None),
    };
    let mut parts = date.splitn(3, ['-', '/']);
    let mut whole = |digits: usize| {
        let part = parts.next()?;
        let plain = part.len() <= digits && part.bytes().all(|byte| byte.is_ascii_digit());
        if plain { part.parse::<i64>().ok() } else { None }
    };
    let (year, month, day) = (whole(4)?, whole(2)?, whole(2)?);
    if date.len() < 8 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let midnight = days(year, month, day) as f64 * DAY;
    time.map_or(Some(midnight), |time| Some(midnight + of_day(time)?))
}

/// Seconds since midnight in Greenwich.
fn of_day(time: &str) -> Option<f64> {
    let (clock, zone) = match time.find(['Z', '+', '-']) {
        Some(at) => (&time[..at], of_zone(&time[at..])?),
        None => (time, 0.0),
    };
    Some(of_clock(clock.trim())? - zone)
}

fn of_zone(zone: &str) -> Option<f64> {
    match zone.split_at(1) {
        ("Z", "") => Some(0.0),
        ("+", ahead) => of_clock(ahead),
        ("-", behind) => of_clock(behind).map(|seconds| -seconds),
        _ => None,
    }
}

/// `13`, `13:05`, `1305`, `13:05:07.5`.
fn of_clock(clock: &str) -> Option<f64> {
    let plain = clock.len() == 4 && clock.bytes().all(|byte| byte.is_ascii_digit());
    let (hours, rest) =
        if plain { clock.split_at(2) } else { clock.split_once(':').unwrap_or((clock, "0")) };
    let (minutes, seconds) = rest.split_once(':').unwrap_or((rest, "0"));
    let number = |text: &str, below: f64| {
        let starts = text.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
        text.parse::<f64>().ok().filter(|n| starts && (0.0..below).contains(n))
    };
    Some(3600.0 * number(hours, 25.0)? + 60.0 * number(minutes, 60.0)? + number(seconds, 61.0)?)
}

/// Days from the first of January 1970, by the calendar of today.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March have their leap day at the end.
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// How much of its year has passed.
pub(super) fn share_of_year(seconds: f64) -> f64 {
    let day = seconds / DAY;
    if day.is_nan() || day.abs() > FARTHEST {
        return f64::NAN;
    }
    // Near enough to find the year, which is then looked at from both sides.
    let mut year = 1970 + (day / 365.2425).floor() as i64;
    let start = |year: i64| days(year, 1, 1) as f64;
    while start(year) > day {
        year -= 1;
    }
    while start(year + 1) <= day {
        year += 1;
    }
    (day - start(year)) / (start(year + 1) - start(year))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_all_spellings() {
        let of = |text: &str| seconds(text.as_bytes());
        assert_eq!(of("1970-01-01"), Some(0.0));
        assert_eq!(of("2000-03-01T00:00:00Z"), Some(951_868_800.0));
        assert_eq!(of("2024/02/29 13:30"), Some(1_709_213_400.0));
        assert_eq!(of("2024-02-29 13:30:00.5+01:30"), Some(1_709_208_000.5));
        assert_eq!(of("1969-12-31T23:00:00-0100"), Some(0.0));
        for wrong in ["", "12", "2024", "2024-13-01", "24-1-1", "2024-01-01 25:70", "a-b-c", "1.5"]
        {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert!((share_of_year(0.0), share_of_year(-1.0)) < (0.001, 1.0));
    }
}
