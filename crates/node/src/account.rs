//! Content bytes by class and source, for the ledger.
//!
//! *What this is:* one row a class, fixed in size. *Who calls it:* the machines `client` and `object`, where bytes
//! go out and come in; the driver reads it now and then, and keeps the sums. *What it never does:* allocate for a
//! packet, unless bytes by host are wanted, or forget. *Limits:* [`CLASSES_MAX`] classes; others count as class 0.
//! [`HOSTS_MAX`] hosts between two readings; bytes of further ones are in no host's sum.

use crate::crossed::Crossed;
use crate::exchanges::exchange::Sent;
use crate::request::Ask;
use classes::ClassId;
use std::collections::BTreeMap;

/// Classes that are counted apart.
pub const CLASSES_MAX: usize = 64;
/// Hosts that are counted apart between two readings.
pub const HOSTS_MAX: usize = 256;

wire::counters! {
    /// Content bytes of one class.
    #[derive(Copy)]
    pub struct ClassBytes, "class_" {
        Requests ("hearsay_class_served_bytes_total", source, "Content bytes given to clients, by class and by where they came from.") {
            /// From the store or memory here, overheard ones apart.
            served_local_bytes: Counter, Bytes, "local";
            /// From a peer, as they arrived.
            served_peer_bytes: Counter, Bytes, "peer";
            /// Of units that were overheard before a peer had sent them.
            served_overheard_bytes: Counter, Bytes, "overheard";
            /// Overheard, in units that a peer completed.
            served_repaired_bytes: Counter, Bytes, "repaired";
            /// From an origin by the far end, which only referred to what had crossed the uplink before.
            served_far_reference_bytes: Counter, Bytes, "far-reference";
            /// From an origin by the far end, which sent the differences from what had crossed before.
            served_far_difference_bytes: Counter, Bytes, "far-difference";
            /// From an origin, as they arrived.
            served_origin_bytes: Counter, Bytes, "origin";
        }
        Requests ("hearsay_class_fetched_bytes_total", source, "Content bytes brought in, by class and by where they came from.") {
            /// From peers.
            fetched_peer_bytes: Counter, Bytes, "peer";
            /// From origins by the far end, which only referred to what had crossed the uplink before.
            fetched_far_reference_bytes: Counter, Bytes, "far-reference";
            /// From origins by the far end, which sent the differences from what had crossed before.
            fetched_far_difference_bytes: Counter, Bytes, "far-difference";
            /// From origins, in full.
            fetched_origin_bytes: Counter, Bytes, "origin";
        }
        Requests () {
            /// Content bytes given to peers, by class.
            to_peers_bytes: Counter, Bytes;
        }
    }
}

/// What was counted for one host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostBytes {
    /// Content bytes given to clients.
    pub served: u64,
    /// Content bytes brought in from origins and peers.
    pub fetched: u64,
}

/// Content bytes since the start, by class.
pub struct Account {
    classes: Box<[ClassBytes; CLASSES_MAX]>,
    /// Since the last reading; `None` if they are not wanted.
    hosts: Option<BTreeMap<String, HostBytes>>,
}

impl Default for Account {
    fn default() -> Self {
        Self { classes: Box::new([ClassBytes::default(); CLASSES_MAX]), hosts: None }
    }
}

impl Account {
    /// The classes of which anything was counted.
    pub fn classes(&self) -> impl Iterator<Item = (ClassId, &ClassBytes)> {
        let all = (0..).map(ClassId).zip(self.classes.iter());
        all.filter(|(_, bytes)| **bytes != ClassBytes::default())
    }

    /// Counts hosts from now on, or no longer: they tell about people.
    pub fn count_hosts(&mut self, wanted: bool) {
        match wanted {
            true => drop(self.hosts.get_or_insert_default()),
            false => self.hosts = None,
        }
    }

    /// What was counted by host since the last call.
    pub fn take_hosts(&mut self) -> BTreeMap<String, HostBytes> {
        self.hosts.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// A client was given these bytes; those of an origin may have come by the far end.
    pub(crate) fn served(&mut self, ask: &Ask, sent: &Sent, crossed: Crossed) {
        let row = self.of(ask);
        row.served_local_bytes += sent.local;
        row.served_peer_bytes += sent.peer;
        row.served_overheard_bytes += sent.overheard;
        row.served_repaired_bytes += sent.repaired;
        row.served_far_reference_bytes += crossed.reference;
        row.served_far_difference_bytes += crossed.difference;
        row.served_origin_bytes += sent.origin - crossed.total();
        if let Some(host) = self.host(ask) {
            host.served += sent.total();
        }
    }

    /// Bytes have come from an origin, some of them by the far end.
    pub(crate) fn fetched(&mut self, ask: &Ask, bytes: u64, crossed: Crossed) {
        let row = self.of(ask);
        row.fetched_far_reference_bytes += crossed.reference;
        row.fetched_far_difference_bytes += crossed.difference;
        row.fetched_origin_bytes += bytes - crossed.total();
        if let Some(host) = self.host(ask) {
            host.fetched += bytes;
        }
    }

    /// Bytes have come from a peer.
    pub(crate) fn fetched_from_peer(&mut self, ask: &Ask, bytes: u64) {
        self.of(ask).fetched_peer_bytes += bytes;
        if let Some(host) = self.host(ask) {
            host.fetched += bytes;
        }
    }

    /// A peer was given bytes.
    pub(crate) fn to_peer(&mut self, class: ClassId, bytes: u64) {
        self.row(class).to_peers_bytes += bytes;
    }

    fn of(&mut self, ask: &Ask) -> &mut ClassBytes {
        self.row(ask.verdict.class)
    }

    fn row(&mut self, ClassId(class): ClassId) -> &mut ClassBytes {
        let index = usize::from(class);
        &mut self.classes[if index < CLASSES_MAX { index } else { 0 }]
    }

    fn host(&mut self, ask: &Ask) -> Option<&mut HostBytes> {
        let hosts = self.hosts.as_mut()?;
        let name = ask.target.host();
        if !hosts.contains_key(name) {
            if hosts.len() >= HOSTS_MAX {
                return None;
            }
            hosts.insert(name.to_owned(), HostBytes::default());
        }
        hosts.get_mut(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_beyond_the_table_counts_as_other() {
        let mut account = Account::default();
        account.to_peer(ClassId(3), 5);
        account.to_peer(ClassId(CLASSES_MAX as u8), 7);
        account.to_peer(ClassId(255), 1);
        let rows: Vec<_> = account.classes().map(|(id, it)| (id.0, it.to_peers_bytes)).collect();
        assert_eq!(rows, [(0, 8), (3, 5)]);
    }

    #[test]
    fn hosts_are_counted_only_if_wanted() {
        let mut account = Account::default();
        assert!(account.take_hosts().is_empty() && account.hosts.is_none());
        account.count_hosts(true);
        account.hosts.as_mut().unwrap().insert("a".into(), HostBytes { served: 1, fetched: 2 });
        account.count_hosts(true);
        assert_eq!(account.take_hosts()["a"], HostBytes { served: 1, fetched: 2 });
        assert!(account.take_hosts().is_empty());
        account.count_hosts(false);
        assert!(account.hosts.is_none());
    }
}
