//! The ledger's file: a snapshot, and entries that were added behind it.
//!
//! ```text
//! file     = "HSLEDGR1" frame(snapshot) frame(entry)*
//! frame    = length: u32 le, CRC-32 of the payload: u32 le, payload
//! snapshot = 1, begun, names, sums, (count, (number, sums)*) for hours, days, months, hosts
//! names    = count, (topic: u8, text)*              text  = length, bytes
//! sums     = count, (name, column: u8, count)*      hosts = count, (text, first, last, count, count)*
//! entry    = 2, date + 1 or 0, count, (topic: u8, text, column: u8, count)*
//! ```
//!
//! Numbers without a type are of variable length (`wire::varint`). *What survives:* a frame that is written only in
//! part, as when the power fails, is recognised by its sum and dropped with what is behind it. If the snapshot cannot
//! be read the file is worth nothing. *Budget:* a snapshot has at most [`SNAPSHOT_BYTES_MAX`]. In one that would be
//! larger, the oldest periods lose their classes first, then the oldest hours are dropped; the sums since the
//! beginning stay.

use super::sums::{Slot, Sums};
use super::{Amount, COLUMNS_MAX, HOSTS_MAX, Host, Ledger, OTHER, Period, Topic, is_name};
use wire::varint;

/// The file at most, in bytes.
pub const FILE_BYTES_MAX: usize = 256 << 10;
/// A snapshot at most, in bytes; the rest of the file is for entries.
pub const SNAPSHOT_BYTES_MAX: usize = 192 << 10;
/// Counts of one entry at most.
const AMOUNTS_MAX: usize = 4096;

const MAGIC: &[u8; 8] = b"HSLEDGR1";
/// Of a frame: length and sum.
const FRAME_BYTES: usize = 8;
const SNAPSHOT: u8 = 1;
const ENTRY: u8 = 2;

/// What a file had.
#[derive(Debug, PartialEq, Eq)]
pub struct Reading {
    /// The ledger, as far as it could be read.
    pub ledger: Ledger,
    /// The bytes of the file that were read; a further entry goes behind them.
    pub bytes: usize,
    /// What could not be read.
    pub lost: Lost,
}

/// What of a file could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Nothing.
    Nothing,
    /// This many bytes at the end.
    End(usize),
    /// All of it: it is not a ledger, or its snapshot is damaged.
    All,
}

/// Reads a file. An empty one is an empty ledger, but no entry may be added to it.
pub fn read(file: &[u8]) -> Reading {
    let nothing = |lost| Reading { ledger: Ledger::default(), bytes: 0, lost };
    if file.is_empty() {
        return nothing(Lost::Nothing);
    }
    let Some(mut rest) = file.strip_prefix(MAGIC).filter(|_| file.len() <= FILE_BYTES_MAX) else {
        return nothing(Lost::All);
    };
    let snapshot = take_frame(&mut rest);
    let Some(mut ledger) = snapshot.and_then(|bytes| snapshot_of(bytes.strip_prefix(&[SNAPSHOT])?))
    else {
        return nothing(Lost::All);
    };
    let mut lost = 0;
    while !rest.is_empty() {
        let mut ahead = rest;
        let entry = take_frame(&mut ahead);
        let Some((date, amounts)) = entry.and_then(|it| entry_of(it.strip_prefix(&[ENTRY])?))
        else {
            lost = rest.len();
            break;
        };
        ledger.add(date, &amounts);
        rest = ahead;
    }
    let lost_part = if lost == 0 { Lost::Nothing } else { Lost::End(lost) };
    Reading { ledger, bytes: file.len() - lost, lost: lost_part }
}

/// An entry, to be added to the file when [`Ledger::add`] is called with the same.
pub fn entry(date: Option<u64>, amounts: &[Amount]) -> Vec<u8> {
    let mut out = vec![ENTRY];
    varint::write(date.map_or(0, |date| date.saturating_add(1)), &mut out);
    let amounts = &amounts[..amounts.len().min(AMOUNTS_MAX)];
    varint::write(amounts.len() as u64, &mut out);
    for amount in amounts {
        out.push(amount.topic as u8);
        let name = if is_name(&amount.name) { &amount.name } else { OTHER };
        write_text(name, &mut out);
        out.push(amount.column);
        varint::write(amount.count, &mut out);
    }
    frame(&out)
}

impl Ledger {
    /// A new file with all of this. Where that would be too large, the oldest periods lose detail, here too.
    pub fn snapshot(&mut self) -> Vec<u8> {
        let mut payload = self.encode();
        for (period, part) in [(0, 2), (0, 1), (1, 2), (1, 1), (2, 2), (2, 1)] {
            if payload.len() <= SNAPSHOT_BYTES_MAX {
                break;
            }
            self.fold(period, part);
            payload = self.encode();
        }
        for ring in [0, 1, 2] {
            while payload.len() > SNAPSHOT_BYTES_MAX && !self.rings[ring].is_empty() {
                let half = self.rings[ring].len().div_ceil(2);
                self.rings[ring].drain(..half);
                payload = self.encode();
            }
        }
        [&MAGIC[..], &frame(&payload)].concat()
    }

