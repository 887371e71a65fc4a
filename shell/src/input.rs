//! Which commands read their standard input. Who does not must not wait for live input.

use std::collections::HashSet;

/// When a command reads.
#[derive(Clone, Copy, PartialEq)]
enum When {
    Always,
    /// Without an operand that names a file.
    NoFile,
    /// If an operand is `-`.
    Dash,
}

/// How the words after a command are read, and what they say about its input.
#[derive(Clone, Copy)]
struct Reader {
    when: When,
    /// The letters of options whose value may be the next word.
    short: &'static str,
    /// The same of long options.
    long: &'static [&'static str],
    /// How many operands come before the files.
    operands: usize,
    /// Options that stand for those operands.
    instead: &'static [&'static str],
    /// Options with which it does not read.
    never: &'static [&'static str],
    /// Whether options end at the first operand.
    is_prefix: bool,
}

const READER: Reader = Reader {
    when: When::NoFile,
    short: "",
    long: &[],
    operands: 0,
    instead: &[],
    never: &[],
    is_prefix: false,
};

/// A filter of files whose options have these values.
const fn filter(short: &'static str, long: &'static [&'static str]) -> Reader {
    Reader { short, long, ..READER }
}

const ALWAYS: Reader = Reader { when: When::Always, ..READER };
const DASH: Reader = Reader { when: When::Dash, ..READER };

const GREP: Reader = Reader {
    short: "efmABCdD",
    long: &[
        "regexp",
        "file",
        "max-count",
        "after-context",
        "before-context",
        "context",
        "include",
        "exclude",
        "exclude-from",
        "exclude-dir",
        "label",
        "binary-files",
        "directories",
        "devices",
    ],
    operands: 1,
    instead: &["e", "f", "regexp", "file"],
    never: &["r", "R", "recursive", "dereference-recursive"],
    ..READER
};

/// What is known of a command; `None` if it does not read.
#[expect(clippy::too_many_lines, reason = "a table")]
fn reader(name: &str) -> Option<Reader> {
    Some(match name {
        "cat" | "rev" | "tac" | "tsort" | "less" | "more" | "bc" | "sum" | "factor" | "bzip2"
        | "bunzip2" | "bzcat" | "zcat" | "md5sum" | "sha1sum" | "sha224sum" | "sha256sum"
        | "sha384sum" | "sha512sum" => READER,
        "grep" | "egrep" | "fgrep" => GREP,
        "sed" => Reader {
            short: "efl",
            long: &["expression", "file", "line-length"],
            operands: 1,
            instead: &["e", "f", "expression", "file"],
            never: &["i", "in-place"],
            ..READER
        },
        "awk" | "gawk" | "mawk" | "nawk" => Reader {
            short: "Fvf",
            long: &["field-separator", "assign", "file"],
            operands: 1,
            instead: &["f", "file"],
            is_prefix: true,
            ..READER
        },
        "head" => filter("nc", &["lines", "bytes"]),
        "tail" => filter("ncs", &["lines", "bytes", "sleep-interval", "pid"]),
        "sort" => filter(
            "koStT",
            &[
                "key",
                "output",
                "buffer-size",
                "field-separator",
                "temporary-directory",
                "parallel",
                "batch-size",
                "compress-program",
                "random-source",
            ],
        ),
        "uniq" => filter("fsw", &["skip-fields", "skip-chars", "check-chars"]),
        "wc" => Reader { never: &["files0-from"], ..READER },
        "cut" => {
            filter("bcdf", &["bytes", "characters", "delimiter", "fields", "output-delimiter"])
        }
        "paste" => filter("d", &["delimiters"]),
        "nl" => filter("bdfhilnsvw", &["body-numbering", "number-width", "number-separator"]),
        "fold" => filter("w", &["width"]),
        "fmt" => filter("wpg", &["width", "prefix", "goal"]),
        "expand" | "unexpand" => filter("t", &["tabs"]),
        "pr" => filter("DhlNoSwW", &["length", "width", "header", "indent"]),
        "column" => filter("cosNRE", &["separator", "output-separator", "table-columns"]),
        "cksum" | "shasum" => filter("a", &["algorithm"]),
        "b2sum" => filter("l", &["length"]),
        "base64" | "base32" | "basenc" => filter("w", &["wrap"]),
        "od" => filter("AjNStw", &["address-radix", "skip-bytes", "read-bytes", "format"]),
        "xxd" => filter("cglos", &[]),
        "hexdump" => filter("nsef", &["length", "skip"]),
        "strings" => filter("nt", &["bytes", "radix"]),
        "split" => filter("abCln", &["suffix-length", "bytes", "lines", "number"]),
        "shuf" => Reader {
            never: &["e", "echo", "i", "input-range"],
            ..filter("nio", &["head-count", "input-range", "output"])
        },
        "gzip" | "gunzip" => filter("S", &["suffix"]),
        "iconv" => filter("fto", &["from-code", "to-code", "output"]),
        "numfmt" => filter(
            "d",
            &[
                "delimiter",
                "field",
                "format",
                "from",
                "from-unit",
                "padding",
                "suffix",
                "to",
                "to-unit",
            ],
        ),
        "cmp" => Reader { short: "in", operands: 1, ..READER },
        "patch" => Reader {
            short: "pidoBDFgrVYz",
            long: &["strip", "input", "directory", "output", "reject-file", "fuzz"],
            operands: 1,
            never: &["i", "input"],
            ..READER
        },
        "csv" | "json" | "template" | "tomlq" => Reader { operands: 1, ..READER },
        "tr" | "tee" => ALWAYS,
        "envsubst" => Reader { never: &["v", "variables"], ..ALWAYS },
        "xargs" => Reader {
            when: When::Always,
            short: "aEdIiLlnPs",
            long: &["arg-file", "delimiter", "max-args", "max-procs", "max-lines", "max-chars"],
            never: &["a", "arg-file"],
            is_prefix: true,
            ..READER
        },
        "read" => Reader { short: "adinNptu", ..ALWAYS },
        "mapfile" | "readarray" => Reader { short: "dnOsuCc", ..ALWAYS },
        "bash" | "sh" => Reader {
            short: "oO",
            long: &["rcfile", "init-file"],
            never: &["c"],
            is_prefix: true,
            ..READER
        },
        "comm" | "join" | "diff" | "rg" | "file" | "make" | "." | "source" | "cp" => DASH,
        _ => return None,
    })
}

/// The options of a command, with their values, and its operands.
#[derive(Default)]
struct Words<'a> {
    options: Vec<(&'a str, Option<&'a str>)>,
    operands: Vec<&'a str>,
}

