//! The messages of Monty's worker protocol, as far as isolet reads or writes them.
//!
//! They follow `monty.proto` of the crate `monty-proto`, version 1.4. The crate itself is not used:
//! it needs a newer compiler, and depends on the types of Monty's interpreter.

pub(super) mod events;
pub(super) mod requests;
pub(super) mod settings;
pub(super) mod values;

/// The versions of the protocol that this worker serves.
pub(super) const PROTOCOLS: std::ops::RangeInclusive<u32> = 5..=6;

/// The first version in which the client has modules to import.
pub(super) const IMPORTS: u32 = 6;
