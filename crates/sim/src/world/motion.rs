//! Links that change during a run: stations that move, and links that are cut.
//!
//! *What this is:* [`Motion`], which knows when the next change is due, and what it is. *Who calls it:* the
//! world's loop. *What it never does:* touch the medium or a machine. Routes are computed again at a slower
//! pace; in between, packets follow the old ones.

use std::time::Duration;

use radio::propagation::Field;
use radio::waypoint::Walk;
use radio::{Link, Links, Station};
use wire::Instant;

use super::{Program, Routes, World};
use crate::scenario::{Changes, seed};

/// How often moving stations are updated: at 20 m/s, every two metres.
const STEP: Duration = Duration::from_millis(100);
/// Number of the stream that derives the seed of walks.
const WALKS: u16 = 4;

/// A changed link: sender, receiver, and the link from now on.
type Changed = (Station, Station, Option<Link>);

/// The changes of a run, and how far they have progressed.
#[derive(Debug)]
pub(super) struct Motion {
    changes: Changes,
    walkers: Vec<(Station, Walk)>,
    field: Field,
    /// The current links.
    links: Links,
    /// Number of cuts made so far.
    cuts_made: usize,
    /// When moving stations are updated next.
    step_at: Instant,
    /// When routes are computed next; `None` while no link has changed.
    routes_at: Option<Instant>,
    hops: Vec<(usize, usize)>,
    changed: Vec<Changed>,
}

impl Motion {
    /// The state at the beginning, with these links.
    fn new(changes: Changes, links: Links, world_seed: u64) -> Self {
        let field = changes.field();
        let walk = |mover: &usize| {
            let station = Station(*mover as u16);
            let place_m = field.position_m(station).unwrap_or_default();
            let seed = seed(world_seed, 0, WALKS);
            (station, Walk::beginning_at(changes.walks.clone(), seed, station.0, place_m))
        };
        Self {
            walkers: changes.movers.iter().map(walk).collect(),
            cuts_made: 0,
            step_at: Instant::ZERO + STEP,
            routes_at: None,
            hops: changes.hops(&links),
            changed: Vec::new(),
            field,
            links,
            changes,
        }
    }

    /// When something changes next.
    fn poll_timeout(&self) -> Option<Instant> {
        let step = (!self.walkers.is_empty()).then_some(self.step_at);
        let cut = self.changes.cuts.get(self.cuts_made).map(|cut| Instant::ZERO + cut.at);
        [step, cut, self.routes_at].into_iter().flatten().min()
    }

    /// Makes the changes that are due.
    fn handle_timeout(&mut self, now: Instant) {
        self.cut(now);
        if self.step_at <= now {
            self.step_at = now + STEP;
            for place in 0..self.walkers.len() {
                self.walk(now, place);
            }
        }
        for (from, to, link) in &self.changed {
            match link {
                Some(link) => self.links.set(*from, *to, *link),
                None => self.links.remove(*from, *to),
            }
        }
        if !self.changed.is_empty() && self.routes_at.is_none() {
            let every = self.changes.routes_every.as_nanos() as u64;
            self.routes_at = Some(Instant::from_nanos(now.as_nanos().div_ceil(every) * every));
        }
    }

    fn cut(&mut self, now: Instant) {
        while let Some(cut) = self.changes.cuts.get(self.cuts_made)
            && Instant::ZERO + cut.at <= now
        {
            self.cuts_made += 1;
            let stations = || (0..self.links.stations()).map(|it| Station(it as u16));
            for from in stations() {
                let hearers = self.links.hearers_of(from).iter().map(|(to, _)| *to);
                let gone = hearers.filter(|to| cut.is_between(place(from), place(*to)));
                self.changed.extend(gone.map(|to| (from, to, None)));
            }
        }
    }

    fn walk(&mut self, now: Instant, walker: usize) {
        let (station, walk) = &mut self.walkers[walker];
        let to_m = walk.position_m(now);
        // A station at rest changes no link.
        if self.field.position_m(*station) == Some(to_m) {
            return;
        }
        let first = self.changed.len();
        let Self { changes, changed, field, .. } = self;
        let loss = |m| changes.loss(m);
        field.move_to(*station, to_m, loss, |from, to, link| changed.push((from, to, link)));
        let cuts = &changes.cuts[..self.cuts_made];
        for (from, to, link) in &mut changed[first..] {
            let is_cut = cuts.iter().any(|cut| cut.is_between(place(*from), place(*to)));
            let place_m = |station| field.position_m(station).unwrap_or_default();
            let (from_m, to_m) = (place_m(*from), place_m(*to));
            *link = link.filter(|_| !is_cut).map(|it| changes.overheard(it, from_m, to_m));
        }
    }

    /// New routes, if it is time to compute them, and whether some to the gateway differ from the old ones.
    fn routes(&mut self, now: Instant) -> Option<(Routes, bool)> {
        self.routes_at.take_if(|at| *at <= now)?;
        let hops = self.changes.hops(&self.links);
        let are_others = hops != self.hops;
        self.hops = hops;
        let Changes { metric, scope, .. } = self.changes;
        Some((Routes::beside(&self.hops, &self.links, metric, scope), are_others))
    }
}

fn place(station: Station) -> usize {
    usize::from(station.0)
}

impl<P: Program> World<P> {
    /// Makes links change from the beginning of the world on. `links` are those at the beginning; the seed
    /// draws all walks.
    ///
    /// # Panics
    ///
    /// If the world has already made a step.
    pub fn change(&mut self, changes: Changes, links: Links, seed: u64) {
        assert!(!self.started, "links change from the start");
        self.motion = Some(Box::new(Motion::new(changes, links, seed)));
    }

    /// Makes the changes of links and routes that are due.
    pub(super) fn move_on(&mut self) {
        let Some(mut motion) = self.motion.take() else { return };
        motion.handle_timeout(self.now);
        for (from, to, link) in motion.changed.drain(..) {
            self.medium.handle_input(self.now, radio::Input::Link { from, to, link });
            self.drain_medium();
        }
        let mut are_others = false;
        if let Some(routes) = motion.routes(self.now) {
            (self.routes, are_others) = routes;
        }
        if are_others {
            self.counters.reroutes += 1;
            for machine in 0..self.stations {
                let running = &mut self.machines[machine];
                running.program.rerouted(self.now, &mut running.host, &mut self.routes);
                self.drain(machine);
            }
        }
        self.motion = Some(motion);
        self.plan_motion();
    }

    /// Schedules the next change.
    pub(super) fn plan_motion(&mut self) {
        if let Some(motion) = &self.motion {
            let place = self.machines.len() + self.ends.len();
            self.due.set(place, motion.poll_timeout());
        }
    }
}
