//! Bodies that their origin broke off (`source/resume.rs`): whether such a body can be resumed, and
//! whether a response is its rest.

use super::{Source, Value};
use crate::context::Context;

use crate::input::{FetchError, FetchId};
use crate::pursuits::{Doubt, Pursuit, Rest};
use crate::transfers::incoming::Incoming;
use crate::transfers::rest::rest_end;
use ::http::{HeaderMap, StatusCode};
use wire::Instant;

impl Source {
    /// A driver's request has ended. Returns the response's result, or `None` if it will be
    /// resumed.
    pub fn origin_ends(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        result: Result<(), FetchError>,
    ) -> Option<Result<(), FetchError>> {
        let came = cx.transfers.get(&id).map_or(0, |incoming| incoming.received_bytes);
        let pursuit = cx.pursuits.get(&id);
        let result = pursuit.map_or(result, |it| it.ended(came, result));
        let Some(rest) = self.rest_of(cx, id, false).filter(|_| result.is_err()) else {
            return Some(result);
        };
        self.break_off(cx, id, rest, false);
        None
    }

    /// What is missing of a body that may be resumed by range, if its origin allows it. It is begun
    /// only while a reader waits; once begun it continues for readers that may return.
    fn rest_of(&mut self, cx: &mut Context, id: FetchId, begun: bool) -> Option<Rest> {
        let may_resume = cx.pursuits.get(&id).is_some_and(Pursuit::may_resume);
        let incoming = cx.transfers.get(&id).filter(|_| may_resume)?;
        incoming.rest().filter(|_| begun || !incoming.readers.is_empty())
    }

    /// The head of the rest of a body; false if no rest was awaited.
    pub fn rest_head(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> bool {
        let now = cx.now;
        let pursuit = cx.pursuits.get_mut(&id);
        if !pursuit.is_some_and(|it| it.rest_answered(now)) {
            return false;
        }
        let Some(incoming) = cx.transfers.get(&id) else { return false };
        match rest_end(incoming, incoming.received_bytes, status, headers) {
            Some(end) => {
                if let Some(pursuit) = cx.pursuits.get_mut(&id) {
                    pursuit.rest_ends(end);
                }
                cx.turns.dirty(id);
            }
            None => {
                // Another version, or not the requested part: the two must not be spliced.
                self.hang_up(cx, id);
                self.values.push_back(Value::Broken(id));
            }
        }
        true
    }

    /// Checks bodies whose connection to the origin may be dead. True if they are to be checked
    /// again.
    pub fn look_after_bodies(&mut self, cx: &mut Context) -> bool {
        let doubtful = |(id, incoming): (&FetchId, &Incoming)| {
            // A complete body is owed nothing more, though it is still read.
            let pursuit = cx.pursuits.get(id).filter(|_| !incoming.is_ended());
            let since = pursuit.and_then(|it| it.doubted_since(cx));
            since.map(|since| (*id, since))
        };
        let mut ids: Vec<_> = cx.transfers.iter().filter_map(doubtful).collect();
        ids.sort_unstable();
        for (id, since) in &ids {
            self.look_after_body(cx, *id, *since);
        }
        !ids.is_empty()
    }

    /// Nothing has been heard of a body since then, and the way out may have changed.
    fn look_after_body(&mut self, cx: &mut Context, id: FetchId, since: Instant) {
        let Some(incoming) = cx.transfers.get(&id) else { return };
        let owes = incoming.granted > incoming.received_bytes;
        let pursuit = cx.pursuits.get(&id);
        let doubt = pursuit.map_or(Doubt::None, |it| it.doubt(cx.now, since, owes));
        if doubt == Doubt::None {
            return;
        }
        let cut_off = cx.pursuits.get(&id).is_some_and(Pursuit::is_cut_off);
        if !cut_off {
            self.hang_up(cx, id);
        }
        match self.rest_of(cx, id, cut_off).filter(|_| doubt == Doubt::Resume) {
            Some(rest) if cut_off => self.resume(cx, id, rest),
            Some(rest) => self.break_off(cx, id, rest, true),
            None => self.values.push_back(Value::Broken(id)),
        }
    }
}
