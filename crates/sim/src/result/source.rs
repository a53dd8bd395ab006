//! Which router or origin served a transfer's bytes, by MeshCache's names (section 6.2).

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Transfer;

/// Which router or origin served a response. The first three are hits: they spare the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServedBy {
    /// The access router, for content that its own clients had requested before.
    Local,
    /// The access router, for content that it had only because it relayed it for others.
    PhLocal,
    /// Another router, on the way to the gateway or beside it.
    Remote,
    /// The gateway.
    Gateway,
    /// The origin: no router of the mesh had it.
    Origin,
}

/// Source of bytes in units that the access router overheard completely.
pub const OVERHEARD: &str = "overheard";
/// Source of the overheard bytes in units that it overheard in part and fetched the rest of.
pub const REPAIRED: &str = "repaired";

impl ServedBy {
    /// All sources, from the nearest to the farthest.
    pub const ALL: [Self; 5] =
        [Self::Local, Self::PhLocal, Self::Remote, Self::Gateway, Self::Origin];

    /// The source of a response: `giver` is the router that served it, or `None` for the origin.
    /// `asked_before` says whether clients of the access router had requested the same before.
    pub fn of(giver: Option<usize>, access: usize, gateway: usize, asked_before: bool) -> Self {
        match giver {
            None => Self::Origin,
            Some(router) if router == gateway => Self::Gateway,
            Some(router) if router == access => Self::access(access, gateway, asked_before),
            Some(_) => Self::Remote,
        }
    }

    /// The source of what the access router had. What the gateway gives to clients of its own is from the
    /// gateway, because it does not spare it.
    pub fn access(access: usize, gateway: usize, asked_before: bool) -> Self {
        match asked_before {
            _ if access == gateway => Self::Gateway,
            true => Self::Local,
            false => Self::PhLocal,
        }
    }

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::PhLocal => "ph-local",
            Self::Remote => "remote",
            Self::Gateway => "gateway",
            Self::Origin => "origin",
        }
    }

    /// Whether the gateway was spared.
    pub fn is_hit(self) -> bool {
        matches!(self, Self::Local | Self::PhLocal | Self::Remote)
    }
}

impl fmt::Display for ServedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What an access router reports of a transfer, and what the gateway gave meanwhile, in bytes.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct BytesBySource {
    /// Bytes from the router's store.
    pub local_bytes: u64,
    /// Bytes from peers.
    pub peer_bytes: u64,
    /// Bytes from the origin directly.
    pub origin_bytes: u64,
    /// Bytes in units that the router had overheard completely.
    pub overheard_bytes: u64,
    /// The overheard bytes in units that it overheard in part.
    pub repaired_bytes: u64,
    /// Bytes that the gateway gave meanwhile. `None` while other clients fetch too, because its bytes cannot
    /// be told apart.
    #[serde(skip)]
    pub from_gateway: Option<u64>,
}

impl BytesBySource {
    /// Bytes by source, adding up to at least the `bytes` that the client got. `head` is the source of the
    /// response's head; `here` is the source of what this router had, [`ServedBy::access`].
    pub fn by_source(&self, head: ServedBy, here: ServedBy, bytes: u64) -> BTreeMap<String, u64> {
        let far = if head == ServedBy::Origin { ServedBy::Origin } else { ServedBy::Gateway };
        let of_gateway = match (self.from_gateway, head) {
            (Some(given), _) => given.min(self.peer_bytes),
            (None, ServedBy::Origin | ServedBy::Gateway) => self.peer_bytes,
            (None, _) => 0,
        };
        let parts = [
            (OVERHEARD, self.overheard_bytes),
            (REPAIRED, self.repaired_bytes),
            (here.name(), self.local_bytes),
            (ServedBy::Remote.name(), self.peer_bytes - of_gateway),
            (far.name(), of_gateway),
            (ServedBy::Origin.name(), self.origin_bytes),
        ];
        let mut sums = BTreeMap::new();
        for (name, part) in parts.into_iter().filter(|(_, part)| *part > 0) {
            *sums.entry(name.to_owned()).or_insert(0) += part;
        }
        // If the client got more than the router counted, the rest came from where the head came from.
        let rest = bytes.saturating_sub(sums.values().sum());
        if rest > 0 || sums.is_empty() {
            *sums.entry(head.name().to_owned()).or_insert(0) += rest;
        }
        sums
    }
}

/// The cache that served a response, from its `Cache-Status` (RFC 9211): the one nearest to the client that
/// had the content, or was already fetching it for another client. `None` if no cache had it.
///
/// Caches are listed in the order in which the response passed them. A cache that asked the next one says so
/// by `fwd`; one that only revalidated its copy had the content.
pub fn giver(cache_status: &str) -> Option<&str> {
    let gave = |parameter: &str| matches!(parameter, "hit" | "collapsed" | "fwd-status=304");
    let had = |cache: &&str| cache.split(';').skip(1).any(|it| gave(it.trim()));
    let cache = cache_status.rsplit(',').find(had)?;
    Some(cache.split(';').next()?.trim())
}

