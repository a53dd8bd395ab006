//! One station's channel access: carrier sense, interframe spaces, NAV and backoff.
//!
//! The DCF clause of IEEE 802.11-2016, "basic access" and "backoff procedure". There is no event
//! for each slot. The slots that have passed are subtracted when the medium becomes busy, so each
//! sensed transmission costs two steps, however long it lasts.

use crate::airtime::{self, WINDOW_MAX};
use crate::chance::Chance;
use crate::config::{Config, Dcf};
use wire::Instant;

/// The parameters of the PHY and the interpretation of the DCF. Times are plain nanoseconds,
/// because they are used at the start and the end of every transmission.
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

/// What the PHY reports to a station's MAC about a transmission that begins. By the standard it
/// reports all of it; in ns-3 that depends on the state of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The transmission, and all others on the air.
    All,
    /// That the medium is busy until the end of the PHY header: the receiver locks onto the
    /// transmission.
    UntilHeader(Instant),
    /// As [`Notice::All`]; but when the PHY header of the locked frame begins, the MAC considers the
    /// medium busy only until the end of that header.
    InPreamble(Instant),
    /// Nothing, until the locked frame ends.
    Nothing,
}

/// One station's view of the medium, and its channel access.
#[derive(Clone, Debug)]
pub struct Contention {
    rules: Rules,
    /// The number of transmissions that it senses, including its own.
    carriers: u32,
    /// When the last of them ended: the medium is idle since then.
    idle_since: Instant,
    /// The latest end of all transmissions sensed so far.
    carriers_end: Instant,
    /// ns-3: the time until which the MAC considers the medium busy. A transmission that begins
    /// during a reception is reported to it only after that reception. A report replaces the
    /// previous one, even one with a later end.
    mac_busy_until: Instant,
    /// ns-3: the latest end that the PHY has reported so far.
    phy_busy_until: Instant,
    /// ns-3: the MAC considers the medium idle although it is busy.
    wrongly_idle: bool,
    /// ns-3: a reception ended at this instant, and transmissions that began during it are not
    /// reported yet.
    unreported_at: Option<Instant>,
    /// Received frames reserve the medium until then (virtual carrier sense).
    nav_until: Instant,
    /// Set if the reservation is by an RTS: it ends at this time unless a reception begins before.
    nav_lapses: Option<Instant>,
    /// After a failed reception: the medium counts as idle only from this time.
    eifs_until: Instant,
    /// A reception has failed since the medium was last idle: an EIFS begins when it becomes idle.
    eifs_due: bool,
    /// When the backoff was drawn: slots before that do not count.
    drawn_at: Instant,
    /// Slots that must still pass before it may send; `None` without a backoff. The slots of the
    /// current idle period are not subtracted yet.
    backoff: Option<u32>,
    /// A backoff is drawn from 0 to this number of slots.
    window: u32,
    /// Whether it has a frame to send.
    wanting: bool,
    /// When this frame was ready.
    wanting_since: Instant,
}

impl Contention {
    /// The state of a station that has sensed nothing yet.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            carriers: 0,
            idle_since: Instant::ZERO,
            carriers_end: Instant::ZERO,
            mac_busy_until: Instant::ZERO,
            phy_busy_until: Instant::ZERO,
            wrongly_idle: false,
            unreported_at: None,
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

    /// There is a frame to send: at once if the medium is idle and there is no backoff; in ns-3
    /// after a DIFS from now.
    pub fn want(&mut self, now: Instant, chance: &mut Chance) {
        self.settle(now);
        self.wanting = true;
        self.wanting_since = now;
        if self.backoff.is_some() {
            return;
        }
        let is_sensed = !self.is_idle() && self.unreported_at != Some(now);
        if is_sensed || self.is_reserved(now) {
            self.draw(now, chance);
        } else if self.rules.dcf == Dcf::Ns3 {
            self.wanting_since = after(now, self.rules.difs_nanos);
        }
    }

    /// When the frame may be sent, if there is one, unless another station begins before.
    pub fn access_at(&self) -> Option<Instant> {
        let ready = self.ready_at().max(self.wanting_since);
        let wants = self.wanting && self.is_idle();
        wants.then(|| self.backoff.map_or(ready, |slots| self.backoff_ends(slots).max(ready)))
    }

    /// The frame is sent now; [`carrier_on`](Self::carrier_on) follows.
    pub fn access(&mut self) {
        self.wanting = false;
        self.backoff = None;
    }

