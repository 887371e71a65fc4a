//! `ln`: bashkit has no hard links.

use std::path::Path;

use bashkit::{Builtin, BuiltinContext, Error, ExecResult, Result, async_trait};

use super::{Arguments, absolute, reason};
use crate::files;

pub(super) struct Ln;

#[derive(Default)]
struct Options {
    symbolic: bool,
    force: bool,
    /// A link to a directory is replaced, not entered.
    no_dereference: bool,
    /// The last operand is the link, even if it is a directory.
    no_target_directory: bool,
    relative: bool,
    verbose: bool,
    target_directory: Option<String>,
}

const LONG: &[(&str, &str)] = &[
    ("force", "f"),
    ("logical", "L"),
    ("no-dereference", "n"),
    ("no-target-directory", "T"),
    ("physical", "P"),
    ("relative", "r"),
    ("symbolic", "s"),
    ("target-directory", "t"),
    ("verbose", "v"),
];

/// The way from a directory to a path.
fn relative(from: &Path, to: &Path) -> String {
    let common = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(common).map(|_| "..".to_owned());
    let down = to.components().skip(common);
    let down = down.map(|part| part.as_os_str().to_string_lossy().into_owned());
    let parts: Vec<_> = up.chain(down).collect();
    if parts.is_empty() { ".".into() } else { parts.join("/") }
}

#[async_trait]
impl Builtin for Ln {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let arguments = match Arguments::parse("ln", ctx.args, "sfnvTrt:LPbi", LONG) {
            Ok(arguments) => arguments,
            Err(mut error) => {
                error.exit_code = 1;
                return Ok(error);
            }
        };
        let mut options = Options::default();
        for (option, value) in arguments.options {
            match option.as_str() {
                "s" => options.symbolic = true,
                "f" => options.force = true,
                "n" => options.no_dereference = true,
                "T" => options.no_target_directory = true,
                "r" => options.relative = true,
                "v" => options.verbose = true,
                "t" => options.target_directory = value,
                _ => {}
            }
        }
        let mut operands = arguments.operands;
        let mut directory = options.target_directory.clone();
        if directory.is_none() {
            match operands.len() {
                0 => return Ok(ExecResult::err("ln: missing file operand\n", 1)),
                1 => directory = Some(".".into()),
                count => {
                    let last = absolute(ctx.cwd, &operands[count - 1]);
                    let is_link = ctx.fs.lstat(&last).await.is_ok_and(|m| m.file_type.is_symlink());
                    let entered = !(options.no_target_directory
                        || options.no_dereference && is_link)
                        && ctx.fs.stat(&last).await.is_ok_and(|m| m.file_type.is_dir());
                    if entered {
                        directory = operands.pop();
                    } else if count > 2 {
                        let last = &operands[count - 1];
                        return Ok(ExecResult::err(
                            format!("ln: target '{last}' is not a directory\n"),
                            1,
                        ));
                    }
                }
            }
        }
        let mut result = ExecResult::default();
        let (mut stdout, mut stderr) = (String::new(), String::new());
        let pairs: Vec<(String, String)> = match &directory {
            Some(directory) => operands
                .iter()
                .map(|target| {
                    let name = target.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                    (target.clone(), format!("{}/{name}", directory.trim_end_matches('/')))
                })
                .collect(),
            None => vec![(operands[0].clone(), operands[1].clone())],
        };
        for (target, name) in pairs {
            let shown = name.strip_prefix("./").unwrap_or(&name);
            match link(&ctx, &options, &target, &name).await {
                Ok(()) if options.verbose => {
                    let arrow = if options.symbolic { "->" } else { "=>" };
                    stdout.push_str(&format!("'{shown}' {arrow} '{target}'\n"));
                }
                Ok(()) => {}
                Err(error) => {
                    let kind = if options.symbolic { "symbolic" } else { "hard" };
                    let reason = reason(&error);
                    stderr.push_str(&format!(
                        "ln: failed to create {kind} link '{shown}': {reason}\n"
                    ));
                    result.exit_code = 1;
                }
            }
        }
        result.stdout = stdout.into();
        result.stderr = stderr.into();
        Ok(result)
    }
}

async fn link(ctx: &BuiltinContext<'_>, options: &Options, target: &str, name: &str) -> Result<()> {
    let place = absolute(ctx.cwd, name);
    let full = absolute(ctx.cwd, target);
    if !options.symbolic {
        // Before the old file goes.
        let found = ctx.fs.lstat(&full).await?;
        if found.file_type.is_dir() {
            return Err(Error::Io(std::io::Error::other("hard link not allowed for directory")));
        }
    }
    if options.force && place != full && ctx.fs.lstat(&place).await.is_ok() {
        ctx.fs.remove(&place, false).await?;
    }
    if !options.symbolic {
        return Ok(files::link(&full, &place)?);
    }
    if options.relative {
        let from = place.parent().unwrap_or(Path::new("/"));
        return ctx.fs.symlink(Path::new(&relative(from, &full)), &place).await;
    }
    ctx.fs.symlink(Path::new(target), &place).await
}
