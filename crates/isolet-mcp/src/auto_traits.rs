//! Asserts at compile time that the public types can move between threads and be shared by them.

use super::{
    Ask, CallRecord, Config, Environment, Hub, HubBuilder, PinDiff, Rule, ServerConfig,
    ServerReport, ToolInfo,
};

const fn shared<T: Send + Sync>() {}

const _: () = {
    shared::<Ask>();
    shared::<CallRecord>();
    shared::<Config>();
    shared::<Environment>();
    shared::<Hub>();
    shared::<HubBuilder>();
    shared::<PinDiff>();
    shared::<Rule>();
    shared::<ServerConfig>();
    shared::<ServerReport>();
    shared::<ToolInfo>();
};

/// The futures can be spawned on a runtime with several threads.
#[expect(dead_code, reason = "only compiled")]
fn futures(hub: &Hub) {
    fn sent(_: impl Future + Send) {}
    sent(hub.tools("x"));
    sent(hub.describe("x"));
    sent(hub.check("x"));
    sent(hub.accept("x"));
}
