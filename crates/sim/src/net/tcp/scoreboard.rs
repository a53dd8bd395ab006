//! What the peer has selectively acknowledged, and what follows from it: which data is lost, how much is in
//! flight, and what to send next (RFC 6675, sections 3 and 4).
//!
//! Sequence numbers here are those after a byte where the RFC names the byte itself: the first unacknowledged
//! one, `una`, is its HighACK + 1, and the one after all that was sent, `sent`, its HighData + 1.

use super::congestion::DUPLICATES;
use super::seq::{ahead, before, earlier, later};

/// Largest number of ranges. Further ones are not noted, so that their data may be sent again needlessly.
const RANGES_MAX: usize = 1024;

/// Sequence numbers from the first to before the second.
type Range = (u32, u32);

/// The ranges that the peer has reported to have, and how far the current recovery has come.
#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    /// In order; all lie after the first unacknowledged sequence number, and no two touch.
    ranges: Vec<Range>,
    /// The sequence number after the highest data that this recovery has sent again (HighRxt + 1).
    repaired: u32,
    /// The rescue retransmission is allowed once this is acknowledged (RescueRxt + 1).
    rescued: u32,
}

impl Scoreboard {
    /// Notes a reported block. Returns whether it reports data that was not reported before. A block that is
    /// empty or backward, or does not lie after `una` and up to `sent`, says nothing.
    pub fn note(&mut self, una: u32, sent: u32, (start, end): Range) -> bool {
        let [from, to] = [start, end].map(|it| it.wrapping_sub(una));
        if from == 0 || from >= to || to > sent.wrapping_sub(una) {
            return false;
        }
        let first = self.ranges.partition_point(|it| before(it.1, start));
        let after = self.ranges.partition_point(|it| !before(end, it.0));
        let known = &self.ranges[first..after];
        let (Some(lowest), Some(highest)) = (known.first(), known.last()) else {
            let has_room = self.ranges.len() < RANGES_MAX;
            if has_room {
                self.ranges.insert(first, (start, end));
            }
            return has_room;
        };
        let joined = (earlier(start, lowest.0), later(end, highest.1));
        let bytes: u32 = known.iter().copied().map(len).sum();
        self.ranges.splice(first..after, [joined]);
        bytes < len(joined)
    }

    /// Everything before `una` is acknowledged. A peer that had the data from there on would have acknowledged
    /// it too, so a range that begins earlier was dropped by the peer (RFC 2018, section 8: it may).
    pub fn acknowledged(&mut self, una: u32) {
        let gone = self.ranges.partition_point(|it| !before(una, it.0));
        self.ranges.drain(..gone);
    }

    /// Forgets all reports: after a timeout the peer may have dropped what it reported (RFC 2018, section 8).
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// A recovery begins: data up to `end` is sent again (RFC 6675, section 5, step 4.3).
    pub fn begin(&mut self, end: u32) {
        (self.repaired, self.rescued) = (end, end);
    }

    /// Data up to `end` was sent again.
    pub fn sent_again(&mut self, end: u32) {
        self.repaired = later(self.repaired, end);
    }

    /// All that is not reported before this sequence number counts as lost, because data in as many
    /// discontiguous ranges after it was reported as there are duplicates before a fast retransmission, or
    /// more bytes than one segment less takes (IsLost). `None` if nothing does.
    pub fn lost_before(&self, mss: u32) -> Option<u32> {
        let mut bytes = 0;
        let enough = self.ranges.iter().rev().zip(1..).find(|(range, count)| {
            bytes += len(**range);
            *count >= DUPLICATES || bytes > (DUPLICATES - 1) * mss
        });
        enough.map(|((start, _), _)| *start)
    }

    /// An estimate of the bytes in flight in a recovery (SetPipe): what is neither reported nor lost, and what
    /// was sent again.
    pub fn pipe(&self, una: u32, sent: u32, mss: u32) -> u32 {
        let once = self.lost_before(mss).unwrap_or(una);
        self.unreported(once, sent) + self.unreported(una, later(una, self.repaired))
    }

    /// Where to go on sending from `next` on after a timeout, when reported data need not be sent again, and how
    /// many bytes to send there; `u32::MAX` if nothing after it is reported.
    pub fn skip(&self, next: u32, sent: u32) -> (u32, u32) {
        match self.gap(next, sent) {
            None => (sent, u32::MAX),
            Some((start, end)) if end == sent => (start, u32::MAX),
            Some((start, end)) => (start, end.wrapping_sub(start)),
        }
    }

    /// How many bytes from `from` to before `to` are not reported.
    pub fn unreported(&self, from: u32, to: u32) -> u32 {
        let inside = |it: &Range| ahead(later(it.0, from), earlier(it.1, to));
        ahead(from, to) - self.ranges.iter().map(inside).sum::<u32>()
    }

