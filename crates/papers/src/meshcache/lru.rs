//! The hits that caches of whole files would have for the same requests in the same order, with LRU eviction.
//! This separates what a scheme can give from what our engines achieve.

use std::collections::BTreeMap;
use std::iter;

use sim::result::source::ServedBy;
use sim::world::Routes;

/// A request: the path from the gateway to its client's router, the file, and its size.
pub(super) struct Asked {
    pub path: Vec<usize>,
    pub file: usize,
    pub bytes: u64,
}

/// Shares of requests, in percent: local, ph-local, remote.
pub(super) type Hits = [f64; 3];

/// How ideal caches find a copy.
pub(super) enum Finding<'a> {
    /// On the way to the gateway; each router there keeps what it forwards.
    OnTheWay,
    /// Anywhere no farther than the gateway, the nearest; as if by asking an oracle.
    Nearest {
        routes: &'a mut Routes,
        /// Whether each router on the path keeps what it forwards, or only the access router.
        per_hop: bool,
    },
}

/// What ideal caches do with requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Served {
    pub hits: Hits,
    /// Bytes that the gateway gives to other routers' clients.
    pub gateway_bytes: u64,
}

/// The hits if each router on the path keeps what it forwards, in a store of `store_bytes` bytes.
pub(super) fn hop_by_hop(requests: &[Asked], store_bytes: u64) -> Hits {
    serve(requests, store_bytes, &mut Finding::OnTheWay).hits
}

/// What caches of `store_bytes` bytes do that find copies so.
pub(super) fn serve(requests: &[Asked], store_bytes: u64, finding: &mut Finding<'_>) -> Served {
    let mut stores: BTreeMap<usize, Store> = BTreeMap::new();
    let mut asked = std::collections::BTreeSet::new();
    let (mut counts, mut gateway_bytes) = ([0_u32; 3], 0);
    for Asked { path, file, bytes } in requests {
        let (Some(gateway), Some(access)) = (path.first(), path.last()) else { continue };
        let has = |router: usize| stores.get(&router).is_some_and(|it| it.has(*file));
        let (giver, keepers) = finding.find(path, &has);
        let is_known = !asked.insert((*access, *file));
        let source = ServedBy::of(Some(giver), *access, *gateway, is_known);
        let kinds = [ServedBy::Local, ServedBy::PhLocal, ServedBy::Remote];
        match kinds.iter().position(|it| *it == source) {
            Some(kind) => counts[kind] += 1,
            None if access != gateway => gateway_bytes += bytes,
            None => {}
        }
        for router in keepers {
            stores.entry(router).or_default().take(*file, *bytes, store_bytes);
        }
    }
    let hits = counts.map(|count| 100.0 * f64::from(count) / requests.len().max(1) as f64);
    Served { hits, gateway_bytes }
}

impl Finding<'_> {
    /// The router that gives a file, the gateway if no other has it, and the routers that have it afterwards. `path`
    /// leads from the gateway to the access router.
    fn find(&mut self, path: &[usize], has: &impl Fn(usize) -> bool) -> (usize, Vec<usize>) {
        let (gateway, access) = (path[0], path[path.len() - 1]);
        match self {
            Self::OnTheWay => {
                let routers: Vec<_> = path[1..].iter().rev().copied().collect();
                let found = routers.iter().position(|router| has(*router));
                let giver = found.map_or(gateway, |place| routers[place]);
                let passed = found.map_or(routers.len(), |place| place + 1);
                (giver, routers[..passed].to_vec())
            }
            Self::Nearest { .. } if has(access) || access == gateway => (access, vec![access]),
            Self::Nearest { routes, per_hop } => {
                let routes_end = routes.stations();
                let mut cost =
                    |router| Some((routes.path(access, router)?.cost, router == gateway, router));
                let holders = (0..routes_end).filter(|it| *it == gateway || has(*it));
                let giver = holders.filter_map(&mut cost).min().map_or(gateway, |it| it.2);
                let passed = iter::successors(Some(access), |at| routes.next_hop(*at, giver));
                let keepers: Vec<_> = match per_hop {
                    true => passed.filter(|it| *it != gateway).collect(),
                    // The giver is used, too.
                    false => {
                        [access].into_iter().chain((giver != gateway).then_some(giver)).collect()
                    }
                };
                (giver, keepers)
            }
        }
    }
}

/// Files in the order of their latest request.
#[derive(Default)]
struct Store {
    files: Vec<(usize, u64)>,
}

impl Store {
    fn has(&self, file: usize) -> bool {
        self.files.iter().any(|(it, _)| *it == file)
    }

    fn take(&mut self, file: usize, bytes: u64, most: u64) {
        self.files.retain(|(it, _)| *it != file);
        self.files.push((file, bytes));
        let sum = |files: &[(usize, u64)]| files.iter().map(|(_, bytes)| bytes).sum::<u64>();
        while sum(&self.files) > most {
            self.files.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gateway 0, then router 1, then 2 and 3 behind it.
    fn ask(router: usize, file: usize) -> Asked {
        let path = if router == 1 { vec![0, 1] } else { vec![0, 1, router] };
        Asked { path, file, bytes: 10 }
    }

    #[test]
    fn hits_are_of_three_kinds() {
        let requests = [ask(2, 7), ask(3, 7), ask(1, 7), ask(2, 7)];
        // The first request misses, the second hits at 1, the third at home, which had not requested it.
        assert_eq!(hop_by_hop(&requests, 100), [25.0, 25.0, 25.0]);
    }

    #[test]
    fn the_nearest_copy_is_found_beside_the_way() {
        // Routers 2 and 3 are two hops from the gateway, on branches of their own, and hear each other.
        let ring = || Routes::over(5, [(0, 1), (1, 2), (0, 4), (4, 3), (2, 3)]);
        let ask = |router, file| Asked {
            path: if router == 2 { vec![0, 1, 2] } else { vec![0, 4, 3] },
            file,
            bytes: 10,
        };
        let requests = [ask(2, 7), ask(3, 7), ask(3, 7)];
        let on_the_way = serve(&requests, 100, &mut Finding::OnTheWay);
        assert_eq!((on_the_way.hits, on_the_way.gateway_bytes), ([100.0 / 3.0, 0.0, 0.0], 20));
        for per_hop in [true, false] {
            let mut nearest = Finding::Nearest { routes: &mut ring(), per_hop };
            let served = serve(&requests, 100, &mut nearest);
            assert_eq!((served.hits, served.gateway_bytes), ([100.0 / 3.0, 0.0, 100.0 / 3.0], 10));
        }
        // A copy farther than the gateway is of no use: 1 is a neighbour of the gateway.
        let far = [ask(3, 7), Asked { path: vec![0, 1], file: 7, bytes: 10 }];
        let mut nearest = Finding::Nearest { routes: &mut ring(), per_hop: false };
        assert_eq!(serve(&far, 100, &mut nearest).gateway_bytes, 20);
    }

    #[test]
    fn what_was_not_asked_for_longest_leaves() {
        let requests = [ask(1, 1), ask(1, 2), ask(1, 1), ask(1, 3), ask(1, 1), ask(1, 2)];
        // Two files fit: file 3 evicts file 2.
        assert_eq!(hop_by_hop(&requests, 20), [100.0 / 3.0, 0.0, 0.0]);
    }
}
