//! Axes: from values to a range, round ticks and labels people can read.

/// Values beyond this are left out of charts: their differences would overflow.
const LARGEST: f64 = 1e150;
/// Part of the range left empty at each end of a linear axis.
const PADDING: f64 = 0.04;
/// Most decades labelled on a logarithmic axis.
const MAX_DECADES: i32 = 7;

/// A range of values laid along one side of a chart.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    pub lo: f64,
    pub hi: f64,
    pub is_log: bool,
    /// Value and label, ascending.
    pub ticks: Vec<(f64, String)>,
}

/// Whether a value can be placed on a linear axis.
pub(super) fn is_drawable(value: f64) -> bool {
    value.is_finite() && value.abs() <= LARGEST
}

/// Least and greatest of the drawable values.
pub(super) fn extent(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().filter(|v| is_drawable(*v)).fold(None, |range, v| match range {
        None => Some((v, v)),
        Some((lo, hi)) => Some((lo.min(v), hi.max(v))),
    })
}

impl Axis {
    /// A linear axis around the drawable values; −1 to 1 without any.
    pub fn linear(values: impl IntoIterator<Item = f64>, n_ticks: usize) -> Self {
        let (lo, hi) = opened(extent(values).unwrap_or((-1.0, 1.0)));
        let margin = (hi - lo) * PADDING;
        // A quantity that is never negative gets no negative ticks.
        let padded_lo = if lo >= 0.0 { (lo - margin).max(0.0) } else { lo - margin };
        Self::between(padded_lo, hi + margin, n_ticks)
    }

    /// A linear axis from `lo` to `hi` exactly.
    pub fn between(lo: f64, hi: f64, n_ticks: usize) -> Self {
        let (lo, hi) = opened((lo, hi));
        Self { lo, hi, is_log: false, ticks: linear_ticks(lo, hi, n_ticks) }
    }

    /// A linear axis with marks at whole numbers only where all `values` are some: nothing lies
    /// between them.
    pub fn over(values: &[f64], (lo, hi): (f64, f64), n_ticks: usize) -> Self {
        let axis = Self::between(lo, hi, n_ticks);
        let are_whole = values.iter().filter(|v| v.is_finite()).all(|v| v.fract() == 0.0);
        if !are_whole {
            return axis;
        }
        let ticks = axis.ticks.into_iter().filter(|(value, _)| is_whole(*value));
        let label = |value: f64| grouped(value, 0);
        let ticks = ticks.map(|(value, text)| {
            let text = if text.contains('.') { label(value) } else { text };
            (value, text)
        });
        Self { ticks: ticks.collect(), ..axis }
    }

    /// A logarithmic axis of whole decades around the positive values; 0.1 to 1 without any.
    pub fn logarithmic(values: impl IntoIterator<Item = f64>) -> Self {
        let positive = values.into_iter().filter(|v| *v > 0.0);
        let (lo, hi) = extent(positive).unwrap_or((0.1, 1.0));
        let first = lo.log10().floor() as i32;
        let last = (hi.log10().ceil() as i32).max(first + 1);
        let stride = (last - first + MAX_DECADES - 1) / MAX_DECADES;
        // Count from the top: the largest decade is where a descent starts.
        let exponents = (0..=(last - first) / stride).map(|i| last - i * stride);
        let plain = first >= -3 && last <= 5;
        let label = |e: i32| if plain || e == 0 { grouped(10_f64.powi(e), -e) } else { power(e) };
        let ticks = exponents.rev().map(|e| (10_f64.powi(e), label(e))).collect();
        Self { lo: 10_f64.powi(first), hi: 10_f64.powi(last), is_log: true, ticks }
    }

    /// Where a value lies along the axis, 0 at `lo` and 1 at `hi`; none if it has no place on it.
    pub fn fraction(&self, value: f64) -> Option<f64> {
        let fraction = if self.is_log {
            let (lo, hi) = (self.lo.log10(), self.hi.log10());
            (value.log10() - lo) / (hi - lo)
        } else {
            (value - self.lo) / (self.hi - self.lo)
        };
        // A hair outside is rounding; anything more does not belong on this axis.
        (-1e-6..=1.0 + 1e-6).contains(&fraction).then_some(fraction)
    }
}

/// But for rounding.
fn is_whole(value: f64) -> bool {
    (value - value.round()).abs() < 1e-9 * value.abs().max(1.0)
}

/// A range with some width: constants get a tenth of themselves on each side.
fn opened((lo, hi): (f64, f64)) -> (f64, f64) {
    let size = lo.abs().max(hi.abs());
    if hi - lo > 1e-9 * size {
        return (lo, hi);
    }
    let half = if size < 1e-300 { 1.0 } else { size * 0.1 };
    (lo - half, hi + half)
}

fn linear_ticks(lo: f64, hi: f64, n_ticks: usize) -> Vec<(f64, String)> {
    let rough = (hi - lo) / n_ticks.max(1) as f64;
    let decade = rough.log10().floor() as i32;
    let unit = 10_f64.powi(decade);
    let (multiple, decade) = match rough / unit {
        r if r <= 1.0 => (1.0, decade),
        r if r <= 2.0 => (2.0, decade),
        r if r <= 5.0 => (5.0, decade),
        _ => (1.0, decade + 1),
    };
    let step = multiple * 10_f64.powi(decade);
    // A hair of tolerance: 0.6 / 0.1 is less than 6.
    let (first, last) = ((lo / step - 1e-9).ceil() as i64, (hi / step + 1e-9).floor() as i64);
    let largest = lo.abs().max(hi.abs());
    let label = |value: f64| {
        if value == 0.0 {
            "0".to_owned()
        } else if !(1e-4..1e7).contains(&largest) {
            let digits = (largest.log10().floor() as i32 - decade).max(0) as usize;
            minus(&format!("{value:.digits$e}"))
        } else {
            grouped(value, -decade)
        }
    };
    (first..=last).map(|i| i as f64 * step).map(|value| (value, label(value))).collect()
}

