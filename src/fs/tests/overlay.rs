//! Tests of overlays: the host does not change, and all changes are known.

use proptest::prelude::*;

use super::*;

#[test]
fn the_host_stays_as_it_is() {
    let guest = Guest::new(overlay);
    let before = snapshot(&guest.host());
    guest.write("hello.txt", "changed").unwrap();
    guest.append("dir/deep.txt", "er").unwrap();
    guest.write("dir/new", "new").unwrap();
    guest.remove("dir/inner/deeper.txt").unwrap();
    guest.remove_directory("dir/inner").unwrap();
    guest.rename("dir", "moved").unwrap();
    guest.make_directory("dir").unwrap();
    guest.set_mode("moved/deep.txt", 0o777).unwrap();
    guest.set_times("moved", 0.0).unwrap();
    guest.make_link("link", "hello.txt").unwrap();
    assert_eq!(guest.list("").unwrap(), ["dir", "hello.txt", "link", "moved"]);
    assert_eq!(guest.list("moved").unwrap(), ["deep.txt", "new"]);
    assert_eq!(guest.read("moved/deep.txt").unwrap(), "deeper");
    assert_eq!(guest.stat("moved/deep.txt").unwrap().mode, 0o777);
    assert_eq!(guest.list("dir").unwrap(), Vec::<String>::new());
    assert_eq!(snapshot(&guest.host()), before);
}

#[test]
fn changes_are_listed() {
    let guest = Guest::new(overlay);
    assert_eq!(guest.changes(), Vec::<String>::new());
    guest.read("hello.txt").unwrap();
    let file = guest.open("hello.txt", UPDATE).unwrap();
    guest.close(file);
    assert_eq!(guest.changes(), Vec::<String>::new());
    guest.append("hello.txt", "!").unwrap();
    guest.write("dir/new", "new").unwrap();
    guest.remove("dir/deep.txt").unwrap();
    guest.make_directory("made").unwrap();
    assert_eq!(
        guest.changes(),
        [
            "Removed /data/dir/deep.txt",
            "Created /data/dir/new",
            "Modified /data/hello.txt",
            "Created /data/made",
        ]
    );
    guest.remove("dir/new").unwrap();
    guest.remove_directory("made").unwrap();
    assert_eq!(guest.changes(), ["Removed /data/dir/deep.txt", "Modified /data/hello.txt"]);
}

#[test]
fn a_moved_directory_is_listed_with_its_contents_and_back_again_as_nothing() {
    let guest = Guest::new(overlay);
    guest.rename("dir", "moved").unwrap();
    assert_eq!(
        guest.changes(),
        [
            "Removed /data/dir",
            "Created /data/moved",
            "Created /data/moved/deep.txt",
            "Created /data/moved/inner",
            "Created /data/moved/inner/deeper.txt",
        ]
    );
    guest.rename("moved", "dir").unwrap();
    assert_eq!(guest.changes(), Vec::<String>::new());
    assert_eq!(guest.read("dir/deep.txt").unwrap(), "deep");
}

#[test]
fn a_replaced_directory_hides_what_the_host_has_in_it() {
    let guest = Guest::new(overlay);
    guest.remove("dir/inner/deeper.txt").unwrap();
    guest.remove_directory("dir/inner").unwrap();
    guest.remove("dir/deep.txt").unwrap();
    guest.remove_directory("dir").unwrap();
    guest.make_directory("dir").unwrap();
    guest.write("dir/new", "new").unwrap();
    assert_eq!(guest.list("dir").unwrap(), ["new"]);
    assert_eq!(guest.read("dir/deep.txt").unwrap_err(), FileError::NotFound);
    assert_eq!(
        guest.changes(),
        [
            "Modified /data/dir",
            "Removed /data/dir/deep.txt",
            "Removed /data/dir/inner",
            "Created /data/dir/new",
        ]
    );
}

#[test]
fn handles_of_one_file_see_each_others_writes() {
    let guest = Guest::new(overlay);
    let reader = guest.open("hello.txt", READ).unwrap();
    let writer = guest.open("hello.txt", UPDATE).unwrap();
    assert_eq!(guest.read_from(reader).unwrap(), b"hello");
    guest.write_to(writer, 0, b"J").unwrap();
    assert_eq!(guest.read_from(reader).unwrap(), b"Jello");
    guest.rename("dir", "moved").unwrap();
    let deep = guest.open("moved/deep.txt", READ).unwrap();
    guest.rename("moved", "again").unwrap();
    guest.append("again/deep.txt", "er").unwrap();
    assert_eq!(guest.read_from(deep).unwrap(), b"deeper");
    assert_eq!(guest.stat_file(deep), guest.stat("again/deep.txt").unwrap());
    assert_eq!(fs::read(guest.host().join("hello.txt")).unwrap(), b"hello");
}

#[test]
fn a_file_keeps_its_inode_and_permissions_when_it_is_copied() {
    let guest = Guest::new(overlay);
    let before = guest.stat("hello.txt").unwrap();
    guest.set_mode("hello.txt", 0o751).unwrap();
    guest.set_times("hello.txt", 1e12).unwrap();
    let touched = guest.stat("hello.txt").unwrap();
    assert_eq!((touched.mode, touched.size, touched.inode), (0o751, 5, before.inode));
    guest.append("hello.txt", "!").unwrap();
    let after = guest.stat("hello.txt").unwrap();
    assert_eq!((after.mode, after.size, after.inode), (0o751, 6, before.inode));
    assert!(after.modified_ms > 1e12);
}

