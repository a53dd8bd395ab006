//! The index's table of segments: their sizes, and which one is reclaimed next.
//!
//! *What this is:* one row for each segment on disk, at most 65,535. *Who calls it:* `index.rs`.
//! *What it never does:* see single units.

use std::collections::BTreeMap;

use crate::evict::{EPOCHS, SMALL_SHARE, halve};
use crate::segment::{Kind, SEGMENT_HEADER, SegmentId, TRAILER, unit_log_bytes};

/// One segment on disk.
#[derive(Debug)]
pub(crate) struct Segment {
    pub id: SegmentId,
    pub kind: Kind,
    /// The number of the segment's units in the index.
    pub units: u32,
    /// Bytes of the file, including the footer that is still to be written.
    pub disk_bytes: u64,
    /// Bytes of the segment's units in the index, rounded to length classes.
    pub live_bytes: u64,
    /// As `live_bytes`, for each epoch of last use; empty if the policy has no epochs.
    pub ages: Box<[u32]>,
    /// Whether no more units are written to the segment.
    pub is_closed: bool,
}

impl Segment {
    /// Adds a unit to the counts in memory.
    pub fn add(&mut self, life: u8, bytes: u32) {
        self.units += 1;
        self.live_bytes += u64::from(bytes);
        if let Some(age) = self.ages.get_mut(usize::from(life)) {
            *age = age.saturating_add(bytes);
        }
    }

    /// Subtracts a unit from the counts in memory.
    pub fn subtract(&mut self, life: u8, bytes: u32) {
        self.units = self.units.saturating_sub(1);
        self.live_bytes = self.live_bytes.saturating_sub(u64::from(bytes));
        if let Some(age) = self.ages.get_mut(usize::from(life)) {
            *age = age.saturating_sub(bytes);
        }
    }

    /// The share of the segment's bytes on disk that would survive reclaiming, in thousandths.
    fn kept_share(&self, cold: u8) -> u64 {
        let young = self.ages.iter().skip(usize::from(cold) + 1).map(|bytes| u64::from(*bytes));
        young.sum::<u64>() * 1000 / self.disk_bytes.max(1)
    }
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    rows: Vec<Option<Segment>>,
    by_id: BTreeMap<SegmentId, u16>,
    /// For each kind, the segment being written, by the insertions so far.
    heads: [Option<SegmentId>; Kind::ALL.len()],
    disk_bytes: u64,
    has_epochs: bool,
}

