//! The beginnings of bodies that nobody reads any more: clients that leave often come back, and others want the same. The rest
//! is asked for by range when somebody asks for the object again, if the origin then guarantees the same version.
//!
//! *What it owns:* what a transfer knew when it ended. The units that had come are in the store, like those of any object
//! without a row: they may be evicted, and what is missing is fetched again. *Bounds:* [`PARTS_MAX`] of them, the oldest
//! makes room, and [`KEPT_FOR`] each.

use super::incoming::Incoming;
use crate::http;
use crate::pursuits::{Goal, Quest, Rest};
use ::http::{HeaderMap, Method, header};
use std::collections::VecDeque;
use std::time::Duration;
use wire::{Instant, ObjectKey, RecordId};

/// Parts that are kept. Each takes the memory of a transfer without readers: a few KiB, and at most a unit and a segment.
const PARTS_MAX: usize = 16;
/// How long each is kept.
const KEPT_FOR: Duration = Duration::from_secs(3600);
/// A shorter part is not worth the request for its rest, in bytes.
const PART_MIN: u64 = 64 * 1024;

/// The parts; see the module.
#[derive(Debug, Default)]
pub struct Parts {
    /// The oldest first.
    all: VecDeque<Part>,
    /// Records of parts that are not kept any more.
    dropped: Vec<RecordId>,
    /// How many were dropped for others.
    pub evicted: u64,
}

#[derive(Debug)]
struct Part {
    key: ObjectKey,
    until: Instant,
    incoming: Incoming,
}

impl Incoming {
    /// Whether its rest could be asked for later.
    fn is_of_use_later(&self) -> bool {
        let is_object = self.label.as_ref().is_some_and(|label| label.named.is_none());
        let is_stored = !self.memory_only && self.unstored.is_empty();
        self.received_bytes >= PART_MIN && is_object && is_stored && self.rest().is_some()
    }
}

impl Parts {
    /// Keeps what has come, or returns it if that is of no use.
    pub fn put(&mut self, now: Instant, mut incoming: Incoming) -> Result<(), Box<Incoming>> {
        let key = incoming.label.as_ref().map(|it| it.key);
        let Some(key) = key.filter(|_| incoming.is_of_use_later()) else {
            return Err(Box::new(incoming));
        };
        // What an index promises is learned from a whole one; its reader may be large.
        incoming.index = None;
        incoming.readers.clear();
        incoming.pause_at = None;
        if let Some(before) = self.take(&key) {
            self.reject(&before);
        }
        self.all.push_back(Part { key, until: now + KEPT_FOR, incoming });
        if self.all.len() > PARTS_MAX {
            self.evicted += 1;
            self.dropped.extend(self.all.pop_front().map(|it| it.incoming.record));
        }
        Ok(())
    }

    /// A part that was taken does not go on: what the store has of it is dropped.
    pub fn reject(&mut self, part: &Incoming) {
        self.dropped.push(part.record);
    }

    /// Makes a plain request for an object one for what is missing of it, if a part is here that the request selects. Returns
    /// where that begins.
    pub fn ask_for_rest(&self, quest: &mut Quest) -> Option<u64> {
        let headers = &mut quest.headers;
        let is_plain = quest.goal == Goal::Head
            && quest.ask.method == Method::GET
            && !headers.contains_key(header::RANGE)
            && !http::CONDITIONS.iter().any(|name| headers.contains_key(name));
        let Rest { from, validator } = self.rest(&quest.ask.key, headers).filter(|_| is_plain)?;
        http::make_ranged(headers, from, None, Some(validator));
        Some(from)
    }

    fn rest(&self, key: &ObjectKey, request: &HeaderMap) -> Option<Rest> {
        let part = &self.all.iter().find(|it| it.key == *key)?.incoming;
        part.rest().filter(|_| http::selects(&part.so_far(), request))
    }

    /// Takes the part of an object.
    pub fn take(&mut self, key: &ObjectKey) -> Option<Incoming> {
        let at = self.all.iter().position(|it| it.key == *key)?;
        self.all.remove(at).map(|it| it.incoming)
    }

