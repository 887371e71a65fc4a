//! Compares an overlay with the host's own file system.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Write(String, String),
    Append(String, String),
    WriteAt(String, u64, String),
    SetSize(String, u64),
    MakeDirectory(String),
    RemoveDirectory(String),
    Remove(String),
    Rename(String, String),
    MakeLink(String, String),
    /// Opens a file and keeps it open.
    Open(String),
    /// Writes to one of the open files.
    WriteHeld(usize, u64, String),
    Stat(String),
}

fn path() -> impl Strategy<Value = String> {
    let name =
        prop::sample::select(vec!["dir", "inner", "hello.txt", "deep.txt", "deeper.txt", "x"]);
    prop::collection::vec(name, 1..4).prop_map(|names| names.join("/"))
}

fn step() -> impl Strategy<Value = Step> {
    let text = || "[a-c]{1,6}";
    prop_oneof![
        (path(), text()).prop_map(|(path, text)| Step::Write(path, text)),
        (path(), text()).prop_map(|(path, text)| Step::Append(path, text)),
        (path(), 0..9_u64, text()).prop_map(|(path, at, text)| Step::WriteAt(path, at, text)),
        (path(), 0..9_u64).prop_map(|(path, size)| Step::SetSize(path, size)),
        path().prop_map(Step::MakeDirectory),
        path().prop_map(Step::RemoveDirectory),
        path().prop_map(Step::Remove),
        (path(), path()).prop_map(|(from, to)| Step::Rename(from, to)),
        (path(), path()).prop_map(|(from, to)| Step::Rename(from, to)),
        (path(), path()).prop_map(|(path, target)| Step::MakeLink(path, target)),
        path().prop_map(Step::Open),
        (0..4_usize, 0..9_u64, text()).prop_map(|(file, at, text)| Step::WriteHeld(file, at, text)),
        path().prop_map(Step::Stat),
    ]
}

/// Carries out a step and describes the result, without details in which the two may differ.
fn carry_out(guest: &Guest, held: &mut Vec<u32>, step: &Step) -> String {
    let result = match step {
        Step::Write(path, text) => guest.write(path, text),
        Step::Append(path, text) => guest.append(path, text),
        Step::WriteAt(path, at, text) => guest.open(path, UPDATE).and_then(|file| {
            let written = guest.write_to(file, *at, text.as_bytes());
            guest.close(file);
            written.map(drop)
        }),
        Step::SetSize(path, size) => guest.set_size(path, *size),
        Step::MakeDirectory(path) => guest.make_directory(path),
        Step::RemoveDirectory(path) => guest.remove_directory(path),
        Step::Remove(path) => guest.remove(path),
        Step::Rename(from, to) => guest.rename(from, to),
        Step::MakeLink(path, target) => guest.make_link(path, target),
        Step::Open(path) => guest.open(path, UPDATE).map(|file| held.push(file)),
        Step::WriteHeld(file, at, text) => match held.get(*file) {
            Some(file) => guest.write_to(*file, *at, text.as_bytes()).map(drop),
            None => Ok(()),
        },
        Step::Stat(path) => guest.stat(path).map(drop),
    };
    match result {
        Ok(()) => "done".to_owned(),
        // Which of these it is depends on the order of the checks.
        Err(FileError::Link | FileError::NotDirectory | FileError::NotFound) => "no".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// Returns everything that the guest sees.
fn seen(guest: &Guest, held: &[u32]) -> Vec<String> {
    let mut seen = Vec::new();
    let mut left = vec![String::new()];
    while let Some(path) = left.pop() {
        let stat = guest.stat(&path).unwrap();
        let contents = match stat.kind {
            FileKind::File => guest.read(&path).unwrap(),
            FileKind::Link => guest.read_link(&path).unwrap_or_default(),
            FileKind::Directory => {
                let names = guest.list(&path).unwrap();
                let join = |name: &String| format!("{path}/{name}").trim_matches('/').to_owned();
                left.extend(names.iter().map(join));
                String::new()
            }
        };
        let size = if stat.kind == FileKind::File { stat.size } else { 0 };
        seen.push(format!("{path} {:?} {size} {contents:?}", stat.kind));
    }
    seen.extend(held.iter().map(|file| format!("{:?}", guest.read_from(*file).unwrap())));
    seen
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn an_overlay_does_what_the_host_does(steps in prop::collection::vec(step(), 1..25)) {
        let (over, through) = (Guest::new(overlay), Guest::new(read_write));
        let before = snapshot(&over.host());
        let (mut over_held, mut through_held) = (Vec::new(), Vec::new());
        for step in &steps {
            let one = carry_out(&over, &mut over_held, step);
            let other = carry_out(&through, &mut through_held, step);
            prop_assert_eq!(one, other, "{:?}", step);
        }
        prop_assert_eq!(seen(&over, &over_held), seen(&through, &through_held));
        prop_assert_eq!(snapshot(&over.host()), before);

        // The reported changes must be the difference from the host's tree, and exportable.
        let changed = over.files.changes(0);
        let beneath = |change: &FileChange| change.path.strip_prefix("/data/").unwrap().to_owned();
        for change in &changed {
            let there = over.stat(&beneath(change)).is_ok();
            prop_assert_eq!(there, change.kind != ChangeKind::Removed, "{:?}", change);
        }
        over.export(&over.top.path().join("exported")).unwrap();
    }
}
