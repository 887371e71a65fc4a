//! Parses `.ipynb` files: their code cells.

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value as Json;

use isolet_support::json_text::count;

/// The supported format version, in which cells are at the top level.
const FORMAT: u64 = 4;

/// A notebook may have one value for so many bytes, and [`FREE_VALUES`] in any case. In memory, an
/// empty value takes some thirty times the three bytes that it has in the file.
const BYTES_PER_VALUE: usize = 16;
const FREE_VALUES: usize = 1_000_000;

/// A code cell.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotebookCell {
    /// Its number among the code cells, starting at 1.
    pub(super) number: usize,
    /// Its index among all cells.
    pub(super) index: usize,
    pub(super) source: String,
    tags: Vec<String>,
}

#[derive(Deserialize)]
struct File {
    nbformat: Option<u64>,
    #[serde(default)]
    metadata: Metadata,
    cells: Option<Vec<FileCell>>,
}

#[derive(Deserialize, Default)]
struct Metadata {
    kernelspec: Option<Kernel>,
    language_info: Option<Kernel>,
}

#[derive(Deserialize)]
struct Kernel {
    /// The name of a kernel's program or of a language.
    name: Option<String>,
    language: Option<String>,
}

#[derive(Deserialize)]
struct FileCell {
    cell_type: String,
    #[serde(default)]
    source: Source,
    #[serde(default)]
    metadata: CellMetadata,
}

#[derive(Deserialize, Default)]
struct CellMetadata {
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Source {
    Whole(String),
    Lines(Vec<String>),
}

impl Default for Source {
    fn default() -> Self {
        Self::Whole(String::new())
    }
}

/// Parses a notebook. Returns its code cells and all of its contents.
pub(super) fn parse(text: &str) -> Result<(Vec<NotebookCell>, Json)> {
    let (values, limit) = (count(text.as_bytes()), FREE_VALUES.max(text.len() / BYTES_PER_VALUE));
    if values > limit {
        bail!(
            "it has {values} values, the limit is {limit}; `jupyter nbconvert --clear-output` \
             leaves out what cells have written"
        );
    }
    let whole: Json = serde_json::from_str(text).context("it is no notebook")?;
    let file = File::deserialize(&whole).context("it is no notebook")?;
    match file.nbformat {
        Some(FORMAT) => {}
        Some(format) => bail!(
            "its format is nbformat {format}, isolet reads nbformat {FORMAT}; `jupyter nbconvert \
             --to notebook` converts it"
        ),
        None => bail!("it is no notebook: it has no `nbformat`"),
    }
    let language = file.metadata.language();
    if let Some(language) = language.filter(|language| !language.eq_ignore_ascii_case("python")) {
        bail!("its language is {language:?}, isolet runs Python");
    }
    let cells = file.cells.context("it is no notebook: it has no `cells`")?;
    let code = cells.into_iter().enumerate().filter(|(_, cell)| cell.cell_type == "code");
    let cells = code.zip(1..).map(|((index, cell), number)| {
        let source = match cell.source {
            Source::Whole(text) => text,
            Source::Lines(lines) => lines.concat(),
        };
        NotebookCell { number, index, source, tags: cell.metadata.tags }
    });
    Ok((cells.collect(), whole))
}

impl Metadata {
    fn language(self) -> Option<String> {
        let of_kernel = self.kernelspec.and_then(|kernel| kernel.language);
        of_kernel.or_else(|| self.language_info.and_then(|language| language.name))
    }
}

impl NotebookCell {
    /// Returns `true` if there is nothing in it.
    pub(super) fn is_blank(&self) -> bool {
        self.source.trim().is_empty()
    }

    /// Returns `true` if its author has marked it as one not to run.
    pub(super) fn is_skipped(&self) -> bool {
        self.has_tag("skip-execution")
    }

    /// Returns `true` if its author has marked it as one that may raise an exception.
    pub(super) fn may_raise(&self) -> bool {
        self.has_tag("raises-exception")
    }

    fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|found| found == tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_cells_are_numbered_and_others_left_out() {
        let text = r##"{"nbformat": 4, "nbformat_minor": 5, "metadata": {
            "kernelspec": {"name": "python3"}, "language_info": {"name": "python"}}, "cells": [
            {"cell_type": "markdown", "source": "# Title"},
            {"cell_type": "code", "source": ["x = 1\n", "x"], "outputs": []},
            {"cell_type": "raw", "source": [], "metadata": {}},
            {"cell_type": "code", "source": "%time x;", "metadata": {"tags": ["skip-execution"]}}
            ]}"##;
        let (read, whole) = parse(text).unwrap();
        let found = |cell: &NotebookCell| (cell.number, cell.index, cell.source.clone());
        let found: Vec<_> = read.iter().map(found).collect();
        assert_eq!(found, [(1, 1, "x = 1\nx".to_owned()), (2, 3, "%time x;".to_owned())]);
        assert!(!read[0].is_skipped() && read[1].is_skipped() && !read[1].may_raise());
        assert_eq!(whole, serde_json::from_str::<Json>(text).unwrap());
    }

    #[test]
    fn a_notebook_of_too_many_values_is_refused_before_it_is_read() {
        let with = |values: usize| {
            let values = "0,".repeat(values);
            format!(r#"{{"nbformat": 4, "cells": [], "metadata": {{"x": [{values}0]}}}}"#)
        };
        assert!(parse(&with(FREE_VALUES - 20)).is_ok());
        let error = parse(&with(FREE_VALUES)).unwrap_err().to_string();
        assert!(error.starts_with("it has 10000") && error.contains("limit is 1000000"), "{error}");
    }

    #[test]
    fn what_is_no_notebook_of_python_is_told() {
        let cases = [
            ("", "it is no notebook: EOF while parsing a value at line 1 column 0"),
            ("[]", "it is no notebook: "),
            ("{}", "it is no notebook: it has no `nbformat`"),
            (r#"{"nbformat": 4}"#, "it is no notebook: it has no `cells`"),
            (r#"{"nbformat": 3, "worksheets": []}"#, "its format is nbformat 3"),
            (
                r#"{"nbformat": 4, "metadata": {"kernelspec": {"language": "R"}}, "cells": []}"#,
                "its language is \"R\", isolet runs Python",
            ),
        ];
        for (text, said) in cases {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.starts_with(said), "{text}: {error}");
        }
    }
}
