//! Parts that every report about a fit has.

use crate::prices::by_limit;
use crate::report::{
    BarChart, Details, Figure, Histogram, LineChart, Page, ReportError, ScatterChart, Section,
    Series, Table, Tone, number,
};
use crate::words::count;
use argwhy::core::dataset::Names;
use argwhy::core::model::{Law, PredictionBound};
use argwhy::core::solver::{Iteration, Status};
use argwhy::settings::MemorySize;
use argwhy::{Fit, Model};
use ndarray::{Array2, ArrayView2};

/// Header: what was fitted, whether it is solved, and the numbers people ask for first.
pub fn header(title: &str, subtitle: &str, fit: &Fit) -> Page {
    let record = &fit.model.record;
    let c = record.certificate;
    let (badge, tone) = match record.status {
        Status::Solved => ("solved", Tone::Good),
        _ if c.relative_gap > 0.1 => ("far from solved", Tone::Bad),
        Status::Stalled => ("stalled", Tone::Caution),
        Status::MaxIterations | Status::TimeLimit | Status::Interrupted => {
            ("stopped early", Tone::Caution)
        }
    };
    let sentence = format!(
        "The optimum lies between {} and {}: a relative gap of {:.1e}, recomputed in double \
         precision.",
        number(c.dual),
        number(c.primal),
        c.relative_gap
    );
    let (size_name, size, of) = match fit.model.feature_weights() {
        Some(weights) => (
            "Weights",
            weights.values.len().to_string(),
            format!("from {} samples", record.n_samples),
        ),
        None => (
            "Samples with weight",
            fit.model.n_support().to_string(),
            format!("of {}", record.n_samples),
        ),
    };
    let products = match fit.model.feature_weights() {
        Some(_) => String::new(),
        None => format!(", {}", count(record.kernel_products, "kernel product")),
    };
    Page::new(title)
        .subtitle(subtitle)
        .verdict(tone, badge, sentence)
        .tile("Objective", format!("{:.6}", c.objective), "the paper's (9) at the model")
        .tile("Relative gap", format!("{:.1e}", c.relative_gap), "proven, not estimated")
        .tile(size_name, size, of)
        .tile(
            "Time",
            format!("{:.2} s", record.seconds),
            format!("{}{products}", count(record.iterations, "step")),
        )
        .tile(
            "Peak memory",
            record.peak_memory_bytes.map_or("unknown".to_owned(), |b| MemorySize(b).to_string()),
            format!("limit {}", MemorySize(fit.plan.limit_bytes)),
        )
}

/// The gap step by step.
pub fn convergence(history: &[Iteration], fit: &Fit) -> Result<Section, ReportError> {
    let gap =
        Series::new("relative gap", history.iter().map(|i| (i.iteration as f64, i.relative_gap)));
    let violation =
        Series::new("largest violation", history.iter().map(|i| (i.iteration as f64, i.violation)));
    let chart = LineChart::new("Newton step", "relative gap, violation")
        .log_y()
        .whole_x()
        .markers()
        .series(gap)
        .series(violation)
        .level(fit.settings().tol, "tolerance")
        .render()?;
    let mut table = Table::new([
        "step",
        "objective",
        "relative gap",
        "violation",
        "free",
        "products",
        "seconds",
    ]);
    for i in history {
        table = table.row([
            format!("{}{}", i.iteration, if i.exact { "" } else { " (working precision)" }),
            format!("{:.8}", i.objective),
            format!("{:.1e}", i.relative_gap),
            format!("{:.1e}", i.violation),
            format!("{:.1} %", 100.0 * i.free),
            i.kernel_products.to_string(),
            format!("{:.2}", i.seconds),
        ]);
    }
    Ok(Section::new("Convergence")
        .text(
            "Each step solves a linear system on the samples whose decision is not held by a \
             limit. The gap is an upper bound on how far the objective is from its optimum; it may \
             rise before the right samples are found.",
        )
        .figure(
            Figure::new(
                chart,
                "Relative duality gap and largest optimality violation after \
                                    each step.",
            )
            .wide(),
        )
        .details(Details::new("Every step").table(table)))
}

