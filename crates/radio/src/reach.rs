//! The links as the medium walks them: for each sender its hearers.

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

/// One station that senses another, and what it last got of it.
#[derive(Clone, Debug)]
pub struct Hearer {
    pub station: Station,
    decodable: bool,
    /// In attowatts; the mean, if links fade.
    power: u64,
    /// If links fade: of what the sender has on the air.
    faded_power: u64,
    /// Frames that are for it, or for all, can arrive.
    pub reaches: bool,
    pub loss: Probability,
    pub broadcast_loss: Probability,
    overheard_loss: Probability,
    /// If frames for others are lost in spells.
    spells: Option<Spells>,
    /// Serial number of the sender's latest packet that arrived here; 0 if none did.
    heard: u64,
}

impl Hearer {
    fn new((from, station): (Station, Station), link: Link, habits: Habits) -> Self {
        let has_spells = link.overheard_loss.is_some() && habits.overhear_spell > Duration::ZERO;
        let chance = || PairChance::new(habits.seed, from.0, station.0);
        Self {
            station,
            decodable: link.decodable || link.overheard_loss.is_some(),
            power: link.power.min(POWER_MAX),
            faded_power: 0,
            // If links fade, their power decides.
            reaches: link.decodable || link.overheard_loss.is_none(),
            loss: Probability::new(link.loss),
            overheard_loss: Probability::new(link.overheard_loss.unwrap_or(link.loss)),
            broadcast_loss: Probability::new(link.loss * habits.broadcast_loss_share),
            spells: has_spells.then(|| Spells::new(chance(), habits.overhear_spell)),
            heard: 0,
        }
    }

    /// The sender begins to transmit: how strongly that comes here, if links fade.
    pub fn fade(&mut self, chance: &mut Chance) {
        self.faded_power = (self.power as f64 * chance.fade()).min(POWER_MAX as f64) as u64;
    }

    /// What is sensed here of what the sender has on the air until `ends`, if anything.
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

    /// Whether a frame for another that nothing disturbed does not arrive here; `chance` is the station's.
    pub fn misses(&mut self, now: Instant, chance: &mut Chance) -> bool {
        match &mut self.spells {
            Some(spells) => spells.is_bad(now, self.overheard_loss),
            None => chance.happens(self.overheard_loss),
        }
    }

    /// Notes that a packet arrived here; says whether it had not before. A sender works on one packet
    /// at a time, so the latest serial number is all there is to remember.
    pub fn note(&mut self, serial: u64) -> bool {
        let is_new = self.heard != serial;
        self.heard = serial;
        is_new
    }
}

/// What all links have in common.
#[derive(Clone, Copy, Debug)]
struct Habits {
    broadcast_loss_share: f64,
    overhear_spell: Duration,
    seed: u64,
}

/// Who senses whom.
#[derive(Clone, Debug)]
pub struct Reach {
    /// By sender, each in order of their numbers.
    hearers: Vec<Vec<Hearer>>,
    fading: Option<Thresholds>,
    habits: Habits,
    /// Changes that wait until their sender has nothing on the air.
    changes: Vec<(Station, Station, Option<Link>)>,
}

impl Reach {
    /// The seed is that of the channel.
    pub fn new(links: &Links, config: &Config, seed: u64) -> Self {
        let Config { broadcast_loss_share, overhear_spell, .. } = *config;
        let habits = Habits { broadcast_loss_share, overhear_spell, seed };
        let of = |sender| {
            let from = Station(sender as u16);
            let hearers = links.hearers_of(from).iter();
            hearers.map(|(to, link)| Hearer::new((from, *to), *link, habits)).collect()
        };
        Self {
            hearers: (0..links.stations()).map(of).collect(),
            fading: links.thresholds(),
            habits,
            changes: Vec::new(),
        }
    }

    pub fn fading(&self) -> Option<Thresholds> {
        self.fading
    }

    /// Lends out the hearers of a sender; [`give_back`](Self::give_back) follows.
    pub fn lend(&mut self, sender: Station) -> Vec<Hearer> {
        std::mem::take(&mut self.hearers[usize::from(sender.0)])
    }

    pub fn give_back(&mut self, sender: Station, hearers: Vec<Hearer>) {
        self.hearers[usize::from(sender.0)] = hearers;
    }

    /// Changes a link: now, or if the sender `is_sending` when that has ended.
    pub fn change(&mut self, from: Station, to: Station, link: Option<Link>, is_sending: bool) {
        if is_sending {
            self.changes.retain(|(one, other, _)| (*one, *other) != (from, to));
            self.changes.push((from, to, link));
        } else {
            self.apply(from, to, link);
        }
    }

    /// Makes the changes that waited for the end of what a sender had on the air.
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
        let hearers = &mut self.hearers[usize::from(from.0)];
        match (hearers.binary_search_by_key(&to, |hearer| hearer.station), link) {
            _ if from == to => {}
            (Ok(place), Some(link)) => {
                let new = Hearer::new((from, to), link, self.habits);
                let Hearer { heard, spells, .. } = &mut hearers[place];
                let spells = new.spells.and_then(|new| spells.take().or(Some(new)));
                hearers[place] = Hearer { heard: *heard, spells, ..new };
            }
            (Ok(place), None) => drop(hearers.remove(place)),
            (Err(place), Some(link)) => {
                hearers.insert(place, Hearer::new((from, to), link, self.habits));
            }
            (Err(_), None) => {}
        }
    }
}
