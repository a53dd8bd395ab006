//! Content bytes by class and source, for the ledger.
//!
//! *What this is:* one row a class, fixed in size. *Who calls it:* the machines `client` and `object`, where bytes
//! go out and come in; the driver reads it now and then, and keeps the sums. *What it never does:* allocate for a
//! packet, unless bytes by host are wanted, or forget. *Limits:* [`CLASSES_MAX`] classes; others count as class 0.
//! [`HOSTS_MAX`] hosts between two readings; bytes of further ones are in no host's sum.

use crate::crossed::Crossed;
use crate::exchanges::exchange::Sent;
use crate::request::Ask;
use classes::{ClassId, Classes};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

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

/// One column of the ledger: its number, and its figure.
pub type Column = (u8, fn(&mut ClassBytes) -> &mut u64);

impl ClassBytes {
    /// The ledger's columns. Their numbers are on disk: they are never given to another figure.
    pub const COLUMNS: [Column; 12] = [
        (0, |it| &mut it.served_local_bytes),
        (1, |it| &mut it.served_peer_bytes),
        (2, |it| &mut it.served_overheard_bytes),
        (3, |it| &mut it.served_repaired_bytes),
        (4, |it| &mut it.served_far_reference_bytes),
        (5, |it| &mut it.served_far_difference_bytes),
        (6, |it| &mut it.served_origin_bytes),
        (8, |it| &mut it.fetched_peer_bytes),
        (9, |it| &mut it.fetched_far_reference_bytes),
        (10, |it| &mut it.fetched_far_difference_bytes),
        (11, |it| &mut it.fetched_origin_bytes),
        (16, |it| &mut it.to_peers_bytes),
    ];

    /// What clients were given.
    pub fn served(&self) -> u64 {
        self.sum(0..8)
    }

    /// What clients and peers were given.
    pub fn given(&self) -> u64 {
        self.served() + self.to_peers_bytes
    }

    /// What was brought in, without what the far end only referred to.
    pub fn brought(&self) -> u64 {
        self.sum(8..16) - self.fetched_far_reference_bytes
    }

    /// Adds another's figures.
    pub fn add(&mut self, mut other: Self) {
        for (_, figure) in Self::COLUMNS {
            *figure(self) += *figure(&mut other);
        }
    }

    fn sum(&self, columns: Range<u8>) -> u64 {
        let mut copy = *self;
        let within = Self::COLUMNS.iter().filter(|(column, _)| columns.contains(column));
        within.map(|(_, figure)| *figure(&mut copy)).sum()
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
    /// For the names of classes.
    tables: Arc<Classes>,
    classes: Box<[ClassBytes; CLASSES_MAX]>,
    /// Since the last reading; `None` if they are not wanted.
    hosts: Option<BTreeMap<String, HostBytes>>,
}

impl Account {
    /// Nothing was counted yet, by these tables.
    pub fn new(tables: Arc<Classes>) -> Self {
        Self { tables, classes: Box::new([ClassBytes::default(); CLASSES_MAX]), hosts: None }
    }