    /// The first range from `from` on, and before `limit`, of which nothing is reported.
    pub fn gap(&self, from: u32, limit: u32) -> Option<Range> {
        let mut start = from;
        for range in &self.ranges {
            if before(start, range.0) {
                break;
            }
            start = later(start, range.1);
        }
        let next = self.ranges.iter().map(|it| it.0).find(|it| before(start, *it));
        let end = next.map_or(limit, |it| earlier(it, limit));
        before(start, limit).then_some((start, end))
    }

    /// The first lost data that this recovery has not sent again (NextSeg, rule 1).
    pub fn next_lost(&self, una: u32, mss: u32) -> Option<Range> {
        self.gap(later(una, self.repaired), self.lost_before(mss)?)
    }

    /// The first data before some that is reported, lost or not, that this recovery has not sent again
    /// (NextSeg, rule 3).
    pub fn next_before_reported(&self, una: u32) -> Option<Range> {
        self.gap(later(una, self.repaired), self.ranges.last()?.0)
    }

    /// The last unreported segment in flight, once in a recovery: nothing after it can report its loss
    /// (NextSeg, rule 4). `recover` is the sequence number at which the recovery ends.
    pub fn rescue(&mut self, una: u32, sent: u32, recover: u32, mss: u32) -> Option<Range> {
        if !before(self.rescued, una) {
            return None;
        }
        let (end, below) = match self.ranges.split_last() {
            Some((last, others)) if last.1 == sent => (last.0, others.last()),
            last => (sent, last.map(|it| it.0)),
        };
        let start = below.map_or(una, |it| it.1);
        self.rescued = recover;
        Some((later(start, end.wrapping_sub(mss)), end)).filter(|it| before(it.0, it.1))
    }
}

