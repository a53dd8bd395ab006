//! One station's part in sharing the medium: carrier sense, interframe spaces, NAV and backoff.
//!
//! The DCF clause of IEEE 802.11-2016, "basic access" and "backoff procedure". Nothing here ticks:
//! slots that have passed are counted when the medium gets busy, so a station costs two steps for
//! each transmission it senses, however long that lasts.

use crate::airtime::{self, WINDOW_MAX};
use crate::chance::Chance;
use crate::config::{Config, Dcf};
use wire::Instant;

/// What the channel's PHY and the reading of the DCF make of it. In plain nanoseconds: this is asked at
/// each beginning and end of each transmission.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    slot_nanos: u64,
    difs_nanos: u64,
    eifs_nanos: u64,
    window_min: u32,
    dcf: Dcf,
}

impl Rules {
    pub fn new(config: &Config) -> Self {
        let phy = config.phy;
        Self {
            slot_nanos: phy.slot().as_nanos() as u64,
            difs_nanos: phy.difs().as_nanos() as u64,
            eifs_nanos: airtime::eifs(phy).as_nanos() as u64,
            window_min: phy.window_min(),
            dcf: config.dcf,
        }
    }
}

/// What a station learns of a transmission that begins. By the standard all; in ns-3 that depends on what its
/// receiver does at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Of that and all else on the air.
    All,
    /// That the medium is busy until then, when its PHY header ends: its receiver begins to follow it.
    UntilHeader(Instant),
    /// Of that and all else, which is forgotten as the PHY header begins of what its receiver follows: then it
    /// counts when that ends.
    InPreamble(Instant),
    /// Nothing until the end of what its receiver follows.
    Nothing,
}

/// One station's view of the medium, and its turn.
#[derive(Clone, Debug)]
pub struct Contention {
    rules: Rules,
    /// How many transmissions it senses, its own included.
    carriers: u32,
    /// When the last of them ended.
    idle_since: Instant,
    /// When the last of those that it senses, or sensed, ends.
    carriers_end: Instant,
    /// Until then ns-3's MAC takes the medium for busy: it is not told of what begins during a reception
    /// until that has ended. What it is told last counts, though it was told of a later end before,
    told_until: Instant,
    /// which ns-3's PHY remembers.
    noticed_until: Instant,
    /// ns-3's MAC takes the medium for idle though it is not.
    forgotten: bool,
    /// A reception ended then, and what had begun during it is not told of yet.
    untold_at: Option<Instant>,
    /// Others have the medium until then, as frames said that it received (virtual carrier sense).
    nav_until: Instant,
    /// If an RTS said that: it ends now already if no reception begins before.
    nav_lapses: Option<Instant>,
    /// After a reception that failed the medium counts as idle only from here on.
    eifs_until: Instant,
    /// A reception has failed since the medium was idle last: an EIFS begins when it is again.
    eifs_due: bool,
    /// When the backoff was drawn: no slot before counts.
    drawn_at: Instant,
    /// Slots yet to pass before it may send; none if no backoff is under way. Slots of the present
    /// idle time are not taken off yet.
    backoff: Option<u32>,
    /// A backoff is drawn from 0 to this many slots.
    window: u32,
    /// It has a frame to send.
    wanting: bool,
    /// When that frame was ready to be sent.
    wanting_since: Instant,
}

