//! Addresses that intercepted clients have dialled, and that the resolver said were the host's: while it does not answer, a
//! client that dials one of them gets what is stored of the host, and nothing else.
//!
//! They are kept in the catalogue, so that a router that is started without its uplink knows them: in one row, sealed where
//! there is a mesh key, since they tell where people go.

use crate::access::translated;
use crate::hasher::{Cache, cache};
use crate::http::OPEN_KEY;
use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use quick_cache::UnitWeighter;
use std::net::IpAddr;
use std::time::Duration;
use store::Change;
use wire::{Instant, ObjectKey, varint};

/// Their key in the catalogue: no URI has this key.
pub const KEY: ObjectKey = ObjectKey(*b"hearsay: addresses of our hosts.");

/// Hosts that are remembered.
const HOSTS_MAX: usize = 1024;
/// Addresses of one host, the latest first.
const ADDRESSES_MAX: usize = 16;
/// The longest name of a host that is remembered (RFC 1035 §2.3.4).
const NAME_MAX: usize = 255;
/// The longest row, in bytes; hosts for which there is no room are not written.
const ROW_MAX: usize = 64 * 1024;
/// What is new is written after this time.
const WRITE_AFTER: Duration = Duration::from_secs(60);
/// The first byte of the row. Others begin with a 1 or a `Q`.
const VERSION: u8 = b'V';
/// The length of a nonce, in bytes.
const NONCE: usize = 24;

/// Addresses by host; see the module.
pub struct Verified {
    hosts: Cache<String, Vec<IpAddr>, UnitWeighter>,
    /// Seals them on the disk, if there is a mesh key.
    cipher: Option<XChaCha20Poly1305>,
    /// When to write what is new.
    pub write_at: Option<Instant>,
    is_loaded: bool,
}

impl Verified {
    /// None yet. `secret` is the mesh key, or [`OPEN_KEY`].
    pub fn new(secret: &[u8; 32]) -> Self {
        let key = blake3::derive_key("hearsay 2026-11 addresses of hosts", secret);
        Self {
            hosts: cache(HOSTS_MAX, HOSTS_MAX as u64, UnitWeighter),
            cipher: (*secret != OPEN_KEY).then(|| XChaCha20Poly1305::new(&key.into())),
            write_at: None,
            is_loaded: false,
        }
    }

    /// Whether this address was the host's.
    pub fn has(&self, host: &str, address: IpAddr) -> bool {
        self.hosts.get(host).is_some_and(|them| them.contains(&address))
    }

    /// A client dialled this address, and these are the host's: names with many addresses give some of them at a time.
    pub fn learn(&mut self, host: &str, dialled: IpAddr, addresses: &[IpAddr], now: Instant) {
        if self.has(host, dialled) || host.len() > NAME_MAX {
            return;
        }
        let mut all = vec![dialled];
        let before = self.hosts.get(host).map_or(&[][..], |them| them);
        for address in addresses.iter().map(|it| translated(*it)).chain(before.iter().copied()) {
            if all.len() < ADDRESSES_MAX && !all.contains(&address) {
                all.push(address);
            }
        }
        self.hosts.insert(host.to_owned(), all);
        self.write_at.get_or_insert(now + WRITE_AFTER);
    }

    /// True once: the row is to be looked up.
    pub fn loads(&mut self) -> bool {
        !std::mem::replace(&mut self.is_loaded, true)
    }

    /// The catalogue's row. What was learned meanwhile is newer.
    pub fn handle_row(&mut self, row: &[u8]) {
        for (host, addresses) in decode(row, self.cipher.as_ref()).unwrap_or_default() {
            if self.hosts.get(&host).is_none() {
                self.hosts.insert(host, addresses);
            }
        }
    }

    /// How to write what is new, if that is due; the nonce must be a new one.
    pub fn write(
        &mut self,
        now: Instant,
        nonce: impl FnOnce() -> [u8; NONCE],
    ) -> Option<Vec<Change>> {
        self.write_at.take_if(|at| *at <= now)?;
        let put = Change::Put { key: KEY, row: self.row(nonce()), records: Vec::new() };
        // A row that is evicted could not be had again.
        Some(vec![put, Change::Keep { key: KEY }])
    }

    fn row(&self, nonce: [u8; NONCE]) -> Vec<u8> {
        let mut clear = Vec::new();
        for (host, addresses) in self.hosts.iter() {
            let before = clear.len();
            varint::write(host.len() as u64, &mut clear);
            clear.extend(host.as_bytes());
            varint::write(addresses.len() as u64, &mut clear);
            for address in addresses {
                match address {
                    IpAddr::V4(v4) => clear.extend([&[4][..], &v4.octets()].concat()),
                    IpAddr::V6(v6) => clear.extend([&[6][..], &v6.octets()].concat()),
                }
            }
            if clear.len() > ROW_MAX {
                clear.truncate(before);
                break;
            }
        }
        let mut row = vec![VERSION];
        match &self.cipher {
            None => row.extend(clear),
            Some(cipher) => {
                row.extend(nonce);
                let sealed = cipher.encrypt(XNonce::from_slice(&nonce), &clear[..]);
                row.extend(sealed.expect("it is shorter than the longest text of the cipher"));
            }
        }
        row
    }
}

