//! What curves say, in words: the same on the terminal and on pages.

use crate::report::number;
use argwhy::explain::{
    Change, Effect, Explanation, Freed, Money, OneDecision, Pair, TradeOff, Units,
};

pub use argwhy::core::wording::count;

/// A number with the unit of what is called so, where it has one.
pub fn amount(value: f64, name: &str, units: &Units) -> String {
    match units.of(name) {
        Some(unit) => format!("{} {unit}", number(value)),
        None => number(value),
    }
}

/// What a signal does to the desired decision `m`, over the stretch where that is known.
pub fn effect(
    (name, effect): (&str, &Effect),
    (decision, m): (&str, usize),
    units: &Units,
) -> String {
    let (first, last) = effect.known(m).unwrap_or((0, effect.at.len() - 1));
    let (at, curve) = (&effect.at[first..=last], &effect.desired[m][first..=last]);
    let lowest = curve.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = curve.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (range, whole) = (highest - lowest, curve[curve.len() - 1] - curve[0]);
    let (from, to) = (number(at[0]), amount(at[at.len() - 1], name, units));
    let (signal, wanted) = (Units::bare(name), Units::bare(decision));
    let along = format!("As {signal} goes from {from} to {to}, the desired {wanted}");
    let by = |value: f64| amount(value, decision, units);
    let hidden = match effect.known(m) {
        None => " Limits hold it nearly always, so this is a guess.",
        Some(known) if known != (0, effect.at.len() - 1) => {
            " Beyond that limits hold it nearly always."
        }
        Some(_) => "",
    };
    if whole.abs() >= 0.9 * range && range > 0.0 {
        let way = if whole > 0.0 { "rises" } else { "falls" };
        return format!("{along} {way} by {}.{hidden}", by(whole.abs()));
    }
    let peak = |value: f64| at[curve.iter().position(|v| *v == value).unwrap_or(0)];
    format!(
        "{along} varies by {}, highest at {} and lowest at {}.{hidden}",
        by(range),
        number(peak(highest)),
        number(peak(lowest))
    )
}

/// The situations an explanation is about.
pub fn situations(explanation: &Explanation) -> String {
    let source = &explanation.situations;
    let rows = if source.support_only {
        format!(
            "Over the {} that the model keeps (those that carry weight; samples without weight are \
             not in its file, so give the data for the whole picture)",
            count(source.rows, "sample")
        )
    } else if source.used < source.rows {
        format!("Over {} of {} rows, evenly taken", source.used, source.rows)
    } else {
        format!("Over {}", count(source.rows, "row"))
    };
    let decisions = if source.with_decisions {
        ""
    } else {
        " The rows' constraints are not known, so this is about what is desired, not about what \
         the limits leave of it."
    };
    format!("{rows}.{decisions}")
}

/// Two decisions that give way to each other.
pub fn trade_off(trade: &TradeOff, units: &Units) -> String {
    let [a, b] = &trade.decisions;
    let [first, second] = [a, b].map(|name| Units::bare(name));
    let worth = format!(
        "Giving up {} of {first} is worth {} of {second}: a deviation of either costs the same",
        amount(1.0, a, units),
        amount(trade.worth, b, units)
    );
    if trade.moves.abs() < 1e-9 {
        return format!("{worth}; neither gives way to the other.");
    }
    let way = if trade.moves > 0.0 { "up" } else { "down" };
    format!(
        "{worth}; where {first} is held {} below what is wanted, {second} goes {way} by {}.",
        amount(1.0, a, units),
        amount(trade.moves.abs(), b, units)
    )
}

/// What a unit of cost is worth.
pub fn money(money: &Money) -> String {
    let Money { decision, signal, worth, varies } = money;
    format!(
        "A unit of the learned cost is worth {} in the money of {signal}: the desired {decision} \
         falls by {} as {signal} rises by 1, give or take {:.0} % from situation to situation.",
        number(*worth),
        number(0.5 / worth),
        100.0 * varies
    )
}

/// The strongest pair.
pub fn pair(pair: &Pair, decisions: &[String]) -> String {
    let [first, second] = &pair.names;
    format!(
        "{first} and {second} matter most together: beyond what each does alone they make {:.1} % \
         of the variation of {}.",
        100.0 * pair.share,
        decisions[pair.decision]
    )
}

