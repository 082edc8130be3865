//! Kernels as people write them: `rbf`, `rbf + 0.5*linear`, `matern52(gamma=0.1)*polynomial`.
//!
//! ```text
//! sum     = product { "+" product }
//! product = factor { "*" factor }                 at least one factor is no number
//! factor  = number | "(" sum ")" | name [ "(" parameter { "," parameter } ")" ]
//! parameter = ("gamma" | "degree" | "offset") "=" value
//! ```
//!
//! Parameters that are not in parentheses come from the settings of the same name.

use super::values::Gamma;
use argwhy_core::Kernel;
pub use argwhy_core::kernel::KernelKind;
use argwhy_core::kernel::KernelParameters;
use serde::de::{Error as _, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// What the kernel is.
#[derive(Clone, Debug, PartialEq)]
pub enum KernelChoice {
    /// Named kernels; what their parentheses leave open is a setting of its own.
    Expression(KernelExpression),
    /// A kernel made in Rust, complete with its parameters: the way for kernels of one's own.
    Given(Kernel),
}

impl Default for KernelChoice {
    fn default() -> Self {
        KernelKind::Matern52.into()
    }
}

impl From<KernelKind> for KernelChoice {
    fn from(kind: KernelKind) -> Self {
        Self::Expression(KernelExpression::Named { kind, parameters: Parameters::default() })
    }
}

impl From<Kernel> for KernelChoice {
    fn from(kernel: Kernel) -> Self {
        Self::Given(kernel)
    }
}

/// Parameters of a named kernel, each none where it is left to the setting of that name.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parameters {
    /// γ.
    pub gamma: Option<Gamma>,
    /// Degree of a polynomial kernel.
    pub degree: Option<u32>,
    /// Offset of a polynomial kernel.
    pub offset: Option<f64>,
}

/// Degree of a polynomial kernel where nobody gives one.
pub const DEFAULT_DEGREE: u32 = 3;
/// Offset of a polynomial kernel where nobody gives one.
pub const DEFAULT_OFFSET: f64 = 1.0;

/// A kernel in words.
#[derive(Clone, Debug, PartialEq)]
pub enum KernelExpression {
    /// One kernel.
    Named {
        /// Which.
        kind: KernelKind,
        /// What stands in its parentheses.
        parameters: Parameters,
    },
    /// A number times a kernel.
    Scaled(f64, Box<KernelExpression>),
    /// A sum.
    Sum(Vec<KernelExpression>),
    /// A product.
    Product(Vec<KernelExpression>),
}

impl KernelChoice {
    /// The kernel on `n_features` features, with `shared` parameters where the expression has none
    /// of its own.
    pub(super) fn kernel(&self, n_features: usize, shared: Parameters) -> Kernel {
        match self {
            Self::Given(kernel) => kernel.clone(),
            Self::Expression(expression) => expression.kernel(n_features, shared),
        }
    }

    /// Whether the shared parameter of this name has any effect.
    pub fn takes(&self, parameter: &str) -> bool {
        match self {
            Self::Given(_) => false,
            Self::Expression(expression) => expression.takes(parameter),
        }
    }
}

impl KernelExpression {
    fn kernel(&self, n_features: usize, shared: Parameters) -> Kernel {
        let all = |parts: &[Self]| parts.iter().map(|e| e.kernel(n_features, shared)).collect();
        match self {
            Self::Sum(terms) => Kernel::Sum { terms: all(terms) },
            Self::Product(factors) => Kernel::Product { factors: all(factors) },
            Self::Scaled(weight, of) => {
                let kernel = Box::new(of.kernel(n_features, shared));
                Kernel::Scaled { weight: *weight, kernel }
            }
            Self::Named { kind, parameters: own } => {
                let gamma = own.gamma.or(shared.gamma).unwrap_or(Gamma::Auto).value(n_features);
                let degree = own.degree.or(shared.degree).unwrap_or(DEFAULT_DEGREE);
                let offset = own.offset.or(shared.offset).unwrap_or(DEFAULT_OFFSET);
                kind.kernel(KernelParameters { gamma, degree, offset })
            }
        }
    }

