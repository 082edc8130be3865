//! The report of `argwhy ablate`.

use crate::args::AblateArgs;
use crate::error::CliError;
use crate::findings::ablation::{Ablation, Cost, GAPS, reached};
use crate::report::{Figure, LineChart, Page, ReportError, Section, Series, Table, Tone};

/// One page about all data sets.
pub fn page(ablations: &[Ablation], args: &AblateArgs) -> Result<String, CliError> {
    draw(ablations, args).map_err(|e| CliError::Report(e.to_string()))
}

fn draw(ablations: &[Ablation], args: &AblateArgs) -> Result<String, ReportError> {
    let final_error = |a: &Ablation, name: &str| {
        let runs = a.variants.iter().find(|(v, _)| v.name == name).map(|(_, runs)| runs)?;
        a.errors(runs).last().map(|e| e.1)
    };
    let mut page = Page::new("What each part of SSO is worth").subtitle(format!(
        "{} blocks after the start, {}; error of 200·(Q) against the exact optimum",
        args.iterations,
        if args.seeds == 1 {
            "one seed".to_owned()
        } else {
            format!("medians over {} seeds", args.seeds)
        },
    ));
    if let Some(first) = ablations.first()
        && let (Some(paper), Some(ours)) =
            (final_error(first, "paper"), final_error(first, "violation"))
    {
        page = page
            .verdict(
                Tone::Neutral,
                "measured",
                format!(
                    "On {} the error ends at {paper:.1e} with the paper's rule and start, and at \
                     {ours:.1e} with ours.",
                    first.name
                ),
            )
            .tile(
                "Paper's rule",
                format!("{paper:.1e}"),
                format!("error after {} blocks", args.iterations),
            )
            .tile(
                "Completed rule",
                format!("{ours:.1e}"),
                format!("error after {} blocks", args.iterations),
            )
            .tile(
                "Optimum",
                format!("{:.8}", first.optimum),
                format!("(Q), proven to {:.0e} by Newton", first.proven),
            );
    }
    if ablations.len() > 1 {
        page = page.section(across(ablations)?);
    }
    for a in ablations {
        page = page.section(ablation(a)?);
    }
    if let Some(section) = reading(ablations) {
        page = page.section(section);
    }
    page.footer(format!("argwhy {}", env!("CARGO_PKG_VERSION"))).render()
}

/// The paper's Figure 1: one curve a data set.
fn across(ablations: &[Ablation]) -> Result<Section, ReportError> {
    let mut section = Section::new("All data sets").text(
        "Distance to the exact optimum after each block, logarithmic; one curve a data set, as in \
         the paper's Figure 1.",
    );
    for (name, caption) in [
        ("paper", "The paper's rule and warm-up."),
        ("violation", "The completed rule, parts of the warm-up one after the other."),
    ] {
        let mut chart = LineChart::new("block", "error of 200·(Q)").log_y();
        for a in ablations {
            if let Some((_, runs)) = a.variants.iter().find(|(v, _)| v.name == name) {
                chart = chart.series(Series::new(a.name.clone(), a.errors(runs)));
            }
        }
        section = section.figure(Figure::new(chart.render()?, caption).wide());
    }
    Ok(section)
}

/// The paper's Figure 2 on one data set, ours beside it, and the costs.
fn ablation(a: &Ablation) -> Result<Section, ReportError> {
    let mut section =
        Section::new(format!("{}, N = {}, k = {:e}", a.name, a.n_samples, a.regularization));
    for (of_paper, caption) in [
        (
            true,
            "The paper's SSO, without its heuristic, without its warm-up; beside them the \
             completed rule and start (violation).",
        ),
        (false, "Our rule from every start."),
    ] {
        let mut chart = LineChart::new("block", "error of 200·(Q)").log_y();
        for (variant, runs) in &a.variants {
            if variant.of_paper == of_paper || variant.name == "violation" {
                chart = chart.series(Series::new(variant.name, a.errors(runs)));
            }
        }
        section = section.figure(Figure::new(chart.render()?, caption).wide());
    }
    let mut table = Table::new([
        "variant",
        "error at the start",
        "after 10 blocks",
        "at the end",
        "seconds to gap 1e-3",
        "products",
        "seconds to 1e-6",
        "products",
    ]);
    let told = |cost: Option<Cost>| match cost {
        Some(c) => [format!("{:.2}", c.seconds), format!("{:.0}", c.products)],
        None => ["–".to_owned(), "–".to_owned()],
    };
    let row = |name: &str, errors: [String; 3], costs: [Option<Cost>; 2]| {
        let [[s3, p3], [s6, p6]] = costs.map(told);
        let [start, ten, end] = errors;
        [name.to_owned(), start, ten, end, s3, p3, s6, p6]
    };
    table = table.row(row("Newton", ["–", "–", "–"].map(str::to_owned), a.newton));
    for (variant, runs) in &a.variants {
        let errors = a.errors(runs);
        let at = |t: usize| errors.get(t).map_or("–".to_owned(), |e| format!("{:.1e}", e.1));
        let costs = GAPS.map(|gap| reached(runs, gap));
        table = table.row(row(variant.name, [at(0), at(10), at(errors.len() - 1)], costs));
    }
    Ok(section.table(table.caption("Products: kernel values computed, in units of N²/2.")))
}

/// What the paper's text says, beside what these runs say.
fn reading(ablations: &[Ablation]) -> Option<Section> {
    let a = ablations.first()?;
    let errors = |name: &str| {
        let (_, runs) = a.variants.iter().find(|(v, _)| v.name == name)?;
        let errors = a.errors(runs);
        Some((errors.first()?.1, errors.last()?.1))
    };
    let mut section = Section::new(format!("The paper's text, and {}", a.name));
    if let (Some((start, paper)), Some((_, ours))) = (errors("paper"), errors("violation")) {
        section = section.text(format!(
            "The paper's curve ends at about 1e-4 after 20 blocks. Its rule ends at {paper:.1e} \
             here, from {start:.1e}; the completed rule at {ours:.1e}."
        ));
    }
    if let (Some((_, cyclic)), Some((_, random)), Some((_, paper))) = (
        errors("paper, no heuristic (cyclic)"),
        errors("paper, no heuristic (random)"),
        errors("paper"),
    ) {
        section = section.text(format!(
            "Without the heuristic the paper's curve is nearly flat, until it is switched on at \
             the 17th block; what its blocks are before is not said. Blocks in turn end at \
             {cyclic:.1e} here, random ones at {random:.1e}, the heuristic at {paper:.1e}."
        ));
    }
    if let (Some((zero, _)), Some((expert, _)), Some((warm, _))) =
        (errors("paper, no warm-up (zero)"), errors("paper, no warm-up (expert)"), errors("paper"))
    {
        section = section.text(format!(
            "Without the warm-up the paper needs about ten blocks to where the warm-up starts; \
             where it starts instead is not said. Zero starts at {zero:.1e}, the expert's own \
             decisions, which cost nothing, at {expert:.1e}, the warm-up at {warm:.1e}."
        ));
    }
    if let (Some((apart, _)), Some((in_turn, _))) = (errors("paper"), errors("violation")) {
        section = section.text(format!(
            "The paper's warm-up solves its parts independently and starts at {apart:.1e}; one \
             after the other, the same parts start at {in_turn:.1e}."
        ));
    }
    Some(section)
}
