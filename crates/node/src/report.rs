//! What a node has counted since it began, and what it holds now.

use crate::overhear::Overhearing;
use std::collections::BTreeMap;
use store::IndexReport;
use wire::Date;

/// Counters (monotonic) and gauges of one node; the control socket shows them.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How requests were answered.
    pub requests: Requests,
    /// Content bytes given to clients out of the store or memory, overheard ones apart.
    pub served_local_bytes: u64,
    /// Content bytes given to clients as they came from an origin.
    pub served_origin_bytes: u64,
    /// Content bytes given to clients as they came from a peer.
    pub served_peer_bytes: u64,
    /// Content bytes given to clients that are of units which were overheard before a peer had sent them.
    pub served_overheard_bytes: u64,
    /// Content bytes given to clients that were overheard, of units of which a peer sent the rest.
    pub served_repaired_bytes: u64,
    /// Content bytes received from origins.
    pub origin_bytes: u64,
    /// Bytes of units received from peers and sent to peers, whole or in part.
    pub peer_units_in_bytes: u64,
    /// Bytes of units sent to peers.
    pub peer_units_out_bytes: u64,
    /// Bytes of everything received from peers.
    pub peer_in_bytes: u64,
    /// Bytes of everything sent to peers.
    pub peer_out_bytes: u64,
    /// Bytes of responses that were given on to peers without being stored.
    pub relayed_opaque_bytes: u64,
    /// Requests of peers, and ours to peers.
    pub asks_in: u64,
    /// Our requests to peers.
    pub asks_out: u64,
    /// Requests of peers that were refused, or ended, because there was no memory for them.
    pub asks_short: u64,
    /// What requests of peers take of memory, in bytes.
    pub asked_bytes: u64,
    /// Messages that wait because peers take them slowly, in bytes.
    pub backlog_bytes: u64,
    /// Transfers that went on by another way after theirs had broken.
    pub resumes: u64,
    /// Units that peers were asked for, or parts of units; each time that they were.
    pub wants_out: u64,
    /// Units that a peer was asked for and did not have.
    pub wants_lost: u64,
    /// Wants of peers that they took back before anything was sent.
    pub wants_taken_back: u64,
    /// What came of overhearing.
    pub overheard: Overhearing,
    /// Units that were not what a peer called them, or not what the manifest says that lists them.
    pub units_false: u64,
    /// Units that peers were asked for and have not sent yet.
    pub units_on_their_way: u64,
    /// Memory for units that came before anybody wanted them, in bytes.
    pub early_bytes: u64,
    /// Such units that had to go before anybody did.
    pub early_dropped: u64,
    /// What peers say they lead to.
    pub hints: u64,
    /// Hints that had to go for others.
    pub hints_evicted: u64,
    /// Objects that are published here.
    pub published: u64,
    /// Objects among them that were sealed under another mesh key: nobody can be given them.
    pub published_foreign: u64,
    /// The list of what is published here cannot be read: nothing is put or reclaimed until it can.
    pub published_unread: bool,
    /// Bytes of what is published here.
    pub published_bytes: u64,
    /// Peers that are there now.
    pub peers: u64,
    /// Peers that left because the next hop or the gateway needed their place.
    pub peers_displaced: u64,
    /// Responses and their content bytes that were not stored, by reason.
    pub not_stored: BTreeMap<&'static str, Unstored>,
    /// Units cut from content of origins.
    pub units_cut: u64,
    /// Units among them that the store already had, and their bytes.
    pub units_known: u64,
    /// Bytes of the units that the store already had.
    pub known_bytes: u64,
    /// Units that the disk gave back wrong or not at all.
    pub units_bad: u64,
    /// Units waiting to be written, in bytes.
    pub pinned_bytes: u64,
    /// Units in memory, in bytes.
    pub hot_bytes: u64,
    /// Rows of the catalogue in memory, in bytes.
    pub row_bytes: u64,
    /// Manifest segments in memory, in bytes.
    pub manifest_bytes: u64,
    /// Records that were replaced, or removed, and whose segments stay for somebody who reads them.
    pub lingering: u64,
    /// Such records that went all the same, because too many lingered.
    pub lingering_refused: u64,
    /// Requests being answered.
    pub exchanges: u64,
    /// Transfers from origins under way.
    pub fetches: u64,
    /// Whether the latest write to the store worked.
    pub store_works: bool,
    /// Whether something was written that a power cut would still take.
    pub unsynced: bool,
    /// Writes to the store that failed.
    pub store_failures: u64,
    /// The index of the store.
    pub index: IndexReport,
    /// The latest objects that clients got, the newest last; none where a mesh key hides what they are.
    pub recent: Vec<Recent>,
}

/// Where the bytes of an object came from that a client got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recent {
    /// What was asked for.
    pub uri: String,
    /// When it was complete.
    pub when: Date,
    /// Content bytes the client got.
    pub bytes: u64,
    /// Among them: out of the store or memory here, overheard ones apart.
    pub local_bytes: u64,
    /// As they came from a peer.
    pub peer_bytes: u64,
    /// As they came from the origin.
    pub origin_bytes: u64,
    /// Of units that were overheard before a peer had sent them.
    pub overheard_bytes: u64,
    /// Overheard, of units of which a peer sent the rest.
    pub repaired_bytes: u64,
    /// The name of the peer that was asked, if one was.
    pub source: String,
}

/// How requests were answered; each request counts once.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// Out of the store, fresh.
    pub hit: u64,
    /// Out of the store, stale but permitted.
    pub stale: u64,
    /// Out of the store, after the origin confirmed it.
    pub revalidated: u64,
    /// From the origin, stored.
    pub miss: u64,
    /// From a transfer that another request had begun.
    pub collapsed: u64,
    /// From the origin, not stored.
    pub pass: u64,
    /// Tunnelled by `CONNECT`.
    pub tunnel: u64,
    /// Refused or failed by ourselves.
    pub error: u64,
}

/// What was not stored for one reason.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unstored {
    /// Responses.
    pub responses: u64,
    /// Content bytes.
    pub bytes: u64,
}
