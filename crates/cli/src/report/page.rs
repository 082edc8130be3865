//! The page: words, tiles, figures and tables in one HTML string.
//!
//! In: parts put together by the builders below. Out: HTML with style and charts inside. Every text
//! is escaped by the template; only SVG made by this module's charts is taken as it is.

use super::ReportError;
use minijinja::{Environment, HtmlEscape, Value, context};

const TEMPLATE: &str = include_str!("page.html");
/// What all pages look like.
pub const STYLE: &str = include_str!("page.css");

/// What a verdict means for the reader; it colours the badge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// All is well.
    Good,
    /// Usable, with something to know.
    Caution,
    /// Not to be relied on.
    Bad,
    /// Neither good nor bad.
    Neutral,
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Caution => "caution",
            Self::Bad => "bad",
            Self::Neutral => "neutral",
        }
    }
}

/// A chart with its caption.
#[derive(Debug, Clone)]
pub struct Figure {
    svg: String,
    caption: String,
    is_wide: bool,
}

impl Figure {
    /// A figure from a chart's SVG; the SVG is trusted, the caption is escaped.
    pub fn new(svg: impl Into<String>, caption: impl Into<String>) -> Self {
        Self { svg: svg.into(), caption: caption.into(), is_wide: false }
    }

    /// Gives the figure the whole width instead of half of it.
    #[must_use]
    pub fn wide(mut self) -> Self {
        self.is_wide = true;
        self
    }

    fn value(&self) -> Value {
        context! {
            svg => Value::from_safe_string(self.svg.clone()),
            caption => &self.caption,
            is_wide => self.is_wide,
        }
    }
}

/// Rows of cells under headings; columns of numbers are set to the right by themselves.
#[derive(Debug, Clone)]
pub struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
    caption: String,
}

impl Table {
    /// An empty table with its headings; all empty, and no heading row is shown.
    pub fn new<S: Into<String>>(headings: impl IntoIterator<Item = S>) -> Self {
        Self {
            headings: headings.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
            caption: String::new(),
        }
    }

    /// Adds a row; missing cells stay empty, surplus ones are dropped.
    #[must_use]
    pub fn row<S: Into<String>>(mut self, cells: impl IntoIterator<Item = S>) -> Self {
        let mut row: Vec<String> = cells.into_iter().map(Into::into).collect();
        row.resize(self.headings.len(), String::new());
        self.rows.push(row);
        self
    }

    /// A sentence below the table.
    #[must_use]
    pub fn caption(mut self, caption: impl Into<String>) -> Self {
        self.caption = caption.into();
        self
    }

    fn value(&self) -> Value {
        let classes: Vec<&str> = (0..self.headings.len())
            .map(|column| {
                let mut cells =
                    self.rows.iter().map(|row| row[column].trim()).filter(|c| !c.is_empty());
                let has_cells = cells.clone().next().is_some();
                if has_cells && cells.all(looks_numeric) { "num" } else { "" }
            })
            .collect();
        let cells = |texts: &[String]| -> Value {
            let cell = |(text, class): (&String, &&str)| context! { text => text, class => *class };
            texts.iter().zip(&classes).map(cell).collect::<Vec<_>>().into()
        };
        context! {
            has_head => self.headings.iter().any(|h| !h.is_empty()),
            head => cells(&self.headings),
            rows => self.rows.iter().map(|row| cells(row)).collect::<Vec<_>>(),
            caption => &self.caption,
        }
    }
}

/// Whether a cell reads as a number, perhaps with a sign, an exponent or a short unit behind it.
fn looks_numeric(cell: &str) -> bool {
    let body = cell.trim_start_matches(['+', '-', '−', '±', '<', '>', '≤', '≥', '~', ' ']);
    body.starts_with(|c: char| c.is_ascii_digit())
        && body.split_whitespace().count() <= 2
        && body.chars().filter(|c| c.is_alphabetic()).count() <= 4
        || matches!(body, "∞" | "NaN" | "–" | "—")
}

/// A block that opens on demand, such as the settings used.
#[derive(Debug, Clone)]
pub struct Details {
    summary: String,
    blocks: Vec<Block>,
}

impl Details {
    /// A closed block with its visible line.
    pub fn new(summary: impl Into<String>) -> Self {
        Self { summary: summary.into(), blocks: Vec::new() }
    }

    /// Adds a table.
    #[must_use]
    pub fn table(mut self, table: Table) -> Self {
        self.blocks.push(Block::Table(table));
        self
    }

    /// Adds text in a fixed-width font with its line breaks, such as a command.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.blocks.push(Block::Code(code.into()));
        self
    }
}

