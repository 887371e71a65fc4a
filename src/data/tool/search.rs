//! Finds tools by words: BM25 over their names, documentation and parameters.

use std::borrow::Borrow;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use super::spec::ToolSpec;

/// How often a word of a name counts, and one of a parameter's name; a word of a text counts once.
const NAME_WEIGHT: f64 = 4.0;
const PARAM_WEIGHT: f64 = 2.0;

/// BM25's constants: how soon repetitions stop counting, and how much long texts count less.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;

/// The maximum length of the text that is read of a tool or a query, in bytes.
const MAX_TEXT_BYTES: usize = 16 << 10;

/// The maximum number of different words of a query.
const MAX_WORDS: usize = 32;

/// Returns the places in `specs` of the tools that fit the query, best first, at most `limit`.
///
/// The words of the query are looked for in the names, the documentation and the names of the
/// parameters. A tool whose name the query is comes first. Otherwise the order is that of BM25;
/// equally good tools keep their order. An empty query fits every tool.
///
/// ```
/// use isolet::{Param, ToolSpec, search_tools};
///
/// let specs = [
///     ToolSpec::new("get_page").doc("Reads a page."),
///     ToolSpec::new("createIssue").doc("Opens an issue.").param(Param::new("title")),
/// ];
/// assert_eq!(search_tools("create an issue", &specs, 10), [1]);
/// ```
#[must_use]
pub fn search<S: Borrow<ToolSpec>>(query: &str, specs: &[S], limit: usize) -> Vec<usize> {
    SearchIndex::new(specs.iter().map(Borrow::borrow)).find(query, 0..specs.len(), limit)
}

/// The words of many tools, for several searches.
pub(crate) struct SearchIndex {
    /// By word: the tools that have it, in their order, and how often it counts there.
    words: HashMap<String, Vec<(usize, f64)>>,
    lengths: Vec<f64>,
    mean_length: f64,
    /// The words of each tool's whole name, and of that without the module's.
    names: Vec<[BTreeSet<String>; 2]>,
}

