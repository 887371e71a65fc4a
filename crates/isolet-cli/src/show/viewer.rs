//! Shows the displays of a run: pictures on a terminal that can draw them, tables drawn on any,
//! everything else as text or as files.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use isolet::{Cell, Display, MimeData};

use crate::show::directory;
use crate::show::pictures::Protocol;
use crate::show::tables;
use crate::show::terminal::{self, Printer};

const PLAIN: &str = "text/plain";

/// The extensions of files in well-known formats.
const EXTENSIONS: [(&str, &str); 17] = [
    ("application/javascript", "js"),
    ("application/json", "json"),
    ("application/pdf", "pdf"),
    ("application/vnd.isolet.chart.v1+json", "chart.json"),
    ("application/vnd.plotly.v1+json", "plotly.json"),
    ("application/vnd.vegalite.v5+json", "vl.json"),
    ("application/vnd.vegalite.v6+json", "vl.json"),
    ("image/gif", "gif"),
    ("image/jpeg", "jpg"),
    ("image/png", "png"),
    ("image/svg+xml", "svg"),
    ("image/webp", "webp"),
    ("text/csv", "csv"),
    ("text/html", "html"),
    ("text/latex", "tex"),
    ("text/markdown", "md"),
    (PLAIN, "txt"),
];

/// Shows displays. Clones share the numbers of the files.
#[derive(Clone)]
pub(crate) struct Viewer(Arc<Mutex<State>>);

struct State {
    /// The directory for displays as files.
    folder: Option<Folder>,
    /// The terminal's protocol for pictures, if it has one.
    protocol: Option<Protocol>,
    is_terminal: bool,
    /// Set to show the values of cells, too.
    shows_results: bool,
    /// Set once the value of the last cell was drawn as a table, in place of its repr.
    has_drawn_result: bool,
    /// The number of displays that were neither drawn nor written.
    unseen: u64,
}

struct Folder {
    path: PathBuf,
    directory: Dir,
    /// The number of displays that were written.
    written: u64,
}

impl Viewer {
    /// Makes a viewer that writes displays to `directory`, if there is one. It is created, but not
    /// its parents. With `shows_results`, pictures and tables that are values of cells are shown,
    /// too.
    pub(crate) fn new(directory: Option<&Path>, shows_results: bool) -> Result<Self> {
        let is_terminal = io::stdout().is_terminal();
        let protocol = is_terminal.then(Protocol::of_terminal).flatten();
        let folder = directory.map(Folder::open).transpose()?;
        let (has_drawn_result, unseen) = (false, 0);
        let state =
            State { folder, protocol, is_terminal, shows_results, has_drawn_result, unseen };
        Ok(Self(Arc::new(Mutex::new(state))))
    }

    /// Has charts drawn as pictures where someone sees them.
    pub(crate) fn prepare(&self, cell: Cell) -> Cell {
        let state = self.lock();
        if state.is_terminal || state.folder.is_some() { cell.chart_pictures() } else { cell }
    }

    /// Shows a display.
    pub(crate) fn show(&self, display: &Display, printer: &mut Printer) -> io::Result<()> {
        let mut state = self.lock();
        let names = match &mut state.folder {
            Some(folder) => folder.write(display)?,
            None => Vec::new(),
        };
        if display.is_result() && !state.shows_results {
            // Its repr is shown elsewhere, if at all.
            return Ok(());
        }
        if let (Some(protocol), Some(MimeData::Bytes(png))) =
            (state.protocol, display.get("image/png"))
            && let Some(drawn) = protocol.sequence(png)
        {
            return terminal::write_all(io::stdout().lock(), drawn.as_bytes());
        }
        if let Some(table) = state.table(display) {
            state.has_drawn_result = display.is_result();
            return printer.print(isolet::Stream::Stdout, format!("{table}\n").as_bytes());
        }
        if display.is_result() && !is_picture(display) {
            return Ok(());
        }
        if !is_picture(display)
            && let Some(text) = display.get(PLAIN).and_then(MimeData::as_str)
        {
            return printer.print(isolet::Stream::Stdout, format!("{text}\n").as_bytes());
        }
        if !names.is_empty() {
            return if state.is_terminal { say_where(&names) } else { Ok(()) };
        }
        if !state.is_terminal {
            state.unseen += 1;
            return Ok(());
        }
        let folder = Folder::temporary()?;
        let names = state.folder.insert(folder).write(display)?;
        say_where(&names)
    }

