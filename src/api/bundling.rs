//! Makes a bundle: resolves packages, compiles their modules in a session, and writes both.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::api::sandbox::{Sandbox, on_packages_thread};
use crate::data::cell::Cell;
use crate::data::error::{Error, ErrorKind};
use crate::data::execution::Outcome;
use crate::data::value::Value;
use crate::packages::{BundleWriter, LoadedPackage, Requirement, SITE_PACKAGES, Wheel, normalised};

/// The Python that compiles: the sources are in a variable.
const COMPILE: &str = include_str!("bundling.py");

/// How many bytes of source are compiled in one run, and how long that may take.
const BATCH_BYTES: usize = 1 << 20;
const BATCH_TIME: Duration = Duration::from_mins(5);

impl Sandbox {
    /// Writes packages, with all that they need, into the directory `to` as a
    /// [`Bundle`](crate::Bundle): their wheels with the bytecode of their modules, and what
    /// [`Bundle::open`](crate::Bundle::open) reads. The directory is made, or must be empty.
    ///
    /// `sets` names packages of it that are often imported together, from the smallest set to the
    /// largest. Sessions that import them start from images.
    ///
    /// The packages come from the sources of this sandbox's permissions, as for
    /// [`Session::load_packages`](crate::Session::load_packages). Nothing of them is run; a session
    /// compiles them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Packages`] if a package is unavailable, a set names one that is not in the
    /// bundle, or the directory cannot be written; otherwise as [`session`](Self::session).
    pub async fn bundle_packages<S: AsRef<str>>(
        &self,
        requirements: impl IntoIterator<Item = S>,
        sets: impl IntoIterator<Item = BTreeSet<String>>,
        to: impl Into<PathBuf>,
    ) -> Result<Vec<LoadedPackage>, Error> {
        let to = to.into();
        let normal = |set: BTreeSet<String>| set.iter().map(|name| normalised(name)).collect();
        let sets: Vec<BTreeSet<String>> = sets.into_iter().map(normal).collect();
        let parse = |one: S| one.as_ref().parse::<Requirement>();
        let requirements = requirements.into_iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        check_empty(&to)?;
        let packages = Arc::clone(self.packages());
        let mut writer = on_packages_thread(move || {
            Ok(BundleWriter::resolve(packages.store()?, &requirements)?)
        })
        .await?;
        let wheels = writer.wheels();
        let has = |name: &String| wheels.iter().any(|wheel| wheel.name() == name);
        if let Some(unknown) = sets.iter().flatten().find(|name| !has(name)) {
            let message =
                format!("a set of the bundle has `{unknown}`, which is not in the bundle");
            return Err(Error::new(ErrorKind::Packages, message));
        }
        for wheel in &wheels {
            let bytecode = self.bytecode(wheel).await?;
            let (wheel, to) = (Arc::clone(wheel), to.clone());
            writer = on_packages_thread(move || {
                writer.write(&to, &wheel, &bytecode)?;
                Ok(writer)
            })
            .await?;
        }
        on_packages_thread(move || Ok(writer.finish(&to, sets)?)).await
    }

    /// Compiles the modules of a wheel.
    async fn bytecode(&self, wheel: &Arc<Wheel>) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let sources = BundleWriter::sources(wheel)?;
        let mut compiled = Vec::with_capacity(sources.len());
        let mut batch = Vec::new();
        let mut bytes = 0;
        let mut left = sources.into_iter().peekable();
        while let Some(source) = left.next() {
            bytes += source.text.len();
            batch.push(source);
            if bytes < BATCH_BYTES && left.peek().is_some() {
                continue;
            }
            bytes = 0;
            let batch = std::mem::take(&mut batch);
            let given = batch.iter().map(|source| {
                let path = format!("{SITE_PACKAGES}/{}", source.path);
                Value::List(vec![Value::Str(path), Value::Bytes(source.text.to_vec())])
            });
            let cell = Cell::new(COMPILE).inputs([("sources", Value::List(given.collect()))]);
            // A session of its own for each, so that none runs short of memory.
            let execution = self.session().await?.run(cell.timeout(BATCH_TIME)).await?;
            let Outcome::Completed(Some(Value::List(codes))) = execution.outcome() else {
                let outcome = format!("{:?}", execution.outcome());
                let outcome = outcome.chars().take(1000).collect::<String>();
                let message = format!("the modules of {} do not compile: {outcome}", wheel.name());
                return Err(Error::new(ErrorKind::Packages, message));
            };
            let codes = batch.into_iter().zip(codes).filter_map(|(source, code)| match code {
                Value::Bytes(code) => Some((source.path, code.clone())),
                _ => None,
            });
            compiled.extend(codes);
        }
        Ok(compiled)
    }
}

/// Makes a directory, or checks that it is empty.
fn check_empty(directory: &PathBuf) -> Result<(), Error> {
    let refused = |reason: String| {
        let message = format!("`{}` cannot be used for a bundle: {reason}", directory.display());
        Err(Error::new(ErrorKind::Packages, message))
    };
    let made = std::fs::create_dir_all(directory);
    match made.and_then(|()| Ok(directory.read_dir()?.next().is_none())) {
        Ok(true) => Ok(()),
        Ok(false) => refused("it is not empty".to_owned()),
        Err(error) => refused(error.to_string()),
    }
}