/// The share of transfers that each source served, without failed ones; empty if all failed.
pub fn shares<'a>(transfers: impl IntoIterator<Item = &'a Transfer>) -> BTreeMap<ServedBy, f64> {
    let mut counts = BTreeMap::new();
    let mut all = 0;
    for source in transfers.into_iter().filter_map(|it| it.source) {
        *counts.entry(source).or_insert(0) += 1;
        all += 1;
    }
    counts.into_iter().map(|(source, count)| (source, f64::from(count) / f64::from(all))).collect()
}

/// The sum of the shares of hits.
pub fn hits(shares: &BTreeMap<ServedBy, f64>) -> f64 {
    // The sum of an empty iterator of floats would be -0.0.
    shares
        .iter()
        .filter(|(source, _)| source.is_hit())
        .map(|(_, share)| share)
        .fold(0.0, |a, b| a + b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::fixtures::transfer;

    #[test]
    fn each_byte_has_one_source() {
        let given = BytesBySource {
            local_bytes: 10,
            peer_bytes: 20,
            overheard_bytes: 60,
            repaired_bytes: 5,
            ..BytesBySource::default()
        };
        let sums = |given: BytesBySource, head, here| {
            let sums = given.by_source(head, here, 100);
            assert_eq!(sums.values().sum::<u64>(), 100);
            sums.into_iter().map(|(name, bytes)| format!("{name} {bytes}")).collect::<Vec<_>>()
        };
        let expected = ["gateway 25", "overheard 60", "ph-local 10", "repaired 5"];
        assert_eq!(sums(given, ServedBy::Gateway, ServedBy::PhLocal), expected);
        let expected = ["local 15", "overheard 60", "remote 20", "repaired 5"];
        assert_eq!(sums(given, ServedBy::Local, ServedBy::Local), expected);
        let known = BytesBySource { from_gateway: Some(12), ..given };
        let expected = ["gateway 17", "overheard 60", "ph-local 10", "remote 8", "repaired 5"];
        assert_eq!(sums(known, ServedBy::Gateway, ServedBy::PhLocal), expected);
        let expected = ["origin 17", "overheard 60", "ph-local 10", "remote 8", "repaired 5"];
        assert_eq!(sums(known, ServedBy::Origin, ServedBy::PhLocal), expected);
        // The client of a gateway.
        let given = BytesBySource { local_bytes: 30, origin_bytes: 70, ..BytesBySource::default() };
        let expected = ["gateway 30", "origin 70"];
        assert_eq!(sums(given, ServedBy::Origin, ServedBy::Gateway), expected);
        let nothing = BytesBySource::default().by_source(ServedBy::Origin, ServedBy::Local, 0);
        assert_eq!(nothing, BTreeMap::from([("origin".to_owned(), 0)]));
    }

    #[test]
    fn the_giver_is_the_nearest_to_the_client_that_had_it() {
        for (cache_status, expected) in [
            ("router-8; hit; ttl=3", Some("router-8")),
            ("router-8; fwd=uri-miss; stored", None),
            ("router-8; fwd=uri-miss; stored; collapsed", Some("router-8")),
            ("a; hit, router-8; fwd=uri-miss", Some("a")),
            ("r1; fwd=miss;stored, r4;hit;ttl=9, r7; fwd=uri-miss; stored", Some("r4")),
            ("r1; hit, r4; fwd=stale; fwd-status=304, r7; fwd=uri-miss", Some("r4")),
            ("r1; fwd=uri-miss; fwd-status=200; stored, r7; fwd=uri-miss; fwd-status=200", None),
            ("hit; fwd=uri-miss", None),
            ("", None),
        ] {
            assert_eq!(giver(cache_status), expected, "{cache_status}");
        }
    }

    #[test]
    fn sources_have_the_names_of_the_paper() {
        let (access, relay, gateway) = (7, 4, 8);
        for (giver, asked_before, expected) in [
            (Some(access), true, ServedBy::Local),
            (Some(access), false, ServedBy::PhLocal),
            (Some(relay), true, ServedBy::Remote),
            (Some(gateway), true, ServedBy::Gateway),
            (None, true, ServedBy::Origin),
        ] {
            assert_eq!(ServedBy::of(giver, access, gateway, asked_before), expected);
        }
        // A client of the gateway, which has what it had asked for, or others.
        for asked_before in [false, true] {
            let source = ServedBy::of(Some(gateway), gateway, gateway, asked_before);
            assert_eq!((source, source.is_hit()), (ServedBy::Gateway, false));
        }
        for source in ServedBy::ALL {
            let json = serde_json::to_string(&source).unwrap();
            assert_eq!(json, format!("\"{source}\""));
        }
    }

    #[test]
    fn failed_transfers_have_no_share() {
        let from = |source| Transfer { source, ..transfer("r1", 1.0) };
        let [local, origin, failed] =
            [Some(ServedBy::Local), Some(ServedBy::Origin), None].map(from);
        let shares = shares([&local, &origin, &failed, &origin, &origin]);
        assert_eq!(shares, BTreeMap::from([(ServedBy::Local, 0.25), (ServedBy::Origin, 0.75)]));
        assert_eq!(hits(&shares), 0.25);
        assert!(super::shares([&failed]).is_empty());
        assert!(hits(&BTreeMap::new()).is_sign_positive());
    }
}
