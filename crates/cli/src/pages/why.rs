//! Why: the first section of every report about a fit, and the pages of `argwhy explain`.

use crate::error::CliError;
use crate::report::{
    BarChart, Details, EffectChart, Figure, HeatMap, Page, ReportError, Section, Table, number,
};
use crate::words;
use argwhy::explain::{CostCurve, Effect, Explanation, OneDecision, SignalEffect, Units};

/// Signals whose effects are drawn; the rest are in a table.
const DRAWN: usize = 6;
/// Bars of importances.
const BARS: usize = 20;
/// Decisions that are drawn; the rest are counted.
const DECISIONS: usize = 4;

/// The page of `argwhy explain`.
pub fn page(explanation: &Explanation, source: &str) -> Result<String, CliError> {
    let draw = || {
        let mut page = Page::new("Why").subtitle(source);
        for section in sections(explanation)? {
            page = page.section(section);
        }
        page.footer(format!("argwhy {}", env!("CARGO_PKG_VERSION"))).render()
    };
    draw().map_err(|e: ReportError| CliError::Report(e.to_string()))
}

/// What moves decisions, what they trade off, and what they cost.
pub fn sections(explanation: &Explanation) -> Result<Vec<Section>, ReportError> {
    let mut sections = vec![moved(explanation)?];
    if let Some(section) = together(explanation)? {
        sections.push(section);
    }
    if let Some(section) = costs(explanation)? {
        sections.push(section);
    }
    Ok(sections)
}

/// Importances and effects.
fn moved(explanation: &Explanation) -> Result<Section, ReportError> {
    let signals = &explanation.signals;
    let moving: Vec<&SignalEffect> = signals.iter().filter(|s| s.effect.is_some()).collect();
    let section =
        Section::new("Why: what moves the decisions").text(words::situations(explanation));
    if moving.is_empty() {
        return Ok(section.text("No signal ever changes, so none can move a decision."));
    }
    let mut section = section.text(
        "Each curve is what one signal does to the desired decision, all else as it happens to be: \
         steps from value to value, each taken only by rows that are near, and summed (accumulated \
         local effects). Its mean over the rows it rests on is zero. The band is how much that \
         differs from situation to situation; where it is wide the signal acts together with \
         others. Blocks above the axis are where the data lies. A decision that a limit holds does \
         not show what is desired beyond it: curves rest on decisions that nothing holds, and are \
         dashed where there are hardly any.",
    );
    let mut bars = BarChart::new("share of the variation of what is desired, %");
    for signal in signals.iter().take(BARS) {
        bars = bars.bar(signal.name.clone(), 100.0 * signal.importance);
    }
    section = section.figure(Figure::new(bars.render()?, "How much each signal matters.").wide());
    let each = if moving.len() > 3 { 1 } else { DECISIONS };
    if explanation.decisions.len() > each {
        section = section.text(match each {
            1 => {
                "Of each signal the decision is drawn that it moves most; its share of the others \
                  is in the table below, their curves are in `--json`."
                    .to_owned()
            }
            _ => format!(
                "Of each signal the {each} decisions are drawn that it moves most, of {}.",
                explanation.decisions.len()
            ),
        });
    }
    for signal in moving.iter().take(DRAWN) {
        let Some(effect) = &signal.effect else { continue };
        for m in strongest(signal).into_iter().take(each) {
            let decision = &explanation.decisions[m];
            let (along, on) = ((signal.name.as_str(), effect), (decision.as_str(), m));
            let caption = words::effect(along, on, &explanation.units);
            let chart = effect_chart(along, on, &explanation.units).render()?;
            section = section.figure(Figure::new(chart, caption));
        }
    }
    let header = ["signal".to_owned(), "share".to_owned()].into_iter();
    let of = |name: &String| format!("share of {name}");
    let mut table = Table::new(header.chain(explanation.decisions.iter().map(of)));
    for signal in signals {
        let shares = signal.importances.iter().map(|share| format!("{:.1} %", 100.0 * share));
        let first = [signal.name.clone(), format!("{:.1} %", 100.0 * signal.importance)];
        table = table.row(first.into_iter().chain(shares));
    }
    let never: Vec<&str> =
        signals.iter().filter(|s| s.effect.is_none()).map(|s| s.name.as_str()).collect();
    if !never.is_empty() {
        table = table.caption(format!("Never changing: {}.", never.join(", ")));
    }
    let drawn = moving.len().min(DRAWN);
    let more = match moving.len() - drawn {
        0 => "Every signal".to_owned(),
        more => format!("Every signal ({more} more than are drawn)"),
    };
    Ok(section.details(Details::new(more).table(table)))
}

/// Decisions by how much a signal makes of them.
fn strongest(signal: &SignalEffect) -> Vec<usize> {
    let mut order: Vec<usize> = (0..signal.importances.len()).collect();
    order.sort_by(|&a, &b| signal.importances[b].total_cmp(&signal.importances[a]));
    order
}