impl Segments {
    pub fn new(has_epochs: bool) -> Self {
        Self { has_epochs, ..Self::default() }
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Bytes of all files.
    pub fn disk_bytes(&self) -> u64 {
        self.disk_bytes
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        // An estimate: a node of the tree is about two thirds full, and has pointers.
        let tree = size_of::<(SegmentId, u16)>() * 2;
        let ages = if self.has_epochs { EPOCHS * size_of::<u32>() } else { 0 };
        self.rows.capacity() * size_of::<Option<Segment>>() + self.len() * (tree + ages)
    }

    pub fn row(&self, id: SegmentId) -> Option<u16> {
        self.by_id.get(&id).copied()
    }

    /// Whether the segment in a row holds units of this kind.
    pub fn is_of(&self, row: u16, kind: Kind) -> bool {
        self.at(row).is_some_and(|segment| segment.kind == kind)
    }

    pub fn at(&self, row: u16) -> Option<&Segment> {
        self.rows.get(usize::from(row))?.as_ref()
    }

    pub fn at_mut(&mut self, row: u16) -> Option<&mut Segment> {
        self.rows.get_mut(usize::from(row))?.as_mut()
    }

    /// The row of a segment to which units of this kind are being written. A new segment becomes
    /// the head of its kind, and the previous head is closed. `None` if all rows are taken.
    pub fn head(&mut self, id: SegmentId, kind: Kind) -> Option<u16> {
        if let Some(row) = self.row(id) {
            return Some(row);
        }
        let row = self.add(id, kind)?;
        if let Some(before) = self.heads[kind as usize].replace(id) {
            self.close(before);
        }
        Some(row)
    }

    /// Adds a row for a closed segment found on disk, with the length of its file.
    pub fn recovered(&mut self, id: SegmentId, kind: Kind, disk_bytes: u64) -> Option<u16> {
        let row = self.add(id, kind)?;
        self.close(id);
        self.weigh(row, |segment| segment.disk_bytes = disk_bytes);
        Some(row)
    }

    fn close(&mut self, id: SegmentId) {
        let row = self.row(id);
        if let Some(segment) = row.and_then(|row| self.at_mut(row)) {
            segment.is_closed = true;
        }
    }

    fn add(&mut self, id: SegmentId, kind: Kind) -> Option<u16> {
        let free = self.rows.iter().position(Option::is_none).unwrap_or(self.rows.len());
        let row = u16::try_from(free).ok()?;
        if free == self.rows.len() {
            self.rows.push(None);
        }
        let epochs = if self.has_epochs { EPOCHS } else { 0 };
        self.rows[free] = Some(Segment {
            id,
            kind,
            units: 0,
            disk_bytes: 0,
            live_bytes: 0,
            ages: vec![0; epochs].into(),
            is_closed: false,
        });
        self.by_id.insert(id, row);
        self.weigh(row, |segment| segment.disk_bytes = u64::from(SEGMENT_HEADER + TRAILER));
        Some(row)
    }

    /// Counts a unit of this length that was written to the segment.
    pub fn written(&mut self, row: u16, length: u32) {
        let bytes = u64::from(unit_log_bytes(length));
        self.weigh(row, |segment| segment.disk_bytes += bytes);
    }

    fn weigh(&mut self, row: u16, change: impl FnOnce(&mut Segment)) {
        let Some(segment) = self.rows.get_mut(usize::from(row)).and_then(Option::as_mut) else {
            return;
        };
        let before = segment.disk_bytes;
        change(segment);
        self.disk_bytes = self.disk_bytes + segment.disk_bytes - before;
    }

    /// Removes a segment whose file is gone.
    pub fn remove(&mut self, id: SegmentId) {
        let Some(row) = self.by_id.remove(&id) else { return };
        let segment = self.rows[usize::from(row)].take();
        self.disk_bytes -= segment.map_or(0, |segment| segment.disk_bytes);
        for head in self.heads.iter_mut().filter(|head| **head == Some(id)) {
            *head = None;
        }
    }

    /// Applies a halving of the epochs' numbers.
    pub fn halve(&mut self) {
        self.rows.iter_mut().flatten().for_each(|segment| halve(&mut segment.ages));
    }

    fn closed(&self) -> impl Iterator<Item = &Segment> {
        self.by_id.values().filter_map(|row| self.at(*row)).filter(|segment| segment.is_closed)
    }

    /// The closed segment with the smallest share of survivors; among equals, first a segment of
    /// units on probation, then the oldest.
    pub fn coldest(&self, cold: u8) -> Option<SegmentId> {
        let worth = |it: &&Segment| (it.kept_share(cold), it.kind != Kind::Probation);
        self.closed().min_by_key(worth).map(|segment| segment.id)
    }

    /// The oldest closed segment of one queue: of the probation queue or else the small queue if it
    /// exceeds its share, otherwise of the main queue.
    pub fn first_in(&self) -> Option<SegmentId> {
        let is_long = |kind: &Kind| {
            let segments = self.rows.iter().flatten().filter(|segment| segment.kind == *kind);
            segments.map(|segment| segment.disk_bytes).sum::<u64>() * SMALL_SHARE > self.disk_bytes
        };
        let turns = [Kind::Probation, Kind::Fresh].into_iter().filter(is_long);
        let first = |kind| self.closed().find(|segment| segment.kind == kind);
        let of_turn = turns.chain([Kind::Kept]).find_map(first);
        of_turn.or_else(|| self.closed().next()).map(|segment| segment.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Closed segments of these kinds and bytes, numbered from 1.
    fn closed(segments: &[(Kind, u64)]) -> Segments {
        let mut all = Segments::new(true);
        for (id, (kind, bytes)) in (1..).zip(segments) {
            all.recovered(SegmentId(id), *kind, *bytes).unwrap();
        }
        all
    }

    /// Yang et al., section 4.1: the small queue gets 10 % of the room, the main queue the rest.
    #[test]
    fn the_small_queue_is_reclaimed_while_it_has_more_than_a_tenth() {
        use Kind::{Fresh, Kept, Probation};
        for (segments, first) in [
            (&[(Kept, 900), (Fresh, 100)][..], 1),
            (&[(Kept, 899), (Fresh, 100)], 2),
            (&[(Kept, 450), (Kept, 449), (Fresh, 50), (Fresh, 50)], 3),
            (&[(Kept, 899), (Probation, 100)], 2),
            (&[(Kept, 900), (Probation, 100)], 1),
            (&[(Fresh, 500), (Kept, 100), (Probation, 500)], 3),
            (&[(Fresh, 500), (Kept, 900), (Probation, 100)], 1),
        ] {
            assert_eq!(closed(segments).first_in(), Some(SegmentId(first)), "{segments:?}");
        }
        assert_eq!(closed(&[]).first_in(), None);
    }

    #[test]
    fn a_segment_that_is_being_written_to_is_not_reclaimed() {
        let mut segments = Segments::new(false);
        segments.head(SegmentId(1), Kind::Fresh);
        segments.head(SegmentId(2), Kind::Kept);
        assert_eq!((segments.first_in(), segments.coldest(0)), (None, None));
        segments.head(SegmentId(3), Kind::Kept);
        assert_eq!(segments.first_in(), Some(SegmentId(2)), "the small queue has no closed one");
        segments.head(SegmentId(4), Kind::Fresh);
        assert_eq!(segments.first_in(), Some(SegmentId(1)));
    }

    /// Segments younger than the cold epoch survive.
    #[test]
    fn the_segment_with_the_smallest_share_of_survivors_is_the_coldest() {
        use Kind::{Fresh, Kept, Probation};
        let mut segments = closed(&[(Fresh, 1000), (Kept, 2000), (Probation, 1000), (Kept, 2000)]);
        let mut add = |row, life, bytes| segments.at_mut(row).unwrap().add(life, bytes);
        add(0, 5, 500);
        add(1, 6, 500);
        add(2, 6, 250);
        add(3, 6, 502);
        assert_eq!(segments.coldest(5), Some(SegmentId(1)));
        assert_eq!(segments.coldest(4), Some(SegmentId(3)), "of equal ones that on probation");
        segments.remove(SegmentId(3));
        assert_eq!(segments.coldest(4), Some(SegmentId(2)));
        assert_eq!(segments.coldest(6), Some(SegmentId(1)), "of equal ones the oldest");
        segments.at_mut(0).unwrap().subtract(5, 500);
        assert_eq!(segments.coldest(4), Some(SegmentId(1)));
    }
}