impl Contention {
    /// Of a station that has sensed nothing yet.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            carriers: 0,
            idle_since: Instant::ZERO,
            carriers_end: Instant::ZERO,
            told_until: Instant::ZERO,
            noticed_until: Instant::ZERO,
            forgotten: false,
            untold_at: None,
            nav_until: Instant::ZERO,
            nav_lapses: None,
            eifs_until: Instant::ZERO,
            eifs_due: false,
            drawn_at: Instant::ZERO,
            backoff: None,
            window: rules.window_min,
            wanting: false,
            wanting_since: Instant::ZERO,
        }
    }

    /// There is a frame to send: at once if the medium is idle and no backoff is under way, and in ns-3
    /// after a DIFS from now on.
    pub fn want(&mut self, now: Instant, chance: &mut Chance) {
        self.settle(now);
        self.wanting = true;
        self.wanting_since = now;
        if self.backoff.is_some() {
            return;
        }
        let is_sensed = !self.is_idle() && self.untold_at != Some(now);
        if is_sensed || self.is_reserved(now) {
            self.draw(now, chance);
        } else if self.rules.dcf == Dcf::Ns3 {
            self.wanting_since = after(now, self.rules.difs_nanos);
        }
    }

    /// When the frame may go, if there is one and nobody begins to send before.
    pub fn access_at(&self) -> Option<Instant> {
        let ready = self.ready_at().max(self.wanting_since);
        let wants = self.wanting && self.is_idle();
        wants.then(|| self.backoff.map_or(ready, |slots| self.backoff_ends(slots).max(ready)))
    }

    /// The frame goes on the air now; [`carrier_on`](Self::carrier_on) follows.
    pub fn access(&mut self) {
        self.wanting = false;
        self.backoff = None;
    }

    /// A transmission begins that it senses, until `ends`. Whether it sends at this same instant too,
    /// `going` says: it cannot have sensed the other yet.
    pub fn carrier_on(
        &mut self,
        now: Instant,
        ends: Instant,
        going: bool,
        notice: Notice,
        chance: &mut Chance,
    ) {
        let was_idle = self.is_idle();
        self.carriers += 1;
        self.carriers_end = self.carriers_end.max(ends);
        self.notice(ends, notice);
        if !was_idle || self.forgotten || going {
            return;
        }
        self.settle_idle(now);
        if self.wanting && self.backoff.is_none() && self.rules.dcf == Dcf::Standard {
            self.draw(now, chance);
        }
    }

    /// A transmission ends that it sensed.
    pub fn carrier_off(&mut self, now: Instant) {
        self.carriers -= 1;
        if self.carriers > 0 || std::mem::take(&mut self.forgotten) {
            return;
        }
        self.idle_since = now;
        if std::mem::take(&mut self.eifs_due) {
            self.eifs_until = after(now, self.rules.eifs_nanos);
        }
    }

    /// Whether it takes the medium for idle.
    pub fn is_idle(&self) -> bool {
        self.carriers == 0 || self.forgotten
    }

    /// Whether, by ns-3's reading, it matters if a PHY header cannot be read: several are on the air.
    pub fn may_forget(&self) -> bool {
        self.rules.dcf == Dcf::Ns3 && self.carriers > 1
    }

    /// What it learns of a transmission that lasts until `ends`. ns-3's PHY keeps to itself what ends before
    /// something that it has told of.
    fn notice(&mut self, ends: Instant, notice: Notice) {
        match notice {
            Notice::All if ends > self.noticed_until => self.told(),
            Notice::UntilHeader(until) => {
                self.told_until = until;
                self.noticed_until = self.noticed_until.max(until);
                self.forgotten = false;
            }
            Notice::InPreamble(until) => {
                self.told();
                self.told_until = until;
            }
            Notice::All | Notice::Nothing => {}
        }
    }

    /// It is told of all that is on the air.
    pub fn told(&mut self) {
        self.told_until = self.carriers_end;
        self.noticed_until = self.carriers_end;
        self.forgotten = false;
    }

    /// In ns-3 its receiver cannot read the PHY header, which ends now, of a transmission that lasts until
    /// `ends`. Unless that is longer than what it was told of before, it is told nothing, and takes the medium
    /// for idle as what it was told last is over.
    pub fn header_lost(&mut self, now: Instant, ends: Instant) {
        if ends > self.noticed_until {
            self.told();
        } else if self.told_until <= now && self.carriers > 0 {
            self.forgotten = true;
            self.idle_since = now;
        }
    }

    /// A reception ends. In ns-3 what has begun during it is told of only after the frame is handed up: so
    /// the packet in it, if it is to be relayed, finds the medium idle.
    pub fn reception_ends(&mut self, now: Instant) {
        if self.rules.dcf == Dcf::Ns3 {
            self.untold_at = (self.told_until <= now).then_some(now);
            self.told();
        }
    }

    /// A reception failed: an EIFS begins when the medium is idle (IEEE 802.11-2016, 10.3.2.3.7), and in
    /// ns-3 at once. [`carrier_off`](Self::carrier_off) follows.
    pub fn received_badly(&mut self, now: Instant) {
        match self.rules.dcf {
            Dcf::Standard => self.eifs_due = true,
            Dcf::Ns3 => self.eifs_until = after(now, self.rules.eifs_nanos),
        }
    }

    /// A frame was received: it ends what a failed reception began.
    pub fn received_well(&mut self) {
        self.eifs_until = Instant::ZERO;
        self.eifs_due = false;
    }

    /// A reception begins at that time, now or soon, when a PHY header ends (PHY-RXSTART; IEEE 802.11-2016,
    /// 10.3.2.4): what an RTS reserved is used.
    pub fn reception_begins(&mut self, at: Instant) {
        if self.nav_lapses.take_if(|lapses| at < *lapses).is_none() {
            self.nav_until = self.nav_ends();
            self.nav_lapses = None;
        }
    }

    /// Others have the medium until then. If an RTS says so, the reservation lapses at `lapses` unless a
    /// reception begins before (DCF: setting and resetting the NAV).
    pub fn reserve(&mut self, until: Instant, lapses: Option<Instant>) {
        self.nav_until = self.nav_ends();
        if until > self.nav_until {
            self.nav_until = until;
            self.nav_lapses = lapses;
        } else {
            self.nav_lapses = None;
        }
    }

    /// Whether others have the medium.
    pub fn is_reserved(&self, now: Instant) -> bool {
        now < self.nav_ends()
    }

    fn nav_ends(&self) -> Instant {
        self.nav_lapses.map_or(self.nav_until, |lapses| lapses.min(self.nav_until))
    }

    /// Its frame is done with, well or not: the next window is the first one again, and a backoff
    /// comes before the next frame even if there is none yet.
    pub fn done(&mut self, now: Instant, chance: &mut Chance) {
        self.window = self.rules.window_min;
        self.draw(now, chance);
    }

    /// An answer to its frame did not come; [`again`](Self::again) or [`done`](Self::done) follows.
    pub fn unanswered(&mut self, now: Instant) {
        if self.rules.dcf == Dcf::Ns3 {
            self.idle_since = self.idle_since.max(now);
        }
    }

    /// Its frame was not answered and is to be sent again: from a window twice as wide.
    pub fn again(&mut self, now: Instant, chance: &mut Chance) {
        self.window = (2 * self.window + 1).min(WINDOW_MAX);
        self.draw(now, chance);
        self.wanting = true;
        self.wanting_since = now;
    }

    fn draw(&mut self, now: Instant, chance: &mut Chance) {
        self.backoff = Some(chance.slots(self.window));
        self.drawn_at = now;
    }

    /// Ends a backoff whose slots have all passed while there was nothing to send.
    fn settle(&mut self, now: Instant) {
        if self.carriers == 0 && self.backoff.is_some_and(|slots| self.backoff_ends(slots) <= now) {
            self.backoff = None;
        }
    }

    /// Takes off the slots of the idle time that ends now.
    fn settle_idle(&mut self, now: Instant) {
        let Some(slots) = self.backoff else { return };
        let counts_from = self.counts_from();
        let idle_nanos = now.as_nanos().saturating_sub(counts_from.as_nanos());
        let left = u64::from(slots).saturating_sub(idle_nanos / self.rules.slot_nanos) as u32;
        let is_over = left == 0 && !self.wanting && counts_from <= now;
        self.backoff = (!is_over).then_some(left);
    }

    /// When the medium has been idle for long enough.
    fn ready_at(&self) -> Instant {
        after(self.idle_since.max(self.nav_ends()), self.rules.difs_nanos).max(self.eifs_until)
    }

    fn counts_from(&self) -> Instant {
        self.ready_at().max(self.drawn_at)
    }

    fn backoff_ends(&self, slots: u32) -> Instant {
        after(self.counts_from(), self.rules.slot_nanos * u64::from(slots))
    }
}

