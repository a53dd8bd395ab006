//! The clients behind one router that read pages. Each requests the files of a page one after the other, then
//! thinks until it requests the next page.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use wire::Instant;

use super::client::{Ask, Client, Got};
use crate::net::{Event, Host};
use crate::scenario::Reader;
use crate::world::Program;

/// The clients of one machine. The number of an [`Ask`] is the number of its client.
#[derive(Debug)]
pub struct Browser {
    client: Client,
    people: Vec<Person>,
    /// Size of each file in bytes, by its number.
    sizes: Arc<[u64]>,
    /// No page begins after this; `None` before [`Self::begin`].
    ends: Option<Instant>,
    done: VecDeque<Got>,
}

/// One client, and where it is in its page.
#[derive(Debug)]
struct Person {
    reader: Reader,
    /// When its next page begins; `None` while it fetches the files of one.
    thinks_until: Option<Instant>,
    /// Files of the page that it has still to request.
    left: usize,
}

impl Browser {
    /// Clients that stay idle until [`Self::begin`].
    pub fn new(client: Client, readers: Vec<Reader>, sizes: Arc<[u64]>) -> Self {
        let person = |reader| Person { reader, thinks_until: None, left: 0 };
        let people = readers.into_iter().map(person).collect();
        Self { client, people, sizes, ends: None, done: VecDeque::new() }
    }

    /// Starts all clients; none begins a page after `lasts`.
    pub fn begin(&mut self, now: Instant, lasts: Duration) {
        self.ends = Some(now + lasts);
        for person in &mut self.people {
            let first = Duration::from_secs_f64(person.reader.first_s());
            person.thinks_until = Some(now + first);
        }
    }

    /// Whether a client is fetching a file or will begin another page.
    pub fn is_busy(&self) -> bool {
        self.client.is_busy() || self.poll_timeout().is_some()
    }

    /// The next transfer that has ended.
    pub fn poll_done(&mut self) -> Option<Got> {
        self.done.pop_front()
    }

    fn ask(&mut self, now: Instant, host: &mut Host, number: usize) {
        let person = &mut self.people[number];
        person.left -= 1;
        let file = person.reader.file();
        self.client.ask(now, host, Ask { number, file, size: self.sizes[file] });
    }

    /// A client whose file has ended requests the next file of its page, or thinks.
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
