//! Archives that were found by their indexes.

use crate::{ClassId, Url};

/// What a fetched index shows: its host has an archive of a class below a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    pub(crate) class: ClassId,
    pub(crate) site: Site,
}

/// Where an archive is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) tls: bool,
    pub(crate) host: Box<str>,
    pub(crate) port: u16,
    /// Empty, or from `/` on, without a `/` at its end.
    pub(crate) root: Box<str>,
}

impl Site {
    fn has(&self, url: Url<'_>) -> bool {
        let Some(rest) = url.path.strip_prefix(&*self.root) else { return false };
        (self.tls, &*self.host, self.port) == (url.tls, url.host, url.port) && rest.starts_with('/')
    }
}

/// The archives that a node has found: at most [`Proven::MAX`]; the one that was proved longest ago is forgotten.
#[derive(Clone, Debug, Default)]
pub struct Proven {
    /// The newest is last.
    proofs: Vec<Proof>,
    forgotten: u64,
}

impl Proven {
    /// The most archives that are remembered.
    pub const MAX: usize = 256;

    /// The longest root, in bytes. Longer ones prove nothing.
    pub(crate) const ROOT_MAX: usize = 256;

    /// Remembers what an index showed. Only an index that its host has really delivered (200 or 304) proves anything.
    pub fn learn(&mut self, proof: Proof) {
        if self.proofs.last() == Some(&proof) {
            return;
        }
        let known = self.proofs.iter().position(|it| *it == proof);
        match known {
            Some(at) => drop(self.proofs.remove(at)),
            None if self.proofs.len() == Self::MAX => {
                self.proofs.remove(0);
                self.forgotten += 1;
            }
            None => {}
        }
        self.proofs.push(proof);
    }

    /// How many archives are known.
    pub fn count(&self) -> usize {
        self.proofs.len()
    }

    /// How many archives were forgotten, for want of room, since the start.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The archives that have a URL, by class and root.
    pub(crate) fn of<'a>(&'a self, url: Url<'a>) -> impl Iterator<Item = (ClassId, &'a str)> {
        let known = self.proofs.iter().filter(move |it| it.site.has(url));
        known.map(|it| (it.class, &*it.site.root))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(host: &str) -> Proof {
        let site = Site { tls: false, host: host.into(), port: 80, root: "/debian".into() };
        Proof { class: ClassId(1), site }
    }

    fn knows(proven: &Proven, host: &str, path: &str) -> bool {
        proven.of(Url { tls: false, host, port: 80, path }).next().is_some()
    }

    #[test]
    fn only_what_is_below_the_root_is_known() {
        let mut proven = Proven::default();
        proven.learn(proof("a.test"));
        assert!(knows(&proven, "a.test", "/debian/pool/x"));
        assert!(!knows(&proven, "a.test", "/debianx/pool/x"));
        assert!(!knows(&proven, "b.test", "/debian/pool/x"));
        let url = Url { tls: false, host: "a.test", port: 80, path: "/debian/pool/x" };
        for other in [Url { tls: true, ..url }, Url { port: 81, ..url }] {
            assert!(proven.of(other).next().is_none());
        }
        let known: Vec<_> = proven.of(url).collect();
        assert_eq!(known, [(ClassId(1), "/debian")]);
    }

    #[test]
    fn an_archive_is_remembered_once() {
        let mut proven = Proven::default();
        for host in ["a.test", "a.test", "b.test", "a.test"] {
            proven.learn(proof(host));
        }
        assert_eq!((proven.count(), proven.forgotten()), (2, 0));
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let mut proven = Proven::default();
        for number in 0..Proven::MAX {
            proven.learn(proof(&format!("{number}.test")));
        }
        proven.learn(proof("0.test"));
        proven.learn(proof("new.test"));
        proven.learn(proof("newer.test"));
        assert_eq!((proven.count(), proven.forgotten()), (256, 2));
        assert!(knows(&proven, "0.test", "/debian/x") && knows(&proven, "new.test", "/debian/x"));
        assert!(!knows(&proven, "1.test", "/debian/x") && !knows(&proven, "2.test", "/debian/x"));
        assert!(knows(&proven, "3.test", "/debian/x"));
    }
}
