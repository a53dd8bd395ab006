//! What a node has counted since it began, and what it holds now.

use crate::events::Stale;
use crate::fault::Fault;
use crate::http::NotStored;
use crate::misbehaviour::Misbehaviour;
use crate::overhear::Overhearing;
use crate::refusals::Refused;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use store::IndexReport;
use wire::Date;
use wire::counters::Tally;
use wire::peer::Refusal;

wire::counters! {
    /// Counters (monotonic) and gauges of one node. The control socket shows them as JSON, whose names are those of
    /// the fields: an interface, to which names are added and in which none is changed.
    pub struct Report, "" {
        Requests ("hearsay_served_bytes_total", source, "Content bytes given to clients, by where they came from.") {
            /// From the store or memory here, overheard ones apart.
            served_local_bytes: Counter, Bytes, "local";
            /// From a peer, as they arrived.
            served_peer_bytes: Counter, Bytes, "peer";
            /// Of units that were overheard before a peer had sent them.
            served_overheard_bytes: Counter, Bytes, "overheard";
            /// Overheard, in units that a peer completed.
            served_repaired_bytes: Counter, Bytes, "repaired";
            /// From an origin, as they arrived.
            served_origin_bytes: Counter, Bytes, "origin";
        }
        Requests () {
            /// Requests that were answered with an error of this proxy, by reason.
            errors: Tally<Fault>, Requests;
            /// Responses that were broken off because they had not the digest that was promised for them.
            digests_false: Counter, Requests;
            /// Requests that followed a redirect or a demand for a token, for requests of a mirror.
            detours: Counter, Requests;
            /// Requests answered by an object of another URI with the digest that was promised for theirs.
            aliases: Counter, Requests;
            /// Content bytes received from origins.
            origin_bytes: Counter, Bytes;
            /// Whether this router's requests reach origins, as far as it has asked any.
            uplink_up: Flag, Flag;
            /// For how long no origin has been reached.
            uplink_down_seconds: Gauge, Seconds;
            /// Beginnings of objects that are kept until somebody asks for the rest.
            parts: Gauge, Objects;
            /// Such beginnings that were dropped for others.
            parts_evicted: Counter, Objects;
            /// Requests being answered.
            exchanges: Gauge, Requests;
            /// Transfers from origins and peers under way.
            fetches: Gauge, Requests;
        }
        Process () {
            /// Inputs that came for something that is over, by what came.
            stale_inputs: Tally<Stale>, Events;
        }
        Mesh () {
            /// Connected peers.
            peers: Gauge, Peers;
            /// Peers that were disconnected because another node needed their place.
            peers_displaced: Counter, Peers;
            /// Connections of nodes that were refused, by reason.
            peers_refused: Tally<Refusal>, Connections;
            /// Peers that were expelled for a while, by what they did.
            peers_expelled: Tally<Misbehaviour>, Peers;
        }
        Mesh ("hearsay_mesh_bytes_total", direction, "Bytes exchanged with peers, everything counted.") {
            /// Received from peers.
            peer_in_bytes: Counter, Bytes, "in";
            /// Sent to peers.
            peer_out_bytes: Counter, Bytes, "out";
        }
        Mesh ("hearsay_mesh_unit_bytes_total", direction, "Bytes of units exchanged with peers, whole or in part.") {
            /// Received from peers.
            peer_units_in_bytes: Counter, Bytes, "in";
            /// Sent to peers.
            peer_units_out_bytes: Counter, Bytes, "out";
        }
        Mesh ("hearsay_asks_total", direction, "Requests exchanged with peers.") {
            /// Requests of peers.
            asks_in: Counter, Requests, "in";
            /// Requests to peers.
            asks_out: Counter, Requests, "out";
        }
        Mesh () {
            /// Requests of peers that were refused or ended because there was no memory for them.
            asks_short: Counter, Requests;
            /// Bytes of responses that were passed on to peers without being stored.
            relayed_opaque_bytes: Counter, Bytes;
            /// Transfers that continued from another source after theirs had failed.
            resumes: Counter, Requests;
            /// Wants for units, or for parts of units, that were sent to peers.
            wants_out: Counter, Chunks;
            /// Units that a peer was asked for and did not have.
            wants_lost: Counter, Chunks;
            /// Wants of peers that they cancelled before anything was sent.
            wants_taken_back: Counter, Chunks;
            /// Units that were not what a peer called them, or not what the manifest says that lists them.
            units_false: Counter, Chunks;
            /// Units that peers were asked for and have not sent yet.
            units_on_their_way: Gauge, Chunks;
            /// Memory for units that arrived before anything here wanted them.
            early_bytes: Gauge, Bytes;
            /// Units that arrived before anything here wanted them, and were dropped for others.
            early_dropped: Counter, Chunks;
            /// Messages of peers that were skipped because this version does not know their type.
            messages_unknown: Counter, Events;
            /// Messages of peers of which a part was skipped that this version does not know.
            parts_unknown: Counter, Events;
            /// Requests of peers that were ended because they require what this version does not know.
            asks_unknown: Counter, Requests;
            /// Published objects to which peers say they lead.
            hints: Gauge, Objects;
            /// Hints that were evicted for others.
            hints_evicted: Counter, Objects;
            /// Searches for copies, by broadcast.
            searches: Counter, Requests;
            /// Searches after which a router was asked that is not on the way to the gateway.
            searches_located: Counter, Requests;
            /// Requests to routers that were found or named, and that did not help.
            searches_in_vain: Counter, Requests;
            /// Requests of peers that were answered with the names of other routers.
            redirects: Counter, Requests;
            /// Objects that other routers are said to have.
            copies: Gauge, Objects;
            /// Messages about copies that were sent to the next hop.
            copies_told: Counter, Events;
            /// Searches of other routers that were passed on.
            locates_passed_on: Counter, Events;
            /// Searches of other routers that were not passed on, because searches had their share of the air.
            locates_spared: Counter, Events;
            /// Searches of other routers that were answered.
            locates_answered: Counter, Events;
            /// Datagrams that were none of this mesh.
            datagrams_refused: Counter, Events;
        }
        Published () {
            /// Objects that are published here.
            published: Gauge, Objects;
            /// Bytes of the objects that are published here.
            published_bytes: Gauge, Bytes;
            /// Objects published here that were sealed under another mesh key: they cannot be served.
            published_foreign: Gauge, Objects;
            /// Whether the list of published objects cannot be read: until it can, nothing is published or reclaimed.
            published_unread: Flag, Flag;
        }
        Store () {
            /// Units cut from content of origins.
            units_cut: Counter, Chunks;
            /// Units cut from content of origins that the store already had.
            units_known: Counter, Chunks;
            /// Bytes of the units that the store already had.
            known_bytes: Counter, Bytes;
            /// Units that the disk gave back wrong or not at all.
            units_bad: Counter, Chunks;
        }
        Process ("hearsay_memory_bytes", what, "Memory, by what it is used for.") {
            /// Units in memory, to be read again.
            hot_bytes: Gauge, Bytes, "hot";
            /// Units that wait to be written.
            pinned_bytes: Gauge, Bytes, "pinned";
            /// Rows of the catalogue.
            row_bytes: Gauge, Bytes, "rows";
            /// Segments of manifests.
            manifest_bytes: Gauge, Bytes, "manifests";
            /// Requests of peers.
            asked_bytes: Gauge, Bytes, "asked";
            /// Messages that wait because peers take them slowly.
            backlog_bytes: Gauge, Bytes, "backlog";
        }
        Store () {
            /// Records that were replaced or removed, and whose segments stay for those who read them.
            lingering: Gauge, Objects;
            /// Replaced records that were removed while they were read, because there were too many.
            lingering_refused: Counter, Objects;
            /// Whether the latest write to the store worked.
            store_works: Flag, Flag;
            /// Whether something was written that a power cut would still take.
            unsynced: Flag, Flag;
            /// Writes to the store that failed.
            store_failures: Counter, Events;
        }
        + {
            /// How requests were answered.
            pub requests: Requests,
            /// Responses that were not stored, by reason.
            pub not_stored: Tally<NotStored, Unstored>,
            /// What came of overhearing.
            pub overheard: Overhearing,
            /// The index of the store.
            pub index: IndexReport,
            /// The latest objects that clients got, the newest last; none where a mesh key hides what they are.
            pub recent: Vec<Recent>,
            /// Nodes that refused this one within the last hour, or that it refused, and that have not connected since.
            pub refusals: Vec<Refused>,
        }
    }

    /// How requests were answered; each request counts once.
    #[derive(Copy)]
    pub struct Requests, "" {
        Requests ("hearsay_requests_total", result, "Requests, by how they were answered; each counts once.") {
            /// From the store, fresh.
            hit: Counter, Requests, "hit";
            /// From the store, stale but permitted.
            stale: Counter, Requests, "stale";
            /// From the store, after the origin confirmed it.
            revalidated: Counter, Requests, "revalidated";
            /// From a transfer that another request had begun.
            collapsed: Counter, Requests, "collapsed";
            /// From the origin, stored.
            miss: Counter, Requests, "miss";
            /// From the origin, not stored.
            pass: Counter, Requests, "pass";
            /// Tunnelled by `CONNECT`.
            tunnel: Counter, Requests, "tunnel";
            /// Refused or failed by this proxy.
            error: Counter, Requests, "error";
        }
    }

    /// What was not stored for one reason.
    #[derive(Copy)]
    pub struct Unstored, "not_stored_" {
        Requests ("hearsay_not_stored_total") {
            /// Responses that were not stored, by reason.
            responses: Counter, Requests;
        }
        Requests () {
            /// Content bytes that were not stored, by reason.
            bytes: Counter, Bytes;
        }
    }
}

