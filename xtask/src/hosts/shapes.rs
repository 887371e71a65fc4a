//! The shapes of machine: how each is made, what is done there, and what is expected.

/// What has to happen.
#[derive(Clone, Copy)]
pub(super) enum Expected {
    /// All is as on any machine.
    Works,
    /// It works, and standard error has all of these.
    WorksAndSays(&'static [&'static str]),
    /// Nothing starts, and standard error has all of these.
    FailsAndSays(&'static [&'static str]),
}

/// A shape of machine.
pub(super) struct Shape {
    pub(super) name: &'static str,
    /// A script for `sh` that makes it and ends with `exec "$@"`. With status 77 it says why it
    /// cannot be made here.
    pub(super) make: &'static str,
    /// The part of `smoke.sh` to run.
    pub(super) part: &'static str,
    pub(super) expected: Expected,
}

/// What the scripts use.
pub(super) const PRELUDE: &str = r#"
skip() { echo "$*" >&2; exit 77; }
root() { [ "$(id -u)" = 0 ] || skip 'only root can make it'; }
as_nobody_known() { root; chown 54321 "$D"; exec setpriv --reuid 54321 --regid 54321 --clear-groups "$@"; }
in_namespace() { root; unshare -m true 2>/dev/null || skip 'no mount namespace is to be had'; exec unshare -m "$@"; }
# group CONTROLLER FILE_V1 FILE_V2 VALUE: puts this process into a new control group with a limit.
group() {
  root
  if [ -d /sys/fs/cgroup/$1 ]; then parent=/sys/fs/cgroup/$1 file=$2
  elif grep -qw $1 /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null; then parent=/sys/fs/cgroup file=$3
  else skip "no control group for $1 can be made"; fi
  made=$parent/isolet-hosts-$$
  mkdir $made 2>/dev/null && echo $4 2>/dev/null >$made/$file && echo $$ 2>/dev/null >$made/cgroup.procs ||
    { rmdir $made 2>/dev/null; skip "no control group for $1 can be made"; }
}
"#;

const NO_IMAGE: &[&str] = &["the memory image cannot be kept in", "XDG_CACHE_HOME"];

