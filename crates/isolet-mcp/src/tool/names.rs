//! Names of servers, tools and parameters as names of Python. Different names stay different, and
//! the same list gives the same names.

use std::collections::HashSet;

use isolet::internals::is_identifier;

/// The maximum length of a name, in characters.
const MAX_CHARS: usize = 64;

/// The modules of Python's standard library. A server of such a name becomes `mcp_NAME`, so that
/// `import time` keeps its meaning.
const STDLIB: &str = "\
    abc aifc annotationlib antigravity argparse array ast asynchat asyncio asyncore atexit audioop \
    base64 bdb binascii binhex bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd \
    code codecs codeop collections colorsys compileall compression concurrent configparser \
    contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal \
    difflib dis distutils doctest email encodings ensurepip enum errno faulthandler fcntl filecmp \
    fileinput fnmatch formatter fractions ftplib functools gc genericpath getopt getpass gettext \
    glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib imghdr imp importlib \
    inspect io ipaddress itertools json keyword lib2to3 linecache locale logging lzma mailbox \
    mailcap marshal math mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc nis \
    nntplib nt ntpath nturl2path numbers opcode operator optparse os ossaudiodev parser pathlib \
    pdb pickle pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint profile \
    pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re readline \
    reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex shutil signal \
    site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse \
    ssl stat statistics string stringprep struct subprocess sunau symbol symtable sys sysconfig \
    syslog tabnanny tarfile telnetlib tempfile termios test textwrap this threading time timeit \
    tkinter token tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing \
    unicodedata unittest urllib uu uuid venv warnings wave weakref webbrowser winreg winsound \
    wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo";

/// Returns the names of the modules of these servers, in their order.
pub(crate) fn modules<'a>(servers: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let modules = unique(servers.into_iter().map(|server| {
        let module = snake(server);
        let shadows = STDLIB.split(' ').any(|known| known == module);
        if shadows { format!("mcp_{module}") } else { module }
    }));
    modules.collect()
}

/// Returns a name of Python for each original name. Collisions are resolved in the order of the
/// sorted originals, independent of the order of the argument.
pub(crate) fn assign(originals: &[&str]) -> Vec<String> {
    let mut order: Vec<usize> = (0..originals.len()).collect();
    // A name that needs no change keeps itself, so it comes first.
    order.sort_by_key(|at| (snake(originals[*at]) != originals[*at], originals[*at]));
    let names = unique(order.iter().map(|at| snake(originals[*at])));
    let mut assigned = vec![String::new(); originals.len()];
    for (at, name) in order.iter().zip(names) {
        assigned[*at] = name;
    }
    assigned
}

/// Returns the parameters' names, which keep their case: `owner_id` and `ownerId` are both usual.
pub(crate) fn parameters(originals: &[&str]) -> Vec<String> {
    let mut order: Vec<usize> = (0..originals.len()).collect();
    order.sort_by_key(|at| (!is_identifier(originals[*at]), originals[*at]));
    let names = unique(order.iter().map(|at| identifier(originals[*at].to_owned())));
    let mut assigned = vec![String::new(); originals.len()];
    for (at, name) in order.iter().zip(names) {
        assigned[*at] = name;
    }
    assigned
}

/// Adds `_2`, `_3` and so on to names that were given before.
fn unique(names: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
    let mut given: HashSet<String> = HashSet::new();
    names.map(move |name| {
        let mut candidate = name.clone();
        let mut number = 2_u32;
        while !given.insert(candidate.clone()) {
            candidate = format!("{name}_{number}");
            number += 1;
        }
        candidate
    })
}

/// Returns a name in snake case.
fn snake(original: &str) -> String {
    let letters: Vec<char> = original.chars().collect();
    let mut name = String::new();
    for (at, letter) in letters.iter().enumerate() {
        // `getSum` is `get_sum`, and `parseHTMLPage` is `parse_html_page`.
        let before = at.checked_sub(1).map(|at| letters[at]);
        let begins_word = letter.is_uppercase()
            && before.is_some_and(|before| {
                let ends_acronym = before.is_uppercase()
                    && letters.get(at + 1).is_some_and(|next| next.is_lowercase());
                before.is_lowercase() || before.is_numeric() || ends_acronym
            });
        if begins_word {
            name.push('_');
        }
        name.extend(letter.to_lowercase());
    }
    identifier(name)
}

/// Makes a name an identifier: other characters become `_`, a keyword gets one at its end.
fn identifier(name: String) -> String {
    let mut made = String::new();
    for letter in name.chars().take(MAX_CHARS) {
        match letter {
            letter if unicode_ident::is_xid_continue(letter) => made.push(letter),
            _ if made.ends_with('_') => {}
            _ => made.push('_'),
        }
    }
    let mut made = made.trim_end_matches('_').to_owned();
    if name.ends_with('_') && is_identifier(&name) {
        made = name;
    }
    if !made.starts_with(|first: char| first == '_' || unicode_ident::is_xid_start(first)) {
        made.insert(0, '_');
    }
    if !is_identifier(&made) {
        made.push('_');
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_identifiers() {
        let names = [
            "get-sum",
            "getSum2",
            "parseHTMLPage",
            "list_issues",
            "from",
            "2fast",
            "a.b/c",
            "größe",
            "",
            "---",
            "None",
            "_x",
            "API-get-user",
            "x y",
        ];
        let expected = [
            "get_sum",
            "get_sum2",
            "parse_html_page",
            "list_issues",
            "from_",
            "_2fast",
            "a_b_c",
            "größe",
            "_",
            "__2",
            "none",
            "_x",
            "api_get_user",
            "x_y",
        ];
        assert_eq!(assign(&names), expected);
    }

    #[test]
    fn collisions_do_not_depend_on_the_order() {
        let names = ["get-sum", "get_sum", "getSum"];
        assert_eq!(assign(&names), ["get_sum_2", "get_sum", "get_sum_3"]);
        let turned = ["getSum", "get_sum", "get-sum"];
        assert_eq!(assign(&turned), ["get_sum_3", "get_sum", "get_sum_2"]);
        // What a suffix makes is taken into account, too.
        assert_eq!(assign(&["a-b", "a_b", "a_b_2"]), ["a_b_3", "a_b", "a_b_2"]);
    }

    #[test]
    fn parameters_keep_their_case() {
        let names = ["ownerId", "from", "x-y", "x_y", "Class", "class"];
        let expected = ["ownerId", "from_", "x_y_2", "x_y", "Class", "class_"];
        assert_eq!(parameters(&names), expected);
    }

    #[test]
    fn a_server_does_not_shadow_the_standard_library() {
        let modules = modules(["GitHub", "github", "json", "my.server", "time"]);
        assert_eq!(modules, ["git_hub", "github", "mcp_json", "my_server", "mcp_time"]);
    }

    #[test]
    fn every_name_is_an_identifier() {
        for original in ["\u{301}x", "a\u{0}b", "ﬁ", "🎉", "__debug__", "İ", "ſ"] {
            for name in assign(&[original]).into_iter().chain(parameters(&[original])) {
                assert!(is_identifier(&name), "{original:?} became {name:?}");
            }
        }
    }
}
