//! The picture of the results: bars of how many programs each subject survives.

use std::fmt::Write as _;

use super::Column;
use super::page::Counts;

/// Sizes in pixels: of the picture's parts, a bar, and the space between subjects.
const LEFT: usize = 130;
const WIDTH: usize = 480;
const BAR: usize = 14;
const GAP: usize = 12;
const TOP: usize = 34;

/// What the bars are, with their colours, which are told apart without colour vision too.
const BARS: [(&str, &str); 3] =
    [("host alive", "#1b4f72"), ("session kept", "#5dade2"), ("in time", "#c8ccd0")];

/// Returns an SVG.
pub(super) fn chart(columns: &[Column]) -> String {
    let step = BARS.len() * BAR + GAP;
    let (width, height) = (LEFT + WIDTH + 70, TOP + columns.len() * step);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>How many programs the host and the session survive</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    let mut x = LEFT;
    for (name, colour) in BARS {
        // Writing to a text cannot fail.
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"8\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"18\">{name}</text>",
            x + 18
        );
        x += 120;
    }
    for (nth, column) in columns.iter().enumerate() {
        let y = TOP + nth * step;
        let Counts { ran, alive, kept, in_time } = Counts::of(&column.verdicts);
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            LEFT - 8,
            y + BARS.len() * BAR / 2 + 4,
            column.title
        );
        for (nth, (count, (_, colour))) in [alive, kept, in_time].into_iter().zip(BARS).enumerate()
        {
            let (y, length) = (y + nth * BAR, WIDTH * count / ran.max(1));
            let _ = writeln!(
                svg,
                "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{length}\" height=\"{}\" fill=\"{colour}\"/>\
                 <text x=\"{}\" y=\"{}\" font-size=\"10\">{count} of {ran}</text>",
                BAR - 2,
                LEFT + length + 5,
                y + BAR - 4
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survival::host::Verdict;

    #[test]
    fn bars_are_as_long_as_their_share() {
        let alive =
            |kept| Verdict::Alive { kept, seconds: 1.0, told: String::new(), in_time: true };
        let verdicts = vec![alive(true), alive(false)];
        let svg = chart(&[Column { title: "it", what: String::new(), verdicts, has: vec![] }]);
        assert!(svg.contains(&format!("width=\"{WIDTH}\" height=\"12\"")), "{svg}");
        assert!(svg.contains(&format!("width=\"{}\" height=\"12\"", WIDTH / 2)), "{svg}");
        assert!(svg.contains(">1 of 2<") && svg.ends_with("</svg>\n"), "{svg}");
    }
}
