//! What each platform has, and each place whose code differs between platforms, with the reason.

use std::fmt;

/// A file, and why it is in a list.
pub(super) type Known = (&'static str, &'static str);

/// How it is known that isolet works on a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// `cargo xtask ci` runs all tests there.
    Tested,
    /// It compiles, and the tests of the library without V8 have passed there.
    PartlyRun,
    /// It compiles. Nobody has run it.
    TypeChecked,
    /// Nobody has compiled it; its code is that of platforms that were.
    NotChecked,
    /// It does not compile.
    NotBuilt,
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tested => "all tests run",
            Self::PartlyRun => "type-checked, tests without V8 run",
            Self::TypeChecked => "type-checked only",
            Self::NotChecked => "not checked",
            Self::NotBuilt => "not built",
        })
    }
}

/// A platform.
#[derive(Debug)]
pub(super) struct Platform {
    pub(super) target: &'static str,
    pub(super) how: How,
    /// Whether all modules have to be there, or be declared as absent.
    pub(super) is_ported: bool,
    pub(super) lacks: &'static [&'static str],
}

const NO_HUGE_PAGES: &str = "huge pages for templates: copies of sessions take more memory";
const NO_PROCESSOR: &str = "the number of the processor: readers of output do not change sides";
const NO_GLIBC: &str =
    "glibc's heap: freed memory goes back to the system when its allocator says so";
const NO_PROCESSES: &str =
    "process isolation and all its layers; sessions are threads of the program";

pub(super) const PLATFORMS: &[Platform] = &[
    Platform { target: "x86_64-unknown-linux-gnu", how: How::Tested, is_ported: true, lacks: &[] },
    Platform {
        target: "aarch64-unknown-linux-gnu",
        how: How::PartlyRun,
        is_ported: true,
        lacks: &[NO_HUGE_PAGES, NO_PROCESSOR],
    },
    Platform {
        target: "x86_64-unknown-linux-musl",
        how: How::TypeChecked,
        is_ported: true,
        lacks: &[NO_GLIBC],
    },
    Platform {
        target: "aarch64-unknown-linux-musl",
        how: How::NotChecked,
        is_ported: true,
        lacks: &[NO_HUGE_PAGES, NO_PROCESSOR, NO_GLIBC],
    },
    Platform {
        target: "aarch64-apple-darwin",
        how: How::TypeChecked,
        is_ported: true,
        lacks: &[NO_PROCESSES, NO_GLIBC],
    },
    Platform {
        target: "x86_64-apple-darwin",
        how: How::NotChecked,
        is_ported: true,
        lacks: &[NO_PROCESSES, NO_GLIBC],
    },
    Platform {
        target: "x86_64-pc-windows-msvc",
        how: How::NotBuilt,
        is_ported: false,
        lacks: &["mounts, whose directories are held open as on Unix", NO_PROCESSES],
    },
];

/// Files with conditions on the target, other than those of their modules' files.
pub(super) const CONDITIONS: &[Known] = &[
    ("crates/isolet-cli/src/jupyter/directories.rs", "each system has its directory of kernels"),
    ("crates/isolet-cli/src/kit/heap.rs", "glibc's heap is tuned, others need no tuning"),
    ("crates/isolet-cli/src/mcp/add/file.rs", "modes of files are Unix's"),
    ("crates/isolet-cli/src/show/viewer.rs", "modes of files are Unix's"),
    ("crates/isolet-mcp/src/llm/command.rs", "groups of processes are Unix's"),
    ("crates/isolet-mcp/src/support/store.rs", "modes of files are Unix's"),
    ("crates/isolet-mcp/src/upstream/child.rs", "groups of processes are Unix's"),
    ("crates/isolet-support/src/audit_line.rs", "modes of files are Unix's"),
    ("crates/isolet-support/src/template/environment.rs", "each system has its settings"),
    ("pyodide-assets/src/fetch/mod.rs", "programs have another ending on Windows"),
    ("src/api/engine/image_maker/answer.rs", "modes of files are Unix's"),
    ("src/api/engine/image_maker/background.rs", "groups of processes are Unix's"),
    ("src/api/engine/image_maker/mod.rs", "workers make images for programs without V8"),
    ("src/api/init.rs", "a program becomes a worker where there are workers"),
    ("src/data/isolation/mod.rs", "the default isolation"),
    ("src/image/build_lock.rs", "modes of files are Unix's"),
    ("src/image/checked.rs", "owners of files are Unix's"),
    ("src/image/location.rs", "owners of files are Unix's"),
    ("src/image/store.rs", "modes of files are Unix's"),
    ("src/isolate/image/layout.rs", "the largest page of the processor's kernels"),
    ("src/isolate/mod.rs", "exports what workers need"),
    ("src/lib.rs", "what only workers use is not dead there"),
    ("src/packages/cache.rs", "modes of files are Unix's"),
    ("src/packages/files.rs", "modes of files are Unix's"),
    ("src/packages/pip.rs", "paths in URLs are written otherwise on Windows"),
    ("src/support/free_memory.rs", "glibc keeps freed memory, others do not"),
    ("src/support/processor.rs", "the number of the processor is cheap to ask on x86-64 only"),
    ("src/support/signals.rs", "SIGXFSZ is Unix's"),
    ("src/support/sync.rs", "exports what workers need"),
    ("src/support/watchdog.rs", "a worker forks while the watchdog waits"),
    ("src/worker/child/copying.rs", "the size of the address space, and glibc's heap"),
    ("src/worker/child/lockdown/syscalls.rs", "system calls that only x86-64 has"),
    ("src/worker/child/template_memory.rs", "V8's addresses, and pages of 4 KiB"),
];

/// Files with constants of pages.
pub(super) const PAGES: &[Known] = &[
    ("crates/isolet-mcp/src/upstream/answers.rs", "a page of a list"),
    ("crates/isolet-serve/src/http/opensandbox/lifecycle.rs", "a page of a list"),
    ("src/image/saved.rs", "the unit of the format, the same everywhere"),
    ("src/isolate/adapt/data_segments.rs", "WebAssembly's pages of 64 KiB"),
    ("src/isolate/image/layout.rs", "the largest page of the processor's kernels"),
    ("src/isolate/ops/memory.rs", "WebAssembly's pages of 64 KiB"),
    ("src/worker/child/template_memory.rs", "compared with the system's; others do without"),
];

/// Files that name Linux's `/proc` or `/sys`, and that other systems compile.
pub(super) const LINUX_FILES: &[Known] = &[
    ("crates/isolet-cli/src/doctor/capacity.rs", "limits that only Linux has are not shown"),
    ("crates/isolet-cli/src/kit/signals.rs", "without it no signal counts as ignored"),
    ("crates/isolet-service/src/node/discretion.rs", "without it no ceiling is derived from it"),
    ("crates/isolet-service/src/node/memory.rs", "without it the machine's memory is unknown"),
    ("crates/isolet-service/src/node/metrics.rs", "without it the metric is left out"),
    ("src/support/control_groups.rs", "without it there are no groups"),
];

/// Modules that some platforms have nothing for.
pub(super) const ABSENT: &[Known] = &[
    ("src/api/engine/image_maker/answer.rs", "only workers answer"),
    ("src/api/init/worker.rs", "there are no workers"),
    ("src/support/free_memory.rs", "only templates of workers give memory back"),
    ("src/support/processor.rs", "only readers of workers ask"),
    ("src/support/shared_words.rs", "only workers share memory with their host"),
];
