//! The vocabulary of Hearsay: the types that all other crates share.
//!
//! *What this is:* names of content ([`ChunkId`], [`RecordId`], [`ObjectKey`]), time ([`Instant`],
//! [`Date`]), the messages between peers ([`peer`]), the frames that monitor interfaces capture
//! ([`capture`]), timers ([`TimerQueue`]), the schemes that are compared ([`Scheme`]) and the systems
//! of the papers ([`Paper`]), and tables of counters ([`counters!`]). *Who calls it:* every crate. *What it never does:* read a clock, open anything,
//! decide anything. *Where to start:* `id.rs`.

pub mod capture;
pub mod counters;
mod digest;
mod id;
mod mix;
mod paper;
pub mod peer;
mod scheme;
mod time;
mod timer_queue;
pub mod varint;

pub use digest::Digest;
pub use id::{
    ChunkId, Hint, NodeId, ObjectKey, Oid, ParseIdError, PublicKey, RecordId, Signature, Token,
};
pub use mix::Mix;
pub use paper::Paper;
pub use scheme::{Interception, ParseSchemeError, Scheme, Selection};
pub use time::{Date, Instant};
pub use timer_queue::TimerQueue;
