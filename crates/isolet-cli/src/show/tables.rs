//! Draws tables of HTML on a terminal: those of pandas, polars and other objects with
//! `_repr_html_`.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement};
use html5gum::{StartTag, Token, Tokenizer};

/// The longest HTML to look at, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// The largest table to draw.
const MAX_COLUMNS: usize = 100;
const MAX_ROWS: usize = 1000;

/// The most bytes of text besides the tables: a caption, not a page.
const MAX_TEXT_BYTES: usize = 400;

#[derive(Default)]
struct Table {
    rows: Vec<Row>,
    /// By column, in how many of the rows to come a cell from above is still there.
    spans: Vec<usize>,
}

#[derive(Default)]
struct Row {
    cells: Vec<String>,
    /// Set if all its cells are headings.
    is_heading: bool,
}

/// The part of the document that the next text belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextTarget {
    Outside,
    Table,
    Cell {
        columns: usize,
        rows: usize,
    },
    /// A style sheet or a script.
    Ignored,
}

/// Draws the tables of some HTML and the little text beside them. Returns `None` if there is none,
/// if it is more than a table, or if it does not fit in `width` columns and `may_wrap` is not set.
pub(crate) fn draw(html: &str, width: u16, may_wrap: bool) -> Option<String> {
    if html.len() > MAX_BYTES || !html.contains("<table") {
        return None;
    }
    let mut drawn = Vec::new();
    let mut table: Option<Table> = None;
    let mut target = TextTarget::Outside;
    let mut text = String::new();
    let mut text_bytes = 0;
    for Ok(token) in Tokenizer::new(html) {
        match token {
            Token::String(characters) if target != TextTarget::Ignored => {
                text.push_str(&String::from_utf8_lossy(&characters));
            }
            Token::StartTag(tag) => match (tag.name.as_slice(), &mut table) {
                (b"style" | b"script", _) => target = TextTarget::Ignored,
                // A table in a table.
                (b"table", Some(_)) => return None,
                (b"table", None) => {
                    text_bytes += add_text(&mut drawn, &text);
                    (table, target) = (Some(Table::default()), TextTarget::Table);
                    text.clear();
                }
                (b"tr", Some(table)) => {
                    table.end_cell(target, &text);
                    table.start_row()?;
                    target = TextTarget::Table;
                }
                (name @ (b"td" | b"th"), Some(table)) => {
                    table.end_cell(target, &text);
                    table.start_cell(name == b"th")?;
                    text.clear();
                    let (columns, rows) = (number(&tag, b"colspan"), number(&tag, b"rowspan"));
                    target = TextTarget::Cell { columns, rows };
                }
                (b"br" | b"p" | b"div", _) => text.push(' '),
                _ => {}
            },
            Token::EndTag(tag) => match (tag.name.as_slice(), &mut table) {
                (b"style" | b"script", Some(_)) => target = TextTarget::Table,
                (b"style" | b"script", None) => target = TextTarget::Outside,
                (b"td" | b"th", Some(table)) => {
                    table.end_cell(target, &text);
                    target = TextTarget::Table;
                }
                (b"table", Some(ended)) => {
                    ended.end_cell(target, &text);
                    drawn.push(ended.draw(width, may_wrap)?);
                    text.clear();
                    (table, target) = (None, TextTarget::Outside);
                }
                _ => {}
            },
            _ => {}
        }
    }
    text_bytes += add_text(&mut drawn, &text);
    (table.is_none() && text_bytes <= MAX_TEXT_BYTES).then(|| drawn.join("\n"))
}

/// Adds the text beside a table, if it is not blank. Returns its length.
fn add_text(to: &mut Vec<String>, text: &str) -> usize {
    let text = tidy(text);
    let bytes = text.len();
    to.extend((bytes > 0).then_some(text));
    bytes
}

