//! For each sender, the stations that sense it.

use crate::chance::{Chance, PairChance, Probability};
use crate::config::Config;
use crate::links::{Link, Links, Thresholds};
use crate::output::Station;
use crate::physics::Speed;
use crate::power::POWER_MAX;
use crate::receiver::Signal;
use crate::spells::Spells;
use std::time::Duration;
use wire::Instant;

/// A station that senses the sender, and the last packet that it received from it.
#[derive(Clone, Debug)]
pub struct Hearer {
    pub station: Station,
    decodable: bool,
    /// In attowatts; the mean, if links fade.
    power: u64,
    /// If links fade: the power of the frame on the air.
    faded_power: u64,
    /// Whether frames for this station or for all can be received.
    pub reaches: bool,
    pub loss: Probability,
    pub broadcast_loss: Probability,
    overheard_loss: Probability,
    /// Set if losses of overheard frames come in bursts.
    spells: Option<Spells>,
    /// Serial number of the sender's last packet that was received here; 0 if none was.
    heard: u64,
}

impl Hearer {
    fn new((from, station): (Station, Station), link: Link, rules: LinkRules) -> Self {
        let has_spells = link.overheard_loss.is_some() && rules.overhear_spell > Duration::ZERO;
        let chance = || PairChance::new(rules.seed, from.0, station.0);
        Self {
            station,
            decodable: link.decodable || link.overheard_loss.is_some(),
            power: link.power.min(POWER_MAX),
            faded_power: 0,
            // If links fade, the received power decides.
            reaches: link.decodable || link.overheard_loss.is_none(),
            loss: Probability::new(link.loss),
            overheard_loss: Probability::new(link.overheard_loss.unwrap_or(link.loss)),
            broadcast_loss: Probability::new(link.loss * rules.broadcast_loss_share),
            spells: has_spells.then(|| Spells::new(chance(), rules.overhear_spell)),
            heard: 0,
        }
    }

    /// The sender begins to transmit: draws the power of this frame here, if links fade.
    pub fn fade(&mut self, chance: &mut Chance) {
        self.faded_power = (self.power as f64 * chance.fade()).min(POWER_MAX as f64) as u64;
    }

    /// The signal of the frame that the sender has on the air until `ends`, if it is sensed here.
    pub fn signal(
        &self,
        (sender, speed, ends): (Station, Speed, Instant),
        fading: Option<Thresholds>,
    ) -> Option<Signal> {
        match fading {
            None => {
                let Self { power, decodable, .. } = *self;
                Some(Signal { sender, power, decodable, speed, ends })
            }
            Some(Thresholds { receive, sense }) => {
                let power = self.faded_power;
                let signal = Signal { sender, power, decodable: power >= receive, speed, ends };
                (power >= sense).then_some(signal)
            }
        }
    }

    /// Whether an overheard frame is lost without interference; `chance` is the station's.
    pub fn misses(&mut self, now: Instant, chance: &mut Chance) -> bool {
        match &mut self.spells {
            Some(spells) => spells.is_bad(now, self.overheard_loss),
            None => chance.happens(self.overheard_loss),
        }
    }

    /// Notes that a packet was received here; returns whether it is new. A sender handles one
    /// packet at a time, so its last serial number is enough.
    pub fn note(&mut self, serial: u64) -> bool {
        let is_new = self.heard != serial;
        self.heard = serial;
        is_new
    }
}

/// The settings that apply to all links.
#[derive(Clone, Copy, Debug)]
struct LinkRules {
    broadcast_loss_share: f64,
    overhear_spell: Duration,
    seed: u64,
}

/// The hearers of all senders.
#[derive(Clone, Debug)]
pub struct Hearers {
    /// By sender; hearers in order of their numbers.
    by_sender: Vec<Vec<Hearer>>,
    fading: Option<Thresholds>,
    rules: LinkRules,
    /// Changes that wait for the end of their sender's frame.
    changes: Vec<(Station, Station, Option<Link>)>,
}

impl Hearers {
    /// `seed` is that of the channel.
    pub fn new(links: &Links, config: &Config, seed: u64) -> Self {
        let Config { broadcast_loss_share, overhear_spell, .. } = *config;
        let rules = LinkRules { broadcast_loss_share, overhear_spell, seed };
        let of = |sender| {
            let from = Station(sender as u16);
            let hearers = links.hearers_of(from).iter();
            hearers.map(|(to, link)| Hearer::new((from, *to), *link, rules)).collect()
        };
        Self {
            by_sender: (0..links.stations()).map(of).collect(),
            fading: links.thresholds(),
            rules,
            changes: Vec::new(),
        }
    }

    pub fn fading(&self) -> Option<Thresholds> {
        self.fading
    }

    /// Takes the hearers of a sender out; [`give_back`](Self::give_back) must follow.
    pub fn lend(&mut self, sender: Station) -> Vec<Hearer> {
        std::mem::take(&mut self.by_sender[usize::from(sender.0)])
    }

    pub fn give_back(&mut self, sender: Station, hearers: Vec<Hearer>) {
        self.by_sender[usize::from(sender.0)] = hearers;
    }

    /// Changes a link: now, or when the sender's frame ends, if it `is_sending`.
    pub fn change(&mut self, from: Station, to: Station, link: Option<Link>, is_sending: bool) {
        if is_sending {
            self.changes.retain(|(one, other, _)| (*one, *other) != (from, to));
            self.changes.push((from, to, link));
        } else {
            self.apply(from, to, link);
        }
    }

    /// Applies the changes that waited for the end of a sender's frame.
    pub fn changes_of(&mut self, sender: Station) {
        let mut changes = std::mem::take(&mut self.changes);
        changes.retain(|(from, to, link)| {
            let is_due = *from == sender;
            if is_due {
                self.apply(*from, *to, *link);
            }
            !is_due
        });
        self.changes = changes;
    }

    fn apply(&mut self, from: Station, to: Station, link: Option<Link>) {
        let hearers = &mut self.by_sender[usize::from(from.0)];
        match (hearers.binary_search_by_key(&to, |hearer| hearer.station), link) {
            _ if from == to => {}
            (Ok(place), Some(link)) => {
                let new = Hearer::new((from, to), link, self.rules);
                let Hearer { heard, spells, .. } = &mut hearers[place];
                let spells = new.spells.and_then(|new| spells.take().or(Some(new)));
                hearers[place] = Hearer { heard: *heard, spells, ..new };
            }
            (Ok(place), None) => drop(hearers.remove(place)),
            (Err(place), Some(link)) => {
                hearers.insert(place, Hearer::new((from, to), link, self.rules));
            }
            (Err(_), None) => {}
        }
    }
}
