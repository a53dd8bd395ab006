//! What was heard of one router's searches, so that each is answered and passed on once.
//!
//! With a mesh key, only routers say which searches there are: the newest of a router counts, and what is earlier is a
//! replay. Without one, anybody says so in anybody's name, and a single search from the future would silence a router.
//! Searches are then told apart by all that they say, and only for as long as one may travel (as RFC 3561 §6.3 does with
//! its requests): who wants to silence one must know its name beforehand, or be quicker than the router.

use std::collections::VecDeque;
use std::time::Duration;

use wire::peer::{Locate, Search};
use wire::{Hint, Instant};

/// How long a search may travel: each router holds it up for some milliseconds.
const TRAVELS: Duration = Duration::from_secs(10);
/// The most searches of one router that are remembered where anybody may name them; the first is forgotten.
const LISTED_MAX: usize = 64;

/// What was heard of one router.
#[derive(Debug)]
pub enum Heard {
    /// The newest search, and which of the 64 before it.
    Newest { newest: Search, before: u64 },
    /// The last searches, and when each was heard.
    Listed(VecDeque<(Instant, Search, Hint)>),
}

impl Heard {
    /// The first search that is heard of a router.
    pub fn first(now: Instant, locate: &Locate, is_sealed: bool) -> Self {
        if is_sealed {
            Self::Newest { newest: locate.search, before: 0 }
        } else {
            Self::Listed([(now, locate.search, locate.name)].into())
        }
    }

    /// Whether this search was not heard before. It is remembered.
    pub fn is_new(&mut self, now: Instant, locate: &Locate) -> bool {
        match self {
            Self::Newest { newest, before } => is_new(newest, before, locate.search),
            Self::Listed(listed) => {
                while listed.front().is_some_and(|(at, ..)| now - *at > TRAVELS) {
                    listed.pop_front();
                }
                let said = (locate.search, locate.name);
                if listed.iter().any(|(_, search, name)| (*search, *name) == said) {
                    return false;
                }
                if listed.len() >= LISTED_MAX {
                    listed.pop_front();
                }
                listed.push_back((now, locate.search, locate.name));
                true
            }
        }
    }
}

fn is_new(newest: &mut Search, before: &mut u64, search: Search) -> bool {
    if search > *newest {
        // The newest becomes one of those before, `steps` places back; so do the others.
        let steps = search.sequence.checked_sub(newest.sequence);
        let steps = steps.filter(|_| search.boot == newest.boot);
        *before = steps.map_or(0, |steps| {
            before.checked_shl(steps).unwrap_or(0) | 1_u64.checked_shl(steps - 1).unwrap_or(0)
        });
        *newest = search;
        return true;
    }
    if search.boot != newest.boot || search == *newest {
        return false;
    }
    let back = newest.sequence - search.sequence - 1;
    let Some(bit) = 1_u64.checked_shl(back) else { return false };
    let is_new = *before & bit == 0;
    *before |= bit;
    is_new
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locate(boot: u64, sequence: u32, name: u8) -> Locate {
        let search = Search { boot, sequence };
        Locate { origin: [10, 0, 0, 1].into(), search, name: Hint([name; 8]), ttl: 3, hops: 1 }
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn without_a_key_a_stranger_silences_no_router() {
        let mut heard = Heard::first(at(0), &locate(5, 0, 1), false);
        for (boot, sequence) in [(u64::MAX, u32::MAX), (u64::MAX, 0), (5, u32::MAX)] {
            assert!(heard.is_new(at(0), &locate(boot, sequence, 9)));
        }
        // Not even if it says the next numbers before, of another name.
        for sequence in 1..40 {
            assert!(heard.is_new(at(0), &locate(5, sequence, 9)));
        }
        for sequence in 1..40 {
            let own = locate(5, sequence, 1);
            assert!(heard.is_new(at(1), &own) && !heard.is_new(at(1), &own), "{sequence}");
        }
    }

    #[test]
    fn without_a_key_a_search_is_remembered_while_it_travels_and_no_more_than_64_are() {
        let mut heard = Heard::first(at(0), &locate(5, 0, 1), false);
        assert!(!heard.is_new(at(10), &locate(5, 0, 1)));
        assert!(heard.is_new(at(11), &locate(5, 0, 1)), "it is over");
        for sequence in 1..=64 {
            assert!(heard.is_new(at(11), &locate(5, sequence, 1)));
        }
        assert!(matches!(&heard, Heard::Listed(listed) if listed.len() == LISTED_MAX));
        assert!(
            !heard.is_new(at(11), &locate(5, 64, 1)) && !heard.is_new(at(11), &locate(5, 1, 1))
        );
        assert!(heard.is_new(at(11), &locate(5, 0, 1)), "the first was forgotten");
    }

    #[test]
    fn with_a_key_an_earlier_search_is_a_replay() {
        let mut heard = Heard::first(at(0), &locate(6, 100, 1), true);
        assert!(heard.is_new(at(0), &locate(6, 90, 1)), "it is late");
        assert!(
            !heard.is_new(at(0), &locate(6, 90, 1)) && !heard.is_new(at(0), &locate(5, 200, 1))
        );
    }
}
