//! The protocol between two nodes of a mesh: its frames and their bytes.
//!
//! *What this is:* the frames of both connections between two peers (docs/protocol.md). The
//! *control* connection begins with a [`Preamble`] and a Noise handshake, whose payloads are
//! [`Introduction`]s; then each Noise message holds one [`Message`]. The *data* connection begins
//! with a [`Preamble`] and a [`Token`](crate::Token); then chunk frames follow, each a
//! [`ChunkHead`] and the bytes that it announces. *Who calls it:* `node::peers`. *What it never
//! does:* encrypt, verify, or allocate more than the bytes received justify. *Where to start:*
//! [`Message`]. *Source:* our own.

mod chunk;
mod codec;
mod field;
mod get;
mod introduction;
mod message;
mod preamble;
mod response;

pub use chunk::{ChunkHead, Source};
pub use codec::{FrameError, VERSION};
pub use field::{Field, Selecting};
pub use get::{Get, Resume, Want};
pub use introduction::{Gateway, Hello, Introduction};
pub use message::{Message, Request};
pub use preamble::{Connection, Preamble, Refusal};
pub use response::{Head, Opaque, Outcome, segment_signed};