impl SearchIndex {
    pub(crate) fn new<'a>(specs: impl Iterator<Item = &'a ToolSpec>) -> Self {
        let mut words: HashMap<String, Vec<(usize, f64)>> = HashMap::new();
        let (mut lengths, mut names) = (Vec::new(), Vec::new());
        for (at, spec) in specs.enumerate() {
            let mut length = 0.0;
            let mut add = |text: &str, weight: f64| {
                for word in words_of(text) {
                    length += weight;
                    let places = words.entry(word).or_default();
                    match places.last_mut() {
                        Some((last, count)) if *last == at => *count += weight,
                        _ => places.push((at, weight)),
                    }
                }
            };
            add(&spec.name, NAME_WEIGHT);
            add(&spec.doc, 1.0);
            for param in &spec.params {
                add(&param.name, PARAM_WEIGHT);
                add(&param.doc, 1.0);
            }
            lengths.push(length);
            let last = spec.name.rsplit('.').next().unwrap_or_default();
            names.push([spec.name.as_str(), last].map(|name| words_of(name).collect()));
        }
        let mean_length = lengths.iter().sum::<f64>() / number(lengths.len()).max(1.0);
        Self { words, lengths, mean_length: mean_length.max(1.0), names }
    }

    /// Finds tools as [`search`] does, among those at the places `within`.
    pub(crate) fn find(&self, query: &str, within: Range<usize>, limit: usize) -> Vec<usize> {
        let asked: BTreeSet<String> = words_of(query).take(MAX_WORDS).collect();
        if asked.is_empty() {
            return within.take(limit).collect();
        }
        let mut scores: HashMap<usize, f64> = HashMap::new();
        for word in &asked {
            let Some(places) = self.words.get(word) else { continue };
            let (all, having) = (number(self.lengths.len()), number(places.len()));
            let rarity = ((all - having + 0.5) / (having + 0.5)).ln_1p();
            for (at, count) in places.iter().filter(|(at, _)| within.contains(at)) {
                let length = self.lengths.get(*at).copied().unwrap_or_default() / self.mean_length;
                let damping = SATURATION * (1.0 - LENGTH + LENGTH * length);
                *scores.entry(*at).or_default() +=
                    rarity * count * (SATURATION + 1.0) / (count + damping);
            }
        }
        let mut found: Vec<(usize, f64)> = scores.into_iter().collect();
        let is_name = |at: &usize| self.names.get(*at).is_some_and(|names| names.contains(&asked));
        found.sort_by(|(a, first), (b, second)| {
            is_name(b).cmp(&is_name(a)).then(second.total_cmp(first)).then(a.cmp(b))
        });
        found.into_iter().map(|(at, _)| at).take(limit).collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
fn number(count: usize) -> f64 {
    count as f64
}

/// Returns the words of a text in lower case, without the `s` of a plural. `snake_case` and
/// `camelCase` are two words each.
fn words_of(text: &str) -> impl Iterator<Item = String> {
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for letter in text[..end].chars() {
        if letter.is_alphanumeric() {
            let is_start = !before.is_alphanumeric()
                || (letter.is_uppercase() && before.is_lowercase())
                || letter.is_numeric() != before.is_numeric();
            if is_start {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(letter.to_lowercase());
            }
        }
        before = letter;
    }
    words.into_iter().map(|mut word| {
        if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
            word.pop();
        }
        word
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::tool::Param;

    fn specs() -> Vec<ToolSpec> {
        vec![
            ToolSpec::new("github.search_issues").doc("Finds issues and pull requests."),
            ToolSpec::new("github.create_issue").doc("Opens an issue in a repository."),
            ToolSpec::new("mail.send").doc("Sends a message.").param(Param::new("recipient")),
            ToolSpec::new("time.now").doc("Tells the time."),
        ]
    }

    #[test]
    fn names_count_more_than_texts() {
        let mut specs = specs();
        specs.push(ToolSpec::new("mail.draft").doc("Creates something that is no issue."));
        assert_eq!(search("create issue", &specs, 10)[0], 1);
    }

    #[test]
    fn a_tool_whose_name_is_asked_for_comes_first() {
        let spec = |name: &str| ToolSpec::new(name).doc("Scrapes a page, or scrapes pages.");
        let mut specs =
            vec![spec("fire.scrape_scrape_page"), spec("fire.scrape"), spec("fire.map")];
        specs.push(ToolSpec::new("fire.scrape_all").doc("scrape scrape scrape fire fire"));
        assert_eq!(search("scrape", &specs, 1), [1]);
        assert_eq!(search("fire.scrape", &specs, 1), [1]);
        assert_eq!(search("fire_scrape_all", &specs, 1), [3]);
    }

    #[test]
    fn words_are_found_in_names_texts_and_parameters() {
        let specs = specs();
        assert_eq!(search("ISSUES", &specs, 10), [0, 1]);
        assert_eq!(search("repositories repository", &specs, 10), [1]);
        assert_eq!(search("recipients", &specs, 10), [2]);
        assert_eq!(search("searchIssues", &specs, 1), [0]);
        assert!(search("weather", &specs, 10).is_empty());
    }

    #[test]
    fn an_empty_query_lists_the_tools() {
        let specs = specs();
        assert_eq!(search(" ?!", &specs, 2), [0, 1]);
        let index = SearchIndex::new(specs.iter());
        assert_eq!(index.find("", 2..4, 10), [2, 3]);
        assert_eq!(index.find("issue", 2..4, 10), [0; 0]);
        assert!(search::<ToolSpec>("x", &[], 10).is_empty());
    }

    #[test]
    fn a_text_of_any_kind_is_searched() {
        let long = "é".repeat(1 << 20);
        let specs = [ToolSpec::new("a").doc(long.as_str()), ToolSpec::new("größe").doc("ẞ 3D")];
        assert_eq!(search("GRÖSSE größe", &specs, 10), [1]);
        assert_eq!(search(&"x ".repeat(1 << 20), &specs, 10), [0; 0]);
    }
}
