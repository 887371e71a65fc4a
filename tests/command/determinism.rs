//! Tests of `--seed` and `--start-time`.

use isolet_test_support::isolet;

const DRAW: &str = "import random, time, datetime; print(random.random(), time.time())
print(datetime.datetime.now().isoformat())";

#[test]
fn a_seed_and_a_start_time_decide_what_a_program_prints() {
    let draw = |options: &[&str]| {
        let ran = isolet([&["run"], options, &["-c", DRAW]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout
    };
    let drawn = draw(&["--seed", "7"]);
    assert_eq!(drawn, draw(&["--seed", "7"]));
    assert!(drawn.contains("\n2026-01-01T00:00:00"), "{drawn}");
    assert_ne!(drawn, draw(&["--seed", "18446744073709551615"]));
    for time in ["2027-03-04T05:06:07Z", "2027-03-04"] {
        let later = draw(&["--seed", "7", "--start-time", time]);
        assert_eq!(later.split(' ').next(), drawn.split(' ').next());
        assert!(later.contains("\n2027-03-04T"), "{later}");
    }
}

#[test]
fn what_is_no_seed_and_no_time_is_refused() {
    for (options, reason) in [
        (&["--start-time", "2027-03-04"][..], "--seed <NUMBER>"),
        (&["--seed", "-1"], "-1"),
        (&["--seed", "7", "--start-time", "noon"], "`noon` is no time such as"),
    ] {
        let ran = isolet([&["run"], options, &["-c", "1"]].concat());
        assert_eq!(ran.code, Some(2), "{options:?}");
        assert!(ran.stderr.contains(reason), "{options:?}: {}", ran.stderr);
    }
}