    /// A transmission that the station senses begins, and lasts until `ends`. `going`: the station
    /// itself begins to send at this same instant, since it cannot have sensed the other yet.
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
        if !was_idle || self.wrongly_idle || going {
            return;
        }
        self.settle_idle(now);
        if self.wanting && self.backoff.is_none() && self.rules.dcf == Dcf::Standard {
            self.draw(now, chance);
        }
    }

    /// A transmission that the station sensed ends.
    pub fn carrier_off(&mut self, now: Instant) {
        self.carriers -= 1;
        if self.carriers > 0 || std::mem::take(&mut self.wrongly_idle) {
            return;
        }
        self.idle_since = now;
        if std::mem::take(&mut self.eifs_due) {
            self.eifs_until = after(now, self.rules.eifs_nanos);
        }
    }

    /// Whether the MAC considers the medium idle.
    pub fn is_idle(&self) -> bool {
        self.carriers == 0 || self.wrongly_idle
    }

    /// ns-3: whether a PHY header that cannot be read would change anything. It does if several
    /// transmissions are on the air.
    pub fn may_be_wrongly_idle(&self) -> bool {
        self.rules.dcf == Dcf::Ns3 && self.carriers > 1
    }

    /// Applies a report about a transmission that lasts until `ends`. In ns-3 the PHY does not
    /// report a transmission that ends before one already reported.
    fn notice(&mut self, ends: Instant, notice: Notice) {
        match notice {
            Notice::All if ends > self.phy_busy_until => self.report_all(),
            Notice::UntilHeader(until) => {
                self.mac_busy_until = until;
                self.phy_busy_until = self.phy_busy_until.max(until);
                self.wrongly_idle = false;
            }
            Notice::InPreamble(until) => {
                self.report_all();
                self.mac_busy_until = until;
            }
            Notice::All | Notice::Nothing => {}
        }
    }

    /// The PHY reports all transmissions on the air.
    pub fn report_all(&mut self) {
        self.mac_busy_until = self.carriers_end;
        self.phy_busy_until = self.carriers_end;
        self.wrongly_idle = false;
    }

    /// ns-3: the PHY header that ends now cannot be read; its frame lasts until `ends`. If this is
    /// later than all reported ends, the PHY reports it. Otherwise it reports nothing, and the MAC
    /// considers the medium idle after the end last reported.
    pub fn header_lost(&mut self, now: Instant, ends: Instant) {
        if ends > self.phy_busy_until {
            self.report_all();
        } else if self.mac_busy_until <= now && self.carriers > 0 {
            self.wrongly_idle = true;
            self.idle_since = now;
        }
    }

    /// A reception ends. In ns-3, transmissions that began during it are reported only after the
    /// frame was passed up, so a packet that is relayed at once finds the medium idle.
    pub fn reception_ends(&mut self, now: Instant) {
        if self.rules.dcf == Dcf::Ns3 {
            self.unreported_at = (self.mac_busy_until <= now).then_some(now);
            self.report_all();
        }
    }

    /// A reception failed: an EIFS begins when the medium is idle (IEEE 802.11-2016, 10.3.2.3.7),
    /// in ns-3 at once. [`carrier_off`](Self::carrier_off) follows.
    pub fn received_badly(&mut self, now: Instant) {
        match self.rules.dcf {
            Dcf::Standard => self.eifs_due = true,
            Dcf::Ns3 => self.eifs_until = after(now, self.rules.eifs_nanos),
        }
    }

    /// A frame was received, which cancels the EIFS of a failed reception.
    pub fn received_well(&mut self) {
        self.eifs_until = Instant::ZERO;
        self.eifs_due = false;
    }

    /// A reception begins at that time, when a PHY header ends (PHY-RXSTART; IEEE 802.11-2016,
    /// 10.3.2.4). The reservation of an RTS then stays valid.
    pub fn reception_begins(&mut self, at: Instant) {
        if self.nav_lapses.take_if(|lapses| at < *lapses).is_none() {
            self.nav_until = self.nav_ends();
            self.nav_lapses = None;
        }
    }

    /// A received frame reserves the medium until then. A reservation by an RTS ends at `lapses`
    /// unless a reception begins before (DCF: setting and resetting the NAV).
    pub fn reserve(&mut self, until: Instant, lapses: Option<Instant>) {
        self.nav_until = self.nav_ends();
        if until > self.nav_until {
            self.nav_until = until;
            self.nav_lapses = lapses;
        } else {
            self.nav_lapses = None;
        }
    }

    /// Whether the medium is reserved for others.
    pub fn is_reserved(&self, now: Instant) -> bool {
        now < self.nav_ends()
    }

    fn nav_ends(&self) -> Instant {
        self.nav_lapses.map_or(self.nav_until, |lapses| lapses.min(self.nav_until))
    }

    /// The station has finished with its frame, successfully or not: the window is reset, and a
    /// backoff precedes the next frame even if there is none yet.
    pub fn done(&mut self, now: Instant, chance: &mut Chance) {
        self.window = self.rules.window_min;
        self.draw(now, chance);
    }

    /// The response to its frame did not arrive; [`again`](Self::again) or [`done`](Self::done)
    /// follows.
    pub fn unanswered(&mut self, now: Instant) {
        if self.rules.dcf == Dcf::Ns3 {
            self.idle_since = self.idle_since.max(now);
        }
    }

    /// The frame must be sent again: the backoff is drawn from a window twice as wide.
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

    /// Ends a backoff whose slots have all passed without a frame to send.
    fn settle(&mut self, now: Instant) {
        if self.carriers == 0 && self.backoff.is_some_and(|slots| self.backoff_ends(slots) <= now) {
            self.backoff = None;
        }
    }

    /// Subtracts the slots of the idle period that ends now.
    fn settle_idle(&mut self, now: Instant) {
        let Some(slots) = self.backoff else { return };
        let counts_from = self.counts_from();
        let idle_nanos = now.as_nanos().saturating_sub(counts_from.as_nanos());
        let left = u64::from(slots).saturating_sub(idle_nanos / self.rules.slot_nanos) as u32;
        let is_over = left == 0 && !self.wanting && counts_from <= now;
        self.backoff = (!is_over).then_some(left);
    }

    /// When the medium will have been idle for the required time.
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

    /// A station that sensed two transmissions, and failed to receive the one that ended first, at
    /// 900.
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
        // Another begins within the DIFS: now a backoff is needed.
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
        // A frame received while the medium is still busy cancels the EIFS before it begins.
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
        // Too late: the reservation had ended.
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
        // A frame is received until 1000; another begins at 100, during its preamble, at 150,
        // during its header, or at 500.
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
            assert!(contention.access_at() >= Some(at(2050)), "it is nevertheless sensed");
        }
    }

    #[test]
    fn ns3_takes_the_medium_for_idle_after_a_header_that_it_cannot_read() {
        let rules = Rules::new(&Config::like_ns3());
        // The receiver is locked onto a frame from 0 to 1000; another begins at 100, during its
        // preamble, or at 150, during its header.
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
            // A later transmission is reported again, unless it ends earlier.
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
