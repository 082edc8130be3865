//! Columns that are no numbers yet: categories and cycles.
//!
//! A category becomes a column of zeros and ones for each value it can have; what goes round (the
//! hour of a day) becomes sine and cosine of its angle, so that 23 is near 0. Both are remembered
//! with a model, which then reads its data the same way.

use std::f64::consts::TAU;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::dates;

/// Values that one category may have.
pub(super) const MOST_CATEGORIES: usize = 1000;

/// A column of categories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OneHot {
    /// Its name.
    pub column: String,
    /// What it can hold, in the order of the columns that it becomes; empty to find out.
    pub values: Vec<String>,
}

impl OneHot {
    /// A column whose values are found in the data.
    pub fn new(column: impl Into<String>) -> Self {
        Self { column: column.into(), values: Vec::new() }
    }
}

/// A column that goes round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cyclic {
    /// Its name.
    pub column: String,
    /// When it begins again.
    pub period: Period,
}

/// When something begins again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Period {
    /// After so much of a column of numbers.
    Length(f64),
    /// Dates, every day.
    Day,
    /// Dates, every week.
    Week,
    /// Dates, every year.
    Year,
}

impl Period {
    /// The share of the cycle that has passed: of a number, or of seconds since 1970.
    fn share(self, value: f64) -> f64 {
        match self {
            Self::Length(length) => value / length,
            Self::Day => value / dates::DAY,
            // The first of January 1970 was a Thursday.
            Self::Week => value / (7.0 * dates::DAY) + 3.0 / 7.0,
            Self::Year => dates::share_of_year(value),
        }
    }

    pub(super) fn is_of_dates(self) -> bool {
        !matches!(self, Self::Length(_))
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(length) => write!(f, "{length}"),
            Self::Day => f.write_str("day"),
            Self::Week => f.write_str("week"),
            Self::Year => f.write_str("year"),
        }
    }
}

impl fmt::Display for Cyclic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.column, self.period)
    }
}

impl FromStr for Cyclic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is no column with its cycle; expected one such as hour:24, or when:day, \
                 when:week or when:year for dates"
            )
        };
        let (column, period) = text.rsplit_once(':').ok_or_else(wrong)?;
        let period = match period.trim() {
            "day" => Period::Day,
            "week" => Period::Week,
            "year" => Period::Year,
            number => {
                let length = number.parse::<f64>().ok();
                Period::Length(length.filter(|l| *l > 0.0 && l.is_finite()).ok_or_else(wrong)?)
            }
        };
        let column = column.trim().to_owned();
        if column.is_empty() { Err(wrong()) } else { Ok(Self { column, period }) }
    }
}

impl TryFrom<String> for Cyclic {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Cyclic> for String {
    fn from(cyclic: Cyclic) -> Self {
        cyclic.to_string()
    }
}

/// How columns of signals become numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Encoding {
    /// Columns of categories.
    pub one_hot: Vec<OneHot>,
    /// Columns that go round; one may stand here with several periods.
    pub cyclic: Vec<Cyclic>,
}

impl Encoding {
    /// Whether every column is a number as it stands.
    pub fn is_empty(&self) -> bool {
        self.one_hot.is_empty() && self.cyclic.is_empty()
    }

    /// The columns that signals of these names come from, each once.
    pub fn sources(&self, names: &[String]) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for name in names {
            let source = self.source(name).unwrap_or(name);
            if found.last().map(String::as_str) != Some(source) {
                found.push(source.to_owned());
            }
        }
        found
    }

    fn source(&self, name: &str) -> Option<&str> {
        let categories = self.one_hot.iter().find(|hot| hot.names().any(|own| own == name));
        let cycles = self.cyclic.iter().find(|cyclic| cyclic.names().contains(&name.to_owned()));
        let categories = categories.map(|hot| hot.column.as_str());
        categories.or(cycles.map(|cyclic| cyclic.column.as_str()))
    }

    pub(super) fn of_column(&self, column: &str) -> Code {
        if let Some(hot) = self.one_hot.iter().find(|hot| hot.column == column) {
            return Code::Category(hot.clone());
        }
        let own = self.cyclic.iter().filter(|cyclic| cyclic.column == column);
        let periods: Vec<Period> = own.map(|cyclic| cyclic.period).collect();
        if periods.is_empty() { Code::Number } else { Code::Cycle(periods) }
    }

    /// The signals of one situation, given by the names of columns: numbers, or text.
    ///
    /// Fails with what is missing, unknown or not understood.
    pub fn encode(
        &self,
        names: &[String],
        value: impl Fn(&str) -> Option<Given>,
    ) -> Result<Vec<f64>, String> {
        let mut out = Vec::with_capacity(names.len());
        for column in self.sources(names) {
            let given = value(&column).ok_or_else(|| format!("the signal lacks `{column}`"))?;
            let code = self.of_column(&column);
            let number = match (&code, given) {
                (Code::Category(hot), given) => hot.place(&given.text()).ok_or_else(|| {
                    format!("`{column}` is {given:?}; the model knows {}", hot.values.join(", "))
                })? as f64,
                (_, Given::Number(number)) => number,
                (Code::Cycle(periods), Given::Text(text)) if periods[0].is_of_dates() => {
                    dates::seconds(text.as_bytes())
                        .ok_or_else(|| format!("`{column}` is `{text}`, which is no date"))?
                }
                (_, Given::Text(text)) => {
                    return Err(format!("`{column}` is `{text}`, which is no number"));
                }
            };
            code.expand(number, &mut out);
        }
        Ok(out)
    }
}

