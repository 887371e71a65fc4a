//! The terminal that a session's output is for.

/// The terminal that the guest's output is for: `isatty` and `os.get_terminal_size` report it, so
/// that programs draw for it. The program that shows the output must make it safe for the terminal.
///
/// ```
/// let terminal = isolet::Terminal { stdout: true, stderr: true, columns: 80, rows: 24 };
/// # let _ = terminal;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// `true` if standard output goes to the terminal.
    pub stdout: bool,
    /// `true` if standard error goes to the terminal.
    pub stderr: bool,
    /// The width, in characters.
    pub columns: u16,
    /// The height, in lines.
    pub rows: u16,
}
