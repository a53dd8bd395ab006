//! What a receiver reports in its SACK option (RFC 2018, section 4, and RFC 2883).

use super::receive_buffer::ReceiveBuffer;
use crate::net::Sack;
use crate::net::segment::sack_option;

/// How many arrivals are remembered: more than blocks fit in an option, because some blocks join others.
const ARRIVALS_MAX: usize = 8;

/// Which data after a gap arrived last, and which arrived twice.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    /// How many blocks fit in an option; 0 if the peer takes none.
    max: usize,
    /// Sequence numbers of what arrived after a gap, the latest first.
    arrivals: Vec<u32>,
    /// Data of the latest segment that had arrived before. It is reported once.
    duplicate: Option<(u32, u32)>,
}

impl Reports {
    /// Reports to a peer that takes selective acknowledgements; `with_stamps` says that each segment has
    /// timestamps too.
    pub fn permitted(with_stamps: bool) -> Self {
        Self { max: link::SACK_BLOCKS_MAX - usize::from(with_stamps), ..Self::default() }
    }

    /// Data after a gap has arrived, or arrived again.
    pub fn arrived(&mut self, seq: u32) {
        self.arrivals.retain(|other| *other != seq);
        self.arrivals.truncate(ARRIVALS_MAX - 1);
        self.arrivals.insert(0, seq);
    }

    /// A segment's data has arrived: `duplicate` is the first part of it that had arrived before.
    pub fn arrived_twice(&mut self, duplicate: Option<(u32, u32)>) {
        self.duplicate = duplicate;
    }

    /// The largest payload beside the option, in segments of `mss` bytes.
    pub fn payload_max(&self, input: &ReceiveBuffer, mss: u32) -> u32 {
        let count = self.blocks(input).blocks().len();
        mss.saturating_sub(sack_option(count)).max(1)
    }

    /// The blocks to report now: a duplicate, then the blocks in which data arrived last.
    pub fn blocks(&self, input: &ReceiveBuffer) -> Sack {
        let mut blocks = Sack::default();
        if let Some(duplicate) = self.duplicate {
            blocks.push(duplicate);
        }
        let ordinary = blocks.blocks().len();
        for seq in &self.arrivals {
            let known = blocks.blocks();
            if known.len() == self.max {
                break;
            }
            if let Some(block) = input.block_at(*seq)
                && !known[ordinary..].contains(&block)
            {
                blocks.push(block);
            }
        }
        blocks
    }

    /// The blocks have been sent.
    pub fn sent(&mut self, input: &ReceiveBuffer) {
        self.duplicate = None;
        if !self.arrivals.is_empty() {
            self.arrivals.retain(|seq| input.block_at(*seq).is_some());
        }
    }
}

/// Whether the first block reports a duplicate: data that the same segment acknowledges, or that the second
/// block holds too (RFC 2883, section 5). `acked` bytes were ever acknowledged; no honest peer reports data from
/// before those.
pub fn reports_duplicate(blocks: &Sack, ack: u32, acked: u64) -> bool {
    let Some((start, end)) = blocks.blocks().first() else { return false };
    let [from, to] = [start, end].map(|it| u64::from(ack.wrapping_sub(*it)));
    if to < from && from <= acked {
        return true;
    }
    let inside = |outer: &(u32, u32)| {
        let [from, to] = [start, end].map(|it| it.wrapping_sub(outer.0));
        from < to && to <= outer.1.wrapping_sub(outer.0)
    };
    blocks.blocks().get(1).is_some_and(inside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn arrive(input: &mut ReceiveBuffer, reports: &mut Reports, seq: u32, len: usize) {
        reports.arrived_twice(input.known(seq, len as u32));
        input.insert(seq, Bytes::from(vec![1; len]));
        reports.arrived(seq);
    }

    #[test]
    fn the_latest_block_comes_first_then_those_reported_last() {
        let (mut input, mut reports) =
            (ReceiveBuffer::new(90_000, 1000), Reports::permitted(false));
        for seq in [3000, 5000, 7000, 9000, 11_000] {
            arrive(&mut input, &mut reports, seq, 1000);
        }
        let latest = [(11_000, 12_000), (9000, 10_000), (7000, 8000), (5000, 6000)];
        assert_eq!(reports.blocks(&input).blocks(), latest);
        assert_eq!(reports.payload_max(&input, 1460), 1460 - 4 - 4 * 8);
        let beside_stamps = Reports { max: 3, ..reports.clone() };
        assert_eq!(beside_stamps.blocks(&input).blocks(), &latest[..3]);
        // A segment between two blocks joins them, and the joined block comes first.
        arrive(&mut input, &mut reports, 8000, 1000);
        let joined = [(7000, 10_000), (11_000, 12_000), (5000, 6000), (3000, 4000)];
        assert_eq!(reports.blocks(&input).blocks(), joined);
        // What is acknowledged is reported no more.
        for seq in [1000, 2000, 4000] {
            input.insert(seq, Bytes::from(vec![1; 1000]));
        }
        reports.sent(&input);
        assert_eq!(reports.blocks(&input).blocks(), [(7000, 10_000), (11_000, 12_000)]);
    }

    #[test]
    fn a_duplicate_is_reported_once_and_first() {
        let (mut input, mut reports) =
            (ReceiveBuffer::new(90_000, 1000), Reports::permitted(false));
        arrive(&mut input, &mut reports, 3000, 2000);
        assert_eq!(reports.blocks(&input).blocks(), [(3000, 5000)]);
        // Part of a block comes again; the second block is the one that holds it.
        arrive(&mut input, &mut reports, 4000, 2000);
        let twice = reports.blocks(&input);
        assert_eq!(twice.blocks(), [(4000, 5000), (3000, 6000)]);
        assert!(reports_duplicate(&twice, 1000, 0));
        reports.sent(&input);
        let once = reports.blocks(&input);
        assert_eq!(once.blocks(), [(3000, 6000)]);
        assert!(!reports_duplicate(&once, 1000, 0));
        // Acknowledged data comes again, with the next that was not.
        assert_eq!(input.known(500, 1000), Some((500, 1000)));
        assert_eq!(input.known(1000, 2000), None);
        assert_eq!(input.known(1000, 9000), Some((3000, 6000)));
    }

    #[test]
    fn acknowledged_data_is_a_duplicate_unless_it_was_never_sent() {
        let blocks = |block| {
            let mut blocks = Sack::default();
            blocks.push(block);
            blocks
        };
        let ack = 200;
        let from_the_start = (0, ack);
        assert!(reports_duplicate(&blocks(from_the_start), ack, 200));
        assert!(!reports_duplicate(&blocks(from_the_start), ack, 199));
        assert!(reports_duplicate(&blocks((u32::MAX, 100)), ack, 201));
        for wrong in [(150, 150), (180, 150), (150, 201), (300, 400)] {
            assert!(!reports_duplicate(&blocks(wrong), ack, 1000), "{wrong:?}");
        }
        assert!(!reports_duplicate(&Sack::default(), ack, 1000));
    }
}