fn effect_chart(
    (name, effect): (&str, &Effect),
    (decision, m): (&str, usize),
    units: &Units,
) -> EffectChart {
    let along = |curve: &[f64]| effect.at.iter().copied().zip(curve.to_vec()).collect::<Vec<_>>();
    let desired = &effect.desired[m];
    let within = |known: bool| {
        let beside = |k: usize| [k.checked_sub(1), Some(k)].into_iter().flatten();
        let bins = effect.at.len() - 1;
        let is = |k: usize| beside(k).any(|bin| bin < bins && effect.is_known(m, bin) == known);
        let value = |k: usize| if is(k) { desired[k] } else { f64::NAN };
        (0..=bins).map(|k| (effect.at[k], value(k))).collect::<Vec<_>>()
    };
    let is_known = (0..effect.at.len() - 1).all(|bin| effect.is_known(m, bin));
    let spread = effect.at.iter().zip(desired).zip(&effect.spread[m]);
    let wanted = format!("{}, above its mean", units.titled(decision));
    let mut chart = EffectChart::new(units.titled(name), wanted)
        .curve("desired", within(true))
        .density(effect.at.windows(2).zip(&effect.rows).map(|(ends, n)| (ends[0], ends[1], *n)));
    if let Some(decided) = &effect.decision {
        chart = chart.curve("decided, within the limits", along(&decided[m]));
    }
    if !is_known {
        chart = chart.guess("desired, a guess", within(false));
    }
    chart.spread(spread.map(|((at, value), apart)| (*at, value - apart, value + apart)))
}

/// The strongest pair.
fn together(explanation: &Explanation) -> Result<Option<Section>, ReportError> {
    let Some(pair) = &explanation.pair else { return Ok(None) };
    let [first, second] = pair.names.clone();
    let [x, y] = pair.at.clone();
    let titles = (explanation.units.titled(&first), explanation.units.titled(&second));
    let map = HeatMap::new(titles, (x, y), pair.desired.clone()).render()?;
    let caption = format!(
        "Desired {} above its mean, in cells that have rows.",
        explanation.units.titled(&explanation.decisions[pair.decision])
    );
    let said = words::pair(pair, &explanation.decisions);
    let section = Section::new("Two signals together").text(said);
    Ok(Some(section.figure(Figure::new(map, caption).wide())))
}

/// What decisions cost, and how they give way to each other.
fn costs(explanation: &Explanation) -> Result<Option<Section>, ReportError> {
    if explanation.costs.is_empty() {
        return Ok(None);
    }
    let typical = &explanation.typical;
    let mut section = Section::new("What a decision costs").text(format!(
        "The learned cost of deciding otherwise, in the most typical situation (row {}), above the \
         cost of what is decided there. Lines mark limits.",
        typical.row
    ));
    if let Some(money) = &explanation.money {
        section = section.text(words::money(money));
    }
    for curve in explanation.costs.iter().take(DECISIONS) {
        let decided = words::amount(curve.decision, &curve.name, &explanation.units);
        let caption = format!("{}: {decided} is decided.", Units::bare(&curve.name));
        let chart = cost_chart(curve, &explanation.units).render()?;
        section = section.figure(Figure::new(chart, caption));
    }
    if let Some(more) = explanation.costs.len().checked_sub(DECISIONS).filter(|more| *more > 0) {
        section = section.text(format!("{more} more decisions are not drawn."));
    }
    if explanation.trade_offs.is_empty() && explanation.decisions.len() > 1 {
        section = section.text(
            "A unit of deviation costs the same in every decision, and none gives way to another: \
             θ_uu is the identity. `--theta learn` learns it.",
        );
    }
    for trade in explanation.trade_offs.iter().take(2 * DECISIONS) {
        section = section.text(words::trade_off(trade, &explanation.units));
    }
    Ok(Some(section))
}

fn cost_chart(curve: &CostCurve, units: &Units) -> EffectChart {
    let (costs, label) = match &curve.money {
        Some(money) => (money, "cost above what is decided, in money"),
        None => (&curve.cost, "cost above what is decided"),
    };
    let points = |allowed: bool| -> Vec<(f64, f64)> {
        let all = curve.at.iter().zip(costs).zip(&curve.allowed);
        all.filter(|(_, inside)| !allowed || **inside).map(|((at, cost), _)| (*at, *cost)).collect()
    };
    let mut chart =
        EffectChart::new(units.titled(&curve.name), label).curve("allowed", points(true));
    if !curve.allowed.iter().all(|inside| *inside) {
        chart = chart.curve("beyond a limit", beyond(curve, costs));
    }
    for (at, inside) in curve.at.windows(2).zip(curve.allowed.windows(2)) {
        match inside {
            [false, true] => chart = chart.mark(at[1], "lower limit"),
            [true, false] => chart = chart.mark(at[0], "upper limit"),
            _ => {}
        }
    }
    chart
}

