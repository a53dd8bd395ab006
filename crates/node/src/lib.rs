//! Everything one mesh node decides.
//!
//! *What it is:* a state machine without sockets, clocks, threads or files. Events enter as an
//! [`Input`] with a time; work for the driver leaves as an [`Output`]. Both are grouped by port:
//! clients, origins, connections with peers, the store. The daemon drives it with tokio on Linux;
//! the simulator and tests drive it in virtual time. *Who calls it:* a driver: it gives one input,
//! drains [`Node::poll_output`], and sleeps until [`Node::poll_timeout`]. *What it never does:*
//! read a clock, use randomness other than its seed's, block, or call back. *Where to start:* the
//! walks in ARCHITECTURE.md; `node.rs` and `node/turns.rs`, the loop; then the machines in the
//! order of a request: `client`, `source`, `object`, `publish`. `context.rs` lends the services
//! that all machines use. *Words:* unit, exchange, miss, transfer, reader, record and row are
//! defined in ARCHITECTURE.md, "Inside `node`". *Sources:* RFC 9110, 9111, 9112, 9211; MeshCache §3
//! (architecture A1, the gateway's cache).

mod access;
pub mod account;
mod catalogue;
mod chance;
mod chunks;
mod client;
mod clock;
mod context;
mod copies;
mod crossed;
mod dns;
pub mod driver;
pub mod events;
mod exchanges;
mod fault;
mod hasher;
mod heard;
mod hints;
mod holders;
mod http;
mod identity;
mod ids;
mod input;
mod mesh;
mod misbehaviour;
pub mod named;
mod node;
mod noise;
mod object;
mod output;
mod outside;
pub mod overhear;
mod peers;
mod publish;
mod pursuits;
mod records;
mod refusals;
mod report;
mod request;
mod routes;
mod source;
mod stock;
pub mod testing;
mod timer;
mod transfers;
mod trust;
mod turns;
mod unsigned;
pub mod uplink;
mod ways;

pub use access::{Access, Caller, Forbidden, Leads, Prefix, PrefixError, is_local, may_use, plain};
pub use catalogue::PublishedInfo;
pub use catalogue::stored_segment;
pub use client::miss::Forward;
pub use crossed::Crossed;
pub use events::{Event, SourceKind, Stale};
pub use fault::{Fault, dialled_in_vain, error_text};
pub use http::{
    Audience, ContentRange, NotStored, OPEN_KEY, Record, Refusal, Row, Screen, Target, Verdict,
    binds, frame, head_bytes, looks_like_http, repeats, strong_validator,
};
pub use input::{
    Binding, ClientInput, Config, Entrance, ExchangeId, FetchError, FetchId, Input, LinkId,
    LinkInput, Listening, Locating, Looked, MeshConfig, OriginInput, Overheard, PutError, Request,
    SearchConfig, SearchTimeout, Settings, Squares, StoreInput, Ticket,
};
pub use misbehaviour::Misbehaviour;
pub use node::{ByClass, Node};
pub use output::{ClientOutput, Dial, Fetch, Head, LinkOutput, OriginOutput, Output, StoreOutput};
pub use overhear::Overhearing;
pub use peers::{Instead, PeerInfo, Tamper};
pub use refusals::Refused;
pub use report::{Recent, Report, Requests, Unstored};
pub use routes::{Exit, Interface, Path, Paths, Route, RouteSource, RouteTable, Uplink};
pub use source::select;
pub use timer::Timer;
pub use ways::Ways;
