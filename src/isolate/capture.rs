//! Builds an image: boots interpreters and captures their memory and compiled code.

use std::sync::{Arc, mpsc};

use super::Files;
use super::control::IsolateControl;
use super::image::{Compiled, Image, SavedMemory};
use super::inbox;
use super::native_code::{Modules, SharedModules};
use super::runtime::{Isolate, Parts};
use super::thread::{block_on, on_isolate_thread};
use crate::data::cell::{Program, Role};
use crate::data::error::{Error, ErrorKind};
use crate::data::limits::Limits;
use crate::fs::{FileError, FileLimits, FileSystem, MountTable};
use crate::image::WARM_UP;
use crate::packages::{Preload, SITE_PACKAGES};
use crate::protocol::codec;
use crate::protocol::{Command, Host, HostReply, HostRequest, Reply, ReplySink, RunCommand};

/// Typical first code of programs.
const FIRST: &str = "print(40 + 2)\n40 + 2";

/// The memory of an interpreter that is booted to make the image, in bytes: several times what it
/// uses.
const MEMORY_BYTES: u64 = 1 << 30;

/// The host of an interpreter that is booted for its image: it refuses everything.
struct NoHost;

impl Host for NoHost {
    fn call(&self, request: HostRequest<'_>) -> HostReply {
        match request {
            HostRequest::Now | HostRequest::WallClock => HostReply::Time(0.0),
            HostRequest::MountPoints => HostReply::MountPoints(Vec::new()),
            _ => HostReply::Done,
        }
    }

    fn read_file(&self, _: u32, _: u64, _: &mut [u8]) -> Result<u32, FileError> {
        Err(FileError::BadHandle)
    }
}

/// The host of an interpreter that imports packages: it has their files.
struct PackageHost(FileSystem);

impl PackageHost {
    fn new(preload: &Preload) -> Self {
        let mut mounts = MountTable::default();
        mounts.add_tree(SITE_PACKAGES, Arc::new(preload.tree()));
        // The packages are the owner's, and no session is involved, so no events are reported.
        Self(FileSystem::new(&mounts, FileLimits::default(), Arc::new(drop)))
    }
}

impl Host for PackageHost {
    fn call(&self, request: HostRequest<'_>) -> HostReply {
        match request {
            HostRequest::MountPoints => HostReply::MountPoints(vec![SITE_PACKAGES.to_owned()]),
            HostRequest::File(request) => HostReply::File(self.0.call(request)),
            request => NoHost.call(request),
        }
    }

    fn read_file(&self, file: u32, offset: u64, into: &mut [u8]) -> Result<u32, FileError> {
        self.0.read(file, offset, into)
    }
}

fn parts(files: Files, modules: SharedModules) -> Parts {
    let (_, inbox) = inbox::queue();
    let (host, preload) = (Arc::new(NoHost), Vec::new());
    Parts {
        files,
        modules,
        host,
        inbox,
        max_memory_bytes: MEMORY_BYTES,
        max_report_bytes: u64::MAX,
        preload,
    }
}

/// Makes CPython's module from the native code of an image, for another image to be made.
pub(crate) fn modules_of(image: &Image) -> Result<SharedModules, Error> {
    let image = image.clone();
    capture(async move || {
        let code = image.native_code().unwrap_or_default();
        Ok(Modules::with_code(&image.files().asm_wasm, code))
    })
}

/// Boots an interpreter without an image, imports the preloaded packages, and returns its memory.
pub(crate) fn memory(
    files: Files,
    preload: &Preload,
    modules: &SharedModules,
) -> Result<SavedMemory, Error> {
    let mut parts = parts(files, Arc::clone(modules));
    if !preload.is_empty() {
        parts.host = Arc::new(PackageHost::new(preload));
        parts.preload = preload.modules().to_vec();
    }
    capture(async move || {
        let isolate = Isolate::boot(parts, None, IsolateControl::new()).await?;
        isolate.state(|state| state.saved.take()).ok_or_else(|| "it left no memory".to_owned())
    })
}

