//! Bodies that an origin broke off: resumed by range from the first missing byte, if the origin
//! guarantees the same version (RFC 9110 §13.1.5, §14.2, and §15.3.7.3 on combining parts).
//!
//! When the way out of the mesh changes, the new address translation does not know the old
//! connections: they are dead without notice. So silence counts as an end once the way out has
//! changed (decision 0018).

use super::{LOOK_EVERY, Source, Value};
use crate::context::Context;
use crate::events::Event;
use crate::http;
use crate::input::{FetchError, FetchId};
use crate::output::{OriginOutput, Output};
use crate::pursuits::{Doubt, Pursuit, Rest, Resumed, Upstream};
use std::time::Duration;
use wire::Instant;

/// An origin that owes bytes and is silent for this long, after the way out has changed, is asked
/// again.
const SILENT: Duration = Duration::from_secs(8);
/// A failed attempt to resume is repeated after this time …
const RETRY: Duration = Duration::from_secs(2);
/// … until nothing has arrived for this long: well below the minute after which clients give up.
const GIVE_UP: Duration = Duration::from_secs(40);

impl Source {
    /// The transfer that a driver's request belongs to; `None` if that request has ended.
    pub fn transfer_of(&self, cx: &Context, fetch: FetchId) -> Option<FetchId> {
        let further = self.range_requests.get(&fetch).copied();
        let id = further.or_else(|| self.detours.pursuit(fetch)).unwrap_or(fetch);
        let is_of_it = match cx.pursuits.get(&id) {
            Some(pursuit) => pursuit.fetch(id) == Some(fetch),
            // A published file has no request.
            None => cx.transfers.contains_key(&id),
        };
        is_of_it.then_some(id)
    }

    /// The current request has broken off. The rest is requested at once the first time, or if
    /// `at_once`.
    pub fn break_off(&mut self, cx: &mut Context, id: FetchId, rest: Rest, at_once: bool) {
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return };
        let (first, fetch) = (pursuit.resumed.is_none(), pursuit.fetch(id));
        fetch.and_then(|fetch| self.range_requests.remove(&fetch));
        // No request to the origin is under way until the body is resumed.
        pursuit.resumed = Some(Resumed { fetch: None, answered: false, end: None, asked: cx.now });
        self.look_by(cx.now + LOOK_EVERY);
        self.values.push_back(Value::BrokenOff(id));
        // An attempt that failed is not repeated at once.
        if first || at_once {
            self.resume(cx, id, rest);
        }
    }

    /// Requests the rest of a body from the origin.
    pub fn resume(&mut self, cx: &mut Context, id: FetchId, rest: Rest) {
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return };
        let fetch = cx.ids.fetch();
        let mut headers = pursuit.quest.headers.clone();
        http::make_ranged(&mut headers, rest.from, None, Some(rest.validator));
        pursuit.resumed =
            Some(Resumed { fetch: Some(fetch), answered: false, end: None, asked: cx.now });
        let request = pursuit.origin_request(headers);
        self.range_requests.insert(fetch, id);
        cx.events.emit(|| Event::Resume { fetch: id, from: rest.from });
        cx.report.resumes += 1;
        cx.out.push_back(Output::Origin(OriginOutput::Fetch(fetch, Box::new(request))));
    }

    /// Cancels the request to the origin: its response is useless, or the origin is silent.
    pub fn hang_up(&mut self, cx: &mut Context, id: FetchId) {
        let fetch = cx.pursuits.get(&id).and_then(|pursuit| pursuit.fetch(id));
        if let Some(fetch) = fetch {
            cx.out.push_back(Output::Origin(OriginOutput::Cancel(fetch)));
        }
    }
}

impl Pursuit {
    /// A head has arrived. True if it answers a request for the rest of a body.
    pub fn rest_answered(&mut self, now: Instant) -> bool {
        let Some(resumed) = self.resumed.as_mut().filter(|it| !it.answered) else { return false };
        (resumed.answered, resumed.asked) = (true, now);
        true
    }

    /// The rest of the body ends at this offset.
    pub fn rest_ends(&mut self, end: u64) {
        if let Some(resumed) = &mut self.resumed {
            resumed.end = Some(end);
        }
    }

    /// The true result of a request after `received` bytes: an error if the rest of a body came
    /// short.
    pub fn ended(&self, received: u64, result: Result<(), FetchError>) -> Result<(), FetchError> {
        let end = self.resumed.as_ref().and_then(|resumed| resumed.end);
        if end.is_some_and(|end| end != received) { Err(FetchError::Truncated) } else { result }
    }

    /// Whether the rest of a broken body can be requested from its origin.
    pub fn may_resume(&self) -> bool {
        self.via == Upstream::Origin && !self.quest.ask.has_body
    }

    /// The time since which a body has been silent, if its connection may be dead; else `None`.
    pub fn doubted_since(&self, cx: &Context) -> Option<Instant> {
        let changed = cx.mesh.as_ref().and_then(|mesh| mesh.routes.led_elsewhere);
        let asked = self.resumed.as_ref().map(|it| it.asked);
        let since = asked.map_or(self.moved, |asked| asked.max(self.moved));
        let is = asked.is_some() || changed.is_some_and(|at| at >= self.moved);
        (is && self.via == Upstream::Origin).then(|| since.max(changed.unwrap_or(since)))
    }

    /// What to do about a body that has been silent since then. `owes`: its origin was granted more
    /// than has arrived.
    pub fn doubt(&self, now: Instant, since: Instant, owes: bool) -> Doubt {
        let gives_up = now - self.moved > GIVE_UP;
        let unanswered = self.resumed.as_ref().is_some_and(|it| !it.answered);
        if self.is_cut_off() {
            return match gives_up {
                true => Doubt::Broken,
                false if now - since > RETRY => Doubt::Resume,
                false => Doubt::None,
            };
        }
        match (owes || unanswered) && now - since > SILENT {
            true if gives_up => Doubt::Broken,
            true => Doubt::Resume,
            false => Doubt::None,
        }
    }

    /// Whether the origin broke off, and the rest is not being requested.
    pub fn is_cut_off(&self) -> bool {
        self.resumed.as_ref().is_some_and(|resumed| resumed.fetch.is_none())
    }

    /// The driver's number of the request to the origin. `None` between a break and the next
    /// request.
    pub(super) fn fetch(&self, id: FetchId) -> Option<FetchId> {
        let own = self.detour.fetch.unwrap_or(id);
        self.resumed.as_ref().map_or(Some(own), |resumed| resumed.fetch)
    }

    /// Whether the head of the rest is still awaited: nothing can be granted before it.
    pub(super) fn awaits_rest(&self) -> bool {
        self.resumed.as_ref().is_some_and(|resumed| !resumed.answered)
    }
}