fn len((start, end): Range) -> u32 {
    end.wrapping_sub(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u32 = 1000;

    /// A board on which 20 segments from 0 on are in flight, and these are reported.
    fn board(segments: &[u32]) -> Scoreboard {
        let mut board = Scoreboard::default();
        for segment in segments {
            assert!(board.note(0, 20 * MSS, (segment * MSS, (segment + 1) * MSS)));
        }
        board
    }

    #[test]
    fn blocks_that_no_honest_peer_sends_say_nothing() {
        let una = u32::MAX - 500;
        let sent = una.wrapping_add(5000);
        let at = |offset: u32| una.wrapping_add(offset);
        let mut board = Scoreboard::default();
        let wrong = [
            (at(0), at(1000)),
            (at(1000), at(1000)),
            (at(2000), at(1000)),
            (at(4000), at(5001)),
            (at(6000), at(7000)),
            (una.wrapping_sub(1000), at(1000)),
            (una.wrapping_sub(2000), una.wrapping_sub(1000)),
            (at(1000), at(1000).wrapping_add(1 << 31)),
            (at(1 << 31), at((1 << 31) + 1000)),
            (at(4000), una.wrapping_sub(1)),
        ];
        for block in wrong {
            assert!(!board.note(una, sent, block), "{block:?}");
        }
        assert_eq!(board.unreported(una, sent), 5000);
        // Across the end of the circle of sequence numbers.
        assert!(board.note(una, sent, (at(100), at(1000))));
        assert!(board.note(una, sent, (at(4000), sent)));
        assert_eq!(board.unreported(una, sent), 3100);
        // What is known already is no news, alone or together.
        assert!(!board.note(una, sent, (at(200), at(900))));
        assert!(!board.note(una, sent, (at(4000), sent)));
        assert!(board.note(una, sent, (at(200), sent)));
        assert_eq!(board.ranges, [(at(100), sent)]);
    }

    #[test]
    fn ranges_are_limited_and_a_full_board_still_joins_them() {
        let mut board = Scoreboard::default();
        let sent = 4 * RANGES_MAX as u32;
        let news = (1..2 * RANGES_MAX as u32).filter(|i| board.note(0, sent, (2 * i, 2 * i + 1)));
        assert_eq!(news.count(), RANGES_MAX);
        assert!(board.note(0, sent, (1, sent)));
        assert_eq!(board.ranges, [(1, sent)]);
    }

    #[test]
    fn data_is_lost_once_three_ranges_or_more_than_two_segments_after_it_are_reported() {
        assert_eq!(board(&[]).lost_before(MSS), None);
        assert_eq!(board(&[1, 2]).lost_before(MSS), None);
        assert_eq!(board(&[1, 2, 3]).lost_before(MSS), Some(1000));
        assert_eq!(board(&[1, 3]).lost_before(MSS), None);
        assert_eq!(board(&[1, 3, 5]).lost_before(MSS), Some(1000));
        // Only the second and third of the ranges count for what is between the first two.
        assert_eq!(board(&[1, 3, 4, 6]).lost_before(MSS), Some(3000));
        let mut small = board(&[]);
        assert!([1000, 3000, 5000].iter().all(|at| small.note(0, 20 * MSS, (*at, at + 1))));
        assert_eq!(small.lost_before(MSS), Some(1000), "three ranges, however small");
    }

    #[test]
    fn in_flight_is_what_is_not_reported_or_lost_and_what_was_sent_again() {
        let mut board = board(&[2, 4, 6, 7]);
        // 0, 1 and 3 are lost. 5 and the twelve from 8 on may still arrive.
        assert_eq!(board.pipe(0, 20 * MSS, MSS), 13 * MSS);
        board.begin(MSS);
        assert_eq!(board.pipe(0, 20 * MSS, MSS), 14 * MSS);
        // 5, sent again though not lost, may arrive twice.
        board.sent_again(6 * MSS);
        assert_eq!(board.pipe(0, 20 * MSS, MSS), 13 * MSS + 4 * MSS);
        board.acknowledged(3 * MSS);
        assert_eq!(board.pipe(3 * MSS, 20 * MSS, MSS), 13 * MSS + 2 * MSS);
    }

    #[test]
    fn lost_data_is_sent_again_once_then_what_lies_before_reported_data() {
        let mut board = board(&[2, 4, 6, 7]);
        board.begin(MSS);
        assert_eq!(board.next_lost(0, MSS), Some((1000, 2000)));
        board.sent_again(2000);
        assert_eq!(board.next_lost(0, MSS), Some((3000, 4000)));
        board.sent_again(4000);
        assert_eq!(board.next_lost(0, MSS), None);
        assert_eq!(board.next_before_reported(0), Some((5000, 6000)));
        board.sent_again(6000);
        assert_eq!(board.next_before_reported(0), None);
    }

    #[test]
    fn the_last_segment_is_rescued_once_and_only_after_progress() {
        let mut it = board(&[1, 2, 3]);
        it.begin(MSS);
        assert_eq!(it.rescue(0, 20 * MSS, 20 * MSS, MSS), None);
        assert_eq!(it.rescue(1000, 20 * MSS, 20 * MSS, MSS), None, "no more than that was sent");
        it.acknowledged(4000);
        assert_eq!(it.rescue(4000, 19_500, 20 * MSS, MSS), Some((18_500, 19_500)));
        assert_eq!(it.rescue(5000, 19_500, 20 * MSS, MSS), None);
        // It must hold the last unreported byte, and none that is reported.
        let mut it = board(&[17, 19]);
        it.begin(MSS);
        assert_eq!(it.rescue(2000, 20 * MSS, 20 * MSS, 3000), Some((18_000, 19_000)));
    }

    #[test]
    fn a_peer_that_acknowledges_less_than_it_reported_has_dropped_the_rest() {
        let mut board = board(&[2, 3, 5]);
        board.acknowledged(3000);
        assert_eq!(board.ranges, [(5000, 6000)]);
        assert_eq!(board.skip(3000, 9000), (3000, 2000));
        assert_eq!(board.skip(5000, 9000), (6000, u32::MAX));
        assert_eq!(board.skip(5000, 6000), (6000, u32::MAX));
        board.clear();
        assert_eq!(board.skip(3000, 9000), (3000, u32::MAX));
    }

    proptest! {
        /// Behaves like one mark for each byte.
        #[test]
        fn ranges_are_marks_on_bytes(
            una: u32,
            blocks in prop::collection::vec((0..70u32, 0..70u32), 1..40),
            window in (0..64u32, 0..64u32),
        ) {
            let mut board = Scoreboard::default();
            let mut marks = [false; 64];
            for (from, to) in blocks {
                let is_valid = 0 < from && from < to && to <= 64;
                let new = is_valid && marks[from as usize..to as usize].contains(&false);
                let block = (una.wrapping_add(from), una.wrapping_add(to));
                prop_assert_eq!(board.note(una, una.wrapping_add(64), block), new);
                if is_valid {
                    marks[from as usize..to as usize].fill(true);
                }
            }
            let (from, to) = (window.0.min(window.1), window.0.max(window.1));
            let [start, limit] = [from, to].map(|it| una.wrapping_add(it));
            let part = &marks[from as usize..to as usize];
            let count = part.iter().filter(|it| !**it).count();
            prop_assert_eq!(board.unreported(start, limit) as usize, count);
            let first = part.iter().position(|it| !it);
            let gap = first.map(|first| {
                let len = part[first..].iter().position(|it| *it).unwrap_or(part.len() - first);
                let begins = start.wrapping_add(first as u32);
                (begins, begins.wrapping_add(len as u32))
            });
            prop_assert_eq!(board.gap(start, limit), gap);
            prop_assert!(board.ranges.windows(2).all(|it| before(it[0].1, it[1].0)));
        }
    }
}