pub(super) const SHAPES: &[Shape] = &[
    Shape { name: "plain", make: r#"exec "$@""#, part: "all", expected: Expected::Works },
    Shape {
        name: "cache and TMPDIR on tmpfs",
        make: r#"[ -d /dev/shm ] || skip 'there is no /dev/shm'
made=$(mktemp -d /dev/shm/isolet-hosts.XXXXXX); trap 'rm -rf $made' EXIT
XDG_CACHE_HOME=$made TMPDIR=$made "$@""#,
        part: "all",
        expected: Expected::Works,
    },
    Shape {
        name: "user without a name",
        make: r#"export XDG_CACHE_HOME="$D/cache" HOME=/nonexistent; as_nobody_known "$@""#,
        part: "all",
        expected: Expected::Works,
    },
    Shape {
        name: "HOME and cache unset",
        make: r#"as_nobody_known env -u HOME -u XDG_CACHE_HOME "$@""#,
        part: "start",
        expected: Expected::WorksAndSays(NO_IMAGE),
    },
    Shape {
        name: "cache of another user",
        make: r#"root; mkdir -p "$D/cache/isolet"; chmod 711 "$D"; chown -R 54322 "$D/cache"
chmod -R 777 "$D/cache"; cd "$D/cache"; export XDG_CACHE_HOME="$D/cache"
for made in isolet/assets-$VERSION; do mkdir $made; chown 54322 $made; chmod 777 $made; done
as_nobody_known "$@""#,
        part: "start",
        expected: Expected::WorksAndSays(&["user 54322 may replace it", "XDG_CACHE_HOME"]),
    },
    Shape {
        name: "full disk",
        make: r#"in_namespace sh -c 'mkdir "$D/cache"; mount -t tmpfs -o size=20m none "$D/cache"
export XDG_CACHE_HOME="$D/cache"; exec "$@"' sh "$@""#,
        part: "start",
        expected: Expected::WorksAndSays(&["No space left on device", "XDG_CACHE_HOME"]),
    },
    Shape {
        name: "read-only root",
        make: r#"in_namespace sh -c 'mount -t tmpfs none "$D" && mount -o remount,bind,ro / &&
export XDG_CACHE_HOME="$D/cache" TMPDIR="$D" && exec "$@"' sh "$@""#,
        part: "all",
        expected: Expected::Works,
    },
    Shape {
        name: "files of 40 MB (ulimit -f)",
        make: r#"exec prlimit --fsize=40000000 "$@""#,
        part: "large-file",
        expected: Expected::Works,
    },
    Shape {
        name: "files of 8 KiB (ulimit -f)",
        make: r#"exec prlimit --fsize=8192 "$@""#,
        part: "start",
        expected: Expected::FailsAndSays(&["ulimit -f"]),
    },
    Shape {
        name: "256 descriptors (ulimit -n)",
        make: r#"exec prlimit --nofile=256 "$@""#,
        part: "all",
        expected: Expected::Works,
    },
    Shape {
        name: "16 descriptors",
        make: r#"exec prlimit --nofile=16 "$@""#,
        part: "start",
        expected: Expected::FailsAndSays(&["ulimit -n"]),
    },
    Shape {
        name: "8 GB of addresses (ulimit -v)",
        make: r#"exec prlimit --as=8000000000 "$@""#,
        part: "start",
        expected: Expected::FailsAndSays(&["ulimit -v", "RLIMIT_AS"]),
    },
    Shape {
        name: "8 GB of addresses, thread",
        make: r#"export OPTIONS='--isolation thread'; exec prlimit --as=8000000000 "$@""#,
        part: "start",
        expected: Expected::FailsAndSays(&["ulimit -v", "RLIMIT_AS"]),
    },
    Shape {
        name: "512 MB of data (ulimit -d)",
        make: r#"exec prlimit --data=512000000 "$@""#,
        part: "start",
        expected: Expected::FailsAndSays(&["ulimit -d", "RLIMIT_DATA"]),
    },
    Shape {
        name: "stack of 64 KiB (ulimit -s)",
        make: r#"exec prlimit --stack=65536 "$@""#,
        part: "start",
        expected: Expected::Works,
    },
    Shape {
        name: "a second of processor time (ulimit -t)",
        make: r#"exec prlimit --cpu=1:1000 "$@""#,
        part: "compute",
        expected: Expected::FailsAndSays(&["SIGXCPU", "ulimit -t"]),
    },
    Shape {
        name: "signals blocked",
        make: r#"exec python3 -c 'import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
os.execvp(sys.argv[1], sys.argv[1:])' "$@""#,
        part: "node-ends",
        expected: Expected::Works,
    },
    Shape {
        name: "signals ignored",
        make: r#"exec python3 -c 'import os, signal, sys
for number in {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGPIPE, signal.SIGALRM}:
    signal.signal(number, signal.SIG_IGN)
os.execvp(sys.argv[1], sys.argv[1:])' "$@""#,
        part: "node-ends",
        expected: Expected::Works,
    },
    Shape {
        name: "JSON to a full disk",
        make: r#"exec "$@""#,
        part: "json-on-full-disk",
        expected: Expected::FailsAndSays(&["standard output", "No space left on device"]),
    },
    Shape {
        name: "cache in a loop of links",
        make: r#"ln -s cache "$D/cache"; export XDG_CACHE_HOME="$D/cache"; exec "$@""#,
        part: "start",
        expected: Expected::WorksAndSays(NO_IMAGE),
    },
    Shape {
        name: "MemoryDenyWriteExecute",
        make: r#"exec python3 -c 'import ctypes, os, sys
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0): sys.exit(print("this kernel has no PR_SET_MDWE", file=sys.stderr) or 77)
os.execvp(sys.argv[1], sys.argv[1:])' "$@""#,
        part: "start",
        expected: Expected::FailsAndSays(&["MemoryDenyWriteExecute"]),
    },
    Shape {
        name: "no memfd_create",
        make: r#"exec python3 "$DENY" 1 memfd_create "$@""#,
        part: "start",
        expected: Expected::FailsAndSays(&["memfd_create"]),
    },
    Shape {
        name: "no close_range (Linux 5.8)",
        make: r#"exec python3 "$DENY" 38 close_range "$@""#,
        part: "all",
        expected: Expected::Works,
    },
    Shape {
        name: "no Landlock",
        make: r#"exec python3 "$DENY" 38 landlock_create_ruleset,landlock_add_rule,landlock_restrict_self "$@""#,
        part: "all",
        expected: Expected::Works,
    },
    Shape {
        name: "no user namespaces",
        make: r#"unshare -Ur true 2>/dev/null || skip 'there are none here, so every shape is this one'
exec unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces || exit 77; exec "$@"' sh "$@""#,
        part: "all",
        expected: Expected::Works,
    },
    Shape {
        name: "no /proc",
        make: r#"in_namespace sh -c 'umount -l /proc || exit 77; exec "$@"' sh "$@""#,
        part: "start",
        expected: Expected::FailsAndSays(&["/proc"]),
    },
    Shape {
        name: "memory of 160 MB",
        make: r#"group memory memory.limit_in_bytes memory.max 160000000; "$@"; status=$?
echo $$ >$parent/cgroup.procs; rmdir $made; exit $status"#,
        part: "start",
        expected: Expected::Works,
    },
    Shape {
        name: "memory of 160 MB, all of it used",
        make: r#"group memory memory.limit_in_bytes memory.max 160000000; "$@"; status=$?
echo $$ >$parent/cgroup.procs; rmdir $made; exit $status"#,
        part: "fill-memory",
        expected: Expected::FailsAndSays(&[
            "the kernel killed the worker",
            "/isolet-hosts-",
            "reached its limit of 15999",
        ]),
    },
    Shape {
        name: "6 tasks (pids.max)",
        make: r#"group pids pids.max pids.max 6; "$@"; status=$?
echo $$ >$parent/cgroup.procs; rmdir $made; exit $status"#,
        part: "start",
        expected: Expected::FailsAndSays(&["pids.max"]),
    },
    Shape {
        name: "first process",
        make: r#"root; unshare -p true 2>/dev/null || skip 'no PID namespace is to be had'; exec "$@""#,
        part: "first-process",
        expected: Expected::Works,
    },
    Shape {
        name: "no standard input and output",
        make: r#"exec "$@""#,
        part: "closed",
        expected: Expected::Works,
    },
    Shape {
        name: "deleted current directory",
        make: r#"mkdir "$D/gone"; cd "$D/gone"; rmdir "$D/gone"; exec "$@""#,
        part: "all",
        expected: Expected::Works,
    },
];
