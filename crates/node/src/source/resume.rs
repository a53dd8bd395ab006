//! Bodies of origins that break off: gone on with from the first byte that is missing, by range, where the
//! origin promises that it is the same version (RFC 9110 §13.1.5, §14.2, and §15.3.7.3 on combining parts).
//!
//! A connection that led out of the mesh elsewhere is dead and does not say so: the new way's address
//! translation knows nothing of it. So silence counts as an end once the way out has changed.

use super::{LOOK_EVERY, Source, Value};
use crate::context::Context;
use crate::events::Event;
use crate::http;
use crate::input::{FetchError, FetchId};
use crate::output::{OriginOutput, Output};
use crate::pursuits::{Doubt, Pursuit, Rest, Resumed, Upstream};
use std::time::Duration;
use wire::Instant;

/// An origin that owes something and says nothing for so long, while the way out is another than before, is
/// asked anew.
const SILENT: Duration = Duration::from_secs(8);
/// So long after an attempt to go on has failed another is made …
const RETRY: Duration = Duration::from_secs(2);
/// … until nothing has come for so long: well before a client's minute is over.
const GIVE_UP: Duration = Duration::from_secs(40);

impl Source {
    /// The transfer that what a driver says of a request is about; none, if that request is done with.
    pub fn carried(&self, cx: &Context, line: FetchId) -> Option<FetchId> {
        let id = self.lines.get(&line).copied().unwrap_or(line);
        let is_of_it = match cx.pursuits.get(&id) {
            Some(pursuit) => pursuit.line(id) == Some(line),
            // A file comes without being asked for.
            None => cx.transfers.contains_key(&id),
        };
        is_of_it.then_some(id)
    }

    /// The request under way is done with, and has broken off. The rest is asked for at once if it is the first that
    /// did, or if that is said.
    pub fn break_off(&mut self, cx: &mut Context, id: FetchId, rest: Rest, at_once: bool) {
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return };
        let (first, line) = (pursuit.resumed.is_none(), pursuit.line(id));
        line.and_then(|line| self.lines.remove(&line));
        // No driver knows it by a number: it speaks of none.
        pursuit.resumed = Some(Resumed { line: None, answered: false, end: None, asked: cx.now });
        self.look_at.get_or_insert(cx.now + LOOK_EVERY);
        self.values.push_back(Value::BrokenOff(id));
        // An attempt that failed is not repeated at once.
        if first || at_once {
            self.resume(cx, id, rest);
        }
    }

    /// Asks the origin for the rest of a body.
    pub fn resume(&mut self, cx: &mut Context, id: FetchId, rest: Rest) {
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return };
        let line = cx.ids.fetch();
        let mut headers = pursuit.quest.headers.clone();
        http::make_ranged(&mut headers, rest.from, None, rest.validator);
        pursuit.resumed =
            Some(Resumed { line: Some(line), answered: false, end: None, asked: cx.now });
        let request = pursuit.origin_request(headers);
        self.lines.insert(line, id);
        cx.events.emit(|| Event::Resume { fetch: id, from: rest.from });
        cx.report.resumes += 1;
        cx.out.push_back(Output::Origin(OriginOutput::Fetch(line, Box::new(request))));
    }

    /// The answer to a request for a rest is of no use, or the origin says nothing more: it is not listened to.
    pub fn hang_up(&mut self, cx: &mut Context, id: FetchId) {
        let line = cx.pursuits.get(&id).and_then(|pursuit| pursuit.line(id));
        if let Some(line) = line {
            cx.out.push_back(Output::Origin(OriginOutput::Cancel(line)));
        }
    }
}

impl Pursuit {
    /// A head has come: whether it is that of the rest of a body.
    pub fn rest_answered(&mut self, now: Instant) -> bool {
        let Some(resumed) = self.resumed.as_mut().filter(|it| !it.answered) else { return false };
        (resumed.answered, resumed.asked) = (true, now);
        true
    }

    /// The rest of a body ends there.
    pub fn rest_ends(&mut self, end: u64) {
        if let Some(resumed) = &mut self.resumed {
            resumed.end = Some(end);
        }
    }

    /// How a request has really ended, when so much has come: not well if the rest of a body came short.
    pub fn ended(&self, received: u64, result: Result<(), FetchError>) -> Result<(), FetchError> {
        let end = self.resumed.as_ref().and_then(|resumed| resumed.end);
        if end.is_some_and(|end| end != received) { Err(FetchError::Truncated) } else { result }
    }

    /// Whether its origin can be asked for the rest of what broke off.
    pub fn may_resume(&self) -> bool {
        self.via == Upstream::Origin && !self.quest.ask.has_body
    }

    /// Since when nothing has been heard of a body whose connection may be dead; `None` if it need not be looked
    /// after.
    pub fn doubted_since(&self, cx: &Context) -> Option<Instant> {
        let changed = cx.mesh.as_ref().and_then(|mesh| mesh.routes.led_elsewhere);
        let asked = self.resumed.as_ref().map(|it| it.asked);
        let since = asked.map_or(self.moved, |asked| asked.max(self.moved));
        let is = asked.is_some() || changed.is_some_and(|at| at >= self.moved);
        (is && self.via == Upstream::Origin).then(|| since.max(changed.unwrap_or(since)))
    }

    /// Since then nothing has been heard of a body. `owes`: its origin was granted more than came.
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

    /// Whether its origin broke off, and is not asked for the rest at present.
    pub fn is_cut_off(&self) -> bool {
        self.resumed.as_ref().is_some_and(|resumed| resumed.line.is_none())
    }

    /// The number by which a driver knows the request to the origin, of a transfer with this number; after
    /// one that broke off, before the next, none.
    pub(super) fn line(&self, id: FetchId) -> Option<FetchId> {
        self.resumed.as_ref().map_or(Some(id), |resumed| resumed.line)
    }

    /// Whether its origin broke off, and the head of the rest has not come: nothing can be granted before.
    pub(super) fn awaits_rest(&self) -> bool {
        self.resumed.as_ref().is_some_and(|resumed| !resumed.answered)
    }
}
