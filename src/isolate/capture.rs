//! Boots the interpreters that an image is made of: captures their memory and compiled code.

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock};

use super::Files;
use super::control::IsolateControl;
use super::image::{Compiled, Image, Maker, SavedMemory, Unmade};
use super::inbox;
use super::module_cache;
use super::native_code::{Modules, SharedModules};
use super::runtime::{Isolate, Parts};
use super::thread::{block_on, full_event_loop, on_isolate_thread};
use crate::data::cell::{Program, Role, Syntax};
use crate::data::error::{Error, ErrorKind};
use crate::data::limits::Limits;
use crate::data::output::Stream;
use crate::fs::{FileError, FileLimits, FileSystem, MountTable};
use crate::image::{WARM_UP, WARM_UP_PACKAGES};
use crate::packages::{Preload, SITE_PACKAGES};
use crate::protocol::codec;
use crate::protocol::{
    Command, Control, ForkMoment, Host, HostReply, HostRequest, Reply, ReplySink, RunCommand,
    StartCommand,
};
use crate::support::lock::lock;
use crate::support::patience::Patience;

/// Why there is no result.
const ENDED_EARLY: &str = "its thread ended early";

/// Typical first code of programs.
const FIRST: &str = "print(40 + 2)\n40 + 2";

/// The memory of an interpreter that is booted to make the image, in bytes: several times what it
/// uses.
pub(crate) const MEMORY_BYTES: u64 = 1 << 30;

/// The maximum size of what such an interpreter sends to another process, in bytes: its memory, and
/// as much for its libraries.
const MAX_SENT_BYTES: usize = 2 << 30;

/// The size of a piece of it, in bytes.
const PIECE_BYTES: usize = 1 << 20;

/// The host of an interpreter that is booted for its image: it has the files of packages, takes
/// what the interpreter makes, and refuses everything else.
pub(crate) struct ImageHost {
    packages: Option<FileSystem>,
    /// What came so far; `None` if it was too much.
    made: Mutex<Option<Vec<u8>>>,
    /// Set if a package printed something.
    has_printed: AtomicBool,
    seeds: Seeds,
}

impl ImageHost {
    /// The host of an interpreter that imports nothing.
    pub(crate) fn without_packages() -> Self {
        let made = Mutex::new(Some(Vec::new()));
        Self { packages: None, made, has_printed: AtomicBool::new(false), seeds: Seeds::default() }
    }

    pub(crate) fn new(preload: &Preload) -> Self {
        let mut mounts = MountTable::default();
        mounts.add_tree(SITE_PACKAGES, Arc::new(preload.tree()));
        // The packages are the owner's, and no session is involved, so no events are reported.
        let packages = FileSystem::new(&mounts, FileLimits::default(), Arc::new(drop));
        Self { packages: Some(packages), ..Self::without_packages() }
    }

    /// Fails if a package has printed something, which a session of the image would not see.
    pub(crate) fn require_silence(&self) -> Result<(), Unmade> {
        if !self.has_printed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let message = "the memory image cannot be made: a package prints when it is imported";
        Err(Unmade::Failed(Error::new(ErrorKind::Start, message)))
    }

    /// Returns what the interpreter has made.
    pub(crate) fn take(&self) -> Result<Vec<u8>, String> {
        let too_much = || format!("it is too large: limit {MAX_SENT_BYTES} bytes, needed more");
        lock(&self.made).take().ok_or_else(too_much)
    }
}

impl Host for ImageHost {
    fn call(&self, request: HostRequest<'_>) -> HostReply {
        match (request, &self.packages) {
            // An image has the same time, wherever and whenever it is made.
            (HostRequest::Now | HostRequest::WallClock, _) => HostReply::Time(0.0),
            (HostRequest::MountPoints, packages) => {
                let all = packages.iter().map(|_| SITE_PACKAGES.to_owned());
                HostReply::MountPoints(all.collect())
            }
            (HostRequest::File(request), Some(files)) => HostReply::File(files.call(request)),
            (HostRequest::Write(Stream::Stdout, bytes), _) => {
                self.has_printed.fetch_or(!bytes.is_empty(), Ordering::Relaxed);
                HostReply::Done
            }
            (HostRequest::Image(piece), _) => {
                let mut made = lock(&self.made);
                *made = made.take().filter(|made| made.len() + piece.len() <= MAX_SENT_BYTES);
                if let Some(made) = &mut *made {
                    made.extend_from_slice(piece);
                }
                HostReply::Done
            }
            _ => HostReply::Done,
        }
    }

