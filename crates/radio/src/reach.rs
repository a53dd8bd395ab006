//! The links as the medium walks them: for each sender its hearers.

use crate::chance::{Chance, Probability};
use crate::links::{Link, Links, Thresholds};
use crate::output::Station;
use crate::physics::Speed;
use crate::power::POWER_MAX;
use crate::receiver::Signal;
use wire::Instant;

/// One station that senses another, and what it last got of it.
#[derive(Clone, Copy, Debug)]
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
    pub overheard_loss: Probability,
    /// Serial number of the sender's latest packet that arrived here; 0 if none did.
    heard: u64,
}

impl Hearer {
    fn new(station: Station, link: Link, broadcast_loss_share: f64) -> Self {
        Self {
            station,
            decodable: link.decodable || link.overheard_loss.is_some(),
            power: link.power.min(POWER_MAX),
            faded_power: 0,
            // If links fade, their power decides.
            reaches: link.decodable || link.overheard_loss.is_none(),
            loss: Probability::new(link.loss),
            overheard_loss: Probability::new(link.overheard_loss.unwrap_or(link.loss)),
            broadcast_loss: Probability::new(link.loss * broadcast_loss_share),
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

    /// Notes that a packet arrived here; says whether it had not before. A sender works on one packet
    /// at a time, so the latest serial number is all there is to remember.
    pub fn note(&mut self, serial: u64) -> bool {
        let is_new = self.heard != serial;
        self.heard = serial;
        is_new
    }
}

/// Who senses whom.
#[derive(Clone, Debug)]
pub struct Reach {
    /// By sender, each in order of their numbers.
    hearers: Vec<Vec<Hearer>>,
    fading: Option<Thresholds>,
    broadcast_loss_share: f64,
    /// Changes that wait until their sender has nothing on the air.
    changes: Vec<(Station, Station, Option<Link>)>,
}

impl Reach {
    /// `broadcast_loss_share` as in [`Config`](crate::Config::broadcast_loss_share).
    pub fn new(links: &Links, broadcast_loss_share: f64) -> Self {
        let of = |sender| {
            let hearers = links.hearers_of(Station(sender as u16)).iter();
            hearers.map(|(to, link)| Hearer::new(*to, *link, broadcast_loss_share)).collect()
        };
        Self {
            hearers: (0..links.stations()).map(of).collect(),
            fading: links.thresholds(),
            broadcast_loss_share,
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
                let new = Hearer::new(to, link, self.broadcast_loss_share);
                hearers[place] = Hearer { heard: hearers[place].heard, ..new };
            }
            (Ok(place), None) => drop(hearers.remove(place)),
            (Err(place), Some(link)) => {
                hearers.insert(place, Hearer::new(to, link, self.broadcast_loss_share));
            }
            (Err(_), None) => {}
        }
    }
}
