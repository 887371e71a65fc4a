//! The terminal that a session's output is for.

/// What the guest is told of a terminal, so that it draws for it: `isatty` and
/// `os.get_terminal_size` say so, as python's do. Whoever shows the output has to see to it that it
/// does no harm there.
///
/// ```
/// let terminal = isolet::Terminal { stdout: true, stderr: true, columns: 80, rows: 24 };
/// # let _ = terminal;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// Standard output is for it.
    pub stdout: bool,
    /// Standard error is for it.
    pub stderr: bool,
    /// How wide it is, in characters.
    pub columns: u16,
    /// How high it is, in lines.
    pub rows: u16,
}
