//! Header fields, and identifiers in lists.
//!
//! | part | bytes |
//! |---|---|
//! | field | name: text; value: bytes |
//! | selecting field | name: text; flags: bit 0 there is a value; then, if so, the value: bytes |
//!
//! Text and bytes are preceded by their length, a varint.

use super::codec::{FrameError, Item, Part, Reader, sound, write_bytes};
use super::get::Get;
use super::message::Message;
use crate::{ChunkId, Hint, NodeId};

/// A header field: a name in lower case, and its value.
///
/// The name is a token (RFC 9110 §5.6.2); the value is without CR, LF and NUL.
pub type Field = (String, Vec<u8>);

/// A request field that selects a variant (named by `Vary`), in normal form; `None` if the request
/// had none.
pub type Selecting = (String, Option<Vec<u8>>);

/// Flag: the selecting field has a value.
const VALUE: u8 = 1;

impl Part for Field {
    fn write(&self, out: &mut Vec<u8>) {
        write_bytes(self.0.as_bytes(), out);
        write_bytes(&self.1, out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        Ok((reader.text()?, reader.bytes()?))
    }

    fn check(&self) -> Result<(), FrameError> {
        sound(is_name(&self.0) && is_value(&self.1))
    }
}

impl Item for Field {
    const SHORTEST: usize = 3;
    const MOST: usize = Message::FIELDS_MAX;
}

impl Part for Selecting {
    fn write(&self, out: &mut Vec<u8>) {
        write_bytes(self.0.as_bytes(), out);
        match &self.1 {
            None => out.push(0),
            Some(value) => {
                out.push(VALUE);
                write_bytes(value, out);
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        let name = reader.text()?;
        let flags = reader.flags(VALUE)?;
        Ok((name, reader.option(flags & VALUE != 0, Reader::bytes)?))
    }

    fn check(&self) -> Result<(), FrameError> {
        sound(is_name(&self.0) && self.1.as_deref().is_none_or(is_value))
    }
}

impl Item for Selecting {
    const SHORTEST: usize = 3;
    const MOST: usize = Message::FIELDS_MAX;
}

/// Identifiers stand in lists as they are. Every value of the right length is valid.
macro_rules! identifiers {
    ($($name:ident: at most $most:expr),*) => {$(
        impl Part for $name {
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.0);
            }

            fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
                reader.array().map(Self)
            }

            fn check(&self) -> Result<(), FrameError> {
                Ok(())
            }
        }

        impl Item for $name {
            const SHORTEST: usize = Self::LEN;
            const MOST: usize = $most;
        }
    )*};
}

identifiers!(
    ChunkId: at most Message::WANTS_MAX,
    NodeId: at most Get::VISITED_MAX,
    Hint: at most Message::HELD_MAX
);

fn is_name(name: &str) -> bool {
    let is_lower_token = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&byte)
    };
    !name.is_empty() && name.bytes().all(is_lower_token)
}

fn is_value(value: &[u8]) -> bool {
    !value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0))
}