    fn takes(&self, parameter: &str) -> bool {
        match self {
            Self::Sum(parts) | Self::Product(parts) => parts.iter().any(|e| e.takes(parameter)),
            Self::Scaled(_, of) => of.takes(parameter),
            Self::Named { kind, parameters: own } => {
                let given = match parameter {
                    "gamma" => own.gamma.is_some(),
                    "degree" => own.degree.is_some(),
                    _ => own.offset.is_some(),
                };
                !given && kind.parameters().contains(&parameter)
            }
        }
    }
}

impl fmt::Display for KernelExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Numbers are gathered in front of a product, so one further inside keeps its parentheses.
        let factor = |f: &mut fmt::Formatter<'_>, e: &Self| match e {
            Self::Named { .. } => write!(f, "{e}"),
            Self::Scaled(..) | Self::Sum(_) | Self::Product(_) => write!(f, "({e})"),
        };
        match self {
            Self::Named { kind, parameters: Parameters { gamma, degree, offset } } => {
                f.write_str(kind.name())?;
                let given: Vec<String> = [
                    gamma.map(|gamma| format!("gamma={gamma}")),
                    degree.map(|degree| format!("degree={degree}")),
                    offset.map(|offset| format!("offset={offset}")),
                ]
                .into_iter()
                .flatten()
                .collect();
                if given.is_empty() { Ok(()) } else { write!(f, "({})", given.join(", ")) }
            }
            Self::Scaled(weight, of) => {
                write!(f, "{weight}*")?;
                factor(f, of)
            }
            Self::Sum(parts) => parts.iter().enumerate().try_for_each(|(i, part)| {
                f.write_str(if i > 0 { " + " } else { "" })?;
                if matches!(part, Self::Sum(_)) { factor(f, part) } else { part.fmt(f) }
            }),
            Self::Product(parts) => parts.iter().enumerate().try_for_each(|(i, part)| {
                f.write_str(if i > 0 { "*" } else { "" })?;
                factor(f, part)
            }),
        }
    }
}

impl FromStr for KernelChoice {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parser = Parser { rest: text, depth: 0 };
        let expression = parser.sum()?;
        match parser.peek() {
            None => Ok(Self::Expression(expression)),
            Some(')') => {
                Err(format!("`{}` closes a parenthesis that was never opened", parser.rest))
            }
            Some(_) => Err(format!("`{}` is unexpected; {}", parser.rest, allowed())),
        }
    }
}

/// What may be written, for those who wrote something else.
fn allowed() -> String {
    let names: Vec<String> = Kernel::NAMES.iter().map(|name| format!("`{name}`")).collect();
    format!(
        "allowed: {}, joined by + and * with positive numbers as weights, such as \"rbf + \
         0.5*linear\" or \"matern52(gamma=0.1)*linear\"",
        names.join(", ")
    )
}

