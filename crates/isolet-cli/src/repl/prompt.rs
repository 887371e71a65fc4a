//! The prompt: on a terminal, with history, completion, colours and indentation; otherwise plain
//! lines.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::rc::Rc;

use anyhow::{Context as _, Result};
use etcetera::BaseStrategy;
use isolet::Cell;
use isolet::blocking::Session;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use super::input::Lines;
use super::{Language, highlight, indent};
use crate::show::terminal;

/// The prompts of a cell's first line and of the others.
const PYTHON: (&str, &str) = (">>> ", "... ");
const SHELL: (&str, &str) = ("$ ", "> ");

/// The text that Tab inserts if there is nothing to complete.
const INDENT: &str = "    ";

/// Reads code.
pub(super) struct Prompt {
    language: Language,
    lines: Lines,
    /// `None` if there is no terminal.
    editor: Option<Editor<Guest, FileHistory>>,
    history: Option<PathBuf>,
}

/// The result of reading a line.
enum Line {
    Typed(String),
    Interrupted,
    End,
}

impl Prompt {
    /// Makes a prompt that asks the guest of this session for completions.
    pub(super) fn new(
        session: &Rc<RefCell<Session>>,
        lines: Lines,
        language: Language,
    ) -> Result<Self> {
        if !io::stdin().is_terminal() {
            return Ok(Self { language, lines, editor: None, history: None });
        }
        let has_color = terminal::has_color(io::stdout().is_terminal());
        let config = Config::builder().completion_type(CompletionType::List).build();
        let mut editor = Editor::with_config(config).context("cannot read from the terminal")?;
        editor.set_helper(Some(Guest { session: Rc::clone(session), language, has_color }));
        let history = history_file(language);
        if let Some(history) = &history {
            // Before the first use there is no history.
            let _ = editor.load_history(history);
        }
        Ok(Self { language, lines, editor: Some(editor), history })
    }

    /// Reads lines until they form a complete cell. `None` at the end of the input.
    pub(super) fn read_cell(&mut self, session: &RefCell<Session>) -> Result<Option<String>> {
        let mut lines: Vec<String> = Vec::new();
        let mut is_pasted = false;
        loop {
            let has_indent = self.language == Language::Python && !is_pasted;
            let initial = if has_indent { indent::after(&lines) } else { String::new() };
            match self.read_line(lines.is_empty(), &initial)? {
                Line::Typed(line) if lines.is_empty() && line.trim().is_empty() => continue,
                Line::Typed(line) => {
                    let (line, has_own_indent) = match self.language {
                        Language::Python => indent::meant(&line, &initial),
                        Language::Shell => (line, false),
                    };
                    is_pasted |= has_own_indent || self.editor.is_none();
                    lines.push(line);
                }
                Line::Interrupted => {
                    lines.clear();
                    is_pasted = false;
                    continue;
                }
                Line::End if lines.is_empty() => return Ok(None),
                Line::End => return Ok(Some(lines.join("\n"))),
            }
            let code = lines.join("\n");
            if !session.borrow_mut().is_incomplete(self.language.cell(code.as_str()))? {
                if let Some(editor) = &mut self.editor {
                    let _ = editor.add_history_entry(code.trim_end());
                }
                return Ok(Some(code));
            }
        }
    }

    fn read_line(&mut self, is_first: bool, initial: &str) -> Result<Line> {
        // A line that arrived while a run that did not read it was under way.
        if let Some(line) = self.lines.next_read()? {
            return Ok(Line::Typed(format!("{initial}{line}")));
        }
        let Some(editor) = &mut self.editor else {
            return Ok(self.lines.next()?.map_or(Line::End, Line::Typed));
        };
        let (first, next) = match self.language {
            Language::Python => PYTHON,
            Language::Shell => SHELL,
        };
        let prompt = if is_first { first } else { next };
        match editor.readline_with_initial(prompt, (initial, "")) {
            Ok(line) => Ok(Line::Typed(line)),
            Err(ReadlineError::Interrupted) => Ok(Line::Interrupted),
            Err(ReadlineError::Eof) => Ok(Line::End),
            Err(error) => Err(error).context("cannot read from the terminal"),
        }
    }

    /// Saves the history. A failure is ignored.
    pub(super) fn end(&mut self) {
        if let (Some(editor), Some(history)) = (&mut self.editor, &self.history) {
            let _ = editor.save_history(history);
        }
    }
}

/// Returns the path of the history file; `None` if the user has no directory for it.
fn history_file(language: Language) -> Option<PathBuf> {
    let strategy = etcetera::choose_base_strategy().ok()?;
    let dir = strategy.state_dir().unwrap_or_else(|| strategy.cache_dir()).join("isolet");
    std::fs::create_dir_all(&dir).ok()?;
    Some(dir.join(match language {
        Language::Python => "repl-history",
        Language::Shell => "sh-history",
    }))
}

/// Answers the line editor's questions about code.
struct Guest {
    session: Rc<RefCell<Session>>,
    language: Language,
    has_color: bool,
}

/// Prints what a word of the shell may become.
const COMPLETE: &str = "compgen -f -- \"$1\"; [ -z \"$2\" ] || compgen -c -- \"$1\"";

impl Guest {
    /// Completes the last word of a command: a file, or the command's name.
    fn complete_shell(&self, before: &str) -> (usize, Vec<Pair>) {
        let start = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let word = &before[start..];
        let is_command = before[..start].trim().is_empty() && !word.is_empty();
        let argv = ["sh", word, if is_command { "command" } else { "" }];
        let cell = Cell::shell(COMPLETE).program().argv(argv);
        let ran = self.session.try_borrow_mut().ok().and_then(|mut session| session.run(cell).ok());
        let text = ran.map(|ran| ran.stdout().to_owned()).unwrap_or_default();
        let pair = |name: &str| Pair { display: name.to_owned(), replacement: name.to_owned() };
        let names: BTreeSet<&str> = text.lines().collect();
        (start, names.into_iter().map(pair).collect())
    }
}

impl Completer for Guest {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = &line[..position];
        if self.language == Language::Shell {
            return Ok(self.complete_shell(before));
        }
        let is_of_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let start = before
            .rfind(|c| !is_of_name(c))
            .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8));
        let path = &before[start..];
        if path.is_empty() {
            let indent = Pair { display: String::new(), replacement: INDENT.to_owned() };
            return Ok((position, vec![indent]));
        }
        let name = start + path.rfind('.').map_or(0, |dot| dot + 1);
        // If the guest does not answer, there are no completions.
        let names =
            self.session.try_borrow_mut().ok().and_then(|mut session| session.complete(path).ok());
        let pair = |name: String| Pair { display: name.clone(), replacement: name };
        Ok((name, names.unwrap_or_default().into_iter().map(pair).collect()))
    }
}

impl Highlighter for Guest {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        let is_colored = self.has_color && self.language == Language::Python;
        if is_colored { highlight::line(line).into() } else { line.into() }
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        if self.has_color { highlight::prompt(prompt).into() } else { prompt.into() }
    }

    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        self.has_color && !matches!(kind, CmdKind::MoveCursor)
    }
}

impl Hinter for Guest {
    type Hint = String;
}

impl Validator for Guest {}
impl Helper for Guest {}
