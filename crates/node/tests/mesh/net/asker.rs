//! A peer that asks what it is told to ask, and keeps all that it hears.

use super::liar::Play;
use node::testing::Event;
use std::cell::RefCell;
use std::rc::Rc;
use wire::peer::{Get, Message, Request};

/// What such a peer heard.
#[derive(Clone, Default)]
pub struct Heard(Rc<RefCell<Vec<Message>>>);

impl Heard {
    /// Listens, and says nothing by itself.
    pub fn play(&self) -> Play {
        let heard = self.clone();
        Box::new(move |_, _, event| {
            if let Event::Message(_, message) = event {
                heard.0.borrow_mut().push(message);
            }
        })
    }

    /// What was heard of a request: heads, segments, units that are lost, ends.
    pub fn of(&self, number: u32) -> Vec<Message> {
        let of = |message: &&Message| {
            matches!(message, Message::Head(Request(it), _) | Message::Segment(Request(it), ..)
                | Message::DontHave(Request(it), _) | Message::End(Request(it), _) if *it == number)
        };
        self.0.borrow().iter().filter(of).cloned().collect()
    }
}

/// Asks for all of an object.
pub fn ask(number: u32, url: &str) -> Get {
    Get {
        request: Request(number),
        hops: 8,
        merge: true,
        per_hop: true,
        manifest_credit: 512 * 1024,
        credit: 16 * 1024,
        uri: url.into(),
        ..Get::default()
    }
}
