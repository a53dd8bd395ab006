//! What a node has learned of routers off the way: which of them did not help, and how often it is led astray
//! (decision 0033).
//!
//! *Where to start:* [`Doubts::failed`].

use super::oldest::make_room;
use crate::input::FetchId;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use wire::Instant;

/// A router that has not helped is not asked for this long, and for twice as long each further time …
const BANNED_FOR: Duration = Duration::from_secs(600);
/// … this often: up to 80 minutes.
const DOUBLINGS_MAX: u32 = 3;
/// A failure is forgiven to a router that has helped this often since the one before.
const HELPS_A_FAILURE: u8 = 4;
/// The most help that counts.
const HELPS_MAX: u8 = 8;
/// The most routers in the table; the one that was heard of longest ago makes room.
const ROUTERS_MAX: usize = 256;
/// After a failure this many requests go along the way, and four times as many after the next …
const ALONG: u32 = 1;
/// … up to this many.
const ALONG_MAX: u32 = 64;
/// Failures of a router within this time count as one: several requests were at it.
const AT_ONCE: Duration = Duration::from_secs(1);
/// A router that says itself that it cannot help has been named by another: this often it may.
const DENIALS_MAX: u8 = 3;

/// The table.
#[derive(Debug, Default)]
pub struct Doubts {
    routers: BTreeMap<IpAddr, Known>,
    /// How many requests go along the way after the next failure; halved each time that a router helps.
    caution: u32,
    /// How many still do, and the latest that did.
    along: u32,
    last: Option<FetchId>,
    failed: Option<Instant>,
}

/// What is known of a router.
#[derive(Debug)]
struct Known {
    heard: Instant,
    failed: Option<Instant>,
    helps: u8,
    denials: u8,
    bans: u32,
    banned_until: Option<Instant>,
}

impl Doubts {
    /// A router did not help. `denied`: it has said so.
    pub fn failed(&mut self, now: Instant, router: IpAddr, denied: bool) {
        let known = self.known(now, router);
        let before = known.failed.replace(now);
        if before.is_some_and(|at| now - at < AT_ONCE) {
            return;
        }
        if before.is_none_or(|at| now - at > BANNED_FOR) {
            known.denials = 0;
        }
        known.denials += u8::from(denied);
        match known.helps.checked_sub(HELPS_A_FAILURE) {
            Some(helps) => known.helps = helps,
            None if denied && known.denials < DENIALS_MAX => {}
            None => {
                let doublings = known.bans.min(DOUBLINGS_MAX);
                known.banned_until = Some(now + BANNED_FOR * 2_u32.pow(doublings));
                (known.bans, known.denials) = (known.bans + 1, 0);
            }
        }
        // What was long ago does not count.
        if self.failed.replace(now).is_none_or(|at| now - at > BANNED_FOR) {
            self.caution = 0;
        }
        self.along = self.caution.max(ALONG);
        self.caution = (self.along * 4).min(ALONG_MAX);
    }

    /// A router helped.
    pub fn helped(&mut self, now: Instant, router: IpAddr) {
        self.caution /= 2;
        let known = self.known(now, router);
        known.helps = HELPS_MAX.min(known.helps + 1);
    }

    /// Whether a router may be asked.
    pub fn may_ask(&self, now: Instant, router: IpAddr) -> bool {
        let known = self.routers.get(&router);
        known.and_then(|it| it.banned_until).is_none_or(|until| until <= now)
    }

    /// Whether requests go along the way at present.
    pub fn is_cautious(&self) -> bool {
        self.along > 0
    }

    /// A request went along the way; told again, it counts once.
    pub fn went_along(&mut self, id: FetchId) {
        if self.last.replace(id) != Some(id) {
            self.along = self.along.saturating_sub(1);
        }
    }