/// What lies beyond limits, interrupted where the limits allow.
fn beyond(curve: &CostCurve, costs: &[f64]) -> Vec<(f64, f64)> {
    let n = curve.at.len();
    let edge = |k: usize| {
        let next = [k.checked_sub(1), Some(k + 1).filter(|k| *k < n)];
        next.into_iter().flatten().any(|k| !curve.allowed[k])
    };
    let shown = |k: usize| !curve.allowed[k] || edge(k);
    (0..n).map(|k| (curve.at[k], if shown(k) { costs[k] } else { f64::NAN })).collect()
}

/// The page about one decision.
pub fn page_of_one(one: &OneDecision, title: &str, source: &str) -> Result<String, CliError> {
    let draw = || {
        let mut page = Page::new(title).subtitle(source);
        for (m, name) in one.decisions.iter().enumerate().take(2 * DECISIONS) {
            let decided = one.decision.as_ref().map_or(one.desired[m], |decision| decision[m]);
            let told = |value: f64| words::amount(value, name, &one.units);
            page = page.tile(
                Units::bare(name),
                told(decided),
                match &one.decision {
                    Some(_) => format!("desired {}", told(one.desired[m])),
                    None => "desired".to_owned(),
                },
            );
        }
        for section in sections_of_one(one)? {
            page = page.section(section);
        }
        page.footer(format!("argwhy {}", env!("CARGO_PKG_VERSION"))).render()
    };
    draw().map_err(|e: ReportError| CliError::Report(e.to_string()))
}

fn sections_of_one(one: &OneDecision) -> Result<Vec<Section>, ReportError> {
    let mut sections = vec![pushed(one)?, held(one)];
    if let Some(section) = rests_on(one) {
        sections.push(section);
    }
    Ok(sections)
}

/// What pushed it.
fn pushed(one: &OneDecision) -> Result<Section, ReportError> {
    let mut section = Section::new("What pushed it").text(format!(
        "How far each signal pushed what is desired away from what is desired in the most typical \
         situation, row {} (Shapley values: each signal's part, averaged over all orders in which \
         signals could change from typical to what they are). Pushes add up to the whole \
         difference.",
        one.typical.row
    ));
    let error = one.pushes.iter().flat_map(|p| &p.error).copied().fold(0.0, f64::max);
    if error > 0.0 {
        section = section.text(format!(
            "There are too many orders to try all: these are means over random ones, with a \
             standard error of at most {}.",
            number(error)
        ));
    }
    for (m, name) in one.decisions.iter().enumerate().take(DECISIONS) {
        let mut bars = BarChart::new(format!("push on {}", one.units.titled(name)));
        for push in one.pushes.iter().take(BARS) {
            let value = words::amount(push.value, &push.name, &one.units);
            bars = bars.bar(format!("{} = {value}", Units::bare(&push.name)), push.push[m]);
        }
        let (from, to) = (one.typical.desired[m], words::amount(one.desired[m], name, &one.units));
        let caption = format!("From {} in the typical situation to {to}.", number(from));
        section = section.figure(Figure::new(bars.render()?, caption));
    }
    Ok(section)
}

/// What holds it, and what would change it.
fn held(one: &OneDecision) -> Section {
    let mut section =
        Section::new("What holds it, and what would change it").text(words::held(one));
    for freed in &one.frees {
        section = section.text(words::freed(freed, &one.units));
    }
    let mut table = Table::new(["signal", "would have to be", "spreads away", "then decided"]);
    for change in &one.changes {
        let text = |value: Option<f64>| value.map_or("–".to_owned(), number);
        let then = change.decision.as_ref().map_or("–".to_owned(), |decision| {
            decision.iter().map(|value| number(*value)).collect::<Vec<_>>().join(", ")
        });
        let signal = one.units.titled(&change.signal);
        table = table.row([signal, text(change.to), text(change.spreads), then]);
    }
    if one.changes.is_empty() {
        return section;
    }
    section.table(table.caption(
        "The smallest change of each signal, all others as they are and within its seen range, \
         that changes a decision enough to count. A spread is about a standard deviation.",
    ))
}

/// The past decisions it rests on.
fn rests_on(one: &OneDecision) -> Option<Section> {
    let terms = one.rests_on.as_ref()?;
    let part = |name: &String| format!("part of {name}");
    let header = ["row", "share", "alike"].map(ToOwned::to_owned);
    let mut table = Table::new(header.into_iter().chain(one.decisions.iter().map(part)));
    for term in terms {
        let first =
            [term.row.to_string(), format!("{:.1} %", 100.0 * term.share), number(term.likeness)];
        table = table.row(first.into_iter().chain(term.term.iter().map(|part| number(*part))));
    }
    Some(Section::new("Which past decisions it rests on")
        .text(
            "What is desired is exactly a sum over past decisions, each weighted by how alike the \
             situations are. These have the largest parts; parts of either sign may cancel.",
        )
        .table(table))
}
