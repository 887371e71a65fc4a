//! Tests of errors: their causes, and the Python exceptions that they were made from.

use isolet_test_support::isolet;

#[test]
fn the_command_says_a_cause_once() {
    let reason = "No such file or directory";
    for json in [false, true] {
        let mount = ["run", "--mount", "/nowhere/at/all:/data", "-c", "1"];
        let ran = isolet(mount.into_iter().chain(json.then_some("--json")));
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(said.matches(reason).count(), 1, "{said}");
    }
}
