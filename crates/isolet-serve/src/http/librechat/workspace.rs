//! The directory `/mnt/data` of a run: the files that it is given, and those that it leaves.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use isolet::MimeData;
use serde::Deserialize;
use serde_json::{Value as AnyJson, json};

use super::Failed;
use crate::http::body::{DialectJson, in_turn};
use crate::http::problem::Problem;
use isolet_service::core::{Command, Execution, Policy};
use isolet_service::node::{
    Fingerprint, ImplicitGrants, KeptFile, MOST_SECONDS, NewFile, NewSession, Node, Refusal,
    SessionLease, Tenant,
};

pub(super) const DIRECTORY: &str = "/mnt/data";

/// The maximum number of files that a run is given, and of those that it leaves.
const MAX_GIVEN: usize = 1_000;
const MAX_LEFT: usize = 100;

/// The maximum length of a name with its directories, in bytes.
const MAX_NAME_BYTES: usize = 1_000;

/// The media type of files whose type nobody has named.
pub(super) const UNKNOWN: &str = "application/octet-stream";

/// The pictures among displays, and the ends of their names.
const PICTURES: [(&str, &str); 3] =
    [("image/png", "png"), ("image/jpeg", "jpg"), ("image/svg+xml", "svg")];

/// A file of a storage session.
#[derive(Deserialize)]
pub(in crate::http) struct FileRef {
    id: String,
    #[serde(default)]
    name: Option<String>,
    // Older clients send the second one.
    #[serde(default)]
    storage_session_id: Option<String>,
    #[serde(default)]
    session_id: Option<String>,
}

/// The files of a run, and the storage session to which it adds.
pub(super) struct Workspace {
    session: Option<String>,
    /// The files until they are written.
    files: BTreeMap<String, Arc<KeptFile>>,
    given: BTreeMap<String, Given>,
    /// What the client has to know of the files that are not there.
    missing: String,
}

/// A file that a run was given.
struct Given {
    is_fixed: bool,
    contents: Fingerprint,
}

/// Returns a name that stays in its directory, or `None` for one that is no name of a file.
pub(in crate::http) fn safe_name(name: &str) -> Option<String> {
    let name = name.strip_prefix(DIRECTORY).filter(|rest| rest.starts_with('/')).unwrap_or(name);
    let parts: Vec<_> = name.split('/').filter(|part| !matches!(*part, "" | "." | "..")).collect();
    let name = parts.join("/");
    let is_good =
        !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.chars().any(char::is_control);
    is_good.then_some(name)
}

/// Returns the session of a run.
pub(super) fn new_session(policy: Policy) -> NewSession {
    let most_run_time = Some(MOST_SECONDS);
    NewSession {
        policy: policy.ended_with_interpreter(),
        grants: ImplicitGrants { packages: true, most_run_time, ..ImplicitGrants::default() },
        ..NewSession::default()
    }
}

impl Workspace {
    /// Finds the files of a storage session, if the node has it, and those that are named.
    pub(super) fn find(
        node: &Node,
        tenant: &Tenant,
        session: Option<String>,
        files: &[FileRef],
    ) -> Result<Self, Failed> {
        if files.len() > MAX_GIVEN {
            let count = files.len();
            let text = format!("`files` has {count} files: limit {MAX_GIVEN}");
            return Err(Failed(Problem::unreadable(text)));
        }
        let kept = session.as_deref().and_then(|session| node.kept_files(tenant, session));
        let session = session.filter(|_| kept.is_some());
        let kept = kept.unwrap_or_default().into_iter();
        let mut missing = String::new();
        let mut found_files: BTreeMap<_, _> =
            kept.map(|kept| (kept.file.name.clone(), kept)).collect();
        for file in files {
            let storage = file.storage_session_id.as_deref().or(file.session_id.as_deref());
            let found = storage.and_then(|storage| node.kept_file(tenant, storage, &file.id));
            let Some(found) = found else {
                let name = file.name.as_deref().unwrap_or(&file.id).escape_debug();
                // Writing to a string does not fail.
                let _ = writeln!(missing, "the node has no file `{name}`, or no longer");
                continue;
            };
            let name = file.name.as_deref().and_then(safe_name);
            found_files.insert(name.unwrap_or_else(|| found.file.name.clone()), found);
        }
        Ok(Self { session, files: found_files, given: BTreeMap::new(), missing })
    }

    /// Answers for code that has not run, for this reason.
    pub(super) fn unchanged(
        self,
        node: &Node,
        tenant: &Tenant,
        problem: &Problem,
    ) -> Result<DialectJson, Failed> {
        let (id, _) = node.keep_files(tenant, self.session.as_deref(), Vec::new())?;
        let stderr = format!("{}\n", problem.text());
        Ok(DialectJson(json!({"session_id": id, "stdout": "", "stderr": stderr, "files": []})))
    }

    /// Writes the files into a session.
    pub(super) async fn write(
        &mut self,
        node: &Node,
        session: &SessionLease,
    ) -> Result<(), Refusal> {
        let put = async |path: String, contents: Vec<u8>| {
            node.carry_out(session, |reply| Command::PutFile { path, contents, reply }).await
        };
        if self.files.is_empty() {
            // Makes the directory.
            let path = format!("{DIRECTORY}/.new");
            put(path.clone(), Vec::new()).await?;
            node.carry_out(session, |reply| Command::RemoveFile { path, reply }).await?;
        }
        for (name, kept) in std::mem::take(&mut self.files) {
            put(format!("{DIRECTORY}/{name}"), kept.file.contents.clone()).await?;
            let length = kept.file.contents.len();
            let contents = in_turn(length, || kept.fingerprint()).await;
            self.given.insert(name, Given { is_fixed: kept.file.is_fixed, contents });
        }
        Ok(())
    }