/// What the certificate says, in words and numbers.
pub fn certificate(fit: &Fit) -> Section {
    let c = fit.model.record.certificate;
    let table = Table::new(["quantity", "value"])
        .row(["upper bound P(α)", &format!("{:.12}", c.primal)])
        .row(["lower bound D(x)", &format!("{:.12}", c.dual)])
        .row(["gap", &format!("{:.3e}", c.gap)])
        .row(["relative gap", &format!("{:.3e}", c.relative_gap)])
        .row(["objective (Q)(x)", &format!("{:.12}", c.objective)]);
    let how = if fit.model.feature_weights().is_some() {
        "Both bounds are evaluated from their definitions in double precision, the upper one at \
         exactly the weights that are stored in the model. The optimum lies between them."
    } else {
        "Both bounds are evaluated from their definitions with the double-precision kernel, at \
         exactly the coefficients that are stored in the model. The optimum lies between them."
    };
    let mut section = Section::new("Certificate").text(how);
    if let Some(PredictionBound { distance, everywhere }) = fit.model.prediction_bound() {
        let which = if everywhere {
            "every decision of this model, on signals seen or not, is"
        } else {
            "decisions of this model, in situations it was learned from, are"
        };
        section = section.text(format!(
            "Consequence: {which} within {distance:.1e} of what the exact minimiser of the same \
             problem would decide. That bounds the solver's error, not the distance from the \
             expert."
        ));
    }
    section.table(table)
}

/// Dimensions that are drawn.
const DRAWN: usize = 6;

