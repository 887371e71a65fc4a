//! The limits of policies, as plain numbers.

use std::cmp::Ordering;
use std::time::Duration;

use isolet::Limits;
use serde::{Deserialize, Serialize};

use super::{Failure, execution};

/// The default maximum size of a value on a node, in bytes. Lower than the library's, because the
/// process also holds the values of other clients.
pub(crate) const NODE_VALUE_BYTES: u64 = 32 << 20;

/// The default maximum size of the arguments of waiting calls on a node, in bytes.
const NODE_CALL_BYTES: u64 = 8 << 20;

/// The default maximum size of a run's displays on a node, in bytes.
const NODE_DISPLAY_BYTES: u64 = 8 << 20;

/// A limit of the library that a policy writes as a plain number.
trait PlainLimit: Sized {
    type Plain;

    fn read(name: &str, plain: Self::Plain) -> Result<Self, Failure>;

    fn plain(self) -> Self::Plain;
}

impl PlainLimit for Duration {
    type Plain = f64;

    fn read(name: &str, seconds: f64) -> Result<Self, Failure> {
        execution::duration(name, seconds)
    }

    fn plain(self) -> f64 {
        self.as_secs_f64()
    }
}

macro_rules! plain_limit {
    ($($type:ty)*) => {$(
        impl PlainLimit for $type {
            type Plain = Self;

            fn read(_: &str, plain: Self) -> Result<Self, Failure> {
                Ok(plain)
            }

            fn plain(self) -> Self {
                self
            }
        }
    )*};
}

plain_limit!(u64 usize);

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident: $type:ty as $plain:ty, $setter:ident, $default:ident,
       $option:expr;)*) => {
        /// Limits. The library's defaults apply to those that are missing.
        #[derive(Clone, Debug, Default, Deserialize, Serialize)]
        #[derive(utoipa::ToSchema)]
        #[schema(as = Limits)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct LimitsEntry {
            $($(#[$doc])* #[serde(default)] pub(crate) $name: Option<$plain>,)*
        }

        impl LimitsEntry {
            pub(crate) fn limits(&self) -> Result<Limits, Failure> {
                let mut limits = Limits::default();
                $(if let Some(plain) = self.$name {
                    let name = concat!("limits.", stringify!($name));
                    limits = limits.$setter(<$type>::read(name, plain)?);
                })*
                Ok(limits)
            }
        }

        impl LimitsEntry {
            /// Sets only the time limit of a run, in seconds, if there is one.
            pub(crate) fn of_run_time(run_time: Option<f64>) -> Self {
                Self { run_time, ..Self::default() }
            }

            /// Raises the time limit of a run to this many seconds, if it is lower.
            pub(crate) fn raise_run_time(&mut self, seconds: Option<f64>) {
                self.run_time = match (self.run_time, seconds) {
                    (Some(own), Some(seconds)) => Some(own.max(seconds)),
                    (own, _) => own,
                };
            }

            /// Overwrites limits with those that `other` sets.
            pub(crate) fn replace(&mut self, other: Self) {
                $(self.$name = other.$name.or(self.$name);)*
            }

            /// The default limits of a node's sessions.
            pub(crate) fn of_node() -> Self {
                let default = Limits::default()
                    .max_value_bytes(NODE_VALUE_BYTES)
                    .max_call_bytes(NODE_CALL_BYTES)
                    .max_display_bytes(NODE_DISPLAY_BYTES);
                Self { $($name: Some(default.$name().plain()),)* }
            }

            /// Lowers limits to those of `most`.
            pub(crate) fn lower(&mut self, most: &Self) {
                $(if let (Some(own), Some(most)) = (self.$name, most.$name) {
                    self.$name = Some(if own < most { own } else { most });
                })*
            }

            /// Fails if a limit is above that of `self`.
            pub(crate) fn check(&self, asked: &Self) -> Result<(), Failure> {
                $(if let (Some(most), Some(asked)) = (self.$name, asked.$name)
                    // NaN is not lower either.
                    && !matches!(asked.partial_cmp(&most), Some(Ordering::Less | Ordering::Equal))
                {
                    let name = stringify!($name);
                    let message = format!("`limits.{name}`: limit {most}, asked for {asked}");
                    let hint = "leave it out, or ask the operator to raise it in the ceiling";
                    return Err(Failure::denied(message).with_hint(hint));
                })*
                Ok(())
            }
        }
    };
}

isolet::for_each_limit!(limits);
