//! A table of promised digests.

use std::collections::VecDeque;

use wire::Digest;

use super::ring::{Key, Ring};
use crate::Url;

/// The digests that indexes promise for files: at most [`Promises::MAX`], each of 44 bytes and about 8 to find it, and half
/// as many of SHA-512, of 76 bytes. The one that was added first is forgotten first.
///
/// A promise is of an index, not of a host: mirrors of one archive have the same indexes, and each is read once. It
/// counts for the host that sent the index, and once the index is verified for every host that says to have it.
#[derive(Debug)]
pub struct Promises {
    sha256: Ring<32>,
    sha512: Ring<64>,
    /// The indexes that were read and have their digests, the latest last: at most [`INDEXES_MAX`].
    verified: VecDeque<(Digest, IndexId)>,
    /// The archives that have them, the latest last: at most [`ARCHIVES_MAX`].
    archives: VecDeque<Archive>,
    given_up: u64,
}

impl Default for Promises {
    fn default() -> Self {
        Self {
            sha256: Ring::new(Self::MAX),
            sha512: Ring::new(Self::MAX / 2),
            verified: VecDeque::new(),
            archives: VecDeque::new(),
            given_up: 0,
        }
    }
}

/// The most indexes that are known by their digests, and the most of one archive.
const INDEXES_MAX: usize = 64;

/// The most archives that are known.
const ARCHIVES_MAX: usize = 64;

/// What an index is known by: the URL that it was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexId(Key);

/// An archive: the folder that the paths in its indexes are below.
#[derive(Debug)]
struct Archive {
    tls: bool,
    host: Box<str>,
    port: u16,
    root: Box<str>,
    /// The latest last.
    indexes: VecDeque<IndexId>,
}

impl IndexId {
    pub(super) fn of_url(url: Url<'_>) -> Self {
        let Url { tls, host, port, path } = url;
        Self(key(&[&[u8::from(tls)], &port.to_be_bytes(), host.as_bytes(), path.as_bytes()]))
    }
}

impl Archive {
    fn is_at(&self, root: Url<'_>) -> bool {
        self.below(root).is_some_and(str::is_empty)
    }

    /// The path of a URL below the archive's folder.
    fn below<'a>(&self, url: Url<'a>) -> Option<&'a str> {
        let is_host = (self.tls, self.port, &*self.host) == (url.tls, url.port, url.host);
        url.path.strip_prefix(&*self.root).filter(|_| is_host)
    }
}

impl Promises {
    /// The most promises of SHA-256.
    pub const MAX: usize = 64 << 10;

    /// The digest that is promised for a URL, by the latest index of its archive that names it.
    pub fn get(&self, url: Url<'_>) -> Option<Digest> {
        let archives = self.archives.iter().filter_map(|it| Some((it, it.below(url)?)));
        let mut keys = archives.flat_map(|(archive, path)| {
            archive.indexes.iter().rev().map(move |index| entry_key(*index, path))
        });
        keys.find_map(|key| {
            let short = self.sha256.get(key).map(Digest::Sha256);
            short.or_else(|| self.sha512.get(key).map(Digest::Sha512))
        })
    }

    /// How many promises are known.
    pub fn count(&self) -> usize {
        self.sha256.len() + self.sha512.len()
    }

    /// How many promises were forgotten, for want of room, since the start.
    pub fn forgotten(&self) -> u64 {
        self.sha256.forgotten() + self.sha512.forgotten()
    }

    /// How many indexes were given up, since the start: they were broken, or too large.
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    pub(super) fn give_up(&mut self) {
        self.given_up += 1;
    }

    /// An index is being read, or known: what it promises counts below this folder.
    pub(super) fn add_index(&mut self, index: IndexId, root: Url<'_>) {
        let known = self.archives.iter().position(|it| it.is_at(root));
        let known = known.and_then(|at| self.archives.remove(at));
        let mut archive = known.unwrap_or_else(|| Archive {
            tls: root.tls,
            host: root.host.into(),
            port: root.port,
            root: root.path.into(),
            indexes: VecDeque::new(),
        });
        archive.indexes.retain(|it| *it != index);
        push(&mut archive.indexes, index, INDEXES_MAX);
        push(&mut self.archives, archive, ARCHIVES_MAX);
    }

    /// An index was read whole, and has this digest.
    pub(super) fn verify(&mut self, index: IndexId, digest: Digest) {
        self.verified.retain(|it| it.0 != digest);
        push(&mut self.verified, (digest, index), INDEXES_MAX);
    }

    /// An archive says to have the index with a digest.
    pub(super) fn link(&mut self, digest: Digest, root: Url<'_>) {
        if let Some(&(_, index)) = self.verified.iter().find(|it| it.0 == digest) {
            self.add_index(index, root);
        }
    }

