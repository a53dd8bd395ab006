//! The links as the medium walks them: for each sender its hearers, one behind another.

use crate::chance::Probability;
use crate::links::Links;
use crate::output::Station;
use crate::receiver::Signal;
use std::ops::Range;

/// One station that senses another, and what it last got of it.
#[derive(Clone, Copy, Debug)]
pub struct Hearer {
    pub station: Station,
    pub signal: Signal,
    pub loss: Probability,
    pub broadcast_loss: Probability,
    /// Serial number of the sender's latest packet that arrived here; 0 if none did.
    heard: u64,
}

impl Hearer {
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
    hearers: Vec<Hearer>,
    /// Where the hearers of each sender end.
    ends: Vec<usize>,
}

impl Reach {
    /// `broadcast_loss_share` as in [`Config`](crate::Config::broadcast_loss_share).
    pub fn new(links: &Links, broadcast_loss_share: f64) -> Self {
        let (mut hearers, mut ends) = (Vec::new(), Vec::new());
        for sender in (0..links.stations()).map(|index| Station(index as u16)) {
            hearers.extend(links.hearers_of(sender).iter().map(|(station, link)| {
                let signal = Signal { sender, power: link.power, decodable: link.decodable };
                let loss = Probability::new(link.loss);
                let broadcast_loss = Probability::new(link.loss * broadcast_loss_share);
                Hearer { station: *station, signal, loss, broadcast_loss, heard: 0 }
            }));
            ends.push(hearers.len());
        }
        Self { hearers, ends }
    }

    /// Where the hearers of a sender are.
    pub fn of(&self, sender: Station) -> Range<usize> {
        let sender = usize::from(sender.0);
        let start = sender.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[sender]
    }

    /// The hearer at a place.
    pub fn at(&mut self, place: usize) -> &mut Hearer {
        &mut self.hearers[place]
    }
}
