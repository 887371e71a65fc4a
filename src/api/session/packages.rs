//! Loads packages into a session.

use std::sync::Arc;

use super::shared::Shared;
use super::variables::completed;
use crate::api::sandbox::on_packages_thread;
use crate::data::error::{Error, ErrorKind};
use crate::host::saved::SavedPackage;
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
            journal.loaded()?;
        }
        let report = self.quick(Command::PackagesLoaded).await?;
        completed(&report, "the guest could not look for the packages")?;
        Ok(loaded)
    }

    /// Loads packages that the owner of a session had loaded, which is replayed.
    pub(super) async fn load_again(&self, packages: Vec<SavedPackage>) -> Result<(), Error> {
        let of_session = self.host.packages().clone();
        on_packages_thread(move || of_session.load_exactly(&packages)).await
    }

    async fn load(&self, requirements: Vec<Requirement>) -> Result<Vec<LoadedPackage>, Error> {
        let packages = self.host.packages().clone();
        let loaded = on_packages_thread(move || packages.load(&requirements)).await;
        loaded.map_err(Error::with_session_alive)
    }
}
