//! Shows the change of a file: the lines that go and come, with some around them.

use std::fmt::Write as _;
use std::path::Path;

/// The number of lines that are shown around a change.
const CONTEXT: usize = 3;

/// The most characters of a line that are shown. Some clients write their file as one line.
const MAX_COLUMNS: usize = 200;

/// The most pairs of lines that are compared. Beyond it all lines count as changed.
const MAX_PAIRS: usize = 4_000_000;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Kept,
    Gone,
    Come,
}

/// Shows a change in the form of `diff -u`. Lines that are too long are cut.
pub(super) fn show(path: &Path, old: Option<&str>, new: &str) -> String {
    let shown = path.display();
    let before = if old.is_some() { format!("{shown}") } else { "/dev/null".to_owned() };
    let mut text = format!("--- {before}\n+++ {shown}\n");
    let lines = compare(old.unwrap_or_default(), new);
    let (mut at, mut lines_of) = (0, (0, 0));
    let mut done = 0;
    while let Some(change) = lines[at..].iter().position(|line| line.0 != Kind::Kept) {
        let first = (at + change).saturating_sub(CONTEXT).max(done);
        let mut end = at + change;
        // Changes whose surroundings touch are shown together.
        while let Some(next) = lines[end..].iter().position(|line| line.0 != Kind::Kept) {
            if next > 2 * CONTEXT {
                break;
            }
            end += next + 1;
        }
        let last = (end + CONTEXT).min(lines.len());
        count(&lines[done..first], &mut lines_of);
        let start = lines_of;
        count(&lines[first..last], &mut lines_of);
        let range = |from: usize, to: usize| {
            let from_line = if to == from { from } else { from + 1 };
            format!("{from_line},{}", to - from)
        };
        let (old, new) = (range(start.0, lines_of.0), range(start.1, lines_of.1));
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "@@ -{old} +{new} @@");
        for (kind, line) in &lines[first..last] {
            let sign = match kind {
                Kind::Kept => ' ',
                Kind::Gone => '-',
                Kind::Come => '+',
            };
            let cut: String = line.chars().take(MAX_COLUMNS).collect();
            let dots = if cut.len() < line.len() { "..." } else { "" };
            let _ = writeln!(text, "{sign}{cut}{dots}");
        }
        (at, done) = (last, last);
    }
    text
}

fn count(lines: &[(Kind, &str)], of: &mut (usize, usize)) {
    of.0 += lines.iter().filter(|line| line.0 != Kind::Come).count();
    of.1 += lines.iter().filter(|line| line.0 != Kind::Gone).count();
}

fn compare<'a>(old: &'a str, new: &'a str) -> Vec<(Kind, &'a str)> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let head = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let (inner_old, inner_new) = (&old[head..], &new[head..]);
    let pairs = inner_old.iter().rev().zip(inner_new.iter().rev());
    let tail = pairs.take_while(|(one, other)| one == other).count();
    let inner_old = &inner_old[..inner_old.len() - tail];
    let inner_new = &inner_new[..inner_new.len() - tail];
    let mut lines: Vec<(Kind, &str)> = Vec::new();
    lines.extend(old[..head].iter().map(|line| (Kind::Kept, *line)));
    lines.extend(changed(inner_old, inner_new));
    lines.extend(old[old.len() - tail..].iter().map(|line| (Kind::Kept, *line)));
    lines
}

/// Compares by the longest common subsequence of lines.
fn changed<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(Kind, &'a str)> {
    let width = new.len() + 1;
    let is_large = old.len().saturating_mul(new.len()) > MAX_PAIRS;
    let mut common = vec![0_u32; if is_large { 0 } else { (old.len() + 1) * width }];
    if !is_large {
        for one in (0..old.len()).rev() {
            for other in (0..new.len()).rev() {
                common[one * width + other] = if old[one] == new[other] {
                    common[(one + 1) * width + other + 1] + 1
                } else {
                    common[(one + 1) * width + other].max(common[one * width + other + 1])
                };
            }
        }
    }
    let mut lines = Vec::new();
    let (mut one, mut other) = (0, 0);
    while one < old.len() && other < new.len() && !is_large {
        if old[one] == new[other] {
            lines.push((Kind::Kept, old[one]));
            (one, other) = (one + 1, other + 1);
        } else if common[(one + 1) * width + other] >= common[one * width + other + 1] {
            lines.push((Kind::Gone, old[one]));
            one += 1;
        } else {
            lines.push((Kind::Come, new[other]));
            other += 1;
        }
    }
    lines.extend(old[one..].iter().map(|line| (Kind::Gone, *line)));
    lines.extend(new[other..].iter().map(|line| (Kind::Come, *line)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_with_their_surroundings() {
        let old = (1..=30).map(|line| line.to_string() + "\n").collect::<String>();
        let new = old.replace("\n4\n", "\n").replace("\n6\n", "\n6\nx\n").replace("\n30\n", "\n");
        assert_eq!(
            show(Path::new("f"), Some(&old), &new),
            "--- f\n+++ f\n@@ -1,9 +1,9 @@\n 1\n 2\n 3\n-4\n 5\n 6\n+x\n 7\n 8\n 9\n\
             @@ -27,4 +27,3 @@\n 27\n 28\n 29\n-30\n"
        );
        assert_eq!(
            show(Path::new("f"), None, "a\n"),
            "--- /dev/null\n+++ f\n@@ -0,0 +1,1 @@\n+a\n"
        );
        assert_eq!(show(Path::new("f"), Some("a"), "a"), "--- f\n+++ f\n");
    }

    #[test]
    fn long_lines_are_cut() {
        let shown = show(Path::new("f"), Some(&"ü".repeat(500)), "x");
        assert!(shown.contains(&format!("-{}...\n+x\n", "ü".repeat(MAX_COLUMNS))), "{shown}");
    }
}