    /// Sums up the classes of the oldest 1/`part` of a period's sums.
    fn fold(&mut self, period: usize, part: usize) {
        let other = self.name(Topic::Class, OTHER);
        let count = self.rings[period].len().div_ceil(part);
        for (_, sums) in self.rings[period].iter_mut().take(count) {
            let mut folded = Sums::default();
            for (slot, count) in sums.iter() {
                let is_class = self.names.get(slot.name()).is_some_and(|it| it.0 == Topic::Class);
                let slot = if is_class { Slot::new(other, slot.column()) } else { *slot };
                folded.add(slot, *count);
            }
            *sums = folded;
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = vec![SNAPSHOT];
        varint::write(self.begun, &mut out);
        varint::write(self.names.len() as u64, &mut out);
        for (topic, name) in &self.names {
            out.push(*topic as u8);
            write_text(name, &mut out);
        }
        write_sums(&self.ever, &mut out);
        for ring in &self.rings {
            varint::write(ring.len() as u64, &mut out);
            for (number, sums) in ring {
                varint::write((*number).into(), &mut out);
                write_sums(sums, &mut out);
            }
        }
        varint::write(self.hosts.len() as u64, &mut out);
        for host in &self.hosts {
            write_text(&host.name, &mut out);
            let [served, fetched] = host.counts;
            let numbers = [host.first, host.last, served, fetched];
            numbers.into_iter().for_each(|it| varint::write(it, &mut out));
        }
        out
    }
}

fn frame(payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_le_bytes();
    [&length[..], &crc32fast::hash(payload).to_le_bytes(), payload].concat()
}

fn take_frame<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (head, behind) = rest.split_at_checked(FRAME_BYTES)?;
    let length = u32::from_le_bytes(head[..4].try_into().ok()?);
    let (payload, behind) = behind.split_at_checked(length as usize)?;
    let sum = u32::from_le_bytes(head[4..].try_into().ok()?);
    *rest = behind;
    (crc32fast::hash(payload) == sum).then_some(payload)
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    varint::write(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

fn write_sums(sums: &Sums, out: &mut Vec<u8>) {
    varint::write(sums.iter().len() as u64, out);
    for (slot, count) in sums.iter() {
        varint::write(slot.name() as u64, out);
        out.push(slot.column());
        varint::write(*count, out);
    }
}

fn byte(rest: &mut &[u8]) -> Option<u8> {
    let (first, behind) = rest.split_first()?;
    *rest = behind;
    Some(*first)
}

/// A number up to `most`.
fn number(rest: &mut &[u8], most: usize) -> Option<usize> {
    usize::try_from(varint::read(rest)?).ok().filter(|it| *it <= most)
}

fn text(rest: &mut &[u8]) -> Option<String> {
    let length = number(rest, super::NAME_BYTES_MAX)?;
    let (bytes, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    let text = std::str::from_utf8(bytes).ok()?;
    is_name(text).then(|| text.to_owned())
}

fn topic(rest: &mut &[u8]) -> Option<Topic> {
    Topic::ALL.get(usize::from(byte(rest)?)).copied()
}

fn column(rest: &mut &[u8]) -> Option<u8> {
    byte(rest).filter(|it| *it < COLUMNS_MAX)
}

fn sums_of(rest: &mut &[u8], names: usize) -> Option<Sums> {
    let mut sums = Sums::default();
    let mut before = None;
    for _ in 0..number(rest, names * usize::from(COLUMNS_MAX))? {
        let name = number(rest, names.checked_sub(1)?)?;
        let slot = Slot::new(name as u16, column(rest)?);
        let count = varint::read(rest).filter(|it| *it > 0)?;
        if before.replace(slot).is_some_and(|before| before >= slot) {
            return None;
        }
        sums.add(slot, count);
    }
    Some(sums)
}

fn snapshot_of(mut rest: &[u8]) -> Option<Ledger> {
    let rest = &mut rest;
    let mut ledger = Ledger { begun: varint::read(rest)?, ..Ledger::default() };
    let names_max: usize = Topic::ALL.iter().map(|it| it.names_max() + 1).sum();
    for _ in 0..number(rest, names_max)? {
        let (topic, name) = (topic(rest).filter(|it| *it != Topic::Host)?, text(rest)?);
        let at = ledger.names.len();
        // Each name once, and no more than there may be.
        if usize::from(ledger.name(topic, &name)) != at || ledger.names[at].1 != name {
            return None;
        }
    }
    let names = ledger.names.len();
    ledger.ever = sums_of(rest, names)?;
    for period in Period::ALL {
        for _ in 0..number(rest, period.kept())? {
            let number = u32::try_from(varint::read(rest)?).ok()?;
            let sums = sums_of(rest, names)?;
            let ring = &mut ledger.rings[period as usize];
            if ring.iter().any(|(it, _)| *it == number) {
                return None;
            }
            ring.push((number, sums));
        }
    }
    for _ in 0..number(rest, HOSTS_MAX)? {
        let name = text(rest)?;
        let mut next = || varint::read(rest);
        let (first, last, counts) = (next()?, next()?, [next()?, next()?]);
        ledger.hosts.push(Host { name, first, last, counts });
    }
    rest.is_empty().then_some(ledger)
}

fn entry_of(mut rest: &[u8]) -> Option<(Option<u64>, Vec<Amount>)> {
    let rest = &mut rest;
    let date = varint::read(rest)?.checked_sub(1);
    let mut amounts = Vec::new();
    for _ in 0..number(rest, AMOUNTS_MAX)? {
        let (topic, name) = (topic(rest)?, text(rest)?);
        let (column, count) = (byte(rest)?, varint::read(rest)?);
        amounts.push(Amount { topic, name, column, count });
    }
    rest.is_empty().then_some((date, amounts))
}
