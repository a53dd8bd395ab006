//! The clients behind one router that read pages: each asks for a file, and for the next when it has that
//! one; at the end of a page it thinks.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use wire::Instant;

use super::client::{Ask, Client, Got};
use crate::net::{Event, Host};
use crate::scenario::Reader;
use crate::world::Program;

/// The clients of one machine. An [`Ask`]'s number is the client's.
#[derive(Debug)]
pub struct Browser {
    client: Client,
    people: Vec<Person>,
    /// By file, in bytes.
    sizes: Arc<[u64]>,
    /// No page begins from then on; `None`: none has begun.
    ends: Option<Instant>,
    done: VecDeque<Got>,
}

/// Someone who reads.
#[derive(Debug)]
struct Person {
    reader: Reader,
    /// When the next page begins; `None` while files of one come.
    thinks_until: Option<Instant>,
    /// Files of the page that are still to be asked for.
    left: usize,
}

impl Browser {
    /// They do nothing yet.
    pub fn new(client: Client, readers: Vec<Reader>, sizes: Arc<[u64]>) -> Self {
        let person = |reader| Person { reader, thinks_until: None, left: 0 };
        let people = readers.into_iter().map(person).collect();
        Self { client, people, sizes, ends: None, done: VecDeque::new() }
    }

    /// They read from now on, for so long.
    pub fn begin(&mut self, now: Instant, lasts: Duration) {
        self.ends = Some(now + lasts);
        for person in &mut self.people {
            let first = Duration::from_secs_f64(person.reader.first_s());
            person.thinks_until = Some(now + first);
        }
    }

    /// Whether somebody has yet to get something.
    pub fn is_busy(&self) -> bool {
        self.client.is_busy() || self.poll_timeout().is_some()
    }

    /// A transfer that has ended.
    pub fn poll_done(&mut self) -> Option<Got> {
        self.done.pop_front()
    }

    fn ask(&mut self, now: Instant, host: &mut Host, number: usize) {
        let person = &mut self.people[number];
        person.left -= 1;
        let file = person.reader.file();
        self.client.ask(now, host, Ask { number, file, size: self.sizes[file] });
    }

    /// Whoever has got a file asks for the next, or thinks.
    fn go_on(&mut self, now: Instant, host: &mut Host) {
        while let Some(got) = self.client.poll_done() {
            let number = got.ask.number;
            self.done.push_back(got);
            let person = &mut self.people[number];
            if person.left > 0 {
                self.ask(now, host, number);
            } else {
                let thinks = Duration::from_secs_f64(person.reader.think_s());
                person.thinks_until = Some(now + thinks);
            }
        }
    }

    fn next_page(&self) -> Option<Instant> {
        let pages = self.people.iter().filter_map(|person| person.thinks_until);
        pages.min().filter(|at| self.ends.is_some_and(|ends| *at < ends))
    }
}

impl Program for Browser {
    fn handle_event(&mut self, now: Instant, host: &mut Host, event: Event) {
        self.client.handle_event(now, host, event);
        self.go_on(now, host);
    }

    fn handle_timeout(&mut self, now: Instant, host: &mut Host) {
        self.client.handle_timeout(now, host);
        while self.next_page().is_some_and(|at| at <= now) {
            let begins = |person: &Person| person.thinks_until.is_some_and(|at| at <= now);
            for number in 0..self.people.len() {
                let person = &mut self.people[number];
                if begins(person) {
                    person.thinks_until = None;
                    person.left = person.reader.page();
                    self.ask(now, host, number);
                }
            }
        }
        self.go_on(now, host);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.client.poll_timeout().into_iter().chain(self.next_page()).min()
    }
}