    fn known(&mut self, now: Instant, router: IpAddr) -> &mut Known {
        make_room(&mut self.routers, ROUTERS_MAX, &router, |known| known.heard);
        let new = || Known {
            heard: now,
            failed: None,
            helps: 0,
            denials: 0,
            bans: 0,
            banned_until: None,
        };
        let known = self.routers.entry(router).or_insert_with(new);
        known.heard = now;
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 9));

    #[test]
    fn who_does_not_help_is_left_alone_longer_each_time() {
        let (mut doubts, mut now) = (Doubts::default(), Instant::ZERO);
        for minutes in [10, 20, 40, 80, 80] {
            assert!(doubts.may_ask(now, LIAR));
            doubts.failed(now, LIAR, false);
            now = now + Duration::from_secs(60 * minutes - 1);
            assert!(!doubts.may_ask(now, LIAR));
            now = now + Duration::from_secs(1);
        }
    }

    #[test]
    fn who_helps_often_may_fail_now_and_then() {
        let (mut doubts, mut now) = (Doubts::default(), Instant::ZERO);
        (0..100).for_each(|_| doubts.helped(now, LIAR));
        for _ in 0..HELPS_MAX / HELPS_A_FAILURE {
            now = now + AT_ONCE;
            doubts.failed(now, LIAR, false);
            assert!(doubts.may_ask(now, LIAR));
        }
        now = now + AT_ONCE;
        doubts.failed(now, LIAR, false);
        assert!(!doubts.may_ask(now, LIAR));
    }

    #[test]
    fn requests_that_fail_at_once_count_once() {
        let (mut doubts, now) = (Doubts::default(), Instant::ZERO);
        (0..6).for_each(|_| doubts.failed(now, LIAR, false));
        assert_eq!((doubts.along, doubts.may_ask(now + BANNED_FOR, LIAR)), (ALONG, true));
    }

    #[test]
    fn who_denies_may_have_been_named_by_a_liar() {
        let (mut doubts, mut now) = (Doubts::default(), Instant::ZERO);
        for _ in 0..DENIALS_MAX {
            assert!(doubts.may_ask(now, LIAR));
            now = now + AT_ONCE;
            doubts.failed(now, LIAR, true);
        }
        assert!(!doubts.may_ask(now, LIAR));
        now = now + BANNED_FOR * 2;
        for _ in 0..2 * DENIALS_MAX {
            now = now + BANNED_FOR * 2;
            doubts.failed(now, LIAR, true);
            assert!(doubts.may_ask(now, LIAR), "they are too rare");
        }
    }

    #[test]
    fn who_is_led_astray_goes_along_the_way_for_a_while() {
        let (mut doubts, mut now, mut id) = (Doubts::default(), Instant::ZERO, 0);
        for requests in [1, 4, 16, 64, 64] {
            now = now + AT_ONCE;
            doubts.failed(now, LIAR, false);
            for _ in 0..requests {
                assert!(doubts.is_cautious());
                id += 1;
                (0..3).for_each(|_| doubts.went_along(FetchId(id)));
            }
            assert!(!doubts.is_cautious());
        }
        (0..10).for_each(|_| doubts.helped(now, LIAR));
        now = now + AT_ONCE;
        doubts.failed(now, LIAR, false);
        assert_eq!(doubts.along, ALONG);
        now = now + AT_ONCE;
        doubts.failed(now, LIAR, false);
        now = now + BANNED_FOR * 2;
        doubts.failed(now, LIAR, false);
        assert_eq!(doubts.along, ALONG, "what was before is long ago");
    }

    #[test]
    fn the_table_is_bounded() {
        let mut doubts = Doubts::default();
        let later = |n: u32| Instant::ZERO + Duration::from_millis(n.into());
        for n in 0..10_000_u32 {
            doubts.failed(later(n), IpAddr::from(n.to_be_bytes()), false);
        }
        assert_eq!(doubts.routers.len(), ROUTERS_MAX);
        assert!(!doubts.may_ask(later(10_000), IpAddr::from(9_999_u32.to_be_bytes())));
        assert!(doubts.may_ask(later(10_000), IpAddr::from([0; 4])));
    }
}
