//! Tests of read-only mounts and trees.

use super::*;

#[test]
fn files_are_read_listed_and_described() {
    let guest = Guest::new(read_only);
    assert_eq!(guest.list("").unwrap(), ["dir", "hello.txt"]);
    assert_eq!(guest.read("dir/inner/deeper.txt").unwrap(), "deeper");
    let stat = guest.stat("hello.txt").unwrap();
    assert_eq!((stat.kind, stat.size, stat.mode), (FileKind::File, 5, 0o444));
    assert_eq!(guest.stat("").unwrap().kind, FileKind::Directory);
    assert_eq!(guest.read("none").unwrap_err(), FileError::NotFound);
    assert_eq!(guest.read("hello.txt/x").unwrap_err(), FileError::NotDirectory);
    assert_eq!(guest.read("dir").unwrap_err(), FileError::IsDirectory);
}

#[test]
fn a_file_and_its_handle_have_one_inode_that_is_not_the_hosts() {
    use std::os::unix::fs::MetadataExt;

    let guest = Guest::new(read_only);
    let stat = guest.stat("hello.txt").unwrap();
    let file = guest.open("hello.txt", READ).unwrap();
    assert_eq!(guest.stat_file(file), stat);
    assert_ne!(stat.inode, guest.stat("dir").unwrap().inode);
    assert_ne!(stat.inode, fs::metadata(guest.host().join("hello.txt")).unwrap().ino());
    assert!(stat.inode < 1 << 53);
}

#[test]
fn nothing_can_be_changed_and_python_calls_it_permission() {
    let guest = Guest::new(read_only);
    let before = snapshot(&guest.host());
    let denied = [
        guest.open("hello.txt", UPDATE).map(drop),
        guest.open("hello.txt", APPEND).map(drop),
        guest.open("new", CREATE).map(drop),
        guest.set_size("hello.txt", 0),
        guest.set_mode("hello.txt", 0o777),
        guest.set_times("hello.txt", 0.0),
        guest.rename("hello.txt", "other"),
        guest.remove("hello.txt"),
        guest.make_directory("new"),
        guest.remove_directory("dir"),
        guest.make_link("new", "hello.txt"),
    ];
    for result in denied {
        assert_eq!(result.unwrap_err().errno(), 2);
    }
    let file = guest.open("hello.txt", READ).unwrap();
    assert_eq!(guest.write_to(file, 0, b"x").unwrap_err(), FileError::BadHandle);
    let request = FileRequest::SetFileSize { file, size: 0 };
    assert_eq!(guest.files.call(request).unwrap_err(), FileError::BadHandle);
    assert_eq!(snapshot(&guest.host()), before);
}

#[test]
fn a_huge_file_is_read_in_pieces_and_never_whole() {
    let guest = Guest::with(read_only, FileLimits::default(), |host| {
        fs::File::create(host.join("huge")).unwrap().set_len(1 << 42).unwrap();
    });
    let file = guest.open("huge", READ).unwrap();
    let mut into = [1; 10];
    let offset = (1 << 42) - 4;
    assert_eq!(guest.files.read(file, offset, &mut into), Ok(4));
    assert_eq!(into, [0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
    for offset in [1 << 42, u64::MAX / 2, u64::MAX] {
        let result = guest.files.read(file, offset, &mut into);
        assert!(matches!(result, Ok(0) | Err(FileError::Invalid)), "{result:?}");
    }
}

#[test]
fn requests_for_unknown_mounts_and_handles_fail() {
    let guest = Guest::new(read_only);
    for file in [0, 1, u32::MAX] {
        assert_eq!(guest.read_from(file).unwrap_err(), FileError::BadHandle);
    }
    for mount in [1, u32::MAX] {
        let result = guest.files.call(FileRequest::Stat { mount, path: "" });
        assert_eq!(result.unwrap_err(), FileError::NotFound);
    }
    let file = guest.open("hello.txt", READ).unwrap();
    guest.close(file);
    assert_eq!(guest.read_from(file).unwrap_err(), FileError::BadHandle);
}

#[derive(Debug)]
struct OneFile;

impl Tree for OneFile {
    fn entry(&self, path: &str) -> Option<TreeEntry> {
        match path {
            "" | "package" => Some(TreeEntry::Directory { modified_ms: 1.0 }),
            "package/a.py" => Some(TreeEntry::File { size: 5, modified_ms: 2.0 }),
            _ => None,
        }
    }

    fn names(&self, path: &str) -> Option<Vec<String>> {
        match path {
            "" => Some(vec!["package".to_owned()]),
            "package" => Some(vec!["a.py".to_owned()]),
            _ => None,
        }
    }

    fn bytes(&self, _path: &str) -> std::io::Result<Arc<[u8]>> {
        Ok(Arc::from(&b"x = 1"[..]))
    }
}

#[test]
fn a_tree_is_a_read_only_mount() {
    let mut table = MountTable::default();
    table.add_tree("/lib/packages", Arc::new(OneFile));
    let sink: Arc<dyn Fn(FileEvent) + Send + Sync> = Arc::new(|_| ());
    let files = FileSystem::new(&table, FileLimits::default(), sink);
    let call = |request: FileRequest<'_>| files.call(request);
    let path = "package/a.py";
    let opened = call(FileRequest::Open { mount: 0, path, flags: READ }).unwrap();
    assert_eq!(opened, FileReply::File(0));
    let mut into = [0; 3];
    assert_eq!(files.read(0, 2, &mut into), Ok(3));
    assert_eq!(&into, b"= 1");
    let listed = call(FileRequest::List { mount: 0, path: "package" }).unwrap();
    assert_eq!(listed, FileReply::Names(vec!["a.py".to_owned()]));
    let denied = [
        call(FileRequest::Open { mount: 0, path, flags: UPDATE }),
        call(FileRequest::Open { mount: 0, path: "new", flags: CREATE }),
        call(FileRequest::Remove { mount: 0, path }),
    ];
    for result in denied {
        assert_eq!(result.unwrap_err().errno(), 2);
    }
    assert_eq!(
        call(FileRequest::Stat { mount: 0, path: "none" }).unwrap_err(),
        FileError::NotFound
    );
}
