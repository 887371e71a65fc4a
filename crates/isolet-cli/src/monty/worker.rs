//! Carries out the client's requests, in order.

use std::io;
use std::process::ExitCode;

use anyhow::Result;
use isolet::Engine;
use tokio::sync::mpsc;

use super::asks::request_name;
use super::channel::Incoming;
use super::feed::{self, After};
use super::messages::events::Event;
use super::messages::requests::{Configure, Request};
use super::report::{self, write_bare};
use super::session::Held;
use super::settings::{self, Settings};
use crate::show::exit;

/// A worker: no session, or one.
pub(super) struct Worker {
    engine: Engine,
    requests: mpsc::Receiver<Incoming>,
    held: Option<Held>,
}

impl Worker {
    pub(super) fn new(engine: Engine, requests: mpsc::Receiver<Incoming>) -> Self {
        Self { engine, requests, held: None }
    }

    /// Serves requests until `Shutdown`.
    pub(super) async fn serve(mut self) -> Result<ExitCode> {
        while let Some(incoming) = self.requests.recv().await {
            let after = match incoming {
                Ok(request) => self.carry_out(request).await?,
                Err(reason) => After::Broken(reason),
            };
            match after {
                After::Ready => {}
                After::Reset => self.reset()?,
                After::Shutdown => {
                    self.held = None;
                    write_bare(report::ok())?;
                    break;
                }
                After::Broken(reason) => {
                    self.held = None;
                    write_bare(report::fatal(reason))?;
                    return Ok(ExitCode::from(exit::FAILED));
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn carry_out(&mut self, request: Request) -> io::Result<After> {
        let event = match request {
            Request::Configure(configure) => match settings::check_version(&configure) {
                Ok(()) => self.configure(*configure).await,
                Err(refusal) => return Ok(After::Broken(refusal)),
            },
            Request::Feed(feed) => match &mut self.held {
                Some(held) => return feed::run(held, feed, &mut self.requests).await,
                None => violation("Feed before Configure"),
            },
            Request::InstallDependencies(install) => self.install(install.requirements).await,
            Request::Reset(_) => return Ok(After::Reset),
            Request::Shutdown(_) => return Ok(After::Shutdown),
            request @ (Request::Dump(_) | Request::Load(_)) => no_dumps(&request),
            request => violation(&format!("{} while nothing waits", request_name(&request))),
        };
        match &self.held {
            Some(held) => held.report.write(event)?,
            None => write_bare(event)?,
        }
        Ok(After::Ready)
    }

    async fn configure(&mut self, configure: Configure) -> Event {
        if self.held.is_some() {
            return violation("Configure in a session");
        }
        let settings = match Settings::read(configure) {
            Ok(settings) => settings,
            Err(reason) => return report::error("RuntimeError", reason),
        };
        match Held::start(&self.engine, settings).await {
            Ok(held) => {
                self.held = Some(held);
                report::ok()
            }
            Err(error) => report::error("RuntimeError", error.to_string()),
        }
    }

    async fn install(&mut self, requirements: Vec<String>) -> Event {
        let Some(held) = &mut self.held else {
            return violation("InstallDependencies before Configure");
        };
        match held.session.load_packages(requirements).await {
            Ok(_) => report::ok(),
            Err(error) => report::error("RuntimeError", error.to_string()),
        }
    }

    fn reset(&mut self) -> io::Result<()> {
        self.held = None;
        write_bare(report::ok())
    }
}

/// Returns the refusal of a request that does not fit here.
pub(super) fn violation(reason: &str) -> Event {
    report::error("RuntimeError", format!("protocol violation: {reason}"))
}

/// Returns the refusal of what saves and restores sessions.
pub(super) fn no_dumps(request: &Request) -> Event {
    let text = format!(
        "{} is not possible with isolet: a session of CPython cannot be saved; keep the session, \
         or run its code again",
        request_name(request)
    );
    report::error("RuntimeError", text)
}