/// Returns text as HTML shows it, in one line.
fn tidy(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Returns an attribute that is a number of rows or columns.
fn number(tag: &StartTag<()>, attribute: &[u8]) -> usize {
    let value = tag.attributes.get(attribute);
    let value = value.and_then(|value| std::str::from_utf8(value).ok()?.trim().parse().ok());
    value.unwrap_or(1).clamp(1, MAX_ROWS)
}

impl Table {
    fn start_row(&mut self) -> Option<()> {
        self.rows.push(Row { cells: Vec::new(), is_heading: true });
        (self.rows.len() <= MAX_ROWS).then_some(())
    }

    fn start_cell(&mut self, is_heading: bool) -> Option<()> {
        if self.rows.is_empty() {
            self.start_row()?;
        }
        let row = self.rows.last_mut()?;
        row.is_heading &= is_heading;
        // Cells of rows above that reach down here.
        while let Some(span) = self.spans.get_mut(row.cells.len()).filter(|span| **span > 0) {
            *span -= 1;
            row.cells.push(String::new());
        }
        (row.cells.len() < MAX_COLUMNS).then_some(())
    }

    /// Adds the cell whose end has come, if it is one.
    fn end_cell(&mut self, target: TextTarget, text: &str) {
        let (TextTarget::Cell { columns, rows }, Some(row)) = (target, self.rows.last_mut()) else {
            return;
        };
        let mut text = tidy(text);
        for _ in 0..columns.min(MAX_COLUMNS) {
            let column = row.cells.len();
            if self.spans.len() <= column {
                self.spans.resize(column + 1, 0);
            }
            self.spans[column] = rows - 1;
            row.cells.push(std::mem::take(&mut text));
        }
    }

    fn draw(&self, width: u16, may_wrap: bool) -> Option<String> {
        let headings = self.rows.iter().take_while(|row| row.is_heading).count();
        let (headings, body) = self.rows.split_at(headings);
        let columns = self.rows.iter().map(|row| row.cells.len()).max()?;
        let cell = |row: &Row, at: usize| row.cells.get(at).cloned().unwrap_or_default();
        let mut table = comfy_table::Table::new();
        table.load_style(UTF8_FULL_CONDENSED);
        if !headings.is_empty() {
            // A heading of several rows is one of several lines.
            let heading = |at| headings.iter().map(|row| cell(row, at)).collect::<Vec<_>>();
            table.set_header((0..columns).map(|at| heading(at).join("\n")));
        }
        for row in body {
            table.add_row((0..columns).map(|at| cell(row, at)));
        }
        for at in 0..columns {
            let is_number = |row: &Row| is_number(&cell(row, at));
            if let Some(column) = table.column_mut(at).filter(|_| body.iter().all(is_number)) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let widest = table.lines().map(|line| line.chars().count()).max()?;
        if widest > width.into() {
            // With less than three columns of text each, nothing can be read.
            if !may_wrap || usize::from(width) < columns * 6 {
                return None;
            }
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        Some(table.to_string())
    }
}

/// Returns `true` for a cell to align right: a number, or the mark of a missing one.
fn is_number(text: &str) -> bool {
    matches!(text, "" | "..." | "…" | "NaN" | "nan" | "NaT" | "None" | "<NA>" | "null")
        || text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | '$'))
            && text.contains(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(html: &str) -> String {
        draw(html, 80, false).unwrap()
    }

    #[test]
    fn a_table_is_drawn_with_its_heading_and_caption() {
        let html = "<style scoped>.dataframe { a: b }</style>
            <table border=\"1\" class=\"dataframe\">
              <thead>
                <tr style=\"text-align: right;\"><th></th><th>name</th><th>moons</th></tr>
              </thead>
              <tbody>
                <tr><th>0</th><td>Mars &amp; co</td><td>2</td></tr>
                <tr><th>1</th><td>Venus<br>\x1b[31m</td><td>10</td></tr>
              </tbody>
            </table><p>2 rows × 2 columns</p>";
        let expected = "\
┌───┬────────────┬───────┐
│   ┆ name       ┆ moons │
╞═══╪════════════╪═══════╡
│ 0 ┆ Mars & co  ┆     2 │
│ 1 ┆ Venus [31m ┆    10 │
└───┴────────────┴───────┘
2 rows × 2 columns";
        assert_eq!(drawn(html), expected);
    }

    #[test]
    fn cells_that_span_rows_and_columns_keep_the_others_in_place() {
        let html = "<table><tr><th></th><th colspan=2>both</th></tr>
            <tr><th>key</th><th>a</th><th>b</th></tr>
            <tr><th rowspan='2'>x</th><td>1</td><td>2</td></tr>
            <tr><td>3</td><td>4</td></tr></table>";
        let expected = "\
┌─────┬──────┬───┐
│     ┆ both ┆   │
│ key ┆    a ┆ b │
╞═════╪══════╪═══╡
│ x   ┆    1 ┆ 2 │
│     ┆    3 ┆ 4 │
└─────┴──────┴───┘";
        assert_eq!(drawn(html), expected);
    }

    #[test]
    fn a_table_that_does_not_fit_is_wrapped_only_on_request() {
        let html = "<table><tr><td>some words to wrap</td><td>and some more</td></tr></table>";
        assert_eq!(draw(html, 20, false), None);
        let wrapped = draw(html, 20, true).unwrap();
        assert!(wrapped.lines().all(|line| line.chars().count() <= 20), "{wrapped}");
    }

    #[test]
    fn what_is_more_than_a_table_is_not_drawn() {
        assert_eq!(draw("<p>no table</p>", 80, true), None);
        assert_eq!(draw("<table><tr><td>not closed", 80, true), None);
        assert_eq!(draw("<table><tr><td><table></table></table>", 80, true), None);
        let page = format!("<table><tr><td>1</td></tr></table>{}", "word ".repeat(100));
        assert_eq!(draw(&page, 80, true), None);
        let wide = format!("<table><tr>{}</tr></table>", "<td>1</td>".repeat(101));
        assert_eq!(draw(&wide, 80, true), None);
        let span = "<table><tr><td colspan=99999999 rowspan=99999999>1</td></tr></table>";
        assert_eq!(draw(span, 80, true), None);
        assert_eq!(draw("<table></table>", 80, true), None);
    }
}