    fn read_file(&self, file: u32, offset: u64, into: &mut [u8]) -> Result<u32, FileError> {
        self.packages.as_ref().ok_or(FileError::BadHandle)?.read(file, offset, into)
    }

    fn fill_entropy(&self, into: &mut [u8]) -> Result<(), String> {
        self.seeds.fill(into);
        Ok(())
    }
}

/// Bytes in place of entropy for an interpreter that is booted for an image: the same ones wherever
/// the image is made, so that a session that was saved as a change of it can be restored over one
/// that another machine has made. Sessions get seeds of their own when they start.
#[derive(Default)]
struct Seeds(AtomicU64);

impl Seeds {
    fn fill(&self, into: &mut [u8]) {
        let at = self.0.fetch_add(into.len() as u64, Ordering::Relaxed);
        let mut reader =
            blake3::Hasher::new_derive_key("isolet 2026-11-25 memory image").finalize_xof();
        reader.set_position(at);
        reader.fill(into);
    }
}

/// The host in another process, as an interpreter sees it that is booted for an image.
struct Timeless {
    host: Arc<dyn Host>,
    seeds: Seeds,
}

impl Host for Timeless {
    fn call(&self, request: HostRequest<'_>) -> HostReply {
        match request {
            HostRequest::Now | HostRequest::WallClock => HostReply::Time(0.0),
            request => self.host.call(request),
        }
    }

    fn read_file(&self, file: u32, offset: u64, into: &mut [u8]) -> Result<u32, FileError> {
        self.host.read_file(file, offset, into)
    }

    fn fill_entropy(&self, into: &mut [u8]) -> Result<(), String> {
        self.seeds.fill(into);
        Ok(())
    }
}

/// Makes images with packages on threads of this process.
pub(crate) struct OnThreads<'a> {
    preload: &'a Preload,
    /// Set if the packages are the guests'.
    are_guests: bool,
    modules: OnceLock<SharedModules>,
}

impl<'a> OnThreads<'a> {
    pub(crate) fn new(preload: &'a Preload, are_guests: bool) -> Self {
        Self { preload, are_guests, modules: OnceLock::new() }
    }

    fn modules(&self, base: &Image) -> Result<SharedModules, Error> {
        if let Some(modules) = self.modules.get() {
            return Ok(Arc::clone(modules));
        }
        let base = base.clone();
        let modules = capture(async move |_| Ok(code_of(&base)))?;
        Ok(Arc::clone(self.modules.get_or_init(|| modules)))
    }
}

impl Maker for OnThreads<'_> {
    fn memory(&self, base: &Image, patience: &Patience) -> Result<SavedMemory, Unmade> {
        let host = Arc::new(ImageHost::new(self.preload));
        let modules = self.modules(base).map_err(Unmade::Untried)?;
        let mut parts = parts(base.files(), modules, Arc::clone(&host));
        parts.preload = self.preload.modules().to_vec();
        let saved = capture_within(patience, async move |control| {
            saved(&boot(parts, None, control).await?)
        })?;
        if self.are_guests {
            host.require_silence()?;
        }
        Ok(saved)
    }

    fn libraries(&self, draft: Image, patience: &Patience) -> Result<Vec<Vec<u8>>, Unmade> {
        let modules = self.modules(&draft).map_err(Unmade::Untried)?;
        let host = Arc::new(ImageHost::without_packages());
        let parts = parts(draft.files(), Arc::clone(&modules), host);
        capture_within(patience, async move |control| {
            let mut isolate = boot(parts, Some(&draft), control).await?;
            run_first(&mut isolate).await?;
            carry_out(&mut isolate, run(WARM_UP_PACKAGES)).await?;
            libraries(&draft, &modules)
        })
    }
}

fn parts(files: Files, modules: SharedModules, host: Arc<ImageHost>) -> Parts {
    let (_, inbox) = inbox::queue();
    Parts {
        files,
        modules,
        host,
        inbox,
        max_memory_bytes: MEMORY_BYTES,
        max_report_bytes: u64::MAX,
        spins: true,
        preload: Vec::new(),
        confine: None,
        pages_aside: None,
    }
}

