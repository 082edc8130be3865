//! The page of `argwhy describe`.

use crate::commands::describe::remarks;
use crate::report::{Figure, Histogram, Page, ReportError, Section, Table, Tone, number};
use argwhy::describe::{BINS, Column, Description};

/// Columns that are drawn.
const DRAWN: usize = 60;

/// One page about one data set.
pub fn page(found: &Description, source: &str) -> Result<String, ReportError> {
    let n_decisions = found.columns.iter().filter(|column| column.role == "decision").count();
    let gaps = found.rows_with_gaps;
    let (tone, badge) = if gaps > 0 { (Tone::Caution, "gaps") } else { (Tone::Good, "complete") };
    let verdict = if gaps > 0 {
        format!("{gaps} of {} rows lack a value.", found.n_rows)
    } else {
        format!("Every value of {} rows is there.", found.n_rows)
    };
    let mut notes = Section::new("What to know");
    for remark in remarks(found) {
        notes = notes.text(remark);
    }
    let mut page = Page::new("What the data is like")
        .subtitle(source)
        .verdict(tone, badge, verdict)
        .tile("Rows", found.n_rows.to_string(), format!("read as {}", found.contents.format))
        .tile("Signals", (found.columns.len() - n_decisions).to_string(), "columns")
        .tile("Decisions", n_decisions.to_string(), "columns")
        .tile("Conflicts", found.conflicting_rows.to_string(), "same signals, other decision")
        .section(notes)
        .section(Section::new("Columns").table(table(found)));
    for (role, title) in
        [("decision", "How decisions are spread"), ("signal", "How signals are spread")]
    {
        let of_role = found.columns.iter().filter(|column| column.role == role);
        let mut section = Section::new(title);
        let mut drawn = 0;
        for column in of_role.take(DRAWN) {
            section = section.figure(histogram(column)?);
            drawn += 1;
        }
        if drawn > 0 {
            page = page.section(section);
        }
    }
    let mut contents = Table::new(["name", "shape", "type"]);
    for entry in &found.contents.entries {
        let shape: Vec<String> = entry.shape.iter().map(u64::to_string).collect();
        contents = contents.row([entry.name.clone(), shape.join(" × "), entry.kind.clone()]);
    }
    page.section(Section::new("In the file").table(contents))
        .footer(format!("argwhy {}", env!("CARGO_PKG_VERSION")))
        .render()
}

fn table(found: &Description) -> Table {
    let mut table = Table::new([
        "column",
        "role",
        "least",
        "greatest",
        "mean",
        "deviation",
        "missing",
        "at least",
        "at greatest",
    ]);
    let share = |part: f64| format!("{:.1} %", 100.0 * part);
    for column in &found.columns {
        table = table.row([
            column.name.clone(),
            column.role.to_owned(),
            number(column.least),
            number(column.greatest),
            number(column.mean),
            number(column.deviation),
            column.missing.to_string(),
            share(column.at_lower),
            share(column.at_upper),
        ]);
    }
    table
}

/// A small histogram of one column.
fn histogram(column: &Column) -> Result<Figure, ReportError> {
    let width = (column.greatest - column.least) / BINS as f64;
    let mut chart = Histogram::new(&column.name).bins(BINS);
    // Few enough whole numbers have parts of the range to themselves.
    let are_themselves = column.whole && width < 1.0;
    // Each bin by its middle, or by the one value in it, as often as it has values.
    let middles = column.histogram.iter().enumerate().flat_map(|(at, count)| {
        let middle = column.least + width * (at as f64 + 0.5);
        // The last one holds the greatest value; a hair is rounding.
        let own = (column.least + width * at as f64 - 1e-9).ceil();
        let own = if at + 1 == BINS { column.greatest } else { own };
        std::iter::repeat_n(if are_themselves { own } else { middle }, *count)
    });
    chart = chart.series(&column.name, middles);
    let caption = match (column.least.is_nan(), column.constant) {
        (true, _) => format!("{}: no value", column.name),
        (_, true) => format!("{}: always {}", column.name, number(column.least)),
        _ => format!("{}: {} to {}", column.name, number(column.least), number(column.greatest)),
    };
    Ok(Figure::new(chart.render()?, caption))
}