#[derive(Debug, Clone)]
enum Block {
    Text(String),
    Code(String),
    Figure(Figure),
    Table(Table),
    Details(Details),
}

/// A part of the page under a heading.
#[derive(Debug, Clone)]
pub struct Section {
    title: String,
    blocks: Vec<Block>,
}

impl Section {
    /// An empty section with its heading.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), blocks: Vec::new() }
    }

    /// Adds a paragraph.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.blocks.push(Block::Text(text.into()));
        self
    }

    /// Adds text in a fixed-width font with its line breaks, such as a command.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.blocks.push(Block::Code(code.into()));
        self
    }

    /// Adds a figure; figures in a row stand side by side where there is room.
    #[must_use]
    pub fn figure(mut self, figure: Figure) -> Self {
        self.blocks.push(Block::Figure(figure));
        self
    }

    /// Adds a table.
    #[must_use]
    pub fn table(mut self, table: Table) -> Self {
        self.blocks.push(Block::Table(table));
        self
    }

    /// Adds a block that opens on demand.
    #[must_use]
    pub fn details(mut self, details: Details) -> Self {
        self.blocks.push(Block::Details(details));
        self
    }
}

/// Blocks for the template, neighbouring figures gathered into one group.
fn block_values(blocks: &[Block]) -> Vec<Value> {
    let is_figure = |block: &Block| matches!(block, Block::Figure(_));
    blocks
        .chunk_by(|a, b| is_figure(a) && is_figure(b))
        .map(|group| match &group[0] {
            Block::Text(text) => context! { kind => "text", text => text },
            Block::Code(code) => context! { kind => "code", text => code },
            Block::Table(table) => context! { kind => "table", table => table.value() },
            Block::Details(details) => context! {
                kind => "details",
                summary => &details.summary,
                blocks => block_values(&details.blocks),
            },
            Block::Figure(_) => {
                let figures = group.iter().filter_map(|block| match block {
                    Block::Figure(figure) => Some(figure.value()),
                    _ => None,
                });
                context! { kind => "figures", figures => figures.collect::<Vec<_>>() }
            }
        })
        .collect()
}

/// A whole report.
///
/// ```text
/// Page::new("Fit of hopper.npz")
///     .verdict(Tone::Good, "solved", "The model is optimal to 3e-9 of its objective.")
///     .tile("Samples", "5,000", "3 decisions each")
///     .section(Section::new("Convergence").figure(Figure::new(svg, "The gap at every step.")))
///     .render()
/// ```
#[derive(Debug, Clone)]
pub struct Page {
    title: String,
    subtitle: String,
    verdict: Option<(Tone, String, String)>,
    tiles: Vec<[String; 3]>,
    sections: Vec<Section>,
    footer: String,
}

impl Page {
    /// An empty page with its title.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            subtitle: String::new(),
            verdict: None,
            tiles: Vec::new(),
            sections: Vec::new(),
            footer: String::new(),
        }
    }

    /// A line below the title.
    #[must_use]
    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Self {
        self.subtitle = subtitle.into();
        self
    }

    /// The report in one sentence, behind a badge of one or two words.
    #[must_use]
    pub fn verdict(
        mut self,
        tone: Tone,
        badge: impl Into<String>,
        sentence: impl Into<String>,
    ) -> Self {
        self.verdict = Some((tone, badge.into(), sentence.into()));
        self
    }

    /// Adds a number worth seeing first: what it is, its value with unit, and a short remark or
    /// nothing.
    #[must_use]
    pub fn tile(
        mut self,
        label: impl Into<String>,
        value: impl Into<String>,
        note: impl Into<String>,
    ) -> Self {
        self.tiles.push([label.into(), value.into(), note.into()]);
        self
    }

    /// Adds a section.
    #[must_use]
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }

    /// The last line, such as version and date.
    #[must_use]
    pub fn footer(mut self, footer: impl Into<String>) -> Self {
        self.footer = footer.into();
        self
    }

    /// The page as one HTML string without references to anything outside it.
    pub fn render(&self) -> Result<String, ReportError> {
        let mut environment = Environment::new();
        // The name's ending switches escaping on.
        environment.add_template("page.html", TEMPLATE)?;
        environment.add_filter("prose", prose);
        let tiles = self
            .tiles
            .iter()
            .map(|[label, value, note]| context! { label => label, value => value, note => note });
        let sections = self.sections.iter().map(
            |section| context! { title => &section.title, blocks => block_values(&section.blocks) },
        );
        let verdict = self.verdict.as_ref().map(
            |(tone, badge, text)| context! { class => tone.class(), badge => badge, text => text },
        );
        Ok(environment.get_template("page.html")?.render(context! {
            style => Value::from_safe_string(STYLE.to_owned()),
            title => &self.title,
            subtitle => &self.subtitle,
            verdict => verdict,
            tiles => tiles.collect::<Vec<_>>(),
            sections => sections.collect::<Vec<_>>(),
            footer => &self.footer,
        })?)
    }
}