    /// Writes displays to the directory, if there is one.
    pub(crate) fn write(&self, displays: &[Display]) -> io::Result<()> {
        let mut state = self.lock();
        let Some(folder) = &mut state.folder else { return Ok(()) };
        displays.iter().try_for_each(|display| folder.write(display).map(drop))
    }

    /// Returns `true` if the value of the last cell was drawn as a table, and forgets it.
    pub(crate) fn take_drawn_result(&self) -> bool {
        std::mem::take(&mut self.lock().has_drawn_result)
    }

    /// Returns a line about the pictures that were not shown, if there are any.
    pub(crate) fn unseen(&self) -> Option<String> {
        match std::mem::take(&mut self.lock().unseen) {
            0 => None,
            1 => Some("a picture was displayed; `--show-dir DIR` writes it to a file".to_owned()),
            count => Some(format!(
                "{count} pictures were displayed; `--show-dir DIR` writes them to files"
            )),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns a display that is a table as the terminal shows it, if it fits.
    fn table(&self, display: &Display) -> Option<String> {
        if !self.is_terminal || is_picture(display) {
            return None;
        }
        let html = display.get("text/html")?.as_str()?;
        // One line of text is hardly the table, so that even a wrapped one is better.
        let text = display.get(PLAIN).and_then(MimeData::as_str).unwrap_or_default();
        tables::draw(html, terminal::terminal()?.columns, text.lines().count() < 2)
    }
}

impl Folder {
    fn open(path: &Path) -> Result<Self> {
        let directory = directory::open(path, "--show-dir")?;
        Ok(Self { path: path.to_owned(), directory, written: 0 })
    }

    /// Makes a directory that only this user can read, among the system's temporary files.
    fn temporary() -> io::Result<Self> {
        let mut noise = [0; 8];
        getrandom::fill(&mut noise).map_err(|error| io::Error::other(error.to_string()))?;
        let name = format!("isolet-show-{:016x}", u64::from_le_bytes(noise));
        let path = std::env::temp_dir().join(name);
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path)?;
        let directory = Dir::open_ambient_dir(&path, ambient_authority())?;
        Ok(Self { path, directory, written: 0 })
    }

    /// Writes each format of a display to a file, the plain text only if there is nothing else and
    /// it is no value of a cell. Returns the paths.
    fn write(&mut self, display: &Display) -> io::Result<Vec<PathBuf>> {
        let is_alone = display.formats().len() == 1;
        if is_alone && display.is_result() && display.get(PLAIN).is_some() {
            return Ok(Vec::new());
        }
        self.written += 1;
        let mut names: Vec<String> = Vec::new();
        for (format, data) in display.formats() {
            if format == PLAIN && !is_alone {
                continue;
            }
            let (stem, extension) = (format!("{:03}", self.written), extension(format, data));
            let mut name = format!("{stem}.{extension}");
            let mut again = 1;
            while names.contains(&name) {
                again += 1;
                name = format!("{stem}-{again}.{extension}");
            }
            directory::replace(&self.directory, &name, data.as_bytes())?;
            names.push(name);
        }
        Ok(names.iter().map(|name| self.path.join(name)).collect())
    }
}

fn is_picture(display: &Display) -> bool {
    display.formats().any(|(format, _)| format.starts_with("image/") || format == "application/pdf")
}

fn extension(format: &str, data: &MimeData) -> &'static str {
    let known = EXTENSIONS.iter().find(|(known, _)| *known == format);
    match (known, data) {
        (Some((_, extension)), _) => extension,
        _ if format.ends_with("+json") => "json",
        _ if format.ends_with("+xml") => "xml",
        (None, MimeData::Bytes(_)) => "bin",
        _ => "txt",
    }
}

fn say_where(paths: &[PathBuf]) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    paths.iter().try_for_each(|path| {
        writeln!(stderr, "displayed: {}", terminal::for_stderr(&path.display().to_string()))
    })
}
