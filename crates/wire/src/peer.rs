//! The protocol between two nodes of a mesh: its frames and their bytes.
//!
//! *What this is:* the frames of both connections between two peers (docs/protocol.md). The
//! *control* connection begins with a [`Preamble`] and a Noise handshake, whose payloads are
//! [`Introduction`]s; then each Noise message holds one [`Message`]. The *data* connection begins
//! with a [`Preamble`] and a [`Token`](crate::Token); then chunk frames follow, each a
//! [`ChunkHead`] and the bytes that it announces. Searches go by datagram, each a [`Call`]. *Who calls it:* `node::peers`. *What it never
//! does:* encrypt, verify, or allocate more than the bytes received justify. *Where to start:*
//! [`Message`]. *Source:* our own.

mod address;
mod capability;
mod chunk;
mod codec;
mod copies;
mod datagram;
mod field;
mod get;
mod introduction;
mod message;
mod options;
mod outcome;
mod preamble;
mod response;

pub use capability::Capability;
pub use chunk::{ChunkHead, Source};
pub use codec::{FrameError, VERSION};
pub use copies::{Copies, Cost, Reach};
pub use datagram::{Call, Envelope, Found, Locate, Search, Setup};
pub use field::{Field, Selecting};
pub use get::{Get, Resume, Want};
pub use introduction::{Gateway, Hello, Introduction};
pub use message::{Message, Received, Request};
pub use options::{ByteRange, Options, Passed};
pub use outcome::{Outcome, Router};
pub use preamble::{Connection, Preamble, Refusal};
pub use response::{Head, Opaque, segment_signed};
