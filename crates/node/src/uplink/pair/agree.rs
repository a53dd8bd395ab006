//! How a connection begins: the two ends say what they hold, by which scheme content crosses, and make it agree.

use super::link::Stage;
use super::{Event, Owner, Pair};
use crate::uplink::messages::{Hello, Message, agreement};
use crate::uplink::receiver::Broken;
use crate::uplink::tcp::Reach;
use crate::uplink::wanax;
use crate::uplink::work::{Direction, Job};
use store::HistoryState;

impl Pair {
    /// The other end's hello has come.
    pub(super) fn greeted(&mut self, hello: Hello) -> Result<(), Broken> {
        let link = self.link.as_mut().ok_or(Broken)?;
        match &mut link.stage {
            Stage::Looking(theirs @ None) => *theirs = Some(hello),
            Stage::Greeting(own) => {
                let own = *own;
                self.agree(&own, &hello);
            }
            _ => return Err(Broken),
        }
        Ok(())
    }

    /// The worker has said what is held: ours is the next hello.
    pub(super) fn looked(&mut self, out: HistoryState, mut within: HistoryState) {
        let mut fresh = [0; 16];
        self.chance.fill(&mut fresh);
        self.within_first = within.first;
        if self.is_spoiled {
            within = HistoryState::default();
        }
        let reach = if self.is_far { self.reach } else { Reach::default() };
        let own = Hello { out, within, fresh, reach, scheme: self.scheme };
        let Some(link) = &mut self.link else { return };
        let before = std::mem::replace(&mut link.stage, Stage::Greeting(own));
        link.say_first(Message::Hello(own));
        if let Stage::Looking(Some(theirs)) = before {
            self.agree(&own, &theirs);
        }
    }

    /// Both hellos are there: makes the histories agree.
    fn agree(&mut self, own: &Hello, theirs: &Hello) {
        if !self.is_far {
            self.reach = theirs.reach;
        }
        let out = agreement(own.out, theirs.within);
        let within = agreement(theirs.out, own.within);
        let floor = own.out.first.max(theirs.within.first);
        let ends = [out, within];
        if self.is_far {
            self.scheme = theirs.scheme;
        }
        if let Some(scheme) = self.scheme {
            self.job(Owner::Pair, Job::Published(wanax::Job::Begin(scheme)));
        }
        if let Some(link) = &mut self.link {
            link.stage = Stage::Agreeing { ends, floor, left: 2 };
        }
        let jobs = [(Direction::Out, out, own.fresh), (Direction::In, within, theirs.fresh)];
        for (direction, end, fresh) in jobs {
            let fresh = end.is_none().then_some(fresh);
            self.job(Owner::Pair, Job::Agree { direction, end: end.unwrap_or(0), fresh });
        }
    }

    pub(super) fn agreed(&mut self) {
        let Some(link) = &mut self.link else { return };
        let Stage::Agreeing { ends: [out, within], floor, left } = &mut link.stage else { return };
        *left -= 1;
        if *left > 0 {
            return;
        }
        self.sender.begin(*out, *floor, self.scheme);
        self.receiver.begin(within.unwrap_or(0), self.scheme);
        link.stage = Stage::Up;
        self.is_spoiled = false;
        self.report.is_up = true;
        self.events.push_back(Event::Up);
    }
}
