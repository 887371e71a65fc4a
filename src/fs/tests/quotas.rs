//! Tests of quotas and limits: B8.

use super::*;

#[test]
fn bytes_are_counted_before_they_are_written() {
    for mount in [overlay, read_write] {
        let guest = Guest::new(|host| mount(host).quota_bytes(100));
        let file = guest.open("new", CREATE).unwrap();
        guest.write_to(file, 0, &[0; 60]).unwrap();
        let error = guest.write_to(file, 60, &[0; 60]).unwrap_err();
        assert_eq!(error, FileError::ByteQuota { limit: 100, needed: 120 });
        assert_eq!(error.errno(), 19);
        let error = guest.write_to(file, 1_000_000, &[0]).unwrap_err();
        assert!(matches!(error, FileError::ByteQuota { limit: 100, .. }), "{error:?}");
        let error = guest.write_to(file, u64::MAX, &[0, 0]).unwrap_err();
        assert_eq!(error, FileError::TooLarge);
        for size in [101, 1 << 40, u64::MAX] {
            assert_eq!(guest.set_size("new", size).unwrap_err().errno(), 19);
            let request = FileRequest::SetFileSize { file, size };
            assert_eq!(guest.files.call(request).unwrap_err().errno(), 19);
        }
        guest.write_to(file, 60, &[0; 40]).unwrap();
        assert_eq!(guest.stat("new").unwrap().size, 100);
    }
}

#[test]
fn a_file_of_the_host_that_is_too_large_to_copy_can_still_be_read_and_emptied() {
    let guest = Guest::with(
        |host| overlay(host).quota_bytes(1000),
        FileLimits::default(),
        |host| fs::File::create(host.join("huge")).unwrap().set_len(1 << 42).unwrap(),
    );
    let file = guest.open("huge", UPDATE).unwrap();
    let error = guest.write_to(file, 0, b"x").unwrap_err();
    assert_eq!(error, FileError::ByteQuota { limit: 1000, needed: 1 << 42 });
    assert_eq!(guest.stat_file(file).size, 1 << 42);
    guest.rename("huge", "moved").unwrap();
    guest.set_size("moved", 10).unwrap();
    assert_eq!(guest.read_from(file).unwrap(), [0; 10]);
}

#[test]
fn an_overlay_gives_back_what_is_removed_and_a_host_directory_does_not() {
    let guest = Guest::new(|host| overlay(host).quota_bytes(100).quota_files(2));
    for _ in 0..10 {
        guest.write("one", &"1".repeat(90)).unwrap();
        guest.make_directory("two").unwrap();
        let error = guest.make_directory("three").unwrap_err();
        assert_eq!(error, FileError::FileQuota { limit: 2, needed: 3 });
        guest.remove("one").unwrap();
        guest.remove_directory("two").unwrap();
    }
    let held = guest.open("one", CREATE).unwrap();
    guest.write_to(held, 0, &[1; 90]).unwrap();
    guest.remove("one").unwrap();
    assert_eq!(guest.write("two", &"2".repeat(20)).unwrap_err().errno(), 19);
    guest.close(held);
    guest.write("two", &"2".repeat(20)).unwrap();

    let guest = Guest::new(|host| read_write(host).quota_bytes(100).quota_files(2));
    guest.write("one", &"1".repeat(90)).unwrap();
    guest.remove("one").unwrap();
    assert_eq!(guest.write("two", &"2".repeat(20)).unwrap_err().errno(), 19);
    assert_eq!(guest.make_link("three", "x").unwrap_err().errno(), 19);
    assert_eq!(guest.make_directory("three").unwrap_err().errno(), 19);
    assert_eq!(guest.open("three", CREATE).unwrap_err().errno(), 19);
    assert!(guest.write("hello.txt", "12345").is_ok());
}

#[test]
fn failed_creations_do_not_count() {
    for mount in [overlay, read_write] {
        let guest = Guest::new(|host| mount(host).quota_files(1));
        for _ in 0..5 {
            assert_eq!(guest.make_directory("dir").unwrap_err(), FileError::Exists);
            assert_eq!(guest.make_link("hello.txt", "x").unwrap_err(), FileError::Exists);
            assert_eq!(guest.make_directory("none/x").unwrap_err(), FileError::NotFound);
            assert_eq!(guest.open("none/x", CREATE).unwrap_err(), FileError::NotFound);
        }
        guest.make_directory("new").unwrap();
    }
}

#[test]
fn hidden_and_moved_files_of_the_host_are_counted() {
    let limits = FileLimits { overlay_marks: 2, ..FileLimits::default() };
    let guest = Guest::with(overlay, limits, |_| ());
    let before = guest.list("").unwrap();
    guest.remove("hello.txt").unwrap();
    let error = guest.rename("dir", "moved").unwrap_err();
    assert_eq!(error, FileError::MarkQuota { limit: 2, needed: 3 });
    assert_eq!(guest.list("").unwrap(), ["dir"]);
    guest.write("hello.txt", "back").unwrap();
    assert_eq!(guest.list("").unwrap(), before);
    guest.rename("dir", "moved").unwrap();
    assert_eq!(guest.read("moved/inner/deeper.txt").unwrap(), "deeper");
}

#[test]
fn open_files_and_listings_are_limited() {
    let limits = FileLimits { open_files: 3, list_entries: 2, ..FileLimits::default() };
    for mount in [read_only, overlay, read_write] {
        let guest = Guest::with(mount, limits.clone(), |host| {
            for name in ["a", "b", "c"] {
                fs::write(host.join("dir/inner").join(name), "").unwrap();
            }
        });
        let files: Vec<u32> = (0..3).map(|_| guest.open("hello.txt", READ).unwrap()).collect();
        assert_eq!(guest.open("hello.txt", READ).unwrap_err(), FileError::TooManyOpen { limit: 3 });
        guest.close(files[1]);
        let again = guest.open("hello.txt", READ).unwrap();
        assert!(!files.contains(&again));
        let error = guest.list("dir/inner").unwrap_err();
        assert_eq!(error, FileError::TooManyEntries { limit: 2 });
        assert_eq!(guest.list("").unwrap().len(), 2);
    }
}

#[test]
fn holes_take_no_memory_and_read_as_zeros() {
    let guest = Guest::new(|host| overlay(host).quota_bytes(u64::MAX));
    let file = guest.open("sparse", CREATE).unwrap();
    let far = 1 << 60;
    guest.write_to(file, far, b"end").unwrap();
    guest.write_to(file, 65_530, b"across the border").unwrap();
    let read = |offset| {
        let mut into = [9; 20];
        (guest.files.read(file, offset, &mut into).unwrap(), into)
    };
    assert_eq!(read(0), (20, [0; 20]));
    assert_eq!(read(65_530).1[..17], *b"across the border");
    assert_eq!(read(far).0, 3);
    guest.set_size("sparse", 65_540).unwrap();
    guest.set_size("sparse", 200_000).unwrap();
    assert_eq!(read(65_530).1, *b"across the\0\0\0\0\0\0\0\0\0\0");
    guest.set_size("sparse", u64::MAX).unwrap();
}
