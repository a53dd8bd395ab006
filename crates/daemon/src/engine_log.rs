//! What the engine did, in the log under the router's name: its events, at `debug` and `trace`.

use node::Timer;
use node::events::Events;
use tracing::{Level, enabled};
use wire::Instant;

/// The target by which these lines can be filtered.
const TARGET: &str = "hearsay::engine";

/// Makes the engine record events, if the log shows them.
pub fn start(events: &mut Events) {
    events.watch(enabled!(target: TARGET, Level::DEBUG));
}

/// Logs what the engine did with an input.
pub fn drain(name: &str, events: &mut Events) {
    while let Some(event) = events.poll() {
        // The same JSON as in the simulator's files of events.
        let text = serde_json::to_string(&event).unwrap_or_default();
        match event.is_frequent() {
            true => tracing::trace!(target: TARGET, node = name, "{text}"),
            false => tracing::debug!(target: TARGET, node = name, "{text}"),
        }
    }
}

/// Logs what the engine waits for.
pub fn sleeps(name: &str, now: Instant, next: Option<(Instant, Timer)>) {
    match next {
        Some((at, timer)) => {
            tracing::trace!(target: TARGET, node = name, ?timer, wait = ?at - now, "sleeps");
        }
        None => tracing::trace!(target: TARGET, node = name, "sleeps until something happens"),
    }
}