/// A number for people: four significant digits, plain where that is short, else with an exponent.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return minus(&value.to_string().replace("inf", "∞"));
    }
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e7).contains(&size) {
        let text = format!("{value:.2e}");
        return minus(&text.replace(".00e", "e"));
    }
    let decimals = (3 - size.log10().floor() as i32).max(0);
    let text = grouped(value, decimals);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Fixed decimals, thousands separated from 10,000 on, a real minus sign.
fn grouped(value: f64, decimals: i32) -> String {
    let text = format!("{value:.*}", decimals.max(0) as usize);
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("−", rest));
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    if whole.len() < 5 {
        return format!("{sign}{whole}{rest}");
    }
    let mut separated = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            separated.push(',');
        }
        separated.push(digit);
    }
    format!("{sign}{separated}{rest}")
}

fn minus(text: &str) -> String {
    text.replace('-', "−")
}

/// 10ⁿ.
fn power(exponent: i32) -> String {
    let raised = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '0' | '4'..='9' => char::from_u32(0x2070 + (c as u32 - '0' as u32)).unwrap_or(c),
        other => other,
    };
    format!("10{}", exponent.to_string().chars().map(raised).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn linear_labels_are_round_and_short() {
        assert_eq!(labels(&Axis::between(0.0, 0.9, 4)), ["0", "0.5"]);
        assert_eq!(
            labels(&Axis::between(0.0, 0.6, 6)),
            ["0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6"]
        );
        assert_eq!(labels(&Axis::between(-2.0, 3.0, 5)), ["−2", "−1", "0", "1", "2", "3"]);
        assert_eq!(labels(&Axis::between(0.0, 20000.0, 2)), ["0", "10,000", "20,000"]);
        assert_eq!(labels(&Axis::between(0.0, 2e-6, 2)), ["0", "1e−6", "2e−6"]);
        assert_eq!(labels(&Axis::between(0.0, 3e9, 3)), ["0", "1e9", "2e9", "3e9"]);
    }

    #[test]
    fn logarithmic_labels_are_decades() {
        assert_eq!(labels(&Axis::logarithmic([0.02, 5.0])), ["0.01", "0.1", "1", "10"]);
        let deep = Axis::logarithmic([1.0, 1e-9, 0.0, -3.0, f64::NAN]);
        assert_eq!(labels(&deep), ["10⁻⁸", "10⁻⁶", "10⁻⁴", "10⁻²", "1"]);
        assert_eq!((deep.lo, deep.hi), (1e-9, 1.0));
        assert_eq!(labels(&Axis::logarithmic([])), ["0.1", "1"]);
        assert_eq!(labels(&Axis::logarithmic([7.0, 7.0])), ["1", "10"]);
        assert!(Axis::logarithmic([1e-300, 1e140]).ticks.len() <= 8);
    }

    #[test]
    fn every_range_has_width_and_ticks() {
        for values in [
            vec![],
            vec![0.0],
            vec![3.0, 3.0],
            vec![-1e-12],
            vec![f64::NAN, f64::INFINITY],
            vec![1e150, -1e150],
            vec![1.0, 1.0 + 1e-15],
            vec![1e-310],
            vec![f64::MAX],
        ] {
            let axis = Axis::linear(values.clone(), 5);
            assert!(axis.hi > axis.lo && axis.lo.is_finite() && axis.hi.is_finite(), "{values:?}");
            assert!((1..20).contains(&axis.ticks.len()), "{values:?} {axis:?}");
        }
    }

    #[test]
    fn values_without_a_place_have_none() {
        let axis = Axis::logarithmic([1.0, 100.0]);
        assert_eq!(axis.fraction(10.0), Some(0.5));
        assert_eq!(axis.fraction(0.0), None);
        assert_eq!(axis.fraction(-1.0), None);
        assert_eq!(axis.fraction(f64::NAN), None);
        assert_eq!(Axis::between(0.0, 2.0, 2).fraction(f64::INFINITY), None);
    }

    #[test]
    fn nothing_is_marked_between_whole_steps() {
        let marks = |values: &[f64], ends| -> Vec<String> {
            Axis::over(values, ends, 6).ticks.into_iter().map(|(_, label)| label).collect()
        };
        assert_eq!(marks(&[0.0, 3.0], (0.0, 3.0)), ["0", "1", "2", "3"]);
        assert_eq!(marks(&[0.0, 2.0], (-0.5, 2.5)), ["0", "1", "2"]);
        assert!(marks(&[0.0, 1.5, 3.0], (0.0, 3.0)).contains(&"0.5".to_owned()));
    }

    #[test]
    fn numbers_for_people() {
        let cases = [
            (0.1 + 0.2, "0.3"),
            (1234.567, "1235"),
            (12345.6, "12,346"),
            (-0.012_34, "−0.01234"),
            (3.2e-9, "3.20e−9"),
            (1e-9, "1e−9"),
            (5.0, "5"),
            (0.0, "0"),
            (100.0, "100"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "−∞"),
        ];
        for (value, want) in cases {
            assert_eq!(number(value), want);
        }
    }
}