impl<'a> Words<'a> {
    fn parse(reader: &Reader, args: &'a [String]) -> Self {
        let mut words = Self::default();
        let mut args = args.iter().map(String::as_str);
        while let Some(arg) = args.next() {
            if arg == "--" {
                words.operands.extend(args.by_ref());
            } else if let Some(long) = arg.strip_prefix("--") {
                let option = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value)),
                    None if reader.long.contains(&long) => (long, args.next()),
                    None => (long, None),
                };
                words.options.push(option);
            } else if arg.len() > 1 && arg.starts_with('-') {
                for (at, letter) in arg.char_indices().skip(1) {
                    let end = at + letter.len_utf8();
                    let option = &arg[at..end];
                    if reader.short.contains(letter) {
                        let rest = &arg[end..];
                        let value = if rest.is_empty() { args.next() } else { Some(rest) };
                        words.options.push((option, value));
                        break;
                    }
                    words.options.push((option, None));
                    // `sed -i.old`: the rest is a suffix.
                    if option == "i" && reader.never.contains(&"i") {
                        break;
                    }
                }
            } else {
                words.operands.push(arg);
                if reader.is_prefix {
                    words.operands.extend(args.by_ref());
                }
            }
        }
        words
    }

    fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|(name, _)| names.contains(name))
    }

    fn value(&self, names: &[&str]) -> Option<&'a str> {
        self.options.iter().rev().find(|(name, _)| names.contains(name)).and_then(|(_, v)| *v)
    }
}