/// Parentheses inside each other; nobody needs as many.
const MAX_DEPTH: usize = 16;

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.rest = &self.rest[wanted.len_utf8()..];
        }
        found
    }

    /// Cuts off the longest start made of characters that `belongs` accepts.
    fn word(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        self.peek();
        let end = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn sum(&mut self) -> Result<KernelExpression, String> {
        let mut terms = vec![self.product()?];
        while self.take('+') {
            terms.push(self.product()?);
        }
        Ok(if terms.len() == 1 { terms.remove(0) } else { KernelExpression::Sum(terms) })
    }

    fn product(&mut self) -> Result<KernelExpression, String> {
        let start = self.rest.trim_start();
        let (mut weight, mut factors) = (None, Vec::new());
        loop {
            match self.peek() {
                Some(c) if c.is_ascii_digit() || c == '.' => {
                    weight = Some(weight.unwrap_or(1.0) * self.number()?);
                }
                Some('-') => {
                    return Err(format!(
                        "`{}` is negative; a kernel minus something is not positive semidefinite, \
                         so weights must be positive",
                        self.rest
                    ));
                }
                _ => factors.push(self.factor()?),
            }
            if !self.take('*') {
                break;
            }
        }
        if factors.is_empty() {
            let number = start[..start.len() - self.rest.len()].trim_end();
            return Err(format!("`{number}` is a number without a kernel; {}", allowed()));
        }
        let product =
            if factors.len() == 1 { factors.remove(0) } else { KernelExpression::Product(factors) };
        Ok(match weight {
            None => product,
            Some(weight) => KernelExpression::Scaled(weight, Box::new(product)),
        })
    }

    fn number(&mut self) -> Result<f64, String> {
        let mut after_exponent = false;
        let end = self
            .rest
            .find(|c: char| {
                let sign = after_exponent && matches!(c, '+' | '-');
                after_exponent = matches!(c, 'e' | 'E');
                !(c.is_ascii_digit() || c == '.' || after_exponent || sign)
            })
            .unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest;
        number.parse().map_err(|_| format!("`{number}` is not a number; {}", allowed()))
    }

    fn factor(&mut self) -> Result<KernelExpression, String> {
        if self.take('(') {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(format!("more than {MAX_DEPTH} parentheses inside each other"));
            }
            let inside = self.sum()?;
            if !self.take(')') {
                return Err("a parenthesis is not closed".to_owned());
            }
            self.depth -= 1;
            return Ok(inside);
        }
        let name = self.word(|c| c.is_alphanumeric() || c == '_' || c == '-');
        let Some(kind) = KernelKind::ALL.into_iter().find(|kind| kind.name() == name) else {
            let what = if name.is_empty() { self.rest } else { name };
            return Err(if what.is_empty() {
                format!("a kernel is missing; {}", allowed())
            } else {
                format!("`{what}` is not a kernel; {}", allowed())
            });
        };
        let parameters =
            if self.take('(') { self.parameters(kind)? } else { Parameters::default() };
        Ok(KernelExpression::Named { kind, parameters })
    }

    fn parameters(&mut self, kind: KernelKind) -> Result<Parameters, String> {
        let mut parameters = Parameters::default();
        loop {
            let name = self.word(|c| c.is_alphanumeric() || c == '_' || c == '-');
            if !kind.parameters().contains(&name) {
                let allowed = match kind.parameters() {
                    [] => "it takes none".to_owned(),
                    some => format!("allowed: {}", some.join(", ")),
                };
                return Err(format!("`{}` has no parameter `{name}`; {allowed}", kind.name()));
            }
            if !self.take('=') {
                return Err(format!("`{name}` needs a value, such as {name}=1"));
            }
            let value = self.word(|c| !matches!(c, ',' | ')' | '(' | '*')).trim();
            let wrong = |wanted: &str| format!("`{name}={value}`: expected {wanted}");
            let twice = match name {
                "gamma" => {
                    let gamma = value.parse().map_err(|_| wrong("`auto` or a positive number"))?;
                    parameters.gamma.replace(gamma).is_some()
                }
                "degree" => {
                    let degree = value.parse().map_err(|_| wrong("a whole number from 1 to 32"))?;
                    parameters.degree.replace(degree).is_some()
                }
                _ => {
                    let offset = value.parse().map_err(|_| wrong("zero or a positive number"))?;
                    parameters.offset.replace(offset).is_some()
                }
            };
            if twice {
                return Err(format!("`{name}` is given twice for one `{}`", kind.name()));
            }
            if self.take(')') {
                return Ok(parameters);
            }
            if !self.take(',') {
                return Err(format!("the parenthesis after `{}` is not closed", kind.name()));
            }
        }
    }
}

