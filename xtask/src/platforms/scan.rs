//! Reads the sources: which files are modules under which conditions, and what in them depends on
//! the target.

use std::path::{Path, PathBuf};
use std::{fs, mem};

use anyhow::{Context, Result, ensure};
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Lit, Meta};

use super::cfg::Cfg;

/// A file of Rust.
#[derive(Debug)]
pub(super) struct Source {
    /// Its path in the repository.
    pub(super) path: String,
    /// The name that Rust has for it, such as `isolet::worker::wire`.
    pub(super) module: String,
    /// When it is compiled: all of these have to hold.
    pub(super) when: Vec<Cfg>,
    /// The conditions in it that depend on the target, but for those of its modules' files.
    pub(super) inside: Vec<Cfg>,
    /// Its constants that are named after pages.
    pub(super) pages: Vec<String>,
    /// Its text without its tests.
    pub(super) text: String,
}

/// Reads a crate, beginning with its first file.
pub(super) fn read(root: &Path, first: &str, name: &str) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    read_file(root, Path::new(first), name.to_owned(), Vec::new(), &mut sources)?;
    Ok(sources)
}

fn read_file(
    root: &Path,
    path: &Path,
    module: String,
    when: Vec<Cfg>,
    into: &mut Vec<Source>,
) -> Result<()> {
    let shown = path.display();
    let text =
        fs::read_to_string(root.join(path)).with_context(|| format!("cannot read `{shown}`"))?;
    let parsed = syn::parse_file(&text).with_context(|| format!("cannot parse `{shown}`"))?;
    let mut reader = Reader::default();
    reader.visit_file(&parsed);
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
    let Reader { children, inside, pages, .. } = reader;
    let path_in_repository = path.to_string_lossy().replace('\\', "/");
    let own = Source { path: path_in_repository, module, when, inside, pages, text };
    let (module, when) = (own.module.clone(), own.when.clone());
    into.push(own);
    for child in children {
        let file = child.file(root, path)?;
        let when = when.iter().cloned().chain(child.when).collect();
        read_file(root, &file, format!("{module}::{}", child.names.join("::")), when, into)?;
    }
    Ok(())
}

/// A module that has a file of its own.
#[derive(Debug)]
struct Child {
    /// Its name, after those of the modules in the file that it is in.
    names: Vec<String>,
    when: Vec<Cfg>,
    /// The path that an attribute names.
    named: Option<String>,
}

impl Child {
    /// Returns its file, which the file `parent` declares.
    fn file(&self, root: &Path, parent: &Path) -> Result<PathBuf> {
        let directory = parent.parent().unwrap_or(Path::new(""));
        if let Some(named) = &self.named {
            return Ok(directory.join(named));
        }
        let stem = parent.file_stem().unwrap_or_default().to_string_lossy();
        let mut place = match &*stem {
            "lib" | "main" | "mod" => directory.to_owned(),
            stem => directory.join(stem),
        };
        place.extend(&self.names);
        let found = [place.with_extension("rs"), place.join("mod.rs")];
        let found = found.into_iter().find(|file| root.join(file).is_file());
        let name = self.names.join("::");
        found
            .with_context(|| format!("`{}` has a module `{name}` without a file", parent.display()))
    }
}

#[derive(Default)]
struct Reader {
    children: Vec<Child>,
    inside: Vec<Cfg>,
    pages: Vec<String>,
    /// The modules that this is in, and their conditions.
    names: Vec<String>,
    when: Vec<Cfg>,
}

/// Returns the conditions under which an item is compiled.
fn conditions(attributes: &[Attribute]) -> Vec<Cfg> {
    let ours = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    ours.filter_map(|attribute| Cfg::of(&attribute.parse_args::<Meta>().ok()?)).collect()
}

/// Returns the path of a module's file, if an attribute names one.
fn named_path(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| {
        let Meta::NameValue(pair) = &attribute.meta else { return None };
        let Expr::Lit(value) = &pair.value else { return None };
        match &value.lit {
            Lit::Str(text) if pair.path.is_ident("path") => Some(text.value()),
            _ => None,
        }
    })
}

