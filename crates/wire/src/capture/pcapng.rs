//! Blocks of the newer capture format (draft-ietf-opsawg-pcapng).
#![deny(clippy::indexing_slicing, clippy::unwrap_used)]

use super::pcap::Order;
use super::records::{Cause, FRAME_MAX, Record};
use super::{Frame, take};
use crate::Instant;

/// The block type at the start of a section, and so of a file; the same in both byte orders.
pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;

const INTERFACE: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// Shows a section's byte order.
const BYTE_ORDER_MAGIC: [u8; 4] = [0x1a, 0x2b, 0x3c, 0x4d];

/// Options of an interface: the resolution of its times, and an offset in seconds.
const OPTION_END: u16 = 0;
const OPTION_TSRESOL: u16 = 9;
const OPTION_TSOFFSET: u16 = 14;

/// The shortest block: its type, its length, and the same length again at its end.
const SHORTEST: usize = 12;

/// The longest block that is parsed; blocks of other types may have any length.
pub(super) const BLOCK_MAX: usize = 1 << 20;

/// A limit on memory; no real capture has as many interfaces.
const INTERFACES_MAX: usize = 256;

/// State of the current section, from the blocks read so far.
#[derive(Clone, Debug)]
pub(super) struct Section {
    order: Order,
    interfaces: Vec<Interface>,
    /// The time of the last packet.
    time: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link_type: u32,
    /// Zero means no limit.
    snap_length: u32,
    units_per_second: Units,
    offset_seconds: i64,
}

#[derive(Clone, Copy, Debug)]
enum Units {
    PowerOfTen(u32),
    PowerOfTwo(u32),
}

/// A parsed block.
pub(super) struct Block<'a> {
    /// May exceed the given bytes if the block is of a type that is skipped.
    pub length: u32,
    pub record: Option<Record<'a>>,
}

impl Section {
    pub fn new() -> Self {
        Self { order: Order::Little, interfaces: Vec::new(), time: Instant::ZERO }
    }

