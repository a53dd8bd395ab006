//! Nodes that refused us of late, or that we refused, by address: the operator learns of a mesh key or a version
//! that differs.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wire::Instant;
use wire::peer::Refusal;

/// The most addresses that are remembered; the oldest gives way.
const ADDRESSES_MAX: usize = 64;
/// How long a refusal counts as one of late. Refused nodes dial again within minutes.
const WITHIN: Duration = Duration::from_secs(3600);

/// A refusal between this node and another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Refused {
    /// The other node's address; `None` only in a status that lacks it.
    pub address: Option<IpAddr>,
    /// Whether we refused that node; otherwise it refused us.
    pub by_us: bool,
    /// The reason: the name of a [`Refusal`].
    pub reason: String,
    /// How long ago it was, in seconds.
    pub seconds_ago: u64,
}

/// The latest refusal by address.
#[derive(Clone, Debug, Default)]
pub struct Refusals(BTreeMap<IpAddr, (Instant, bool, Refusal)>);

impl Refusals {
    /// A connection with a node at this address was refused, by us or by that node.
    pub fn add(&mut self, now: Instant, address: IpAddr, by_us: bool, why: Refusal) {
        let address = address.to_canonical();
        let is_full = self.0.len() >= ADDRESSES_MAX && !self.0.contains_key(&address);
        let oldest = self.0.iter().filter(|_| is_full).min_by_key(|(_, (at, ..))| *at);
        if let Some(oldest) = oldest.map(|(address, _)| *address) {
            self.0.remove(&oldest);
        }
        self.0.insert(address, (now, by_us, why));
    }

    /// A node at this address has connected.
    pub fn forget(&mut self, address: IpAddr) {
        self.0.remove(&address.to_canonical());
    }

    /// Those of late, in the order of their addresses.
    pub fn of_late(&self, now: Instant) -> Vec<Refused> {
        let of_late = self.0.iter().filter(|(_, (at, ..))| now - *at < WITHIN);
        let refused = |(address, (at, by_us, why)): (&IpAddr, &(Instant, bool, Refusal))| Refused {
            address: Some(*address),
            by_us: *by_us,
            reason: why.name().to_owned(),
            seconds_ago: (now - *at).as_secs(),
        };
        of_late.map(refused).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_refusal_is_told_until_the_node_connects_or_an_hour_has_passed() {
        let mut refusals = Refusals::default();
        let [one, two]: [IpAddr; 2] =
            ["10.77.0.2", "::ffff:10.77.0.3"].map(|it| it.parse().unwrap());
        refusals.add(at(10), one, false, Refusal::MeshKey);
        refusals.add(at(20), two, true, Refusal::Version);
        let late = refusals.of_late(at(30));
        let shown: Vec<_> = late.iter().map(|it| (it.by_us, &*it.reason, it.seconds_ago)).collect();
        assert_eq!(shown, [(false, "mesh_key", 20), (true, "version", 10)]);
        assert_eq!(late[1].address, "10.77.0.3".parse().ok());
        refusals.forget(two);
        assert_eq!(refusals.of_late(at(30)).len(), 1);
        assert_eq!(refusals.of_late(at(3_700)), []);
    }

    #[test]
    fn a_refusal_counts_for_less_than_an_hour() {
        let mut refusals = Refusals::default();
        refusals.add(at(10), IpAddr::from([10, 77, 0, 2]), false, Refusal::MeshKey);
        let ago = |seconds| refusals.of_late(at(seconds)).first().map(|it| it.seconds_ago);
        assert_eq!(ago(10 + 3_599), Some(3_599));
        assert_eq!(ago(10 + 3_600), None);
    }

    #[test]
    fn the_longest_ago_gives_way_and_one_refused_again_does_not() {
        let address = |number: u8| IpAddr::from([10, 77, 0, number]);
        let mut refusals = Refusals::default();
        (0..64).for_each(|n| refusals.add(at(n.into()), address(n), true, Refusal::Busy));
        // It is in the table: no other gives way to it.
        refusals.add(at(100), address(1), false, Refusal::Version);
        let late = refusals.of_late(at(100));
        assert_eq!((late.len(), late[1].by_us, &*late[1].reason), (64, false, "version"));
        (64..66).for_each(|n| refusals.add(at(101), address(n), true, Refusal::Busy));
        let left: Vec<_> = refusals.of_late(at(101)).iter().filter_map(|it| it.address).collect();
        let expected: Vec<_> = (0..66).filter(|n| ![0, 2].contains(n)).map(address).collect();
        assert_eq!(left, expected);
    }

    #[test]
    fn strangers_cannot_make_it_grow() {
        let mut refusals = Refusals::default();
        for number in 0..1_000u32 {
            let address = IpAddr::from(number.to_be_bytes());
            refusals.add(at(number.into()), address, true, Refusal::Busy);
        }
        let late = refusals.of_late(at(1_000));
        assert_eq!(late.len(), ADDRESSES_MAX);
        assert!(late.iter().all(|it| it.seconds_ago <= ADDRESSES_MAX as u64), "{late:?}");
    }
}