fn after(at: Instant, nanos: u64) -> Instant {
    Instant::from_nanos(at.as_nanos().saturating_add(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1000)
    }

    /// A station that sensed a transmission from 0 to 1000 microseconds.
    fn after_a_frame() -> (Contention, Chance) {
        let (mut contention, mut chance) =
            (Contention::new(Rules::new(&Config::default())), Chance::new(1, 0));
        contention.carrier_on(at(0), at(1000), false, Notice::All, &mut chance);
        contention.carrier_off(at(1000));
        (contention, chance)
    }

    /// The same after two transmissions, of which it failed to receive the one that ended first, at 900.
    fn after_two_frames(config: Config) -> (Contention, Chance) {
        let (mut contention, mut chance) =
            (Contention::new(Rules::new(&config)), Chance::new(1, 0));
        [(0, 1000), (500, 900)].into_iter().for_each(|(on, off)| {
            contention.carrier_on(at(on), at(off), false, Notice::All, &mut chance)
        });
        contention.received_badly(at(900));
        [900, 1000].into_iter().for_each(|us| contention.carrier_off(at(us)));
        (contention, chance)
    }

    #[test]
    fn a_frame_goes_at_once_if_the_medium_has_been_idle_for_a_difs() {
        let (mut contention, mut chance) = after_a_frame();
        assert_eq!(contention.access_at(), None);
        contention.want(at(5000), &mut chance);
        assert_eq!(contention.access_at(), Some(at(5000)));
        let (mut contention, mut chance) = after_a_frame();
        contention.want(at(1020), &mut chance);
        assert_eq!(contention.access_at(), Some(at(1050)));
        // Another begins within the DIFS: now it has to draw.
        contention.carrier_on(at(1030), at(2000), false, Notice::All, &mut chance);
        assert!(contention.backoff.is_some());
    }

    #[test]
    fn a_failed_reception_makes_it_wait_longer_and_a_good_one_ends_that() {
        let (mut contention, mut chance) = after_two_frames(Config::default());
        contention.want(at(1020), &mut chance);
        assert_eq!(contention.access_at(), Some(at(1364)), "from when the medium is idle");
        contention.received_well();
        assert_eq!(contention.access_at(), Some(at(1050)));
        // A frame received while the medium is still busy ends it before it begins.
        let (mut contention, mut chance) = after_a_frame();
        contention.carrier_on(at(2000), at(3000), false, Notice::All, &mut chance);
        contention.received_badly(at(2500));
        contention.received_well();
        contention.carrier_off(at(3000));
        contention.want(at(3010), &mut chance);
        assert_eq!(contention.access_at(), Some(at(3050)));
    }

    #[test]
    fn a_reservation_is_a_carrier_too() {
        let (mut contention, mut chance) = after_a_frame();
        contention.reserve(at(1314), None);
        contention.reserve(at(1200), None);
        contention.want(at(1020), &mut chance);
        let slots = contention.backoff.expect("it arrived while the medium was reserved");
        assert_eq!(contention.access_at(), Some(at(1364 + 20 * u64::from(slots))));
    }

    #[test]
    fn what_an_rts_reserved_lapses_unless_a_reception_begins() {
        let (mut contention, mut chance) = after_a_frame();
        contention.reserve(at(3000), Some(at(1500)));
        contention.want(at(1600), &mut chance);
        assert_eq!(contention.access_at(), Some(at(1600)), "it lapsed");
        let (mut contention, mut chance) = after_a_frame();
        contention.reserve(at(3000), Some(at(1500)));
        contention.reception_begins(at(1400));
        contention.want(at(1600), &mut chance);
        assert!(contention.access_at() >= Some(at(3050)));
        // Too late: it had lapsed.
        let (mut contention, mut chance) = after_a_frame();
        contention.reserve(at(3000), Some(at(1500)));
        contention.reception_begins(at(1500));
        contention.want(at(1600), &mut chance);
        assert_eq!(contention.access_at(), Some(at(1600)));
    }

    #[test]
    fn ns3_draws_less_and_counts_from_elsewhere() {
        let rules = Rules::new(&Config::like_ns3());
        let (mut contention, mut chance) = (Contention::new(rules), Chance::new(1, 0));
        contention.want(at(5000), &mut chance);
        contention.carrier_on(at(5020), at(6000), false, Notice::All, &mut chance);
        contention.carrier_off(at(6000));
        assert_eq!(contention.access_at(), Some(at(6050)), "no backoff though it got busy");
        contention.unanswered(at(7000));
        contention.again(at(7000), &mut chance);
        contention.backoff = Some(2);
        assert_eq!(contention.access_at(), Some(at(7000 + 50 + 40)));
        let (mut contention, mut chance) = after_two_frames(Config::like_ns3());
        contention.want(at(1020), &mut chance);
        assert_eq!(contention.access_at(), Some(at(900 + 364)), "from the bad frame's end");
    }

    #[test]
    fn ns3_sends_a_difs_after_a_packet_has_come() {
        let standard = after_a_frame();
        let ns3 = (Contention::new(Rules::new(&Config::like_ns3())), Chance::new(1, 0));
        for ((mut contention, mut chance), goes) in [(standard, 5000), (ns3, 5050)] {
            contention.want(at(5000), &mut chance);
            assert_eq!(contention.access_at(), Some(at(goes)));
        }
    }

    #[test]
    fn ns3_is_told_late_of_what_began_during_a_reception() {
        let rules = Rules::new(&Config::like_ns3());
        // A frame is received until 1000; another begins at 100, in its preamble, at 150, in its header, or at 500.
        let until_header = Notice::UntilHeader(at(192));
        for (second, notice, wanted, draws) in [
            (100, Notice::InPreamble(at(192)), 1000, false),
            (150, Notice::All, 1000, true),
            (500, Notice::Nothing, 1000, false),
            (500, Notice::Nothing, 1001, true),
        ] {
            let (mut contention, mut chance) = (Contention::new(rules), Chance::new(1, 0));
            contention.carrier_on(at(0), at(1000), false, until_header, &mut chance);
            contention.carrier_on(at(second), at(2000), false, notice, &mut chance);
            contention.reception_ends(at(1000));
            contention.carrier_off(at(1000));
            contention.want(at(wanted), &mut chance);
            assert_eq!(contention.backoff.is_some(), draws, "{second} {wanted}");
            contention.carrier_off(at(2000));
            assert!(contention.access_at() >= Some(at(2050)), "it is sensed all the same");
        }
    }

    #[test]
    fn ns3_takes_the_medium_for_idle_after_a_header_that_it_cannot_read() {
        let rules = Rules::new(&Config::like_ns3());
        // One is followed from 0 to 1000, another comes at 100, in its preamble, or at 150, in its header.
        for (second, notice, is_idle) in
            [(100, Notice::InPreamble(at(192)), true), (150, Notice::All, false)]
        {
            let (mut contention, mut chance) = (Contention::new(rules), Chance::new(1, 0));
            contention.carrier_on(
                at(0),
                at(1000),
                false,
                Notice::UntilHeader(at(192)),
                &mut chance,
            );
            contention.carrier_on(at(second), at(1100), false, notice, &mut chance);
            contention.header_lost(at(192), at(1000));
            assert_eq!(contention.is_idle(), is_idle, "{second}");
            contention.want(at(192), &mut chance);
            let goes = is_idle.then_some(at(192 + 50));
            assert_eq!(contention.access_at(), goes, "{second}");
            // Of what comes then it is told again, unless that ends before.
            contention.carrier_on(at(200), at(1050), false, Notice::All, &mut chance);
            assert_eq!(contention.is_idle(), is_idle, "{second}");
            contention.carrier_on(at(210), at(1200), false, Notice::All, &mut chance);
            assert!(!contention.is_idle(), "{second}");
        }
    }

    #[test]
    fn a_backoff_stands_still_while_the_medium_is_busy() {
        let (mut contention, mut chance) = after_a_frame();
        contention.want(at(1000), &mut chance);
        contention.backoff = Some(10);
        assert_eq!(contention.access_at(), Some(at(1250)));
        contention.carrier_on(at(1050 + 79), at(2000), false, Notice::All, &mut chance);
        assert_eq!((contention.access_at(), contention.backoff), (None, Some(7)));
        contention.carrier_on(at(1500), at(1600), false, Notice::All, &mut chance);
        contention.carrier_off(at(1600));
        assert_eq!(contention.access_at(), None);
        contention.carrier_off(at(2000));
        assert_eq!(contention.access_at(), Some(at(2000 + 50 + 140)));
    }

    #[test]
    fn windows_double_to_the_widest_and_begin_anew() {
        let (mut contention, mut chance) = after_a_frame();
        let windows: Vec<u32> = (0..7)
            .map(|_| {
                contention.again(at(2000), &mut chance);
                contention.window
            })
            .collect();
        assert_eq!(windows, [63, 127, 255, 511, 1023, 1023, 1023]);
        contention.done(at(2000), &mut chance);
        assert_eq!(contention.window, 31);
    }

    #[test]
    fn a_backoff_passes_though_there_is_nothing_to_send() {
        let (mut contention, mut chance) = after_a_frame();
        contention.done(at(1000), &mut chance);
        contention.backoff = Some(5);
        contention.want(at(1100), &mut chance);
        assert_eq!(contention.access_at(), Some(at(1150)));
        let (mut contention, mut chance) = after_a_frame();
        contention.done(at(1000), &mut chance);
        contention.want(at(9000), &mut chance);
        assert_eq!((contention.access_at(), contention.backoff), (Some(at(9000)), None));
    }
}
