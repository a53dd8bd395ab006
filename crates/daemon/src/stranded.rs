//! Connections out of the site that can go on no longer, though nobody ends them: this machine has lost their address, as
//! when a DHCP server gives it another one; another interface leads out instead of theirs; or the machine slept, and
//! routers and origins have forgotten them meanwhile.
//!
//! *What this is:* [`Stranded`] ends such connections. The engine then continues bodies by range, and requests go out
//! anew, where they would wait for many minutes. *Who calls it:* `reload.rs`, every few seconds. *What it never does:*
//! end a connection with a client or a peer, or one while nothing leads out: the route may come back.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use host::egress::{Egress, addresses_of, own_addresses};
use rustix::time::{ClockId, clock_gettime};

use crate::driver::Driver;

/// What is less is no sleep: the two clocks are not read at the same moment.
const SLEEP_MIN: Duration = Duration::from_secs(1);

/// Looks for such connections.
pub struct Stranded {
    driver: Driver,
    egress: Egress,
    /// The interfaces that have led out.
    led: BTreeSet<String>,
    /// How long the machine had slept in all.
    slept: Duration,
}

impl Stranded {
    /// From now on.
    pub fn new(driver: Driver, egress: Egress) -> Self {
        Self { driver, egress, led: BTreeSet::new(), slept: slept() }
    }

    /// Ends what is stranded now.
    pub fn look(&mut self) {
        let traffic = self.driver.pool().dialler().traffic();
        let used = traffic.addresses_outward();
        let out = self.egress.interfaces();
        if let Some(time) = grown(&mut self.slept, slept()) {
            let seconds = time.as_secs();
            tracing::info!(seconds, "the machine slept: connections out of the site are made anew");
            // What was fresh may be stale.
            self.driver.set_clock();
            traffic.end_outward(&used);
        } else if !used.is_empty() {
            // By the mesh, a connection may go on that began at an uplink of this router. The engine waits for silence there
            // (decision 0018).
            let is_led_elsewhere = out.iter().any(|name| !self.egress.is_of_mesh(name));
            let elsewhere = || self.led.iter().filter(|name| !out.contains(name));
            let lost = elsewhere().filter(|_| is_led_elsewhere).flat_map(|name| addresses_of(name));
            let gone = gone(&used, &own_addresses(&[]), &lost.collect());
            if !gone.is_empty() {
                tracing::info!(
                    ?gone,
                    "connections from these addresses cannot go on: they are made anew"
                );
                traffic.end_outward(&gone);
            }
        }
        self.led.extend(out);
    }
}

/// Which of these addresses are used in vain: those that this machine has no more, and those of interfaces that led out.
/// If it is not known what it has, only the latter.
fn gone(used: &BTreeSet<IpAddr>, own: &[IpAddr], lost: &BTreeSet<IpAddr>) -> BTreeSet<IpAddr> {
    let is_gone = |it: &&IpAddr| lost.contains(it) || !own.is_empty() && !own.contains(it);
    used.iter().filter(is_gone).copied().collect()
}

/// Notes how long the machine has slept in all, and returns how long it slept since the last time, if it did.
fn grown(before: &mut Duration, now: Duration) -> Option<Duration> {
    let time = now.saturating_sub(std::mem::replace(before, now));
    (time >= SLEEP_MIN).then_some(time)
}

/// How long the machine has slept since it was started: of these clocks only the first goes on meanwhile.
fn slept() -> Duration {
    let [all, awake] = [ClockId::Boottime, ClockId::Monotonic]
        .map(|clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default());
    all.saturating_sub(awake)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_noticed_once() {
        let mut before = slept();
        assert_eq!(grown(&mut before, slept()), None, "this test did not sleep");
        let later = before + Duration::from_secs(3600);
        assert_eq!(grown(&mut before, later), Some(Duration::from_secs(3600)));
        assert_eq!(grown(&mut before, later), None);
        assert_eq!(grown(&mut before, later + Duration::from_millis(3)), None);
    }

    #[test]
    fn only_addresses_that_are_used_and_lost_are_gone() {
        let [a, b, c, d] = [1, 2, 3, 4].map(|it| IpAddr::from([192, 0, 2, it]));
        let used = [a, b, c].into();
        assert_eq!(gone(&used, &[a, b, d], &[b, d].into()), [b, c].into());
        assert_eq!(gone(&used, &[a, b, c], &[].into()), [].into());
        assert_eq!(gone(&used, &[], &[a].into()), [a].into(), "the kernel did not say");
    }
}