/// A value somebody gave.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Given {
    /// A number.
    Number(f64),
    /// A text: a category, or a date.
    Text(String),
}

impl Given {
    fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

impl OneHot {
    fn names(&self) -> impl Iterator<Item = String> {
        self.values.iter().map(|value| format!("{}={value}", self.column))
    }

    /// Which of its values a text is.
    fn place(&self, text: &str) -> Option<usize> {
        self.values.iter().position(|value| value == text)
    }
}

impl Cyclic {
    /// What the two columns are called that it becomes.
    fn names(&self) -> [String; 2] {
        ["sin", "cos"].map(|side| format!("{side}({}/{})", self.column, self.period))
    }
}

/// How one column becomes numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Code {
    /// It is one.
    Number,
    /// Read as the place of its value among all.
    Category(OneHot),
    /// Read as a number, or of dates as seconds since 1970.
    Cycle(Vec<Period>),
}

impl Code {
    /// Columns that it becomes.
    pub fn width(&self) -> usize {
        match self {
            Self::Number => 1,
            Self::Category(hot) => hot.values.len(),
            Self::Cycle(periods) => 2 * periods.len(),
        }
    }

    /// What these are called.
    pub fn names(&self, column: &str) -> Vec<String> {
        match self {
            Self::Number => vec![column.to_owned()],
            Self::Category(hot) => hot.names().collect(),
            Self::Cycle(periods) => {
                let one =
                    |period: &Period| Cyclic { column: column.to_owned(), period: *period }.names();
                periods.iter().flat_map(one).collect()
            }
        }
    }

    /// Adds what a number that was read becomes.
    pub fn expand(&self, number: f64, out: &mut Vec<f64>) {
        match self {
            Self::Number => out.push(number),
            Self::Category(hot) => {
                let own = |at: usize| {
                    if number.is_nan() { number } else { f64::from(u8::from(at as f64 == number)) }
                };
                out.extend((0..hot.values.len()).map(own));
            }
            Self::Cycle(periods) => {
                for period in periods {
                    let (sin, cos) = (TAU * period.share(number).rem_euclid(1.0)).sin_cos();
                    out.extend([sin, cos]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_close_and_dates_know_their_calendar() {
        let angle = |text: &str, value: f64| {
            let cyclic: Cyclic = text.parse().unwrap();
            assert_eq!(cyclic.to_string(), text);
            cyclic.period.share(value).rem_euclid(1.0)
        };
        assert_eq!(angle("hour:24", 24.0), 0.0);
        assert_eq!(angle("a:b:24", 6.0), 0.25);
        let seconds = |text: &str| dates::seconds(text.as_bytes()).unwrap();
        assert_eq!(angle("when:day", seconds("2024-02-29 06:00")), 0.25);
        // A Monday.
        assert!(angle("when:week", seconds("2024-03-04")).abs() < 1e-12);
        assert_eq!(angle("when:year", seconds("2024-07-02")), 0.5);
        for wrong in ["hour", "hour:0", "hour:-1", ":24", "hour:month", "hour:inf"] {
            assert!(wrong.parse::<Cyclic>().unwrap_err().contains("such as hour:24"), "{wrong}");
        }
    }

    #[test]
    fn a_model_finds_its_columns_again() {
        let hot = OneHot { column: "day".to_owned(), values: vec!["Mo".into(), "Tu".into()] };
        let encoding = Encoding { one_hot: vec![hot], cyclic: vec!["hour:24".parse().unwrap()] };
        let columns = ["load", "day", "hour"];
        let names: Vec<String> =
            columns.iter().flat_map(|c| encoding.of_column(c).names(c)).collect();
        assert_eq!(names, ["load", "day=Mo", "day=Tu", "sin(hour/24)", "cos(hour/24)"]);
        assert_eq!(encoding.sources(&names), columns);
        let given = |name: &str| match name {
            "load" => Some(Given::Number(3.0)),
            "day" => Some(Given::Text("Tu".to_owned())),
            _ => Some(Given::Number(0.0)),
        };
        assert_eq!(encoding.encode(&names, given).unwrap(), [3.0, 0.0, 1.0, 0.0, 1.0]);
        let sunday = |_: &str| Some(Given::Text("Su".to_owned()));
        assert!(encoding.encode(&names[1..3], sunday).unwrap_err().contains("knows Mo, Tu"));
        assert!(encoding.encode(&names, |_| None).unwrap_err().contains("lacks `load`"));
        let json = serde_json::to_string(&encoding).unwrap();
        assert_eq!(serde_json::from_str::<Encoding>(&json).unwrap(), encoding);
    }
}
