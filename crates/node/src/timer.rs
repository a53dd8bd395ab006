//! The timers of a node: why it asks to be woken.
//!
//! Each is owned by the service, engine or machine that sets it.
//! [`Node::poll_timeout`](crate::Node::poll_timeout) names the one that is due first.

use serde::Serialize;
use wire::Instant;

/// A reason for a node to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Timer {
    /// When to have the store make durable what was written.
    Sync,
    /// When to try the store again after it failed.
    StoreRetry,
    /// When to end a transfer that has no reader.
    Orphan,
    /// When to drop the beginning of an object that nobody has asked for again.
    Part,
    /// When to close the open segment of a manifest, because peers wait for the chunks in it.
    Segment,
    /// When to take a body for one that pauses, and send peers the bytes so far.
    Pause,
    /// When to look whether the peers and origins that were asked still deliver.
    Progress,
    /// When the selection scheme has something to do.
    Selection,
    /// When to read the list of published objects again, after it could not be read.
    PublishedList,
    /// When to dial an origin, since none is reached.
    Outside,
    /// When to write which addresses were the hosts'.
    Verified,
    /// When to tell the next hop which objects are stored here and behind.
    Copies,
    /// When to dial the next hop again.
    Meet,
    /// When to ping a peer, or to give up a silent peer or an unfinished connection.
    Peers,
    /// When to end an overheard connection on which nothing more was heard.
    OverheardFlow,
    /// When to write overheard chunks, though more would fit in one write.
    OverheardWrite,
    /// When a reader stops to wait for a chunk that might be overheard.
    OverheardWait,
}

/// The timer that is due first, and when; of those due at the same instant, the first by [`Timer`]'s order.
pub fn earliest(
    timers: impl IntoIterator<Item = (Timer, Option<Instant>)>,
) -> Option<(Instant, Timer)> {
    timers.into_iter().filter_map(|(timer, at)| Some((at?, timer))).min()
}
