//! Loads packages into a session.

use std::sync::Arc;

use super::shared::Shared;
use super::variables::completed;
use crate::data::error::{Error, ErrorKind};
use crate::packages::{LoadedPackage, Requirement};
use crate::protocol::Command;

impl Shared {
    pub(super) async fn load_packages(
        self: &Arc<Self>,
        requirements: Vec<String>,
    ) -> Result<Vec<LoadedPackage>, Error> {
        let parse = |text: &String| {
            text.parse::<Requirement>().map_err(|error| {
                Error::new(ErrorKind::Packages, error.to_string()).with_session_alive()
            })
        };
        let requirements = requirements.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        let loaded = self.load(requirements).await?;
        if let Some(journal) = &self.journal {
            let pinned = loaded.iter().map(|one| format!("{}=={}", one.name, one.version));
            journal.packages(pinned.collect())?;
        }
        let report = self.quick(Command::PackagesLoaded).await?;
        completed(&report, "the guest could not look for the packages")?;
        Ok(loaded)
    }

    /// Loads packages of a journal again, each `NAME==VERSION`.
    pub(super) async fn load_again(&self, pinned: Vec<String>) -> Result<(), Error> {
        let parse = |text: &String| text.parse::<Requirement>().map_err(Error::from);
        let requirements = pinned.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        self.load(requirements).await.map(drop)
    }

    async fn load(&self, requirements: Vec<Requirement>) -> Result<Vec<LoadedPackage>, Error> {
        let packages = self.host.packages().clone();
        let (sender, loaded) = tokio::sync::oneshot::channel();
        let load = move || {
            // Sending fails only if nobody waits for the result any more.
            let _ = sender.send(packages.load(&requirements));
        };
        std::thread::Builder::new().name("isolet-packages".to_owned()).spawn(load).map_err(
            |error| {
                let message = format!("the thread that loads packages cannot start: {error}");
                Error::new(ErrorKind::Packages, message).with_session_alive().with_source(error)
            },
        )?;
        let ended = |_| Error::new(ErrorKind::Packages, "the thread that loads packages ended");
        loaded.await.map_err(ended)?
    }
}