/// Text as HTML: what stands in backticks is code.
fn prose(text: &str) -> Value {
    let escaped = HtmlEscape(text).to_string();
    let parts: Vec<&str> = escaped.split('`').collect();
    // A lone backtick is one.
    let paired = parts.len() % 2 == 1;
    let mut html = String::new();
    for (i, part) in parts.iter().enumerate() {
        match (i % 2 == 1, paired) {
            (true, true) => html.extend(["<code>", part, "</code>"]),
            (_, false) if i > 0 => html.extend(["`", part]),
            _ => html.push_str(part),
        }
    }
    Value::from_safe_string(html)
}

#[cfg(test)]
mod tests {
    use super::super::{BarChart, LineChart, Series};
    use super::*;

    const EVIL: &str = "<script>alert('x')</script> & \"q\"";

    fn full_page(text: &str) -> String {
        let chart = LineChart::new(text, text).series(Series::counted(text, [1.0, 2.0]));
        let bars = BarChart::new(text).bar(text, 1.0);
        let table = || Table::new([text, text]).row([text, text]).caption(text);
        Page::new(text)
            .subtitle(text)
            .verdict(Tone::Caution, text, text)
            .tile(text, text, text)
            .section(
                Section::new(text)
                    .text(text)
                    .code(text)
                    .figure(Figure::new(chart.render().unwrap(), text))
                    .figure(Figure::new(bars.render().unwrap(), text).wide())
                    .table(table())
                    .details(Details::new(text).table(table()).code(text)),
            )
            .footer(text)
            .render()
            .unwrap()
    }

    #[test]
    fn what_stands_in_backticks_is_code() {
        let html = |text: &str| prose(text).to_string();
        assert_eq!(
            html("see `--json` & `a<b`"),
            "see <code>--json</code> &amp; <code>a&lt;b</code>"
        );
        assert_eq!(html("5` wide"), "5` wide");
    }

    #[test]
    fn every_text_is_escaped() {
        let html = full_page(EVIL);
        assert!(!html.contains("<script") && !html.contains("alert('x')"), "{html}");
        // Title twice, subtitle, badge, sentence, tile 3, section, text, code, captions 2, table 5,
        // details 1 + 1 + 5 + 1, footer, and the charts' own texts.
        assert!(html.matches("&lt;script&gt;").count() >= 24);
    }

    #[test]
    fn nothing_is_fetched_from_outside() {
        let html = full_page("plain");
        let rest = html.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for needle in ["http:", "https:", "//", "@import", "url(", "<script", "<link", "src="] {
            assert!(!rest.contains(needle), "{needle}");
        }
    }

    #[test]
    fn neighbouring_figures_share_a_group() {
        let html = full_page("plain");
        assert_eq!(html.matches("class=\"figures\"").count(), 1);
        assert_eq!(html.matches("<figure").count(), 2);
        assert_eq!(html.matches("figure class=\"wide\"").count(), 1);
    }

    #[test]
    fn an_empty_page_is_a_page() {
        let html = Page::new("Empty").render().unwrap();
        assert!(html.starts_with("<!DOCTYPE html>") && html.contains("<h1>Empty</h1>"));
        for part in ["<table", "<section", "<figure", "class=\"badge", "class=\"tiles\"", "<footer"]
        {
            assert!(!html.contains(part), "{part}");
        }
    }

    #[test]
    fn columns_of_numbers_are_found() {
        let numbers = ["1", "−2.5e−9", "+3 %", "12,346", "0.3 s", "1.5×", "< 1e-6", "5 MiB"];
        assert!(numbers.iter().all(|cell| looks_numeric(cell)));
        for words in ["solved", "", "k = 3", "10 of 50 scenarios", "2026-11-03 in the morning"] {
            assert!(!looks_numeric(words), "{words}");
        }
        let html = Page::new("t")
            .section(
                Section::new("s").table(Table::new(["name", "value"]).row(["k"]).row(["a", "1"])),
            )
            .render()
            .unwrap();
        assert!(html.contains("<td class=\"num\">1</td>") && html.contains("<td>a</td>"));
    }
}
