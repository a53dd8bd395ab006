//! Manifest segments that wait to be written to the catalogue.
//!
//! A transaction of the catalogue costs more than the segment that it writes, and each wakes the
//! writing thread. So segments are written in batches: when [`TOGETHER`] of them wait, when a manifest
//! ends, or when they must be durable. The owner of a segment keeps it in memory until it is written,
//! so that no reader looks for it in the catalogue before.

use crate::hasher::Map;
use crate::ids::Ids;
use crate::input::{FetchId, Ticket};
use crate::output::{Output, StoreOutput};
use std::collections::VecDeque;
use store::Change;
use wire::RecordId;

/// The most segments in one transaction. They describe 2 MiB of a large object, and need some 16 KiB of
/// memory.
const TOGETHER: usize = 16;

/// The transfer that a segment belongs to, and the segment's number.
pub type Of = (FetchId, u32);

/// Segments that wait, and segments that are being written.
#[derive(Debug, Default)]
pub struct Segments {
    waiting: Vec<(Of, Change)>,
    writing: Map<Ticket, Vec<Of>>,
}

impl Segments {
    /// Adds a segment to be written. The last segment of a manifest (`last`) is written at once.
    pub fn put(
        &mut self,
        of: Of,
        change: Change,
        last: bool,
        ids: &mut Ids,
        out: &mut VecDeque<Output>,
    ) {
        self.waiting.push((of, change));
        if last || self.waiting.len() >= TOGETHER {
            self.write(ids, out);
        }
    }

    /// Writes all waiting segments.
    pub fn write(&mut self, ids: &mut Ids, out: &mut VecDeque<Output>) {
        if self.waiting.is_empty() {
            return;
        }
        let (of, changes) = std::mem::take(&mut self.waiting).into_iter().unzip();
        let ticket = ids.draw();
        self.writing.insert(ticket, of);
        out.push_back(Output::Store(StoreOutput::Change(ticket, changes)));
    }

    /// Removes all that the catalogue has of a record that is in no row.
    pub fn drop_all(&mut self, record: RecordId, ids: &mut Ids, out: &mut VecDeque<Output>) {
        // Those that wait to be written go first, or they would be written after the drop.
        self.write(ids, out);
        let drop = Change::DropSegments { record };
        out.push_back(Output::Store(StoreOutput::Change(ids.draw(), vec![drop])));
    }

    /// The catalogue has answered. Returns the segments of that transaction; `None` if the ticket is
    /// not of segments.
    pub fn handle_changed(&mut self, ticket: Ticket) -> Option<Vec<Of>> {
        self.writing.remove(&ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::RecordId;

    const FETCH: FetchId = FetchId(7);

    #[derive(Default)]
    struct Bench {
        segments: Segments,
        ids: Ids,
        out: VecDeque<Output>,
    }

    impl Bench {
        fn put(&mut self, number: u32, last: bool) {
            let change =
                Change::PutSegment { record: RecordId([1; 16]), number, bytes: vec![number as u8] };
            self.segments.put((FETCH, number), change, last, &mut self.ids, &mut self.out);
        }

        /// The numbers of the segments of each transaction so far.
        fn written(&mut self) -> Vec<Vec<u32>> {
            let number = |change| match change {
                Change::PutSegment { number, .. } => number,
                other => panic!("{other:?} is no segment"),
            };
            let numbers = |output| match output {
                Output::Store(StoreOutput::Change(ticket, changes)) => {
                    let of = self.segments.handle_changed(ticket).expect("of segments");
                    let numbers: Vec<u32> = changes.into_iter().map(number).collect();
                    assert_eq!(of, numbers.iter().map(|it| (FETCH, *it)).collect::<Vec<_>>());
                    numbers
                }
                other => panic!("{other:?} is no change"),
            };
            self.out.drain(..).map(numbers).collect()
        }
    }

    #[test]
    fn segments_are_written_together_and_the_last_at_once() {
        let mut bench = Bench::default();
        (0..33).for_each(|number| bench.put(number, false));
        assert_eq!(bench.written(), [Vec::from_iter(0..16), Vec::from_iter(16..32)]);
        bench.put(33, true);
        assert_eq!(bench.written(), [[32, 33]]);
    }

    #[test]
    fn what_waits_is_written_when_it_is_to_be_durable() {
        let mut bench = Bench::default();
        bench.put(0, false);
        assert!(bench.written().is_empty());
        bench.segments.write(&mut bench.ids, &mut bench.out);
        assert_eq!(bench.written(), [[0]]);
        bench.segments.write(&mut bench.ids, &mut bench.out);
        assert!(bench.written().is_empty(), "there was nothing left to write");
    }

    #[test]
    fn other_tickets_are_not_of_segments() {
        let mut bench = Bench::default();
        assert_eq!(bench.segments.handle_changed(bench.ids.draw()), None);
    }
}
