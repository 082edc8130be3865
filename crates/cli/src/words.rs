//! What curves say, in words: the same on the terminal and on pages.

use crate::report::number;
use argwhy::explain::{Change, Effect, Explanation, Freed, Money, OneDecision, Pair, TradeOff};

/// A count with its noun: `1 step`, `2 steps`.
pub fn count(n: usize, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

/// What a signal does to one desired decision.
pub fn effect(name: &str, decision: &str, effect: &Effect, m: usize) -> String {
    let curve = &effect.desired[m];
    let (from, to) = (effect.at[0], effect.at[effect.at.len() - 1]);
    let lowest = curve.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = curve.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (range, whole) = (highest - lowest, curve[curve.len() - 1] - curve[0]);
    let along = format!("As {name} goes from {} to {}", number(from), number(to));
    let wanted = format!("the desired {decision}");
    if whole.abs() >= 0.9 * range && range > 0.0 {
        let way = if whole > 0.0 { "rises" } else { "falls" };
        return format!("{along}, {wanted} {way} by {}.", number(whole.abs()));
    }
    let peak = |value: f64| effect.at[curve.iter().position(|v| *v == value).unwrap_or(0)];
    format!(
        "{along}, {wanted} varies by {}, highest at {} and lowest at {}.",
        number(range),
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
pub fn trade_off(trade: &TradeOff) -> String {
    let [first, second] = &trade.decisions;
    let worth = format!(
        "Giving up 1 of {first} is worth {} of {second}: a deviation of either costs the same",
        number(trade.worth)
    );
    if trade.moves.abs() < 1e-9 {
        return format!("{worth}; neither gives way to the other.");
    }
    let way = if trade.moves > 0.0 { "up" } else { "down" };
    format!(
        "{worth}; where {first} is held 1 below what is wanted, {second} goes {way} by {}.",
        number(trade.moves.abs())
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
            format!("{} at a price of {price}", held.limit)
        })
        .collect();
    format!(
        "It is held by {}: what one more unit of that limit would be worth to the expert.",
        limits.join(", and by ")
    )
}

/// The easiest way to change the decision.
pub fn change(change: &Change, decisions: &[String]) -> Option<String> {
    let (to, then) = (change.to?, change.decision.as_ref()?);
    let then: Vec<String> = decisions
        .iter()
        .zip(then)
        .map(|(name, value)| format!("{name} {}", number(*value)))
        .collect();
    Some(format!("with {} at {}: {}", change.signal, number(to), then.join(", ")))
}

/// What would free a decision from a limit.
pub fn freed(freed: &Freed) -> String {
    match (&freed.signal, freed.to) {
        (Some(signal), Some(to)) => {
            format!("{} would no longer hold it with {signal} at {}.", freed.limit, number(to))
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
        let said = trade_off(&TradeOff { decisions: decisions.clone(), worth: 0.4, moves: 0.16 });
        assert!(said.starts_with("Giving up 1 of here_kw is worth 0.4 of there_kw"), "{said}");
        assert!(said.ends_with("there_kw goes up by 0.16."), "{said}");
        let apart = trade_off(&TradeOff { decisions, worth: 2.0, moves: 0.0 });
        assert!(apart.contains("neither gives way"), "{apart}");
    }

    #[test]
    fn curves_in_words() {
        let of = |desired: Vec<f64>| Effect {
            at: vec![0.0, 1.0, 2.0],
            rows: vec![5, 5],
            spread: vec![vec![0.0; 3]],
            decision: None,
            desired: vec![desired],
        };
        let falls = effect("price", "power", &of(vec![2.0, 0.0, -1.0]), 0);
        assert_eq!(falls, "As price goes from 0 to 2, the desired power falls by 3.");
        let both = effect("price", "power", &of(vec![0.0, 2.0, -1.0]), 0);
        assert!(both.contains("varies by 3, highest at 1 and lowest at 2"), "{both}");
    }
}
