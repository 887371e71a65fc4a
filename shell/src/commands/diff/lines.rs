//! The shortest list of changes between two files, by Myers' algorithm.

use std::collections::HashMap;

/// With more changes, what is left counts as changed: the memory is quadratic in them.
const MOST: usize = 4000;

/// A run of lines, counted from 0, that others replace; either may be empty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) old: usize,
    pub(super) removed: usize,
    pub(super) new: usize,
    pub(super) added: usize,
}

/// The changes between two lists of keys, in order.
pub(super) fn changes(old: &[Vec<u8>], new: &[Vec<u8>]) -> Vec<Change> {
    let mut numbers = HashMap::new();
    let mut numbered = |lines: &[Vec<u8>]| -> Vec<usize> {
        let mut list = Vec::new();
        for line in lines {
            let next = numbers.len();
            list.push(*numbers.entry(line.clone()).or_insert(next));
        }
        list
    };
    let (old, new) = (numbered(old), numbered(new));
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (a, b) = (&old[same..], &new[same..]);
    let after = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[..a.len() - after], &b[..b.len() - after]);
    let mut found = Vec::new();
    let (mut x, mut y) = (0, 0);
    for (next_x, next_y, length) in matches(a, b) {
        push(&mut found, same + x, next_x - x, same + y, next_y - y);
        (x, y) = (next_x + length, next_y + length);
    }
    push(&mut found, same + x, a.len() - x, same + y, b.len() - y);
    slide(&mut found, &old, &new);
    found
}

fn push(found: &mut Vec<Change>, old: usize, removed: usize, new: usize, added: usize) {
    if removed + added > 0 {
        found.push(Change { old, removed, new, added });
    }
}

/// Runs of lines that both have, as `(place in a, place in b, length)`.
fn matches(a: &[usize], b: &[usize]) -> Vec<(usize, usize, usize)> {
    if a.is_empty() || b.is_empty() {
        return Vec::new();
    }
    // The furthest place in `a` on each diagonal; the trace has one list for each count of changes.
    let most = (a.len() + b.len()).min(MOST);
    let mut furthest = vec![0_usize; 2 * most + 3];
    let mut trace = Vec::new();
    let middle = most + 1;
    let at = |diagonal: isize| middle.wrapping_add_signed(diagonal);
    let mut end = None;
    'search: for count in 0..=most {
        trace.push(furthest[middle - count..=middle + count].to_vec());
        let count = count.cast_signed();
        for diagonal in (-count..=count).step_by(2) {
            let (left, right) = (furthest[at(diagonal - 1)], furthest[at(diagonal + 1)]);
            let down = diagonal == -count || diagonal != count && left < right;
            let mut x = if down { right } else { left + 1 };
            let mut y = x.wrapping_add_signed(-diagonal);
            if x > a.len() || y > b.len() {
                furthest[at(diagonal)] = x;
                continue;
            }
            while x < a.len() && y < b.len() && a[x] == b[y] {
                (x, y) = (x + 1, y + 1);
            }
            furthest[at(diagonal)] = x;
            if x == a.len() && y == b.len() {
                end = Some((x, y));
                break 'search;
            }
        }
    }
    let Some((mut x, mut y)) = end else { return Vec::new() };
    let mut runs = Vec::new();
    for (count, furthest) in trace.iter().enumerate().rev() {
        let at = |diagonal: isize| furthest[count.wrapping_add_signed(diagonal)];
        let count = count.cast_signed();
        let diagonal = x.cast_signed() - y.cast_signed();
        let (before_x, before_y) = if count == 0 {
            (0, 0)
        } else {
            let left = if diagonal > -count { at(diagonal - 1) } else { 0 };
            let right = if diagonal < count { at(diagonal + 1) } else { 0 };
            let down = diagonal == -count || diagonal != count && left < right;
            let (x, diagonal) = if down { (right, diagonal + 1) } else { (left, diagonal - 1) };
            (x, x.wrapping_add_signed(-diagonal))
        };
        // After the one change comes the run.
        let moved = (x - before_x).min(y - before_y);
        if moved > 0 {
            runs.push((x - moved, y - moved, moved));
        }
        (x, y) = (before_x, before_y);
    }
    runs.reverse();
    runs
}

/// Moves lines that were only added or only removed as far down as they go, as GNU diff does.
fn slide(found: &mut [Change], old: &[usize], new: &[usize]) {
    for at in (0..found.len()).rev() {
        let (end_old, end_new) =
            found.get(at + 1).map_or((old.len(), new.len()), |next| (next.old, next.new));
        let change = &mut found[at];
        let (lines, mut start, length) = match (change.removed, change.added) {
            (0, added) => (new, change.new, added),
            (removed, 0) => (old, change.old, removed),
            _ => continue,
        };
        while change.old + change.removed < end_old
            && change.new + change.added < end_new
            && lines[start] == lines[start + length]
        {
            (start, change.old, change.new) = (start + 1, change.old + 1, change.new + 1);
        }
    }
}