    /// The block at the front; `None` if more bytes are needed.
    pub fn block<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<Block<'a>>, Cause> {
        let mut rest = bytes;
        let (Some(kind), Some(length)) = (take(&mut rest), take(&mut rest)) else {
            return Ok(None);
        };
        let kind = self.order.u32(kind);
        if kind == SECTION_HEADER {
            // A section header gives the byte order of its own length field.
            let Some(magic) = rest.first_chunk() else { return Ok(None) };
            *self = Self { order: order(*magic)?, ..Self::new() };
        }
        let length = self.order.u32(length);
        if length < SHORTEST as u32 || !length.is_multiple_of(4) {
            return Err(Cause::BlockLength);
        }
        if !matches!(kind, SECTION_HEADER | INTERFACE | SIMPLE_PACKET | ENHANCED_PACKET) {
            // The caller skips the block, so it need not be in memory.
            return Ok(Some(Block { length, record: None }));
        }
        if length as usize > BLOCK_MAX {
            return Err(Cause::BlockLength);
        }
        let Some(block) = bytes.get(..length as usize) else { return Ok(None) };
        let body = self.body(block)?;
        let record = match kind {
            INTERFACE => self.add_interface(body)?,
            SIMPLE_PACKET => Some(self.simple_packet(body)?),
            ENHANCED_PACKET => Some(self.enhanced_packet(body)?),
            _ => None,
        };
        Ok(Some(Block { length, record }))
    }

    /// The body of a block, between its two lengths, which must agree.
    fn body<'a>(&self, block: &'a [u8]) -> Result<&'a [u8], Cause> {
        let whole = block.split_last_chunk::<4>();
        let (front, last) = whole.ok_or(Cause::BlockLength)?;
        if self.order.u32(*last) as usize != block.len() {
            return Err(Cause::BlockLength);
        }
        front.get(8..).ok_or(Cause::BlockLength)
    }

    fn add_interface(&mut self, mut body: &[u8]) -> Result<Option<Record<'static>>, Cause> {
        let [low, high, _, _] = take(&mut body).ok_or(Cause::Block)?;
        let mut interface = Interface {
            link_type: self.order.u16([low, high]).into(),
            snap_length: self.order.take_u32(&mut body).ok_or(Cause::Block)?,
            // The default is microseconds.
            units_per_second: Units::PowerOfTen(6),
            offset_seconds: 0,
        };
        while let Some((code, value)) = self.option(&mut body)? {
            match (code, value) {
                (OPTION_TSRESOL, &[power]) if power & 0x80 == 0 => {
                    interface.units_per_second = Units::PowerOfTen(power.into());
                }
                (OPTION_TSRESOL, &[power]) => {
                    interface.units_per_second = Units::PowerOfTwo(u32::from(power & 0x7f));
                }
                (OPTION_TSOFFSET, &[a, b, c, d, e, f, g, h]) => {
                    let bytes = [a, b, c, d, e, f, g, h];
                    interface.offset_seconds = match self.order {
                        Order::Little => i64::from_le_bytes(bytes),
                        Order::Big => i64::from_be_bytes(bytes),
                    };
                }
                _ => {}
            }
        }
        if self.interfaces.len() == INTERFACES_MAX {
            return Err(Cause::Interfaces);
        }
        self.interfaces.push(interface);
        Ok(None)
    }

    /// Takes an option and its padding off the front; `None` at the end of options.
    fn option<'a>(&self, body: &mut &'a [u8]) -> Result<Option<(u16, &'a [u8])>, Cause> {
        let Some([c0, c1, l0, l1]) = take(body) else { return Ok(None) };
        let (code, length) = (self.order.u16([c0, c1]), usize::from(self.order.u16([l0, l1])));
        if code == OPTION_END {
            return Ok(None);
        }
        let value = body.get(..length).ok_or(Cause::Block)?;
        *body = body.get(length.next_multiple_of(4)..).ok_or(Cause::Block)?;
        Ok(Some((code, value)))
    }

    /// A packet of the first interface. It has no time of its own, and gets that of the packet
    /// before.
    fn simple_packet<'a>(&self, mut body: &'a [u8]) -> Result<Record<'a>, Cause> {
        let interface = self.interfaces.first().ok_or(Cause::NoInterface)?;
        let length = self.order.take_u32(&mut body).ok_or(Cause::Block)? as usize;
        let captured = match interface.snap_length {
            0 => length,
            limit => length.min(limit as usize),
        };
        // A truncated frame may be shorter than the interface's limit.
        let bytes = body.get(..captured).unwrap_or(body);
        if bytes.len() > FRAME_MAX {
            return Err(Cause::FrameLength);
        }
        let frame = Frame { link_type: interface.link_type, bytes, length };
        Ok(Record { time: self.time, frame })
    }

    fn enhanced_packet<'a>(&mut self, mut body: &'a [u8]) -> Result<Record<'a>, Cause> {
        let mut number = || self.order.take_u32(&mut body).ok_or(Cause::Block);
        let interface = number()? as usize;
        let (high, low) = (number()?, number()?);
        let (captured, length) = (number()? as usize, number()? as usize);
        let interface = self.interfaces.get(interface).ok_or(Cause::NoInterface)?;
        if captured > FRAME_MAX {
            return Err(Cause::FrameLength);
        }
        let bytes = body.get(..captured).ok_or(Cause::Block)?;
        self.time = interface.time(u64::from(high) << 32 | u64::from(low));
        let frame = Frame { link_type: interface.link_type, bytes, length };
        Ok(Record { time: self.time, frame })
    }
}

impl Interface {
    /// The date of a timestamp in the interface's units, clamped to the range of [`Instant`].
    fn time(&self, units: u64) -> Instant {
        let nanos = match self.units_per_second {
            Units::PowerOfTen(power @ ..=9) => u128::from(units) * 10u128.pow(9 - power),
            // A number of units below 10^20; dividing by 10^38 gives zero.
            Units::PowerOfTen(power) => u128::from(units) / 10u128.pow((power - 9).min(38)),
            // The product is below 2^94, so a shift by more gives zero.
            Units::PowerOfTwo(power) => (u128::from(units) * 1_000_000_000) >> power,
        };
        let offset = i128::from(self.offset_seconds) * 1_000_000_000;
        // Both are far below 2^127.
        let nanos = (nanos as i128 + offset).clamp(0, u64::MAX.into());
        Instant::from_nanos(nanos as u64)
    }
}

fn order(magic: [u8; 4]) -> Result<Order, Cause> {
    let mut reversed = magic;
    reversed.reverse();
    match BYTE_ORDER_MAGIC {
        it if it == magic => Ok(Order::Big),
        it if it == reversed => Ok(Order::Little),
        _ => Err(Cause::Magic),
    }
}