    /// Keeps what a run has left. Returns the storage session, its new files for the client, and
    /// what the client has to know of those that are left out.
    pub(super) async fn keep(
        self,
        node: &Node,
        tenant: &Tenant,
        session: &SessionLease,
        execution: &Execution,
    ) -> Result<(String, Vec<AnyJson>, String), Refusal> {
        let mut said = self.missing.clone();
        let mut left = Vec::new();
        if !execution.session_ended {
            left = self.left(node, session, execution, &mut said).await?;
        }
        add_pictures(execution, &mut left);
        if left.len() > MAX_LEFT {
            let more = left.len() - MAX_LEFT;
            let _ = writeln!(said, "{more} files are left out: limit {MAX_LEFT}");
            left.truncate(MAX_LEFT);
        }
        let session = self.session.as_deref();
        let (id, kept) = match node.keep_files(tenant, session, left) {
            Err(refusal @ Refusal::Quota(_)) => {
                let text = Problem::from(refusal).text();
                let _ = writeln!(said, "the files of the code are not kept: {text}");
                node.keep_files(tenant, session, Vec::new())?
            }
            kept => kept?,
        };
        let shown = kept.iter().map(|kept| {
            json!({
                "id": kept.id,
                "name": kept.file.name,
                "path": format!("{DIRECTORY}/{}", kept.file.name),
                "storage_session_id": id,
                "session_id": id,
            })
        });
        let shown = shown.collect();
        Ok((id, shown, said))
    }

    /// Returns the files that a run has written.
    async fn left(
        &self,
        node: &Node,
        session: &SessionLease,
        execution: &Execution,
        said: &mut String,
    ) -> Result<Vec<NewFile>, Refusal> {
        let mut left = Vec::new();
        let most = session.session().max_value();
        for file in &execution.files {
            let path = file.path.as_str();
            let name = path.strip_prefix(DIRECTORY).and_then(|rest| rest.strip_prefix('/'));
            let Some(name) = name.filter(|name| is_shown(name)) else { continue };
            let given = self.given.get(name);
            if given.is_some_and(|given| given.is_fixed) {
                continue;
            }
            if file.size > most {
                let size = file.size;
                let _ = writeln!(said, "`{name}` has {size} bytes and is left out: limit {most}");
                continue;
            }
            let get = |reply| Command::GetFile { path: path.to_owned(), reply };
            let Some(contents) = node.carry_out(session, get).await? else { continue };
            // A file that was written as it was before is none of the run's.
            let fingerprint = in_turn(contents.len(), || Fingerprint::of(&contents)).await;
            if given.is_some_and(|given| given.contents == fingerprint) {
                continue;
            }
            let (name, kind) = (name.to_owned(), UNKNOWN.to_owned());
            left.push(NewFile { name, kind, contents, is_fixed: false });
            if left.len() > MAX_LEFT {
                break;
            }
        }
        Ok(left)
    }
}

/// Returns `true` for a name without hidden parts.
fn is_shown(name: &str) -> bool {
    let is_hidden = |part: &str| part.starts_with('.') || part == "__pycache__";
    safe_name(name).as_deref() == Some(name) && !name.split('/').any(is_hidden)
}

/// Adds the pictures that a run has displayed, as by `plt.show()`.
fn add_pictures(execution: &Execution, files: &mut Vec<NewFile>) {
    let mut number = 0;
    for display in &execution.displays {
        let formats: Vec<_> = display.formats().collect();
        let picture = PICTURES.iter().find_map(|(kind, end)| {
            let (_, data) = formats.iter().find(|(its, _)| its == kind)?;
            Some((*kind, *end, *data))
        });
        let Some((kind, end, data)) = picture else { continue };
        let contents = match data {
            MimeData::Bytes(bytes) => bytes.clone(),
            data => data.as_str().unwrap_or_default().as_bytes().to_vec(),
        };
        let name = loop {
            number += 1;
            let name = format!("plot_{number}.{end}");
            if files.iter().all(|file| file.name != name) {
                break name;
            }
        };
        files.push(NewFile { name, kind: kind.to_owned(), contents, is_fixed: false });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_in_its_directory() {
        for (name, safe) in [
            ("a.csv", Some("a.csv")),
            ("é/b c.txt", Some("é/b c.txt")),
            ("/mnt/data/a/b", Some("a/b")),
            ("/mnt/database", Some("mnt/database")),
            ("../../etc/passwd", Some("etc/passwd")),
            ("./a//../b/", Some("a/b")),
            ("", None),
            ("..", None),
            ("/", None),
            ("a\0b", None),
            ("a\nb", None),
        ] {
            assert_eq!(safe_name(name).as_deref(), safe, "{name:?}");
        }
        assert!(safe_name(&"x".repeat(MAX_NAME_BYTES + 1)).is_none());
        assert!(is_shown("a/b.c") && !is_shown(".a/b") && !is_shown("a/__pycache__/b.pyc"));
        assert!(!is_shown("a/../b") && !is_shown(""));
    }
}
