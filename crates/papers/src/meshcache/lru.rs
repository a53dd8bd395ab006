//! The hits that caches of whole files would have for the same requests in the same order, with LRU eviction.
//! This separates what a scheme can give from what our engines achieve.

use std::collections::BTreeMap;

use sim::result::source::ServedBy;

/// A request: the path from the gateway to its client's router, the file, and its size.
pub(super) struct Asked {
    pub path: Vec<usize>,
    pub file: usize,
    pub bytes: u64,
}

/// Shares of requests, in percent: local, ph-local, remote.
pub(super) type Hits = [f64; 3];

/// The hits if each router on the path keeps what it forwards, in a store of `store_bytes` bytes.
pub(super) fn hop_by_hop(requests: &[Asked], store_bytes: u64) -> Hits {
    let mut stores: BTreeMap<usize, Store> = BTreeMap::new();
    let mut asked = std::collections::BTreeSet::new();
    let mut counts = [0_u32; 3];
    for Asked { path, file, bytes } in requests {
        let (Some(gateway), Some(access)) = (path.first(), path.last()) else { continue };
        let routers: Vec<_> = path[1..].iter().rev().copied().collect();
        let has = |router: &usize| stores.get(router).is_some_and(|it| it.has(*file));
        let found = routers.iter().position(has);
        let is_known = !asked.insert((*access, *file));
        let giver = found.map_or(*gateway, |place| routers[place]);
        let source = ServedBy::of(Some(giver), *access, *gateway, is_known);
        let kinds = [ServedBy::Local, ServedBy::PhLocal, ServedBy::Remote];
        if let Some(kind) = kinds.iter().position(|it| *it == source) {
            counts[kind] += 1;
        }
        let passed = found.map_or(routers.len(), |place| place + 1);
        for router in &routers[..passed] {
            stores.entry(*router).or_default().take(*file, *bytes, store_bytes);
        }
    }
    counts.map(|count| 100.0 * f64::from(count) / requests.len().max(1) as f64)
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
    fn what_was_not_asked_for_longest_leaves() {
        let requests = [ask(1, 1), ask(1, 2), ask(1, 1), ask(1, 3), ask(1, 1), ask(1, 2)];
        // Two files fit: file 3 evicts file 2.
        assert_eq!(hop_by_hop(&requests, 20), [100.0 / 3.0, 0.0, 0.0]);
    }
}