#[test]
fn what_the_host_changes_shows_through_where_the_guest_did_not() {
    let guest = Guest::new(overlay);
    guest.write("dir/mine", "mine").unwrap();
    fs::write(guest.host().join("dir/later.txt"), "later").unwrap();
    fs::write(guest.host().join("hello.txt"), "other").unwrap();
    assert_eq!(guest.read("dir/later.txt").unwrap(), "later");
    assert_eq!(guest.read("hello.txt").unwrap(), "other");
    let file = guest.open("hello.txt", UPDATE).unwrap();
    fs::remove_dir_all(guest.host().join("dir")).unwrap();
    assert_eq!(guest.list("dir").unwrap(), ["mine"]);
    assert_eq!(guest.read("dir/mine").unwrap(), "mine");
    fs::remove_file(guest.host().join("hello.txt")).unwrap();
    guest.write_to(file, 0, b"x").unwrap();
    assert_eq!(guest.read("hello.txt").unwrap(), "xther");
}

#[test]
fn sessions_have_their_own_changes() {
    let top = tempfile::tempdir().unwrap();
    let mut table = MountTable::default();
    table.add("/data", Mount::overlay(top.path()).unwrap()).unwrap();
    let session = || FileSystem::new(&table, FileLimits::default(), Arc::new(|_| ()));
    let (one, two) = (session(), session());
    one.call(FileRequest::MakeDirectory { mount: 0, path: "made", mode: 0o777 }).unwrap();
    assert_eq!(one.changes(0).len(), 1);
    assert_eq!(two.changes(0).len(), 0);
    let result = two.call(FileRequest::Stat { mount: 0, path: "made" });
    assert_eq!(result.unwrap_err(), FileError::NotFound);
}

#[test]
fn an_export_has_the_changed_files_and_nothing_else() {
    let guest = Guest::new(overlay);
    guest.append("hello.txt", "!").unwrap();
    guest.write("dir/new", &"n".repeat(200_000)).unwrap();
    guest.set_mode("dir/new", 0o777).unwrap();
    guest.remove("dir/deep.txt").unwrap();
    guest.rename("dir/inner", "inner").unwrap();
    guest.make_directory("empty").unwrap();
    guest.make_link("link", "hello.txt").unwrap();
    guest.make_link("dir/out", "../hello.txt").unwrap();
    let target = guest.top.path().join("exported");
    assert_eq!(guest.export(&target).unwrap(), 4);
    let found = snapshot(&target);
    let paths: Vec<_> =
        found.keys().map(|path| path.strip_prefix(&target).unwrap().to_str().unwrap()).collect();
    let expected =
        ["", "dir", "dir/new", "empty", "hello.txt", "inner", "inner/deeper.txt", "link"];
    assert_eq!(paths, expected);
    assert_eq!(fs::read_to_string(target.join("hello.txt")).unwrap(), "hello!");
    assert_eq!(fs::read_to_string(target.join("dir/new")).unwrap(), "n".repeat(200_000));
    assert_eq!(fs::read_to_string(target.join("inner/deeper.txt")).unwrap(), "deeper");
    let mode = |path| fs::metadata(target.join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("dir/new"), mode("dir"), mode("")), (0o600, 0o700, 0o700));
}

#[test]
fn an_export_goes_only_where_nothing_is() {
    let guest = Guest::new(overlay);
    guest.write("new", "new").unwrap();
    let before = snapshot(guest.top.path());
    for target in
        ["outside", "mounted", "mounted/dir/inner", "mounted/new", "none/here", "outside/secret"]
    {
        let error = guest.export(&guest.top.path().join(target)).unwrap_err();
        assert_eq!(error.kind(), crate::data::error::ErrorKind::Config, "{target}");
    }
    assert_eq!(snapshot(guest.top.path()), before);
    let guest = Guest::new(read_write);
    assert!(guest.export(&guest.top.path().join("new")).is_err());
    assert!(guest.files.open_export(1, &guest.top.path().join("new")).is_err());
}

/// Positions around the borders of chunks.
fn position() -> impl Strategy<Value = usize> {
    (0..4_usize, 0..7_usize).prop_map(|(piece, offset)| (piece * 65_536 + offset).saturating_sub(3))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn bytes_in_memory_are_what_was_written(
        steps in prop::collection::vec((position(), position(), any::<bool>()), 1..12),
    ) {
        let guest = Guest::new(overlay);
        let file = guest.open("new", CREATE).unwrap();
        let mut expected = Vec::new();
        for (round, (at, length, cut)) in (1..).zip(steps) {
            if cut {
                guest.set_size("new", at as u64).unwrap();
                expected.resize(at, 0);
            } else {
                let bytes = vec![round; length];
                guest.write_to(file, at as u64, &bytes).unwrap();
                if length > 0 {
                    expected.resize(expected.len().max(at + length), 0);
                    expected[at..at + length].copy_from_slice(&bytes);
                }
            }
            prop_assert!(guest.read_from(file).unwrap() == expected);
        }
    }
}
