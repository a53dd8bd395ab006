//! Whether anything outside can be reached, as this node's own requests to origins show.
//!
//! One origin that does not answer may be down itself. So another that has answered before is dialled, without a request: only
//! if that fails too, the uplink is taken to be down. Then an origin is dialled now and then, until one answers: nobody waits
//! for the others meanwhile.

use crate::access::Caller;
use crate::input::FetchError;
use crate::output::{Dial, Output};
use crate::request::Ask;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;
use wire::Instant;

/// While the uplink is down, an origin is dialled this often.
const PROBE_EVERY: Duration = Duration::from_secs(5);
/// Origins that are known to dial: those that were heard last, the latest first.
const ORIGINS_MAX: usize = 4;

/// An origin that may be dialled to see whether that is possible.
#[derive(Clone, Debug)]
struct Origin {
    host: String,
    dial: Dial,
    /// For whom it was dialled.
    client: IpAddr,
    caller: Caller,
}

/// What is known of the world outside; see the module.
#[derive(Debug, Default)]
pub struct Outside {
    origins: VecDeque<Origin>,
    state: State,
    /// When an origin was last reached after none was.
    back_at: Option<Instant>,
}

#[derive(Debug, Default)]
enum State {
    /// An origin was heard after any that was not reached, or none was asked.
    #[default]
    Up,
    /// This host was not reached.
    Doubted { host: String, since: Instant },
    /// No origin is reached.
    Down { since: Instant, probe_at: Instant },
}

/// Whether an error says that an origin was not reached. `None`: it says nothing of that.
fn is_reached(error: FetchError) -> Option<bool> {
    match error {
        FetchError::Unresolved | FetchError::Unreachable | FetchError::TimedOut => Some(false),
        FetchError::Refused
        | FetchError::Malformed
        | FetchError::Truncated
        | FetchError::Untrusted
        | FetchError::NotTls => Some(true),
        FetchError::Forbidden(_)
        | FetchError::Unsent
        | FetchError::NoRoute
        | FetchError::NoHolder
        | FetchError::Elsewhere
        | FetchError::NoTls
        | FetchError::Astray
        | FetchError::NoRoom => None,
    }
}

impl Outside {
    /// Whether no origin is reached.
    pub fn is_down(&self) -> bool {
        matches!(self.state, State::Down { .. })
    }

    /// For how long no origin has been reached, if none is.
    pub fn down_for(&self, now: Instant) -> Option<Duration> {
        match self.state {
            State::Down { since, .. } => Some(now - since),
            State::Up | State::Doubted { .. } => None,
        }
    }

    /// Whether origins were reached again after this time: what failed then says nothing any more.
    pub fn is_back_since(&self, then: Instant) -> bool {
        self.back_at.is_some_and(|at| then <= at)
    }

    /// An origin has answered.
    pub fn heard(&mut self, ask: &Ask, now: Instant, out: &mut VecDeque<Output>) {
        let host = ask.target.host();
        match self.origins.iter().position(|it| it.host == host) {
            Some(0) => {}
            Some(at) => self.origins.swap(0, at),
            None => {
                self.origins.truncate(ORIGINS_MAX - 1);
                self.origins.push_front(Origin::of(ask));
            }
        }
        self.comes_up(now, out);
    }

    /// A request to an origin has ended in this way, without an answer.
    pub fn failed(
        &mut self,
        ask: &Ask,
        error: FetchError,
        now: Instant,
        out: &mut VecDeque<Output>,
    ) {
        match is_reached(error) {
            Some(true) => return self.comes_up(now, out),
            Some(false) => {}
            None => return,
        }
        let host = ask.target.host();
        match &self.state {
            State::Up => {
                let other = self.origins.iter().find(|it| it.host != host);
                let tried = other.or(self.origins.front());
                tried.into_iter().for_each(|it| out.push_back(it.probe()));
                self.state = State::Doubted { host: host.to_owned(), since: now };
            }
            // The probe decides, if there is one.
            State::Doubted { host: first, since } if self.origins.is_empty() && first != host => {
                let (first, since) = (first.clone(), *since);
                self.origins.push_front(Origin::of(ask));
                self.goes_down(&first, host, since, now, out);
            }
            State::Doubted { .. } | State::Down { .. } => {}
        }
    }

    /// An origin was dialled: whether it was reached.
    pub fn probed(&mut self, reached: bool, now: Instant, out: &mut VecDeque<Output>) {
        if reached {
            return self.comes_up(now, out);
        }
        if let (State::Doubted { host, since }, Some(tried)) = (&self.state, self.origins.front()) {
            let other = self.origins.iter().find(|it| it.host != *host).unwrap_or(tried);
            let (host, other, since) = (host.clone(), other.host.clone(), *since);
            self.goes_down(&host, &other, since, now, out);
        }
    }

    /// Which interfaces lead out has changed: if the uplink was down, it may be back.
    pub fn outward_changed(&mut self, now: Instant, out: &mut VecDeque<Output>) {
        if let State::Down { probe_at, .. } = &mut self.state {
            *probe_at = now;
            self.handle_timeout(now, out);
        }
    }

