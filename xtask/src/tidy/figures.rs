//! `cargo xtask tidy --figures`: how the crates are built, in numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::SourceFile;
use super::floors::{CRATES, Crate, LIBRARY, house, is_root};
use super::rules::checked;

/// An arrow from the one that names to the one that is named.
type Arrows<'a> = BTreeSet<(&'a str, String)>;

/// Returns a table of the crates, and what is highest, longest and wrong.
pub(super) fn of(files: &[SourceFile]) -> String {
    let mut text = String::from(
        "| crate | lines | rooms | floors | arrows | back | longest room | lines |\n\
         |-|-|-|-|-|-|-|-|\n",
    );
    let mut between = Arrows::new();
    let mut longest_upper = ("", 0);
    for house in CRATES {
        let Structure { lines, rooms, arrows, others } = Structure::of(house, files);
        between.extend(others.into_iter().map(|other| (house.name, other.to_owned())));
        let order: Vec<&str> = house.rooms.iter().map(|(room, _)| *room).collect();
        let (longest, most) = rooms
            .iter()
            .max_by_key(|(_, lines)| **lines)
            .map_or(("", 0), |(room, lines)| (room, *lines));
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "| {} | {lines} | {} | {} | {} | {} | {longest} | {most} |",
            house.name,
            rooms.len(),
            floors(&order, &arrows),
            arrows.len(),
            back(&order, &arrows)
        );
        if house.name != LIBRARY && lines > longest_upper.1 {
            longest_upper = (house.name, lines);
        }
    }
    let order: Vec<&str> = CRATES.iter().map(|house| house.name).collect();
    between.retain(|(from, to)| *from != LIBRARY && to != LIBRARY);
    let _ = writeln!(
        text,
        "\nAbove the library: {} crates on {} floors, {} arrows, {} back; the longest is `{}` with \
         {} lines.",
        CRATES.len() - 1,
        floors(&order[1..], &between),
        between.len(),
        back(&order, &between),
        longest_upper.0,
        longest_upper.1
    );
    text
}

/// A crate as its files are.
struct Structure<'a> {
    lines: usize,
    /// The lines of each room.
    rooms: BTreeMap<&'a str, usize>,
    /// Which rooms name which others.
    arrows: Arrows<'a>,
    /// Our other crates that it names.
    others: BTreeSet<&'static str>,
}

impl<'a> Structure<'a> {
    fn of(of: &'a Crate, files: &[SourceFile]) -> Self {
        let mut structure = Self {
            lines: 0,
            rooms: BTreeMap::new(),
            arrows: Arrows::new(),
            others: BTreeSet::new(),
        };
        for file in checked(files) {
            let Some((_, path)) = house(&file.path).filter(|(house, _)| house.name == of.name)
            else {
                continue;
            };
            let lines = file.text.lines().count();
            structure.lines += lines;
            let code = file.code().map(|(_, line)| line);
            structure.others.extend(code.flat_map(|line| of.named_crates(line)));
            let Some((room, _)) = of.room(path).filter(|_| !is_root(path)) else { continue };
            *structure.rooms.entry(room).or_default() += lines;
            let named = file.code().flat_map(|(_, line)| of.named_rooms(line));
            let named = named.filter(|named| named != room);
            structure.arrows.extend(named.map(|named| (*room, named)));
        }
        structure
    }
}

/// Returns the length of the longest way down, if the order is from the lowest up.
fn floors(order: &[&str], arrows: &Arrows<'_>) -> usize {
    let mut height: BTreeMap<&str, usize> = BTreeMap::new();
    for room in order {
        let below = arrows.iter().filter(|(from, _)| from == room);
        let highest = below.filter_map(|(_, to)| height.get(to.as_str())).max();
        let own = 1 + highest.copied().unwrap_or_default();
        height.insert(room, own);
    }
    height.into_values().max().unwrap_or_default()
}

/// Counts the arrows to one that is not lower.
fn back(order: &[&str], arrows: &Arrows<'_>) -> usize {
    let place = |name: &str| order.iter().position(|room| *room == name);
    arrows.iter().filter(|(from, to)| place(to).is_none_or(|to| Some(to) >= place(from))).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_are_the_longest_way_down_and_an_arrow_up_is_back() {
        let order = ["a", "b", "c", "d"];
        let arrows = |all: &[(&'static str, &str)]| -> Arrows<'static> {
            all.iter().map(|(from, to)| (*from, (*to).to_owned())).collect()
        };
        let straight = arrows(&[("b", "a"), ("c", "b"), ("d", "a")]);
        assert_eq!((floors(&order, &straight), back(&order, &straight)), (3, 0));
        let climbing = arrows(&[("a", "b"), ("b", "a"), ("c", "Item")]);
        assert_eq!((floors(&order, &climbing), back(&order, &climbing)), (2, 2));
    }

    #[test]
    fn figures_are_of_files_and_not_of_what_is_permitted() {
        let file = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        let files = [
            file("src/lib.rs", "//! x\nuse crate::api::Engine;\n"),
            file("src/api/a.rs", "//! x\nuse crate::data::Value;\n"),
            file("src/data/a.rs", "//! x\n// crate::api in words\n"),
            file("crates/isolet-serve/src/http/a.rs", "//! x\nuse isolet_service::core;\n\n\n"),
            file("crates/isolet-service/src/node/a.rs", "//! x\nuse crate::core::Run;\n"),
        ];
        let text = of(&files);
        let has = |line: &str| assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        has("| isolet | 6 | 2 | 2 | 1 | 0 | data | 2 |");
        has("| isolet-serve | 4 | 1 | 1 | 0 | 0 | http | 4 |");
        has("Above the library: 6 crates on 2 floors, 1 arrows, 0 back; the longest is \
             `isolet-serve` with 4 lines.");
    }
}
