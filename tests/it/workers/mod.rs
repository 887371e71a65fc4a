//! Tests of what only workers do. They run once, not with each isolation.

mod copies;
mod event_loop;
mod forks;
#[cfg(target_os = "linux")]
mod security;
