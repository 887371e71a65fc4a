//! The rows of the threat table of docs/security.md that the command shows, and a check of that
//! table.

mod command;
mod environment;
mod files;
mod network;
mod packages;
mod realm;
mod table;