/// Reads a row; `None` if it is malformed, or sealed with another key.
fn decode(row: &[u8], cipher: Option<&XChaCha20Poly1305>) -> Option<Vec<(String, Vec<IpAddr>)>> {
    let row = row.strip_prefix(&[VERSION])?;
    let opened;
    let mut rest = match cipher {
        None => row,
        Some(cipher) => {
            let (nonce, sealed) = row.split_at_checked(NONCE)?;
            opened = cipher.decrypt(XNonce::from_slice(nonce), sealed).ok()?;
            &opened
        }
    };
    let mut hosts = Vec::new();
    while !rest.is_empty() && hosts.len() < HOSTS_MAX {
        let length = usize::try_from(varint::read(&mut rest)?).ok()?;
        let (host, after) = rest.split_at_checked(length).filter(|_| length <= NAME_MAX)?;
        rest = after;
        let count = usize::try_from(varint::read(&mut rest)?).ok()?;
        let mut addresses = Vec::new();
        for _ in 0..count.min(ADDRESSES_MAX) {
            addresses.push(address(&mut rest)?);
        }
        if count > ADDRESSES_MAX {
            return None;
        }
        hosts.push((String::from_utf8(host.to_vec()).ok()?, addresses));
    }
    Some(hosts)
}

fn address(rest: &mut &[u8]) -> Option<IpAddr> {
    let (family, after) = rest.split_first()?;
    let (address, after) = match family {
        4 => after.split_first_chunk::<4>().map(|(it, after)| (IpAddr::from(*it), after))?,
        6 => after.split_first_chunk::<16>().map(|(it, after)| (IpAddr::from(*it), after))?,
        _ => return None,
    };
    *rest = after;
    Some(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn v4(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn some(secret: &[u8; 32]) -> Verified {
        let mut verified = Verified::new(secret);
        let v6 = "2001:db8::1".parse().unwrap();
        verified.learn("a.test", v4(1), &[v4(1), v6], Instant::ZERO);
        verified.learn("b.test", v4(2), &[v4(2)], Instant::ZERO);
        verified
    }

    #[test]
    fn a_host_keeps_its_latest_addresses() {
        let mut verified = Verified::new(&OPEN_KEY);
        (1..=20).for_each(|n| verified.learn("a.test", v4(n), &[v4(n)], Instant::ZERO));
        let has = |n| verified.has("a.test", v4(n));
        assert!(!has(4) && has(5) && has(20));
        assert!(!verified.has("b.test", v4(20)));
    }

    #[test]
    fn hosts_are_bounded_and_so_is_the_row() {
        let mut verified = Verified::new(&OPEN_KEY);
        let name = |n: usize| format!("{n:0>200}.test");
        (0..5000).for_each(|n| verified.learn(&name(n), v4(1), &[v4(1)], Instant::ZERO));
        assert!(verified.hosts.len() <= HOSTS_MAX);
        let row = verified.row([0; NONCE]);
        assert!(row.len() <= ROW_MAX + 1, "{}", row.len());
        let mut read = Verified::new(&OPEN_KEY);
        read.handle_row(&row);
        // Each takes 205 bytes of name, 2 of its length, 1 of the count and 5 of the address.
        assert_eq!(read.hosts.len(), ROW_MAX / 213);
        verified.learn(&"a".repeat(NAME_MAX + 1), v4(1), &[v4(1)], Instant::ZERO);
        assert!(!verified.has(&"a".repeat(NAME_MAX + 1), v4(1)));
    }

    #[test]
    fn what_is_new_is_written_a_minute_later_and_read_once() {
        let mut verified = some(&OPEN_KEY);
        let due = Instant::ZERO + WRITE_AFTER;
        assert_eq!(verified.write_at, Some(due));
        let mut write = |at| verified.write(at, || [0; NONCE]);
        assert!(write(Instant::ZERO + (WRITE_AFTER - Duration::from_nanos(1))).is_none());
        let changes = write(due).expect("it is due");
        let [Change::Put { key: KEY, row, .. }, Change::Keep { key: KEY }] = &changes[..] else {
            panic!("{changes:?}");
        };
        assert!(row.len() > 1 && write(due).is_none(), "once");
        assert!(verified.loads());
        assert!(!verified.loads());
    }

    #[test]
    fn the_row_is_read_by_those_who_have_the_key() {
        let (none, key, other) = (&OPEN_KEY, &[1; 32], &[2; 32]);
        for (written, read, known) in [
            (none, none, true),
            (key, key, true),
            (key, other, false),
            (key, none, false),
            (none, key, false),
        ] {
            let row = some(written).row([7; NONCE]);
            assert_eq!(row.windows(6).any(|it| it == b"a.test"), written == none);
            let mut verified = Verified::new(read);
            verified.learn("b.test", v4(9), &[v4(9)], Instant::ZERO);
            verified.handle_row(&row);
            assert_eq!(verified.has("a.test", v4(1)), known, "{written:?} {read:?}");
            assert_eq!(verified.has("a.test", "2001:db8::1".parse().unwrap()), known);
            assert!(verified.has("b.test", v4(9)) && !verified.has("b.test", v4(2)), "newer");
        }
    }

    proptest! {
        #[test]
        fn any_row_is_read_without_panic_and_within_the_bounds(row: Vec<u8>, sealed: bool) {
            let mut verified = Verified::new(if sealed { &[1; 32] } else { &OPEN_KEY });
            verified.handle_row(&row);
            verified.handle_row(&[&[VERSION][..], &row].concat());
            prop_assert!(verified.hosts.iter().all(|(_, them)| them.len() <= ADDRESSES_MAX));
        }
    }
}
