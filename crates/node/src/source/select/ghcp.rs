//! GHCP and PH-GHCP: asks the router of one's square of the map to which the object's name is hashed, if it is no farther
//! than the gateway (MeshCache §4.2.3, §4.3.3). That router gets what it lacks from the gateway.

use super::{Answer, Query, Select, on_the_way};
use crate::input::{FetchId, MeshConfig, Squares};
use std::collections::BTreeMap;
use std::net::IpAddr;
use wire::{Instant, ObjectKey};

/// The scheme.
pub struct Ghcp {
    per_hop: bool,
    squares: Squares,
    /// Requests that the router of their hash did not answer.
    in_vain: BTreeMap<FetchId, IpAddr>,
}

impl Ghcp {
    pub fn new(config: &MeshConfig) -> Self {
        let per_hop = config.selection.is_per_hop();
        Self { per_hop, squares: config.squares.clone(), in_vain: BTreeMap::new() }
    }

    /// The router to which an object is hashed in the square of the router `own`: the one whose hash is numerically
    /// closest, on a ring. `None` without a place.
    fn hashed(&self, own: IpAddr, key: &ObjectKey) -> Option<IpAddr> {
        let square = self.squares.get(&own)?;
        let routers =
            self.squares.iter().filter(|(_, of)| *of == square).map(|(router, _)| *router);
        let [object, ..] = words(&key.0);
        let distance = |router: &IpAddr| {
            let apart = object.wrapping_sub(hash(*router));
            (apart.min(apart.wrapping_neg()), *router)
        };
        routers.min_by_key(distance)
    }
}

/// The first 8 bytes of BLAKE3 of an address.
fn hash(router: IpAddr) -> u64 {
    let [first, ..] = words(blake3::hash(router.to_string().as_bytes()).as_bytes());
    first
}

fn words(bytes: &[u8; 32]) -> [u64; 4] {
    let word = |at: usize| {
        let bytes = bytes[at * 8..].first_chunk().expect("32 bytes");
        u64::from_be_bytes(*bytes)
    };
    [word(0), word(1), word(2), word(3)]
}

impl Select for Ghcp {
    fn choose(&self, query: &Query<'_>) -> Answer {
        let own = query.routes.own_address();
        let hashed = own.and_then(|own| self.hashed(own, &query.key)).filter(|at| {
            // A peer that asks has hashed the name itself.
            query.per_hop.is_none()
                && own != Some(*at)
                && query.routes.gateway() != Some(*at)
                && self.in_vain.get(&query.id) != Some(at)
                && query.routes.cost_within_gateway(*at).is_some()
        });
        let Some(at) = hashed else { return on_the_way(query, self.per_hop) };
        let path = query.routes.path_to(at).filter(|_| self.per_hop);
        let by = path.map_or(at, |path| path.next_hop);
        match (query.may)(by) {
            true => Answer::Holder { at, by },
            false => on_the_way(query, self.per_hop),
        }
    }

    fn in_vain(&mut self, _now: Instant, id: FetchId, at: IpAddr, _denied: bool) {
        self.in_vain.insert(id, at);
    }

    fn end(&mut self, _now: Instant, id: FetchId) {
        self.in_vain.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::select::tests::config;
    use std::sync::Arc;
    use wire::Selection;

    fn router(number: u8) -> IpAddr {
        [10, 0, 0, number].into()
    }

    fn scheme(squares: &[(u8, [u32; 2])]) -> Ghcp {
        let squares = squares.iter().map(|(number, square)| (router(*number), *square)).collect();
        Ghcp::new(&MeshConfig { squares: Arc::new(squares), ..config(Selection::PhGhcp) })
    }

    fn key(number: u32) -> ObjectKey {
        ObjectKey(*blake3::hash(&number.to_be_bytes()).as_bytes())
    }

    #[test]
    fn routers_of_a_square_agree_and_share_objects_about_evenly() {
        let square: Vec<_> = (1..9).map(|number| (number, [0, 1])).collect();
        let scheme = scheme(&[&square[..], &[(9, [1, 1])]].concat());
        let mut counts = [0_u32; 10];
        for number in 0..4000 {
            let by_all = (1..9).map(|own| scheme.hashed(router(own), &key(number)));
            let mut by_all: Vec<_> = by_all.collect();
            by_all.dedup();
            let [Some(IpAddr::V4(at))] = by_all[..] else { panic!("{by_all:?}") };
            counts[usize::from(at.octets()[3])] += 1;
        }
        // Consistent hashing without virtual nodes is uneven.
        assert!(counts[1..9].iter().all(|count| *count > 4), "{counts:?}");
        assert_eq!((counts[9], scheme.hashed(router(9), &key(1))), (0, Some(router(9))));
    }

    #[test]
    fn when_a_router_leaves_only_its_objects_move() {
        let of = |numbers: std::ops::Range<u8>| {
            scheme(&numbers.map(|number| (number, [0, 0])).collect::<Vec<_>>())
        };
        let (before, after) = (of(1..9), of(1..8));
        for number in 0..1000 {
            let place = before.hashed(router(1), &key(number));
            if place != Some(router(8)) {
                assert_eq!(after.hashed(router(1), &key(number)), place);
            }
        }
    }

    #[test]
    fn a_router_without_a_place_hashes_nothing() {
        let scheme = scheme(&[(1, [0, 0]), (2, [0, 0])]);
        assert_eq!(scheme.hashed(router(3), &key(1)), None);
    }
}