/// What is decided on one situation, and what holds it there.
pub fn held(one: &OneDecision) -> String {
    if one.decision.is_none() {
        return "Its constraints are not known, so only what is desired can be told.".to_owned();
    }
    if one.held_by.is_empty() {
        return "No limit holds it: what is decided is what is wanted.".to_owned();
    }
    let limits: Vec<String> = one
        .held_by
        .iter()
        .map(|held| {
            let price = match (held.money, &one.money) {
                (Some(paid), Some(money)) => {
                    format!("{} in the money of {}", number(paid), money.signal)
                }
                _ => number(held.price),
            };
            let unit = one.units.of(&held.limit).map(|unit| format!(" a {unit}"));
            format!("{} at a price of {price}{}", held.limit, unit.unwrap_or_default())
        })
        .collect();
    format!(
        "It is held by {}: what one more unit of that limit would be worth to the expert.",
        limits.join(", and by ")
    )
}

/// The easiest way to change the decision.
pub fn change(change: &Change, one: &OneDecision) -> Option<String> {
    let (to, then) = (change.to?, change.decision.as_ref()?);
    let told = |name: &str, value: f64| amount(value, name, &one.units);
    let then: Vec<String> = one
        .decisions
        .iter()
        .zip(then)
        .map(|(name, value)| format!("{} {}", Units::bare(name), told(name, *value)))
        .collect();
    let signal = Units::bare(&change.signal);
    Some(format!("with {signal} at {}: {}", told(&change.signal, to), then.join(", ")))
}

/// What would free a decision from a limit.
pub fn freed(freed: &Freed, units: &Units) -> String {
    match (&freed.signal, freed.to) {
        (Some(signal), Some(to)) => {
            let (name, to) = (Units::bare(signal), amount(to, signal, units));
            format!("{} would no longer hold it with {name} at {to}.", freed.limit)
        }
        _ => format!("No single signal, within its seen range, frees it from {}.", freed.limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!((count(1, "step"), count(0, "step")), ("1 step".into(), "0 steps".into()));
    }

    #[test]
    fn trade_offs_in_words() {
        let decisions = ["here_kw".to_owned(), "there_kw".to_owned()];
        let none = Units::default();
        let trade = TradeOff { decisions, worth: 0.4, moves: 0.16 };
        let said = trade_off(&trade, &none);
        assert!(said.starts_with("Giving up 1 of here_kw is worth 0.4 of there_kw"), "{said}");
        assert!(said.ends_with("there_kw goes up by 0.16."), "{said}");
        let apart = trade_off(&TradeOff { worth: 2.0, moves: 0.0, ..trade.clone() }, &none);
        assert!(apart.contains("neither gives way"), "{apart}");
        let units = Units([("here".to_owned(), "kW".to_owned())].into());
        let decisions = ["here".to_owned(), "there [MW]".to_owned()];
        let said = trade_off(&TradeOff { decisions, ..trade }, &units);
        assert!(said.starts_with("Giving up 1 kW of here is worth 0.4 MW of there:"), "{said}");
        assert!(said.contains("held 1 kW below") && said.ends_with("up by 0.16 MW."), "{said}");
    }

    #[test]
    fn curves_in_words() {
        let of = |desired: Vec<f64>| Effect {
            at: vec![0.0, 1.0, 2.0],
            rows: vec![5, 5],
            spread: vec![vec![0.0; 3]],
            free: None,
            decision: None,
            desired: vec![desired],
        };
        let told = |curve: &Effect| effect(("price", curve), ("power", 0), &Units::default());
        let falls = told(&of(vec![2.0, 0.0, -1.0]));
        assert_eq!(falls, "As price goes from 0 to 2, the desired power falls by 3.");
        let named = ("price [EUR]", &of(vec![2.0, 0.0, -1.0]));
        let units = Units([("power".to_owned(), "kW".to_owned())].into());
        let falls = effect(named, ("power", 0), &units);
        assert_eq!(falls, "As price goes from 0 to 2 EUR, the desired power falls by 3 kW.");
        let both = told(&of(vec![0.0, 2.0, -1.0]));
        assert!(both.contains("varies by 3, highest at 1 and lowest at 2"), "{both}");
        let held = |free: [usize; 2]| {
            let held = Effect { free: Some(vec![free.to_vec()]), ..of(vec![2.0, 0.0, -1.0]) };
            told(&held)
        };
        let part = "As price goes from 0 to 1, the desired power falls by 2. Beyond that limits \
                    hold it nearly always.";
        assert_eq!(held([4, 1]), part);
        assert!(held([0, 1]).ends_with("nearly always, so this is a guess."), "{}", held([0, 1]));
    }
}
