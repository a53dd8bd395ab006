//! How long requests wait before a peer is asked: for searches, and for peers to be dialled.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use node::{Event, FetchId, SourceKind};
use wire::Instant;

use super::EventSink;

/// Watches the engines' events.
#[derive(Clone, Debug, Default)]
pub struct Waits(Rc<RefCell<State>>);

/// What was waited for, request by request.
#[derive(Clone, Debug, Default)]
pub struct Waited {
    /// For the scheme to find out whom to ask.
    pub searches: Vec<Duration>,
    /// For a connection with a peer.
    pub dials: Vec<Duration>,
}

#[derive(Debug, Default)]
struct State {
    /// What each router's requests wait for, and since when.
    waiting: BTreeMap<(usize, FetchId), (SourceKind, Instant)>,
    waited: Waited,
}

impl Waits {
    /// Takes events, and passes them on.
    pub fn sink(&self, further: Option<EventSink>) -> EventSink {
        let state = Rc::clone(&self.0);
        Rc::new(move |router, at, event| {
            further.iter().for_each(|further| further(router, at, event));
            if let Event::Source { fetch, of } = event {
                state.borrow_mut().goes_on((router, *fetch), *of, at);
            }
        })
    }

    /// What was waited for so far.
    pub fn take(&self) -> Waited {
        std::mem::take(&mut self.0.borrow_mut().waited)
    }
}

impl State {
    fn goes_on(&mut self, request: (usize, FetchId), of: SourceKind, at: Instant) {
        match self.waiting.remove(&request) {
            Some((SourceKind::Selection, since)) => self.waited.searches.push(at - since),
            Some((SourceKind::Dialled { .. }, since)) => self.waited.dials.push(at - since),
            _ => {}
        }
        if matches!(of, SourceKind::Selection | SourceKind::Dialled { .. }) {
            self.waiting.insert(request, (of, at));
        }
    }
}
