//! The first bytes of a connection, and how it is refused.
//!
//! # Bytes of a preamble
//!
//! | bytes | field |
//! |---|---|
//! | 4 | `HSPR` |
//! | 1 | version: 2 |
//! | 1 | connection: 1 control, 2 data |
//! | 1 | flags: bit 0 sealed; the others zero |
//! | 1 | zero |
//!
//! # Bytes of a refusal
//!
//! | bytes | field |
//! |---|---|
//! | 2 | zeros, where a handshake message has its length |
//! | 1 | 1 version, 2 mesh key, 3 identity, 4 busy, 5 token, 6 kind |

use super::codec::{FrameError, Reader, VERSION, sound};

const MARKER: [u8; 4] = *b"HSPR";
const SEALED: u8 = 1;

/// The first bytes that the dialling side sends.
///
/// *Usage:* on a control connection the handshake follows, on a data connection a
/// [`Token`](crate::Token). *Effects:* the dialled side continues in this version, or refuses.
/// *Side effects:* on a control connection the preamble is the prologue of the handshake: if it is
/// altered on the way, the handshake fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preamble {
    /// What the connection is for.
    pub connection: Connection,
    /// Whether the dialling side has a mesh key.
    pub sealed: bool,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// Messages, encrypted.
    Control = 1,
    /// Chunk frames, in clear, from the dialled side to the dialling one.
    Data = 2,
}

impl Preamble {
    /// Its length in bytes.
    pub const LENGTH: usize = 8;

    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let [a, b, c, d] = MARKER;
        let flags = if self.sealed { SEALED } else { 0 };
        [a, b, c, d, VERSION, self.connection as u8, flags, 0]
    }

    /// Reads a preamble.
    ///
    /// # Errors
    ///
    /// [`FrameError::Version`] if the version is another, and else [`FrameError::Kind`] if the kind of connection
    /// is not known, even if the bytes after it are malformed; [`FrameError::Malformed`] if these bytes are not a
    /// preamble.
    pub fn decode(bytes: &[u8; Self::LENGTH]) -> Result<Self, FrameError> {
        let mut reader = Reader::new(bytes);
        reader.opening(MARKER)?;
        let connection = match reader.byte()? {
            1 => Connection::Control,
            2 => Connection::Data,
            // Whatever its flags mean: a later version may define them with the kind.
            other => return Err(FrameError::Kind(other)),
        };
        let sealed = reader.flags(SEALED)? & SEALED != 0;
        sound(reader.byte()? == 0)?;
        Ok(Self { connection, sealed })
    }
}

crate::reasons! {
    /// Why the dialled side refuses a connection: sent in clear, in place of a handshake message.
    ///
    /// *Usage:* a length of zero, then the code; nothing on a data connection, which carries only chunk
    /// frames. *Effects:* the dialling side can report the reason, but must not trust it: any node on
    /// the path could have sent it. *Side effects:* the connection ends.
    pub enum Refusal {
        /// It speaks another version of the protocol.
        Version = "version",
        /// Its mesh key is another than ours.
        MeshKey = "mesh_key",
        /// Its identity is not proven, or unwelcome for a while.
        Identity = "identity",
        /// It has too many peers.
        Busy = "busy",
        /// The token for chunks is unknown, or was used before.
        Token = "token",
        /// It does not know this kind of connection.
        Kind = "kind",
    }
}

impl Refusal {
    /// The byte that encodes it, from 1.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8 + 1
    }

    /// The reason with this code; `None` if this version knows none.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.code() == code)
    }
}