/// Predicted against observed, a picture a dimension (the first six).
pub fn decisions(
    title: &str,
    text: &str,
    observed: ArrayView2<'_, f64>,
    series: &[(&str, ArrayView2<'_, f64>)],
    names: &Names,
) -> Result<Section, ReportError> {
    let mut section = Section::new(title).text(text);
    if observed.ncols() > DRAWN {
        let more = observed.ncols() - DRAWN;
        section = section.text(format!("{more} more dimensions are not drawn."));
    }
    for j in 0..observed.ncols().min(DRAWN) {
        let mut chart = ScatterChart::new("expert", "model").equal_axes().diagonal();
        for (name, predicted) in series {
            let points = observed.column(j).to_vec().into_iter().zip(predicted.column(j).to_vec());
            chart = chart.series(Series::new(*name, points));
        }
        let caption = format!(
            "{}: on the diagonal the model decides as the expert did.",
            dimension(names, j)
        );
        section = section.figure(Figure::new(chart.render()?, caption));
    }
    Ok(section)
}

/// What a dimension of a decision is called.
fn dimension(names: &Names, j: usize) -> String {
    names.decisions.get(j).cloned().unwrap_or_else(|| format!("Dimension {j}"))
}

/// Which features of a plain model carry weight.
fn feature_weights(model: &Model, weights: &Array2<f64>) -> Result<Section, ReportError> {
    let names = model.weight_names();
    let sizes: Vec<f64> = weights.rows().into_iter().map(|row| row.dot(&row).sqrt()).collect();
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by(|&a, &b| sizes[b].total_cmp(&sizes[a]));
    let mut bars = BarChart::new("‖v_k‖");
    for &k in order.iter().take(15) {
        bars = bars.bar(names[k].clone(), sizes[k]);
    }
    let header = std::iter::once("feature".to_owned())
        .chain((0..weights.ncols()).map(|j| model.names.decision(j)));
    let mut table = Table::new(header);
    for &k in &order {
        let values = weights.row(k).to_vec().into_iter().map(|v| format!("{v:.6e}"));
        table = table.row(std::iter::once(names[k].clone()).chain(values));
    }
    Ok(Section::new("Which features carry weight")
        .text(
            "The desired decision is a weighted sum of features. Where features are z-scored, a \
             weight is what one standard deviation of its feature adds to each dimension of the \
             decision.",
        )
        .figure(Figure::new(bars.render()?, "The heaviest features.").wide())
        .details(Details::new("Every weight").table(table)))
}

/// Which samples, or features of a plain model, carry weight.
pub fn weights(fit: &Fit) -> Result<Section, ReportError> {
    let model = &fit.model;
    let support = match &model.law {
        Law::Primal(weights) => return feature_weights(model, &weights.values),
        Law::Kernel(support) => support,
    };
    let sizes: Vec<f64> = support
        .coefficients
        .rows()
        .into_iter()
        .map(|row| row.iter().map(|a| a * a).sum::<f64>().sqrt())
        .collect();
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by(|&a, &b| sizes[b].total_cmp(&sizes[a]));
    let n_samples = model.record.n_samples;
    let silent = n_samples - model.n_support();
    let histogram = Histogram::new("‖α_i‖, the weight of a sample")
        .bins(40)
        .series("samples", sizes.iter().copied())
        .render()?;
    let mut bars = BarChart::new("‖α_i‖");
    for &i in order.iter().take(15) {
        bars = bars.bar(format!("row {}", support.rows[i]), sizes[i]);
    }
    let total: f64 = sizes.iter().sum();
    let mut running = 0.0;
    let half = order
        .iter()
        .take_while(|&&i| {
            running += sizes[i];
            running <= 0.5 * total
        })
        .count();
    let silent = match silent {
        0 => String::new(),
        silent => format!(
            "{silent} of {n_samples} samples have no weight: their decision sits on a limit and \
             the learned objective would push it further, so the limit alone explains it. "
        ),
    };
    Ok(Section::new("Which samples carry weight")
        .text(format!("{silent}Half of all weight is on {}.", count(half, "sample")))
        .figure(Figure::new(histogram, "How large the weights are."))
        .figure(Figure::new(bars.render()?, "The heaviest samples, by their row in the data.")))
}

/// How often each dimension sits on one of the model's own limits.
pub fn limits(model: &Model, observed: ArrayView2<'_, f64>) -> Table {
    let (limits, names) = (model.set.limits(), &model.names);
    let mut table = Table::new(["dimension", "lower", "upper", "expert at a limit"]);
    for j in 0..observed.ncols() {
        let (lower, upper) = (limits.lower()[j], limits.upper()[j]);
        let column = observed.column(j);
        let at = column.iter().filter(|u| **u <= lower || **u >= upper).count();
        table = table.row([
            names.decisions.get(j).cloned().unwrap_or_else(|| j.to_string()),
            number(lower),
            number(upper),
            format!("{:.1} %", 100.0 * at as f64 / column.len().max(1) as f64),
        ]);
    }
    if model.constrained {
        table = table.caption(
            "Limits of the model itself, the same for every row. The constraints that come with \
             each row are below.",
        );
    }
    table
}

/// Bars and table rows shown for limits.
const LIMITS: usize = 15;

/// Which limits hold decisions, and what they cost.
pub fn prices(fit: &Fit) -> Result<Section, ReportError> {
    let (prices, names) = (&fit.outcome.prices, &fit.model.names);
    let held = by_limit(prices, names, fit.model.record.n_samples);
    let section = Section::new("What holds the decisions");
    if held.is_empty() {
        return Ok(section.text("No limit holds any decision on the training data."));
    }
    let mut bars = BarChart::new("rows held");
    let mut table = Table::new(["limit", "rows held", "share", "mean price", "largest price"]);
    for (i, h) in held.iter().enumerate() {
        if i < LIMITS {
            bars = bars.bar(h.limit.clone(), h.rows as f64);
        }
        table = table.row([
            h.limit.clone(),
            h.rows.to_string(),
            format!("{:.1} %", 100.0 * h.share),
            number(h.mean_price),
            number(h.largest_price),
        ]);
    }
    let section = section
        .text(
            "A limit holds a decision where the learned objective would go beyond it. Its price is \
             what one more unit of that limit would be worth to the expert, in units of the \
             learned objective; that of an equality (M_eq) may be negative.",
        )
        .figure(Figure::new(
            bars.render()?,
            "How many of the training decisions each limit holds.",
        ));
    Ok(if held.len() > LIMITS {
        section.details(Details::new("Every limit").table(table))
    } else {
        section.table(table)
    })
}

/// Settings, as stored in the model.
pub fn settings(fit: &Fit) -> Section {
    let text = serde_json::to_string_pretty(fit.settings()).unwrap_or_default();
    Section::new("Settings")
        .text(format!("The kernel is {}.", fit.model.kernel()))
        .text("Everything the fit was told, by the names of the command's options.")
        .details(Details::new("All settings").code(text))
}
