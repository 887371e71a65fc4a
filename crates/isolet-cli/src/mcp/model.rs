//! The options about `llm_query`, by which the code asks a language model.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use isolet_mcp::llm::Llm;

use crate::args::value_parsers;
use isolet_service::core::in_options;

/// A language model that the code can ask, with `llm_query(prompt, schema=None)`.
#[derive(clap::Args)]
#[command(next_help_heading = "Other servers")]
pub(super) struct ModelArgs {
    /// Let the code ask a language model, by `llm_query(prompt, schema=None)`
    ///
    /// It is a server with the API `/chat/completions`, by the URL before that, such as
    /// `http://127.0.0.1:11434/v1`, or a command that reads a prompt and writes an answer.
    #[arg(long, value_name = "URL|COMMAND")]
    llm: Option<String>,
    /// The name of the model, for a URL
    #[arg(long, value_name = "NAME", requires = "llm", hide_short_help = true)]
    llm_model: Option<String>,
    /// The environment variable that has the key, for a URL
    #[arg(long, value_name = "VARIABLE", requires = "llm", conflicts_with = "llm_key_file")]
    #[arg(hide_short_help = true)]
    llm_key_env: Option<String>,
    /// The file that has the key, for a URL
    #[arg(long, value_name = "FILE", requires = "llm", hide_short_help = true)]
    llm_key_file: Option<PathBuf>,
    /// How often a run may ask
    #[arg(long, value_name = "COUNT", requires = "llm", default_value_t = 100)]
    #[arg(hide_short_help = true)]
    llm_calls: u64,
    /// How many tokens a run may spend on prompts and answers
    #[arg(long, value_name = "COUNT", requires = "llm", default_value_t = 1_000_000)]
    #[arg(hide_short_help = true)]
    llm_tokens: u64,
    /// Maximum time of a question
    #[arg(
        long,
        value_name = "TIME",
        requires = "llm",
        default_value = "2m",
        hide_short_help = true,
        value_parser = value_parsers::duration
    )]
    llm_timeout: Duration,
}

impl ModelArgs {
    /// Returns the model, if there is one.
    pub(super) fn llm(&self) -> Result<Option<Llm>> {
        let Some(text) = &self.llm else { return Ok(None) };
        let llm = Llm::from_text(text).map_err(|e| anyhow::anyhow!(in_options(&e.to_string())))?;
        let mut llm = llm.max_calls(self.llm_calls).max_tokens(self.llm_tokens);
        llm = llm.timeout(self.llm_timeout);
        let key = self.key()?;
        if !llm.is_server() && (key.is_some() || self.llm_model.is_some()) {
            bail!("`--llm` is a command, which gets no model and no key but by its own options");
        }
        if let Some(model) = &self.llm_model {
            llm = llm.model(model);
        }
        Ok(Some(match key {
            Some(key) => llm.key(key),
            None => llm,
        }))
    }

    /// Returns the file that has the key, if there is one.
    pub(super) fn key_file(&self) -> Option<&Path> {
        self.llm_key_file.as_deref()
    }

    fn key(&self) -> Result<Option<String>> {
        let key = match (&self.llm_key_env, &self.llm_key_file) {
            (Some(name), _) => {
                #[expect(clippy::disallowed_methods, reason = "the user named this one variable")]
                let value = std::env::var(name);
                value.with_context(|| format!("`{name}` of `--llm-key-env` has no key"))?
            }
            (None, Some(path)) => fs::read_to_string(path)
                .with_context(|| format!("cannot read `{}` of `--llm-key-file`", path.display()))?,
            (None, None) => return Ok(None),
        };
        let key = key.trim();
        if key.is_empty() {
            bail!("the key for `--llm` is empty");
        }
        Ok(Some(key.to_owned()))
    }
}
