//! Which old units a batch's new ones are compressed against.

use super::index::Index;
use super::{DICTIONARY_MAX, Span};

/// Units that are most like a batch's and go into its dictionary at most.
const ALIKE_MAX: usize = 12;
/// Bytes of old units around the expected place: before it, and behind the batch's length.
const BEFORE: usize = 16 * 1024;
const BEHIND: usize = 64 * 1024;

/// The old units that a batch's literals are compressed against: the most alike with their neighbours, then
/// those at the expected place, which are nearest to the literals and thus cheapest to refer to.
pub fn dictionary(
    index: &Index,
    end: u64,
    expected: Option<u64>,
    alike: &[u64],
    length: usize,
) -> Vec<Span> {
    // Only what has positions before the batch: its own literals are not there yet.
    let clip = |span: Span| {
        let count = span.end().min(end).saturating_sub(span.first);
        Span { count: count as u32, ..span }
    };
    let place = expected.map(|at| clip(index.around(at, BEFORE, length + BEHIND)));
    let (mut spans, mut bytes) = (Vec::<Span>::new(), place.map_or(0, |span| index.bytes(span)));
    for position in alike.iter().filter(|position| **position < end) {
        let near = clip(index.around(*position, 1, 2 * 8 * 1024));
        let is_in = |span: &Span| span.first <= *position && *position < span.end();
        if spans.len() >= ALIKE_MAX || spans.iter().chain(&place).any(is_in) {
            continue;
        }
        bytes += index.bytes(near);
        if bytes > DICTIONARY_MAX {
            break;
        }
        spans.push(near);
    }
    spans.extend(place);
    spans.retain(|span| span.count > 0);
    spans
}
