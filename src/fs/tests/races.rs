//! Tests with a host that renames and replaces files while the guest reads and writes: B1 and B2.

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::*;

const ROUNDS: u64 = 10_000;

/// Runs `attack` repeatedly while another thread swaps `swapped` with a link that leads outside. On
/// return there were at least as many swaps as rounds.
fn while_swapping(guest: &Guest, swapped: &str, link: &Path, attack: impl Fn(u64)) {
    let (one, other) = (guest.host().join(swapped), guest.top.path().join("trap"));
    symlink(link, &other).unwrap();
    let (swaps, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        let _stop = StopOnDrop(&stop);
        let mut round = 0;
        while round < ROUNDS || swaps.load(Ordering::Relaxed) < ROUNDS {
            attack(round);
            round += 1;
        }
    });
    assert!(swaps.load(Ordering::Relaxed) >= ROUNDS);
}

/// Ends the swapping even if the attack panics.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// B2: a directory that is swapped with a link never leads to the link's target.
#[test]
fn a_directory_swapped_for_a_link_leads_nowhere() {
    for mount in [read_only, overlay, read_write] {
        let guest = Guest::new(mount);
        fs::write(guest.host().join("dir/secret"), "harmless").unwrap();
        fs::write(guest.outside().join("canary"), "").unwrap();
        let outside = snapshot(&guest.outside());
        let (reads, errors) = (AtomicU64::new(0), AtomicU64::new(0));
        while_swapping(&guest, "dir", &guest.outside(), |round| {
            match guest.read("dir/secret") {
                Ok(text) => {
                    assert_ne!(text, SECRET);
                    reads.fetch_add(1, Ordering::Relaxed);
                }
                Err(_) => drop(errors.fetch_add(1, Ordering::Relaxed)),
            }
            if round % 8 == 0 {
                let _ = guest.write("dir/secret", "harmless");
                let _ = guest.write("dir/new", "new");
                let _ = guest.rename("dir/new", "dir/newer");
                let _ = guest.set_mode("dir/secret", 0o400);
                let _ = guest.remove("dir/newer");
                let names = guest.list("dir").unwrap_or_default();
                assert!(!names.iter().any(|name| name == "canary"), "{names:?}");
            }
        });
        assert_eq!(snapshot(&guest.outside()), outside);
        // Files that an overlay has in memory do not fail.
        let in_memory = !guest.changes().is_empty();
        assert!(reads.into_inner() > 0 && (in_memory || errors.into_inner() > 0));
    }
}

/// B2: a file that is swapped with a link never becomes the link's target.
#[test]
fn a_file_swapped_for_a_link_leads_nowhere() {
    for mount in [read_only, read_write] {
        let guest = Guest::new(mount);
        let outside = snapshot(&guest.outside());
        while_swapping(&guest, "hello.txt", &guest.outside().join("secret"), |round| {
            if let Ok(text) = guest.read("hello.txt") {
                assert_ne!(text, SECRET);
            }
            if round % 8 == 0 {
                let _ = guest.set_size("hello.txt", 3);
                let _ = guest.append("hello.txt", "x");
                let _ = guest.set_times("hello.txt", 5e11);
                let _ = guest.set_mode("hello.txt", 0o600);
            }
            if let Ok(target) = guest.read_link("hello.txt") {
                panic!("{target}");
            }
        });
        assert_eq!(snapshot(&guest.outside()), outside);
    }
}

/// B2: many threads of one session do not deadlock, and their result is consistent.
#[test]
fn an_overlay_is_whole_after_requests_from_many_threads() {
    let guest = Guest::new(overlay);
    let before = snapshot(&guest.host());
    thread::scope(|scope| {
        for thread in 0..4 {
            let guest = &guest;
            scope.spawn(move || {
                for round in 0..300 {
                    let _ = guest.append("hello.txt", "x");
                    let _ = guest.rename("hello.txt", "other.txt");
                    let _ = guest.rename("other.txt", "hello.txt");
                    let _ = guest.write(&format!("dir/{thread}-{round}"), "new");
                    let _ = guest.files.changes(0);
                }
            });
        }
    });
    let text = guest.read("hello.txt").unwrap();
    assert!(text.starts_with("hello") && text.ends_with('x'), "{text}");
    assert_eq!(guest.list("dir").unwrap().len(), 1202);
    assert_eq!(snapshot(&guest.host()), before);
}