/// Boots an interpreter from an image, runs it for a while, and returns the code that V8 has
/// compiled. CPython's native code is that of `base`, if there is such an image.
pub(crate) fn compiled(
    image: Image,
    modules: &SharedModules,
    base: Option<&Image>,
) -> Result<Compiled, Error> {
    let base = base.map(|base| base.native_code().unwrap_or_default().to_vec());
    let modules = Arc::clone(modules);
    capture(async move || {
        let files = image.files();
        let parts = parts(files.clone(), Arc::clone(&modules));
        let control = IsolateControl::new();
        let mut isolate = Isolate::boot(parts, Some(image.clone()), control).await?;
        let start = Command::Start { env: Vec::new(), terminal: None, has_packages: false };
        // Everything that a session does before the guest's first cell is optimised, even if it
        // happens rarely.
        for command in [Command::Rehearse(1), start, run(FIRST)] {
            carry_out(&mut isolate, command).await?;
        }
        let compiled = modules.cpython().ok_or("there is no module")?;
        if base.is_none() {
            modules.optimize(compiled, &files.asm_wasm).map_err(|error| error.to_string())?;
            carry_out(&mut isolate, run(WARM_UP)).await?;
        }
        let script_cache = isolate.pyodide.cache(&mut isolate.runtime);
        let libraries = image.libraries();
        let libraries = libraries.iter().map(|library| modules.library_code(library));
        let libraries = libraries.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        let native_code = base.unwrap_or_else(|| modules.serialize(compiled));
        Ok(Compiled { native_code, script_cache, libraries })
    })
}

fn run(code: &str) -> Command {
    Command::Run(RunCommand {
        code: code.to_owned(),
        program: Program::Code,
        directory: None,
        import_from: None,
        name: "<warm up>".to_owned(),
        is_file: false,
        role: Role::Cell,
        has_stdin: false,
        argv: None,
        max_repr_chars: Limits::REPR_CHARS,
        max_value_bytes: Limits::default().value_bytes(),
    })
}

async fn carry_out(isolate: &mut Isolate, command: Command) -> Result<(), String> {
    let nowhere: ReplySink = Box::new(|_| true);
    match isolate.carry_out(codec::encode(command), &nowhere).await {
        Reply::Done { .. } => Ok(()),
        reply => Err(format!("{reply:?}")),
    }
}

/// Runs `work` on an isolate's thread and returns its result.
fn capture<T: Send + 'static>(
    work: impl AsyncFnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, Error> {
    let (sender, receiver) = mpsc::channel();
    on_isolate_thread(move || {
        // The receiver waits.
        let _ = sender.send(block_on(work()));
    })?;
    let made = receiver.recv().unwrap_or_else(|_| Err("its thread ended early".to_owned()));
    made.map_err(|reason| {
        Error::new(ErrorKind::Start, format!("the memory image cannot be made: {reason}"))
    })
}

#[cfg(test)]
mod tests {
    use isolet_pyodide_assets::{Assets, lock};

    use super::*;
    use crate::data::value::Value;
    use crate::image::Place;
    use crate::isolate::assets_dir;
    use crate::isolate::image::build;

    #[test]
    fn without_v8s_internals_an_image_is_made_and_an_interpreter_runs_of_it() {
        let files = Files::new(&Assets::open(&assets_dir()).unwrap()).unwrap();
        let (dir, preload) = (tempfile::tempdir().unwrap(), Preload::default());
        let place = Place::new(dir.path(), dir.path(), lock().unwrap(), &preload);
        let file = build(&place, &files, &Modules::without_internals(), &preload, None).unwrap();
        assert!(file.path().is_some());
        let image = Image::new(file.into()).unwrap();
        assert_eq!(image.native_code(), None);
        // As in another process, which finds the image and has no module.
        let report = capture(async move || {
            let parts = parts(image.files(), Modules::without_internals());
            let mut isolate = Isolate::boot(parts, Some(image), IsolateControl::new()).await?;
            let start = Command::Start { env: Vec::new(), terminal: None, has_packages: false };
            carry_out(&mut isolate, start).await?;
            let nowhere: ReplySink = Box::new(|_| true);
            let command = codec::encode(run("import json\nsum(json.loads('[40, 2]'))"));
            match isolate.carry_out(command, &nowhere).await {
                Reply::Done { report, .. } => codec::decode(&report, 1 << 20),
                reply => Err(format!("{reply:?}")),
            }
        });
        assert_eq!(report.unwrap().value, Some(Value::Int(42)));
    }
}