    /// The bytes of each class by its name.
    pub fn by_name(&self) -> BTreeMap<String, ClassBytes> {
        let mut named = BTreeMap::<String, ClassBytes>::new();
        for (id, bytes) in self.classes() {
            named.entry(self.tables.name(id).to_owned()).or_default().add(*bytes);
        }
        named
    }

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
    pub(crate) fn given_to_peer(&mut self, class: ClassId, bytes: u64) {
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
    use crate::request::tests::ask;
    use wire::counters::Counters as _;

    #[test]
    fn a_class_beyond_the_table_counts_as_other() {
        let mut account = Account::new(Arc::default());
        account.given_to_peer(ClassId(3), 5);
        account.given_to_peer(ClassId(63), 9);
        account.given_to_peer(ClassId(64), 7);
        account.given_to_peer(ClassId(255), 1);
        let rows: Vec<_> = account.classes().map(|(id, it)| (id.0, it.to_peers_bytes)).collect();
        assert_eq!(rows, [(0, 8), (3, 5), (63, 9)]);
        // These tables name no class.
        assert_eq!(account.by_name()["other"].to_peers_bytes, 5 + 9 + 7 + 1);
    }

    #[test]
    fn each_source_is_booked_in_its_own_column() {
        let mut account = Account::new(Arc::default());
        account.count_hosts(true);
        let mut ask = ask("http://o.test/a");
        ask.verdict.class = ClassId(3);
        // Each figure is another power of two, so a wrong sum shows what was added.
        let sent = Sent { local: 1, peer: 2, overheard: 4, repaired: 8, origin: 16 + 32 + 64 };
        let once = ClassBytes {
            served_local_bytes: 1,
            served_peer_bytes: 2,
            served_overheard_bytes: 4,
            served_repaired_bytes: 8,
            served_far_reference_bytes: 16,
            served_far_difference_bytes: 32,
            served_origin_bytes: 64,
            fetched_far_reference_bytes: 128,
            fetched_far_difference_bytes: 256,
            fetched_origin_bytes: 512,
            fetched_peer_bytes: 1024,
            to_peers_bytes: 2048,
        };
        let mut expected = ClassBytes::default();
        for _ in 0..2 {
            account.served(&ask, &sent, Crossed { reference: 16, difference: 32 });
            let crossed = Crossed { reference: 128, difference: 256 };
            account.fetched(&ask, 128 + 256 + 512, crossed);
            account.fetched_from_peer(&ask, 1024);
            account.given_to_peer(ClassId(3), 2048);
            expected.add(once);
            assert_eq!(account.classes().collect::<Vec<_>>(), [(ClassId(3), &expected)]);
        }
        // A host has all that its clients were given and all that came for it, but not what peers
        // were given.
        let host = HostBytes { served: 2 * 127, fetched: 2 * (128 + 256 + 512 + 1024) };
        assert_eq!(account.take_hosts(), BTreeMap::from([("o.test".to_owned(), host)]));
    }

    #[test]
    fn a_host_beyond_the_table_is_in_no_sum_until_the_next_reading() {
        let mut account = Account::new(Arc::default());
        account.count_hosts(true);
        let ask_of = |number: usize| ask(&format!("http://h{number}.test/"));
        (0..=256).for_each(|number| account.fetched_from_peer(&ask_of(number), 1));
        // One that is in the table counts on.
        account.fetched_from_peer(&ask_of(0), 1);
        let hosts = account.take_hosts();
        assert_eq!(
            (hosts.len(), hosts["h0.test"].fetched, hosts["h255.test"].fetched),
            (256, 2, 1)
        );
        assert!(!hosts.contains_key("h256.test"));
        account.fetched_from_peer(&ask_of(256), 1);
        assert_eq!(account.take_hosts()["h256.test"].fetched, 1);
        let fetched = account.by_name()["other"].fetched_peer_bytes;
        assert_eq!(fetched, 259, "its class has it");
    }

    #[test]
    fn each_figure_has_one_column() {
        let mut row = ClassBytes::default();
        for (at, (_, figure)) in ClassBytes::COLUMNS.iter().enumerate() {
            *figure(&mut row) += 1 << at;
        }
        let figures = row.figures().iter().map(|it| it.values()[0].1).collect::<Vec<_>>();
        assert_eq!(figures, (0..ClassBytes::ROWS.len()).map(|at| 1 << at).collect::<Vec<_>>());
        assert_eq!(row.served(), 0b111_1111);
        assert_eq!(row.given(), 0b1000_0111_1111);
        assert_eq!(row.brought(), 0b110_1000_0000);
        let mut twice = row;
        twice.add(row);
        assert_eq!(twice.served(), 2 * row.served());
    }

    #[test]
    fn hosts_are_counted_only_if_wanted() {
        let mut account = Account::new(Arc::default());
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