    /// When [`pop_due`](Self::pop_due) has something.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let dropped = self.dropped.first().map(|_| Instant::ZERO);
        dropped.or(self.all.front().map(|it| it.until))
    }

    /// Takes the record of one that is not kept any more.
    pub fn pop_due(&mut self, now: Instant) -> Option<RecordId> {
        let is_due = self.all.front().is_some_and(|it| it.until <= now);
        let all = &mut self.all;
        let due = || if is_due { all.pop_front().map(|it| it.incoming.record) } else { None };
        self.dropped.pop().or_else(due)
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.all.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfers::cutting::Cutting;
    use crate::transfers::incoming::Label;
    use crate::transfers::transfer::Transfer;
    use ::http::{HeaderValue, StatusCode};
    use bytes::Bytes;
    use wire::Date;

    fn part(number: u8, fields: &[(&'static str, &'static str)]) -> Incoming {
        let cutting = Cutting::new(content::Profile::DEFAULT, None);
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        let came = (Date::default(), true);
        let transfer = Transfer::Cutting(Box::new(cutting));
        let id = RecordId([number; 16]);
        let mut incoming = Incoming::new(id, StatusCode::OK, headers, came, transfer);
        let key = ObjectKey([number; 32]);
        incoming.label = Some(Label { key, uri: String::new(), named: None, alias: None });
        incoming.received_bytes = PART_MIN;
        incoming
    }

    const TAG: (&str, &str) = ("etag", "\"a\"");

    #[test]
    fn the_oldest_makes_room_and_each_has_an_hour() {
        let mut parts = Parts::default();
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        for number in 0..16 {
            assert!(parts.put(at(u64::from(number)), part(number, &[TAG])).is_ok());
        }
        let record = |number| Some(RecordId([number; 16]));
        assert!(parts.pop_due(at(16)).is_none());
        parts.put(at(16), part(16, &[TAG])).expect("it is of use");
        assert_eq!((parts.evicted, parts.poll_timeout()), (1, Some(Instant::ZERO)));
        assert_eq!(parts.pop_due(at(16)), record(0));
        // Another of the same object takes the place of the one before.
        parts.put(at(17), part(5, &[TAG])).expect("it is of use");
        assert_eq!((parts.pop_due(at(17)), parts.len(), parts.evicted), (record(5), 16, 1));
        assert_eq!(parts.poll_timeout(), Some(at(3601)));
        assert!(parts.pop_due(at(3600)).is_none());
        assert_eq!(parts.pop_due(at(3601)), record(1));
        assert!(parts.pop_due(at(3601)).is_none());
    }

    #[test]
    fn what_could_not_be_continued_is_not_kept() {
        let mut parts = Parts::default();
        let (now, weak) = (Instant::ZERO, ("etag", "W/\"a\""));
        let mut short = part(1, &[TAG]);
        short.received_bytes -= 1;
        let mut memory_only = part(1, &[TAG]);
        memory_only.memory_only = true;
        let mut unstored = part(1, &[TAG]);
        unstored.unstored.push_back((1, content::name(&Bytes::from_static(b"a"))));
        let mut partial = part(1, &[TAG]);
        partial.status = StatusCode::PARTIAL_CONTENT;
        let refusing = part(1, &[TAG, ("accept-ranges", "none")]);
        let others = [part(1, &[]), part(1, &[weak]), refusing];
        for other in [short, memory_only, unstored, partial].into_iter().chain(others) {
            assert!(parts.put(now, other).is_err());
        }
        assert_eq!(parts.len(), 0);
    }

    #[test]
    fn the_rest_is_of_the_variant_that_the_request_selects() {
        let mut parts = Parts::default();
        let mut varying = part(1, &[TAG, ("vary", "accept")]);
        let name = header::ACCEPT;
        varying.selecting = vec![(name.clone(), Some(b"text/html".to_vec()))];
        parts.put(Instant::ZERO, varying).expect("it is of use");
        let rest = |accept: &'static str| {
            let asked = HeaderMap::from_iter([(name.clone(), HeaderValue::from_static(accept))]);
            parts.rest(&ObjectKey([1; 32]), &asked).map(|it| (it.from, it.validator))
        };
        assert_eq!(rest("text/html"), Some((PART_MIN, HeaderValue::from_static("\"a\""))));
        assert_eq!(rest("text/plain"), None);
        assert!(parts.rest(&ObjectKey([2; 32]), &HeaderMap::new()).is_none());
    }
}