/// An expression as text, a kernel made in Rust as in a model file.
impl Serialize for KernelChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Expression(expression) => serializer.collect_str(expression),
            Self::Given(kernel) => kernel.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for KernelChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = KernelChoice;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a kernel such as \"rbf\" or \"rbf + 0.5*linear\"")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<KernelChoice, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<KernelChoice, A::Error> {
                let kernel = Kernel::deserialize(MapAccessDeserializer::new(map));
                kernel.map(KernelChoice::Given).map_err(A::Error::custom)
            }
        }

        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(text: &str) -> Kernel {
        let choice: KernelChoice = text.parse().unwrap();
        choice.kernel(4, Parameters { gamma: Some(Gamma::Value(2.0)), ..Parameters::default() })
    }

    #[test]
    fn expressions_mean_what_they_say() {
        let rbf = Kernel::Rbf { gamma: 2.0 };
        let half = |kernel| Kernel::Scaled { weight: 0.5, kernel: Box::new(kernel) };
        let polynomial = Kernel::Polynomial { degree: 3, gamma: 2.0, offset: 1.0 };
        for (text, expected) in [
            ("rbf", rbf.clone()),
            (" ( rbf ) ", rbf.clone()),
            ("rbf + 0.5*linear", Kernel::Sum { terms: vec![rbf.clone(), half(Kernel::Linear)] }),
            ("rbf+5e-1*linear", Kernel::Sum { terms: vec![rbf.clone(), half(Kernel::Linear)] }),
            ("linear*.5", half(Kernel::Linear)),
            ("rbf*polynomial", Kernel::Product { factors: vec![rbf.clone(), polynomial] }),
            (
                "matern52(gamma=0.1) + linear",
                Kernel::Sum { terms: vec![Kernel::Matern52 { gamma: 0.1 }, Kernel::Linear] },
            ),
            ("matern32(gamma = auto)", Kernel::Matern32 { gamma: 0.25 }),
            (
                "polynomial(degree=2,offset=0, gamma=3)",
                Kernel::Polynomial { degree: 2, gamma: 3.0, offset: 0.0 },
            ),
            (
                "0.25*2*(laplace + linear)*rbf",
                half(Kernel::Product {
                    factors: vec![
                        Kernel::Sum { terms: vec![Kernel::Laplace { gamma: 2.0 }, Kernel::Linear] },
                        rbf,
                    ],
                }),
            ),
        ] {
            assert_eq!(kernel(text), expected, "{text}");
        }
    }

    #[test]
    fn an_expression_is_read_back_from_what_it_prints() {
        for text in [
            "rbf",
            "rbf + 0.5*linear + laplace(gamma=auto)",
            "2*(rbf + linear)*polynomial(gamma=0.1, degree=4, offset=0)",
            "(rbf + linear)*(0.5*rbf)*linear + (rbf + matern32) + 3*(0.5*linear)",
            "0.1*(rbf*linear)",
        ] {
            let choice: KernelChoice = text.parse().unwrap();
            let json = serde_json::to_string(&choice).unwrap();
            assert_eq!(serde_json::from_str::<KernelChoice>(&json).unwrap(), choice, "{json}");
        }
        let given = KernelChoice::Given(kernel("rbf + 0.5*polynomial"));
        let json = serde_json::to_string(&given).unwrap();
        assert_eq!(serde_json::from_str::<KernelChoice>(&json).unwrap(), given, "{json}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, piece) in [
            ("", "missing"),
            ("gauss", "`gauss`"),
            ("rbf + gauss", "`gauss`"),
            ("rbf +", "missing"),
            ("rbf linear", "`linear`"),
            ("rbf - linear", "`- linear`"),
            ("-1*rbf", "negative"),
            ("rbf + 0.5", "`0.5` is a number"),
            ("1.2.3*rbf", "`1.2.3`"),
            ("(rbf", "not closed"),
            ("rbf)", "`)`"),
            ("rbf(gamma=1", "not closed"),
            ("rbf(degree=2)", "no parameter `degree`; allowed: gamma"),
            ("linear(gamma=2)", "takes none"),
            ("rbf(gamma)", "needs a value"),
            ("rbf(gamma=x)", "`gamma=x`"),
            ("rbf(gamma=1, gamma=2)", "twice"),
            ("polynomial(degree=2.5)", "`degree=2.5`"),
            ("polynomial(offset=)", "`offset=`"),
            ("RBF", "`RBF`"),
        ] {
            let message = text.parse::<KernelChoice>().unwrap_err();
            assert!(message.contains(piece), "{text}: {message}");
        }
        assert!(format!("{}rbf", "(".repeat(100_000)).parse::<KernelChoice>().is_err());
    }
}