fn is_stdin(word: &str) -> bool {
    matches!(word, "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}

/// Whether a command of the shell reads its standard input.
pub(crate) fn reads(name: &str, args: &[String]) -> bool {
    match name {
        "tar" => return tar_reads(args),
        "jq" | "yq" => return jq_reads(args),
        "dd" => {
            let file = args.iter().find_map(|arg| arg.strip_prefix("if="));
            return file.is_none_or(|file| file == "-" || is_stdin(file));
        }
        "parallel" => return !args.iter().any(|arg| arg.starts_with(":::") || arg == "-a"),
        "semver" => return args.first().is_some_and(|arg| arg == "sort"),
        _ => {}
    }
    let Some(reader) = reader(name) else { return false };
    let words = Words::parse(&reader, args);
    if words.has(&["help", "version"]) {
        return false;
    }
    if matches!(name, "read" | "mapfile" | "readarray") {
        return words.value(&["u"]).is_none_or(|descriptor| descriptor == "0");
    }
    if matches!(name, "bash" | "sh") && words.has(&["s"]) {
        return !words.has(reader.never);
    }
    // Those with a file are in the table for `/dev/stdin` only.
    let has_dash = !matches!(name, "." | "source" | "cp" | "bash" | "sh");
    let asks = |word: &str| is_stdin(word) || has_dash && word == "-";
    let skipped = if words.has(reader.instead) { 0 } else { reader.operands };
    let takes_file = ["f", "file", "T", "i", "input", "a", "arg-file"];
    let options = words.options.iter().filter(|(option, _)| takes_file.contains(option));
    if options.filter_map(|(_, value)| *value).any(asks) {
        return reader.when != When::Always || name == "xargs";
    }
    let first = if name == "cmp" { 0 } else { skipped };
    if reader.when != When::Always && words.operands.iter().skip(first).any(|word| asks(word)) {
        return true;
    }
    if words.has(reader.never) {
        return false;
    }
    let count = words.operands.len();
    match reader.when {
        When::Always => true,
        When::Dash => false,
        // The operands are the file that is changed, and the changes.
        When::NoFile if name == "patch" => count < 2,
        When::NoFile if matches!(name, "awk" | "gawk" | "mawk" | "nawk") => {
            let mut files = words.operands.iter().skip(skipped);
            let program = words.operands.first().filter(|_| skipped == 1);
            count >= skipped
                && files.all(|file| is_assignment(file))
                && program.is_none_or(|program| awk_reads(program))
        }
        When::NoFile => count == skipped,
    }
}

/// `name=value` instead of a file.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Whether a program of awk has more than `BEGIN` and functions.
fn awk_reads(program: &str) -> bool {
    if program.contains("getline") {
        return true;
    }
    let mut rest = program;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';');
        if rest.starts_with('#') {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
            continue;
        }
        if rest.is_empty() {
            return program.trim().is_empty();
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        if !matches!(&rest[..end], "BEGIN" | "function" | "func") {
            return true;
        }
        let Some(after) = rest.find('{').and_then(|at| awk_block(&rest[at..])) else {
            return true;
        };
        rest = after;
        if rest.trim().is_empty() {
            return false;
        }
    }
}

/// What follows a block in braces.
fn awk_block(text: &str) -> Option<&str> {
    let mut depth = 0_usize;
    // The last character that is no space: a regular expression does not follow a value.
    let mut last = ' ';
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(&text[at + 1..]);
                }
            }
            '#' => {
                chars.by_ref().find(|(_, c)| *c == '\n');
            }
            '"' | '/' if c == '"' || "(,~!{};&|\n".contains(last) => {
                let mut is_class = false;
                loop {
                    match chars.next()?.1 {
                        '\\' => {
                            chars.next();
                        }
                        '[' if c == '/' => is_class = true,
                        ']' => is_class = false,
                        end if end == c && !is_class => break,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        if !c.is_whitespace() || c == '\n' {
            last = c;
        }
    }
    None
}

/// Whether `tar` takes an archive, or a list of files, from its standard input.
fn tar_reads(args: &[String]) -> bool {
    let reader = filter("fCTXbHVKNgI", &["file", "directory", "files-from", "exclude-from"]);
    // `tar xf -`.
    let mut args = args.to_vec();
    if let Some(first) = args.first_mut()
        && !first.starts_with('-')
    {
        first.insert(0, '-');
    }
    let words = Words::parse(&reader, &args);
    let asks = |word: &str| word == "-" || is_stdin(word);
    if words.value(&["T", "files-from"]).is_some_and(asks) {
        return true;
    }
    words.has(&["x", "t", "d", "extract", "get", "list", "diff", "compare"])
        && words.value(&["f", "file"]).is_some_and(asks)
}

/// `jq` and `yq`: a program, then files.
fn jq_reads(args: &[String]) -> bool {
    let (mut program, mut files, mut is_null) = (None, Vec::new(), false);
    let mut args = args.iter().map(String::as_str);
    while let Some(arg) = args.next() {
        match arg {
            "--arg" | "--argjson" | "--slurpfile" | "--rawfile" => {
                args.nth(1);
            }
            "--indent" | "--input-format" | "--output-format" => {
                args.next();
            }
            "--from-file" | "--expression" => program = args.next(),
            "--null-input" => is_null = true,
            "--help" | "--version" => return false,
            // The other operands are values.
            "--args" | "--jsonargs" => {
                program = program.or_else(|| args.next());
                break;
            }
            _ if arg.starts_with("--") => {}
            _ if arg.starts_with('-') && arg.len() > 1 => {
                is_null |= arg.contains('n');
                match arg.chars().next_back() {
                    Some('f') => program = args.next(),
                    Some('p' | 'o' | 'I' | 'L') => {
                        args.next();
                    }
                    _ => {}
                }
            }
            _ if program.is_none() => program = Some(arg),
            _ => files.push(arg),
        }
    }
    if files.iter().any(|file| *file == "-" || is_stdin(file)) {
        return true;
    }
    let takes_more = program.is_some_and(|program| program.contains("input"));
    files.is_empty() && (!is_null || takes_more)
}

/// What says which commands wait for live input. Those of the host get it as it is.
pub(crate) fn readers(host: HashSet<String>) -> impl Fn(&str, &[String]) -> bool {
    move |name, args| !host.contains(name) && reads(name, args)
}