/// Whether it is compiled for tests only.
fn is_for_tests(when: &[Cfg]) -> bool {
    when.iter().any(|cfg| match cfg {
        Cfg::Name(name) => name == "test",
        Cfg::All(parts) => is_for_tests(parts),
        _ => false,
    })
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let when = conditions(&item.attrs);
        if is_for_tests(&when) {
            return;
        }
        self.names.push(item.ident.to_string());
        if item.content.is_some() {
            let before = self.when.len();
            self.when.extend(when);
            visit::visit_item_mod(self, item);
            self.when.truncate(before);
        } else {
            let when = self.when.iter().cloned().chain(when).collect();
            let named = named_path(&item.attrs);
            self.children.push(Child { names: self.names.clone(), when, named });
        }
        self.names.pop();
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        let name = item.ident.to_string();
        // Of memory, not of documentation or a browser.
        let is_text = matches!(*item.ty, syn::Type::Reference(_));
        if !is_text && name.split('_').any(|word| word == "PAGE") {
            self.pages.push(name);
        }
        visit::visit_item_const(self, item);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let condition = if attribute.path().is_ident("cfg") {
            attribute.parse_args::<Meta>().ok()
        } else if attribute.path().is_ident("cfg_attr") {
            let parse = syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated;
            attribute.parse_args_with(parse).ok().and_then(|parts| parts.into_iter().next())
        } else {
            None
        };
        self.note(condition.as_ref());
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        if called.path.segments.last().is_some_and(|segment| segment.ident == "cfg") {
            self.note(called.parse_body::<Meta>().ok().as_ref());
        }
        visit::visit_macro(self, called);
    }
}

impl Reader {
    fn note(&mut self, condition: Option<&Meta>) {
        let found = condition.and_then(Cfg::of);
        self.inside.extend(
            found.filter(|cfg| cfg.is_of_target() && !is_for_tests(std::slice::from_ref(cfg))),
        );
    }
}

/// Returns the names of the variants of an enum in a file.
pub(super) fn variants(root: &Path, path: &str, name: &str) -> Result<Vec<String>> {
    #[derive(Default)]
    struct Found<'a>(&'a str, Vec<String>);
    impl<'ast> Visit<'ast> for Found<'_> {
        fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
            if item.ident == self.0 {
                self.1.extend(item.variants.iter().map(|variant| variant.ident.to_string()));
            }
        }
    }
    let text =
        fs::read_to_string(root.join(path)).with_context(|| format!("cannot read `{path}`"))?;
    let mut found = Found(name, Vec::new());
    found.visit_file(&syn::parse_file(&text).with_context(|| format!("cannot parse `{path}`"))?);
    let names = mem::take(&mut found.1);
    ensure!(!names.is_empty(), "`{path}` has no enum `{name}`");
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_found_with_their_conditions_and_those_inside_too() {
        let dir = std::env::temp_dir().join(format!("isolet-xtask-scan-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let path = dir.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "src/lib.rs",
            "#[cfg(unix)] mod a;\n#[cfg(windows)]\n#[path = \"other.rs\"] mod a;\n\
             mod inner { #[cfg(feature = \"x\")] mod deep; }\n#[cfg(test)] mod tests;\n\
             fn f() -> bool { cfg!(target_arch = \"x86_64\") }\n#[cfg_attr(unix, allow(x))] fn g() {}",
        );
        write("src/a/mod.rs", "mod b;\nconst PAGE_BYTES: usize = 4096;\nconst PAGE: &str = \"\";");
        write("src/a/b.rs", "");
        write("src/other.rs", "");
        write("src/inner/deep.rs", "fn f() { #[cfg(all(test, unix))] g(); }");
        let sources = read(&dir, "src/lib.rs", "c").unwrap();
        let shown = |source: &Source| {
            let list =
                |cfgs: &[Cfg]| cfgs.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            let (module, path) = (&source.module, &source.path);
            format!(
                "{module} {path} [{}] [{}] {:?}",
                list(&source.when),
                list(&source.inside),
                source.pages
            )
        };
        let expected = [
            "c src/lib.rs [] [target_arch=\"x86_64\"; unix] []",
            "c::a src/a/mod.rs [unix] [] [\"PAGE_BYTES\"]",
            "c::a::b src/a/b.rs [unix] [] []",
            "c::a src/other.rs [windows] [] []",
            "c::inner::deep src/inner/deep.rs [feature=\"x\"] [] []",
        ];
        let found: Vec<String> = sources.iter().map(shown).collect();
        assert_eq!(found, expected);
        fs::remove_file(dir.join("src/a/b.rs")).unwrap();
        let error = read(&dir, "src/lib.rs", "c").unwrap_err().to_string();
        assert!(error.contains("a module `b` without a file"), "{error}");
        fs::remove_dir_all(dir).unwrap();
    }
}
