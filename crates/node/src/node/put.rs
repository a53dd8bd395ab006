//! What publishing wants: a file comes in like an origin's body.

use super::Node;
use crate::http::Audience;
use crate::input::{Entrance, FetchId};
use crate::named;
use crate::object::cutting::Cutting;
use crate::object::fetch::{self, Fetch};
use crate::object::storing::{Inflow, Storing};
use crate::output::Dial;
use crate::publish::Value;
use crate::request::{Ask, Asker, Trail};
use ::http::{HeaderMap, Method, StatusCode};
use std::net::Ipv4Addr;
use std::rc::Rc;
use wire::Oid;

impl Node {
    /// Does what publishing wants of transfers.
    pub(super) fn publishing_wants(&mut self, value: Value) {
        match value {
            Value::Begin(id, bytes) => self.begin_file(id, bytes),
            Value::End(id) => self.cx.turns.end(id),
        }
    }

    fn begin_file(&mut self, id: FetchId, bytes: u64) {
        let cutting = Cutting::new(self.cx.config.profile, self.cx.sealer.clone());
        let inflow = Inflow::Cut(Box::new(cutting));
        let date = self.cx.date();
        let came = (date, self.cx.clock_right());
        let record = self.cx.dice.record_id();
        let mut storing = Storing::new(record, StatusCode::OK, HeaderMap::new(), came, inflow);
        storing.announced = Some(bytes);
        storing.voucher = Some(named::VOUCHER);
        let fetch = Fetch {
            state: fetch::State::Storing(Box::new(storing)),
            ..Fetch::new(Rc::new(nobodys()), date, "put", Vec::new())
        };
        self.object.fetches.insert(id, fetch);
        self.cx.turns.dirty(id);
    }
}

/// What a transfer is made of that nobody has asked for.
fn nobodys() -> Ask {
    let target = named::target(&Oid([0; 32])).with_path("/");
    Ask {
        asker: Asker::Client,
        trail: Trail::default(),
        method: Method::PUT,
        key: target.key(&[0; 32], Audience::ThisMachine),
        dial: Dial::Name(target.host().to_owned(), target.port()),
        target,
        named: None,
        headers: HeaderMap::new(),
        client: Ipv4Addr::LOCALHOST.into(),
        audience: Audience::ThisMachine,
        may_turn_home: false,
        entrance: Entrance::Explicit,
        has_body: true,
        upgrade: false,
        alone: true,
        cookies: HeaderMap::new(),
        verified: false,
    }
}
