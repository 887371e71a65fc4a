//! Homebrew's formula: what it needs to install the archives of a release.

use std::fmt::Write as _;

use anyhow::{Result, ensure};
use isolet_pyodide_assets::Digest;

/// The name of its file.
pub(super) const NAME: &str = "isolet.rb";

/// The systems and processors in Homebrew's words, and the platform of Rust whose archive they use.
const PLATFORMS: [(&str, [(&str, &str); 2]); 2] = [
    ("macos", [("arm", "aarch64-apple-darwin"), ("intel", "x86_64-apple-darwin")]),
    ("linux", [("arm", "aarch64-unknown-linux-gnu"), ("intel", "x86_64-unknown-linux-gnu")]),
];

/// Returns the formula for the archives among the files of a release.
pub(super) fn text(version: &str, files: &[(String, Digest)]) -> Result<String> {
    let mut platforms = String::new();
    let mut systems = Vec::new();
    for (system, processors) in PLATFORMS {
        let mut blocks = String::new();
        for (processor, triple) in processors {
            let suffix = format!("-{triple}.tar.gz");
            let archive = files.iter().find(|(name, _)| name.ends_with(&suffix));
            let Some((name, digest)) = archive else { continue };
            // Writing to a text cannot fail.
            let _ = write!(
                blocks,
                "    on_{processor} do\n      url \"#{{RELEASE}}/{name}\"\n      sha256 \"{digest}\"\n    \
                 end\n"
            );
        }
        if !blocks.is_empty() {
            systems.push(system);
            let _ = write!(platforms, "  on_{system} do\n{blocks}  end\n\n");
        }
    }
    ensure!(!systems.is_empty(), "there is no archive for Homebrew among the files");
    let only = if systems == ["linux"] { "  depends_on :linux\n\n" } else { "" };
    Ok(format!(
        "# Made by `cargo xtask release`.
class Isolet < Formula
  RELEASE = \"https://github.com/isolet/isolet/releases/download/v{version}\".freeze

  desc \"Run untrusted Python in a locked-down process\"
  homepage \"https://github.com/isolet/isolet\"
  version \"{version}\"
  license any_of: [\"MIT\", \"Apache-2.0\"]

{only}{platforms}  def install
    # The command finds Pyodide beside its directory, wherever links to it are.
    libexec.install \"bin\"
    (libexec/\"share\").install \"share/isolet\"
    bin.install_symlink libexec/\"bin/isolet\"
    man1.install Dir[\"share/man/man1/*\"]
    doc.install Dir[\"share/doc/isolet/*\"]
    bash_completion.install \"share/bash-completion/completions/isolet\"
    zsh_completion.install \"share/zsh/site-functions/_isolet\"
    fish_completion.install \"share/fish/vendor_completions.d/isolet.fish\"
  end

  test do
    assert_equal \"42\\n\", shell_output(\"#{{bin}}/isolet run -c 'print(6 * 7)'\")
  end
end
"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula_has_the_archives_that_there_are() {
        let digest = Digest::of(b"x");
        let file = |triple: &str| (format!("isolet-1.2.3-{triple}.tar.gz"), digest);
        let linux = text("1.2.3", &[file("x86_64-unknown-linux-gnu")]).unwrap();
        assert!(linux.contains("depends_on :linux") && !linux.contains("on_arm"), "{linux}");
        assert!(linux.contains(&format!("sha256 \"{digest}\"")), "{linux}");
        assert!(linux.contains("/v1.2.3\""), "{linux}");
        let both = [file("x86_64-unknown-linux-gnu"), file("aarch64-apple-darwin")];
        let both = text("1.2.3", &both).unwrap();
        assert!(both.contains("on_macos") && !both.contains("depends_on"), "{both}");
        assert!(text("1.2.3", &[file("x86_64-unknown-linux-musl")]).is_err());
    }
}