    /// Adds an index's promise for the file at a path below its folder; a newer one replaces an older one.
    pub(super) fn add(&mut self, index: IndexId, path: &str, digest: Digest) {
        let key = entry_key(index, path);
        match digest {
            Digest::Sha256(digest) => {
                self.sha512.remove(key);
                self.sha256.put(key, digest);
            }
            Digest::Sha512(digest) => {
                self.sha256.remove(key);
                self.sha512.put(key, digest);
            }
        }
    }
}

/// Adds an item; the oldest makes room.
fn push<T>(items: &mut VecDeque<T>, item: T, max: usize) {
    if items.len() == max {
        items.pop_front();
    }
    items.push_back(item);
}

fn entry_key(index: IndexId, path: &str) -> Key {
    key(&[&index.0, path.as_bytes()])
}

fn key(parts: &[&[u8]]) -> Key {
    let mut hasher = blake3::Hasher::new();
    parts.iter().for_each(|it| {
        hasher.update(it);
    });
    let hash = hasher.finalize();
    std::array::from_fn(|at| hash.as_bytes()[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(path: &str) -> Url<'_> {
        Url { tls: false, host: "a.test", port: 80, path }
    }

    fn index(number: u8) -> IndexId {
        IndexId::of_url(url(&number.to_string()))
    }

    #[test]
    fn a_promise_is_of_one_archive() {
        let mut promises = Promises::default();
        promises.add_index(index(1), url("/debian/"));
        promises.add(index(1), "pool/a", Digest::Sha256([1; 32]));
        promises.add(index(1), "pool/a", Digest::Sha256([2; 32]));
        assert_eq!(promises.get(url("/debian/pool/a")), Some(Digest::Sha256([2; 32])));
        assert_eq!(promises.count(), 1);
        for other in [
            url("/debian/pool/b"),
            url("/other/pool/a"),
            Url { tls: true, ..url("/debian/pool/a") },
            Url { port: 81, ..url("/debian/pool/a") },
            Url { host: "b.test", ..url("/debian/pool/a") },
        ] {
            assert_eq!(promises.get(other), None);
        }
    }

    #[test]
    fn an_archive_with_a_verified_index_has_its_promises_and_no_others() {
        let digest = |number: u8| Digest::Sha256([100 + number; 32]);
        let mut promises = Promises::default();
        for (number, path) in [(1, "pool/a"), (2, "pool/b"), (3, "pool/c")] {
            promises.add_index(index(number), url("/debian/"));
            promises.add(index(number), path, Digest::Sha256([number; 32]));
        }
        promises.verify(index(1), digest(1));
        promises.verify(index(2), digest(2));
        let mirror = |path| Url { tls: true, host: "b.test", port: 443, path };
        promises.link(digest(1), mirror("/m/"));
        promises.link(digest(3), mirror("/m/"));
        assert_eq!(promises.get(mirror("/m/pool/a")), Some(Digest::Sha256([1; 32])));
        assert_eq!(promises.get(mirror("/m/pool/b")), None, "it has another list");
        assert_eq!(promises.get(mirror("/m/pool/c")), None, "this list was not verified");
    }

    #[test]
    fn the_latest_index_counts_and_tables_are_bounded() {
        let mut promises = Promises::default();
        for number in 0..200 {
            promises.add_index(index(number), url("/debian/"));
            promises.add(index(number), "pool/a", Digest::Sha256([number; 32]));
            promises.verify(index(number), Digest::Sha256([number; 32]));
        }
        assert_eq!(promises.get(url("/debian/pool/a")), Some(Digest::Sha256([199; 32])));
        assert_eq!((promises.verified.len(), promises.archives.len()), (INDEXES_MAX, 1));
        assert_eq!(promises.archives[0].indexes.len(), INDEXES_MAX);
        for number in 0..200 {
            promises.add_index(index(199), url(&format!("/{number}/")));
        }
        assert_eq!(promises.archives.len(), ARCHIVES_MAX);
        assert!(promises.get(url("/199/pool/a")).is_some());
    }

    #[test]
    fn the_first_promises_are_forgotten_first() {
        let mut promises = Promises::default();
        promises.add_index(index(1), url("/"));
        let count = Promises::MAX + Promises::MAX / 2;
        for number in 0..count {
            promises.add(index(1), &number.to_string(), Digest::Sha256([7; 32]));
        }
        assert_eq!(promises.count(), Promises::MAX);
        assert_eq!(promises.forgotten(), (count - Promises::MAX) as u64);
        let known = (0..count).filter(|it| promises.get(url(&format!("/{it}"))).is_some());
        assert_eq!(known.collect::<Vec<_>>(), (count - Promises::MAX..count).collect::<Vec<_>>());
    }
}
