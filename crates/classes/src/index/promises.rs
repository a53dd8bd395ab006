//! A table of promised digests.

use hashbrown::HashTable;
use wire::Digest;

use crate::Url;

/// The digests that indexes promise for URLs: at most [`Promises::MAX`], each of 44 bytes and about 8 to find it; the
/// one that was added first is forgotten first.
#[derive(Debug, Default)]
pub struct Promises {
    /// A ring, once it is full.
    entries: Vec<Entry>,
    /// Where the oldest entry is.
    oldest: usize,
    places: HashTable<u32>,
    forgotten: u64,
    given_up: u64,
}

#[derive(Debug)]
struct Entry {
    key: Key,
    digest: [u8; 32],
}

/// The first bytes of a URL's BLAKE3 hash. A wrong promise, by two URLs with one key, would only keep a file unstored.
type Key = [u8; 12];

impl Promises {
    /// The most promises.
    pub const MAX: usize = 64 << 10;

    /// The digest that is promised for a URL.
    pub fn get(&self, url: Url<'_>) -> Option<Digest> {
        let key = key(url, "");
        let place = self.places.find(hash(key), |it| self.entries[*it as usize].key == key)?;
        Some(Digest::Sha256(self.entries[*place as usize].digest))
    }

    /// How many promises are known.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// How many promises were forgotten, for want of room, since the start.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// How many indexes were given up, since the start: they were broken, or too large.
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    pub(super) fn give_up(&mut self) {
        self.given_up += 1;
    }

    /// Adds the promise for the file at `path` below a folder; a newer one replaces an older one.
    pub(super) fn add(&mut self, folder: Url<'_>, path: &str, digest: [u8; 32]) {
        let key = key(folder, path);
        let known = self.places.find(hash(key), |it| self.entries[*it as usize].key == key);
        if let Some(place) = known {
            self.entries[*place as usize].digest = digest;
            return;
        }
        let entry = Entry { key, digest };
        let place = if self.entries.len() < Self::MAX {
            self.entries.push(entry);
            self.entries.len() - 1
        } else {
            let place = self.oldest;
            self.oldest = (place + 1) % Self::MAX;
            let old = std::mem::replace(&mut self.entries[place], entry);
            if let Ok(found) = self.places.find_entry(hash(old.key), |it| *it as usize == place) {
                found.remove();
            }
            self.forgotten += 1;
            place
        };
        let entries = &self.entries;
        let rehash = |it: &u32| hash(entries[*it as usize].key);
        // `MAX` fits.
        self.places.insert_unique(hash(key), place as u32, rehash);
    }
}

/// The key of the file at `path` below a URL.
fn key(url: Url<'_>, path: &str) -> Key {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[u8::from(url.tls)]).update(&url.port.to_be_bytes());
    hasher.update(url.host.as_bytes()).update(url.path.as_bytes()).update(path.as_bytes());
    let hash = hasher.finalize();
    std::array::from_fn(|at| hash.as_bytes()[at])
}

fn hash(key: Key) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = key;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(path: &str) -> Url<'_> {
        Url { tls: false, host: "a.test", port: 80, path }
    }

    #[test]
    fn a_promise_is_of_one_url() {
        let mut promises = Promises::default();
        promises.add(url("/debian/"), "pool/a", [1; 32]);
        promises.add(url("/debian/"), "pool/a", [2; 32]);
        assert_eq!(promises.get(url("/debian/pool/a")), Some(Digest::Sha256([2; 32])));
        assert_eq!(promises.count(), 1);
        for other in [
            url("/debian/pool/b"),
            Url { tls: true, ..url("/debian/pool/a") },
            Url { port: 81, ..url("/debian/pool/a") },
            Url { host: "b.test", ..url("/debian/pool/a") },
        ] {
            assert_eq!(promises.get(other), None);
        }
    }

    #[test]
    fn the_first_promises_are_forgotten_first() {
        let mut promises = Promises::default();
        let count = Promises::MAX + Promises::MAX / 2;
        for number in 0..count {
            promises.add(url("/"), &number.to_string(), [7; 32]);
        }
        assert_eq!(promises.count(), Promises::MAX);
        assert_eq!(promises.forgotten(), (count - Promises::MAX) as u64);
        let known = (0..count).filter(|it| promises.get(url(&format!("/{it}"))).is_some());
        assert_eq!(known.collect::<Vec<_>>(), (count - Promises::MAX..count).collect::<Vec<_>>());
    }
}