/// Makes CPython's module from the native code of an image, on a thread that may have an isolate.
pub(super) fn code_of(image: &Image) -> SharedModules {
    Modules::with_code(&image.files().asm_wasm, image.native_code().unwrap_or_default())
}

/// Returns the memory of an interpreter without packages.
pub(super) fn memory_of(files: Files, modules: &SharedModules) -> Result<SavedMemory, Error> {
    let host = Arc::new(ImageHost::without_packages());
    memory(parts(files, Arc::clone(modules), host))
}

/// Boots an interpreter without an image, and returns its memory.
fn memory(parts: Parts) -> Result<SavedMemory, Error> {
    capture(async move |control| saved(&boot(parts, None, control).await?))
}

async fn boot(
    parts: Parts,
    image: Option<&Image>,
    control: Arc<IsolateControl>,
) -> Result<Isolate, String> {
    Isolate::boot(parts, image.cloned(), control).await
}

/// Takes the memory that an interpreter has saved, which was booted without an image.
fn saved(isolate: &Isolate) -> Result<SavedMemory, String> {
    isolate.state(|state| state.saved.take()).ok_or_else(|| "it left no memory".to_owned())
}

/// Boots an interpreter of the image without packages, and returns what V8 compiled of it.
pub(super) fn compiled(image: Image, modules: &SharedModules) -> Result<Compiled, Error> {
    let modules = Arc::clone(modules);
    let host = Arc::new(ImageHost::without_packages());
    let parts = parts(image.files(), Arc::clone(&modules), host);
    capture(async move |control| {
        let mut isolate = boot(parts, Some(&image), control).await?;
        run_first(&mut isolate).await?;
        let compiled = modules.cpython().ok_or("there is no module")?;
        let optimized = modules.optimize(compiled, &image.files().asm_wasm);
        optimized.map_err(|error| error.to_string())?;
        carry_out(&mut isolate, run(WARM_UP)).await?;
        let script_cache = isolate.pyodide.cache(&mut isolate.runtime);
        let module_cache = module_cache::compiled(&mut isolate.runtime);
        let native_code = modules.serialize(compiled);
        Ok(Compiled { native_code, script_cache, module_cache, libraries: Vec::new() })
    })
}

/// Runs a first cell in an interpreter of an image, as a session does.
async fn run_first(isolate: &mut Isolate) -> Result<(), String> {
    let start = Command::Start(StartCommand::default());
    // Everything that a session does before the guest's first cell is optimised, even if it happens
    // rarely.
    for command in [Command::Rehearse(1), start, run(FIRST)] {
        carry_out(isolate, command).await?;
    }
    // And what it does when it is copied.
    for moment in [ForkMoment::Before, ForkMoment::AfterInOriginal, ForkMoment::AfterInCopy] {
        carry_out(isolate, Command::Fork(moment)).await?;
    }
    Ok(())
}

/// Returns the native code of an image's libraries, of which an isolate has run what it needs.
fn libraries(image: &Image, modules: &Modules) -> Result<Vec<Vec<u8>>, String> {
    let libraries = image.libraries();
    let codes = libraries.iter().map(|library| modules.library_code(library));
    codes.collect::<Result<_, _>>().map_err(|error| error.to_string())
}

/// Sends the memory of an interpreter that imports packages to its host in another process.
pub(super) fn import_for_host(mut parts: Parts) -> Result<Reply, String> {
    let host = Arc::clone(&parts.host);
    parts.host = Arc::new(Timeless { host: parts.host, seeds: Seeds::default() });
    let isolate = ManuallyDrop::new(in_full_loop(boot(parts, None, IsolateControl::new()))?);
    send(&*host, &saved(&isolate)?.encoded())
}

/// Sends the native code of an image's libraries to the host in another process.
pub(super) fn compile_for_host(mut parts: Parts, image: &Image) -> Result<Reply, String> {
    let (host, modules) = (Arc::clone(&parts.host), Arc::clone(&parts.modules));
    parts.host = Arc::new(Timeless { host: parts.host, seeds: Seeds::default() });
    in_full_loop(async {
        let mut isolate = ManuallyDrop::new(boot(parts, Some(image), IsolateControl::new()).await?);
        run_first(&mut isolate).await?;
        carry_out(&mut isolate, run(WARM_UP_PACKAGES)).await
    })?;
    send(&*host, &Compiled::encode_libraries(&libraries(image, &modules)?))
}