    /// When to dial an origin.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Down { probe_at, .. } => Some(probe_at),
            State::Up | State::Doubted { .. } => None,
        }
    }

    /// Dials an origin, if that is due: each in its turn.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut VecDeque<Output>) {
        if let State::Down { probe_at, .. } = &mut self.state
            && *probe_at <= now
        {
            *probe_at = now + PROBE_EVERY;
            self.origins.rotate_left(1);
            self.origins.front().into_iter().for_each(|it| out.push_back(it.probe()));
        }
    }

    fn comes_up(&mut self, now: Instant, out: &mut VecDeque<Output>) {
        let was = std::mem::take(&mut self.state);
        let State::Down { since, .. } = was else { return };
        self.back_at = Some(now);
        let seconds = (now - since).as_secs();
        out.push_back(Output::Notice(format!(
            "the uplink is back: an origin answers, the first for {seconds} seconds"
        )));
    }

    fn goes_down(
        &mut self,
        host: &str,
        other: &str,
        since: Instant,
        now: Instant,
        out: &mut VecDeque<Output>,
    ) {
        let them = if host == other {
            format!("{host} is not reached, twice in turn")
        } else {
            format!("neither {host} nor {other} is reached")
        };
        out.push_back(Output::Notice(format!(
            "the uplink is down: {them}; what is stored is served meanwhile, and an origin is dialled every {} seconds",
            PROBE_EVERY.as_secs()
        )));
        self.state = State::Down { since, probe_at: now + PROBE_EVERY };
    }
}

impl Origin {
    fn of(ask: &Ask) -> Self {
        Self {
            host: ask.target.host().to_owned(),
            dial: ask.dial.clone(),
            client: ask.client,
            caller: ask.caller(),
        }
    }

    fn probe(&self) -> Output {
        Output::Probe(self.dial.clone(), self.client, self.caller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::tests::ask;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// What is told, with the hosts that are dialled.
    #[derive(Default)]
    struct World(Outside, VecDeque<Output>);

    impl World {
        fn hears(&mut self, host: &str, now: u64) {
            self.0.heard(&ask(&format!("http://{host}/")), at(now), &mut self.1);
        }

        fn fails(&mut self, host: &str, now: u64) {
            let ask = ask(&format!("http://{host}/"));
            self.0.failed(&ask, FetchError::TimedOut, at(now), &mut self.1);
        }

        fn probed(&mut self, reached: bool, now: u64) {
            self.0.probed(reached, at(now), &mut self.1);
        }

        fn dialled(&mut self) -> Vec<String> {
            let host = |output| match output {
                Output::Probe(Dial::Name(host, _), ..) => Some(host),
                Output::Notice(_) => None,
                other => panic!("{other:?}"),
            };
            self.1.drain(..).filter_map(host).collect()
        }
    }

    #[test]
    fn one_origin_that_is_down_is_not_the_uplink() {
        let mut world = World::default();
        world.hears("a.test", 0);
        world.hears("b.test", 1);
        world.fails("b.test", 2);
        assert_eq!(world.dialled(), ["a.test"], "the other");
        world.fails("c.test", 2);
        assert!(
            !world.0.is_down(),
            "the other decides, not a second one that may be of the same server"
        );
        world.probed(true, 3);
        world.fails("b.test", 4);
        assert_eq!(world.dialled(), ["a.test"]);
        assert!(!world.0.is_down());
    }

    #[test]
    fn if_another_is_not_reached_either_the_uplink_is_down_until_one_is() {
        let mut world = World::default();
        world.hears("b.test", 0);
        world.hears("a.test", 1);
        world.fails("a.test", 2);
        assert_eq!(world.dialled(), ["b.test"]);
        world.probed(false, 4);
        assert!(world.0.is_down());
        assert_eq!(world.0.down_for(at(5)), Some(Duration::from_secs(3)), "since the first failed");
        assert_eq!(world.0.poll_timeout(), Some(at(9)));
        world.0.handle_timeout(at(8), &mut world.1);
        assert!(world.dialled().is_empty());
        for (now, host) in [(9, "b.test"), (14, "a.test"), (19, "b.test")] {
            world.0.handle_timeout(at(now), &mut world.1);
            assert_eq!(world.dialled(), [host], "each in its turn");
            world.probed(false, now + 1);
        }
        world.0.outward_changed(at(20), &mut world.1);
        assert_eq!(world.dialled(), ["a.test"], "at once");
        assert!(!world.0.is_back_since(at(1)));
        world.probed(true, 21);
        assert!(world.0.is_back_since(at(21)) && !world.0.is_back_since(at(22)));
        assert!(!world.0.is_down() && world.0.poll_timeout().is_none());
        world.0.outward_changed(at(22), &mut world.1);
        assert!(world.dialled().is_empty());
    }

    #[test]
    fn without_one_that_ever_answered_two_hosts_decide() {
        let mut world = World::default();
        world.fails("a.test", 0);
        world.fails("a.test", 1);
        assert!(!world.0.is_down(), "it may be down itself");
        world.fails("b.test", 2);
        assert!(world.0.is_down());
        world.hears("c.test", 3);
        world.hears("c.test", 4);
        assert!(world.0.is_back_since(at(3)) && !world.0.is_back_since(at(4)));
    }

    #[test]
    fn an_origin_that_refuses_or_speaks_badly_is_reached() {
        let mut world = World::default();
        for error in [FetchError::Refused, FetchError::Malformed, FetchError::Untrusted] {
            world.fails("a.test", 0);
            world.0.failed(&ask("http://b.test/"), error, at(1), &mut world.1);
            world.fails("b.test", 2);
            assert!(!world.0.is_down(), "{error:?}");
            world.hears("b.test", 3);
            world = World::default();
        }
        world.fails("a.test", 0);
        let forbidden = FetchError::NoRoom;
        world.0.failed(&ask("http://b.test/"), forbidden, at(1), &mut world.1);
        world.fails("b.test", 2);
        assert!(world.0.is_down(), "that says nothing");
    }

    #[test]
    fn the_origins_that_are_dialled_are_bounded() {
        let mut world = World::default();
        (0..9).for_each(|n| world.hears(&format!("{n}.test"), n));
        let hosts: Vec<_> = world.0.origins.iter().map(|it| it.host.as_str()).collect();
        assert_eq!(hosts, ["8.test", "7.test", "6.test", "5.test"]);
    }
}