impl Requests {
    /// Requests answered without a transfer of their own from an origin.
    pub fn local(&self) -> u64 {
        self.hit + self.stale + self.revalidated + self.collapsed
    }

    /// Requests with an answer that could be stored. Tunnels are opaque, and errors have no content.
    pub fn visible(&self) -> u64 {
        self.local() + self.miss + self.pass
    }
}

/// Where the bytes of an object came from that a client got.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recent {
    /// What was asked for.
    pub uri: String,
    /// When it was complete; in JSON, in seconds since 1970.
    #[serde(serialize_with = "as_unix", deserialize_with = "from_unix")]
    pub when: Date,
    /// Content bytes the client got.
    pub bytes: u64,
    /// Among them: from the store or memory here, overheard ones apart.
    pub local_bytes: u64,
    /// From a peer, as they arrived.
    pub peer_bytes: u64,
    /// From the origin, as they arrived.
    pub origin_bytes: u64,
    /// Of units that were overheard before a peer had sent them.
    pub overheard_bytes: u64,
    /// Overheard, in units that a peer completed.
    pub repaired_bytes: u64,
    /// The name of the peer that was asked, if one was.
    pub source: String,
}

fn as_unix<S: Serializer>(date: &Date, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(date.as_unix())
}

fn from_unix<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Date, D::Error> {
    u64::deserialize(deserializer).map(Date::from_unix)
}