/// Drives a future in a worker, which is locked down meanwhile. From then on, to drop an event loop
/// or an isolate would make system calls that kill it.
fn in_full_loop<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = full_event_loop().map_err(|error| error.to_string())?;
    ManuallyDrop::new(runtime).block_on(work)
}

fn send(host: &dyn Host, bytes: &[u8]) -> Result<Reply, String> {
    for piece in bytes.chunks(PIECE_BYTES) {
        if let HostReply::Failed(reason) = host.call(HostRequest::Image(piece)) {
            return Err(reason);
        }
    }
    Ok(Reply::Done { memory_bytes: 0, report: Vec::new() })
}

fn run(code: &str) -> Command {
    Command::Run(RunCommand {
        inputs: Vec::new(),
        code: code.to_owned(),
        syntax: Syntax::Python,
        program: Program::Code,
        directory: None,
        import_from: None,
        name: "<warm up>".to_owned(),
        is_file: false,
        role: Role::Cell,
        has_stdin: false,
        argv: None,
        may_return: false,
        has_table_data: false,
        has_chart_pictures: false,
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
    work: impl AsyncFnOnce(Arc<IsolateControl>) -> Result<T, String> + Send + 'static,
) -> Result<T, Error> {
    let (_, receiver) = begin(work)?;
    let made = receiver.recv().unwrap_or_else(|_| Err(ENDED_EARLY.to_owned()));
    made.map_err(|reason| failed(&reason))
}

/// The same for work that runs code of packages. Its isolate is stopped once the patience is over.
fn capture_within<T: Send + 'static>(
    patience: &Patience,
    work: impl AsyncFnOnce(Arc<IsolateControl>) -> Result<T, String> + Send + 'static,
) -> Result<T, Unmade> {
    let (control, receiver) = begin(work).map_err(Unmade::Untried)?;
    loop {
        match receiver.recv_timeout(Patience::STEP) {
            Ok(made) => return made.map_err(|reason| Unmade::Failed(failed(&reason))),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Unmade::Failed(failed(ENDED_EARLY)));
            }
            Err(RecvTimeoutError::Timeout) if patience.is_over() => {
                control.terminate();
                return Err(Unmade::Late(patience.error()));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Runs `work` on an isolate's thread. Returns what stops its isolate, and what receives its
/// result.
#[expect(clippy::type_complexity, reason = "it is taken apart at once")]
fn begin<T: Send + 'static>(
    work: impl AsyncFnOnce(Arc<IsolateControl>) -> Result<T, String> + Send + 'static,
) -> Result<(Arc<IsolateControl>, Receiver<Result<T, String>>), Error> {
    let (sender, receiver) = mpsc::channel();
    let control = IsolateControl::new();
    let given = Arc::clone(&control);
    on_isolate_thread(move || {
        let _ending = given.ending();
        // Nobody receives it if it came too late.
        let _ = sender.send(block_on(work(given)));
    })?;
    Ok((control, receiver))
}

fn failed(reason: &str) -> Error {
    Error::new(ErrorKind::Start, format!("the memory image cannot be made: {reason}"))
}

#[cfg(test)]
mod tests {
    use isolet_pyodide_assets::{Assets, lock};

    use super::*;
    use crate::data::value::Value;
    use crate::image::{ImageLocation, Importer};
    use crate::isolate::assets_dir;
    use crate::isolate::image::build;

    #[test]
    fn without_v8s_internals_an_image_is_made_and_an_interpreter_runs_of_it() {
        let files = Files::new(&Assets::open(&assets_dir()).unwrap()).unwrap();
        let (dir, preload) = (tempfile::tempdir().unwrap(), Preload::default());
        let lock = lock().unwrap();
        let location = ImageLocation::new(dir.path(), dir.path(), lock, &preload, Importer::Owner);
        let file = build(&location, &files, &Modules::without_internals()).unwrap();
        assert!(file.path().is_some());
        let image = Image::new(file.into()).unwrap();
        assert_eq!(image.native_code(), None);
        // As in another process, which finds the image and has no module.
        let report = capture(async move |control| {
            let host = Arc::new(ImageHost::without_packages());
            let parts = parts(image.files(), Modules::without_internals(), host);
            let mut isolate = Isolate::boot(parts, Some(image), control).await?;
            let start = Command::Start(StartCommand::default());
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
