//! Heads from peers: of records, whose signature is checked, and of responses that are only passed
//! on.

use super::{Client, Value};
use crate::client::miss::{Miss, Stage};
use crate::context::Context;
use crate::events::{Event, Judgement, Stale};
use crate::exchanges::exchange::Exchange;
use crate::http::{NotStored, Record, RecordSignature, headers};
use crate::identity::verify;
use crate::input::FetchId;
use crate::misbehaviour::Misbehaviour;
use crate::pursuits::Goal;
use crate::request::CREDIT;
use crate::{http, named};
use ::http::{HeaderName, StatusCode, header};
use bytes::Bytes;
use std::rc::Rc;
use wire::peer::{Head, Opaque, Request, Selecting};
use wire::{NodeId, Oid};

impl Client {
    /// A peer answers with the head of a record.
    pub fn record_head(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        (peer, request): (NodeId, Request),
        head: Head,
    ) {
        let Some((mesh, pursuit)) = cx.mesh.as_ref().zip(cx.pursuits.get(&id)) else {
            return;
        };
        let ask = &pursuit.quest.ask;
        // What is passed on was requested as a response that is not stored.
        if pursuit.quest.goal == Goal::Pass {
            return cx.expel(peer, Misbehaviour::SecondHead);
        }
        if let Some(name) = ask.named {
            return self.named_head(cx, id, (peer, request), &name, &head);
        }
        let believed = match pursuit.towards {
            // Its age is not signed, but its date is, which a wrong clock cannot tell.
            Some(_) => cx.clock_right() && mesh.believes_off_the_way(&head.signer),
            None => mesh.believes(&head.signer),
        };
        if !believed {
            // The peer may be honest: without a gateway it dials origins itself, and signs what it
            // gets.
            self.values.push_back(Value::Accept(id, (peer, request)));
            return self.values.push_back(Value::Disregard(id));
        }
        if !verify(&head.signer, &head.signed(&ask.key), &head.signature) {
            return cx.expel(peer, Misbehaviour::RecordSignature);
        }
        self.values.push_back(Value::Accept(id, (peer, request)));
        match cx.transfers.get(&id) {
            Some(incoming) if incoming.record == head.record => {
                self.values.push_back(Value::GoesOn(id))
            }
            // Two versions must not be spliced.
            Some(_) => self.values.push_back(Value::Broken(id)),
            None => self.record_for(cx, id, peer, &head),
        }
    }

    fn record_for(&mut self, cx: &mut Context, id: FetchId, peer: NodeId, head: &Head) {
        // No honest node makes a record with a head like these.
        let Some(headers) = headers(&head.fields).filter(http::is_end_to_end) else {
            return cx.expel(peer, Misbehaviour::Fields);
        };
        let Ok(status) = StatusCode::from_u16(head.status) else {
            return cx.expel(peer, Misbehaviour::Status);
        };
        if matches!(head.status, 100..200 | 206 | 304) {
            return cx.expel(peer, Misbehaviour::NoRecord);
        }
        let asking = |miss: &&mut Miss| matches!(miss.stage, Stage::Asking);
        let Some(fetch) = self.misses.get_mut(&id).filter(asking) else {
            return cx.events.stale(Stale::PeerAnswer);
        };
        // What the peer says of its own sources is passed on in our `Cache-Status`.
        fetch.status_line.clone_from(&head.status_line);
        let verdict = if head.confirmed { Judgement::Confirms } else { Judgement::Object };
        cx.events.emit(|| Event::Head { fetch: id, status: head.status, verdict });
        // A head begins an object; only a confirmed one renews the stored record.
        if !head.confirmed {
            let others = self.misses.follow(cx, id, head, status, headers, &mut self.values);
            return self.ask_alone(cx, &others);
        }
        // Else a peer could renew another version by the name of the stored one.
        let same = |old: &Rc<Record>| {
            old.id == head.record
                && old.status == status
                && old.selecting == selecting(&head.selecting)
        };
        let old = fetch.old.clone().filter(|old| fetch.confirms && same(old));
        // A peer can confirm only the record that our request named.
        let Some(old) = old else { return cx.expel(peer, Misbehaviour::Confirmation) };
        let requested = fetch.requested;
        // The peer says how old its confirmation is: `carried` is added to our own age.
        let fresh = Record {
            headers,
            requested,
            received: cx.date(),
            clocked: cx.clock_right(),
            invalid: false,
            carried: u64::from(head.age),
            record_signature: Some(RecordSignature {
                signer: head.signer,
                signature: head.signature,
            }),
            ..Record::clone(&old)
        };
        let waiters = self.misses.retire(id);
        let Some(fetch) = self.misses.end(id, &mut self.values) else { return };
        self.serve_confirmed(cx, &fetch, fresh, &waiters, true);
    }

    /// A peer answers for a named object. Every hop checks the name, so a peer whose answer the
    /// name does not certify has lied, and is expelled.
    pub fn named_head(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        (peer, request): (NodeId, Request),
        name: &Oid,
        head: &Head,
    ) {
        // The root in the head must hash to the name that was asked for.
        let root = head.fields.iter().find(|(field, _)| field == named::ROOT);
        let root = root.and_then(|(_, text)| named::root_of(name, text));
        let is_plain = head.record == named::record_id(name) && !head.confirmed;
        let Some(root) = root.filter(|_| is_plain && head.status == 200) else {
            return cx.expel(peer, Misbehaviour::OtherObject);
        };
        self.values.push_back(Value::Accept(id, (peer, request)));
        match cx.transfers.contains_key(&id) {
            true => self.values.push_back(Value::GoesOn(id)),
            false if !self.misses.is_asking(id) => cx.events.stale(Stale::PeerAnswer),
            false => {
                let verdict = Judgement::Object;
                cx.events.emit(|| Event::Head { fetch: id, status: head.status, verdict });
                let values = &mut self.values;
                self.misses.follow_named(cx, id, name, root, head, values);
            }
        }
    }

    /// A peer answers with a response that is not stored.
    pub fn opaque_head(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        (peer, request): (NodeId, Request),
        opaque: Opaque,
    ) {
        let (headers, status) = (headers(&opaque.fields), StatusCode::from_u16(opaque.status));
        let (Some(mut headers), Ok(status)) = (headers, status) else {
            return cx.expel(peer, Misbehaviour::Head);
        };
        // A second head for one request would replace what clients have begun to read.
        let has_head = |id| cx.exchanges.get(&id).is_some_and(|it: &Exchange| it.passes());
        let asking = |miss: &&Miss| match &miss.stage {
            Stage::Asking => true,
            Stage::Passing(pass) => !has_head(pass.client),
            Stage::Object => false,
        };
        let Some(miss) = self.misses.get(&id).filter(asking) else {
            return cx.expel(peer, Misbehaviour::SecondHead);
        };
        // Nothing certifies a response that is not stored, so it cannot be a published object.
        if miss.ask.named.is_some() {
            return cx.expel(peer, Misbehaviour::UncertifiedAnswer);
        }
        // Off the way only what is signed is believed (decision 0033).
        if cx.pursuits.get(&id).is_some_and(|pursuit| pursuit.towards.is_some()) {
            self.values.push_back(Value::Accept(id, (peer, request)));
            return self.values.push_back(Value::Disregard(id));
        }
        // Unsigned content counts only from a configured gateway (decision 0023).
        if !cx.takes_unsigned(id, peer) {
            return self.values.push_back(Value::TurnToGateway(id, (peer, request)));
        }
        self.values.push_back(Value::Accept(id, (peer, request)));
        // From now on no other source can help.
        cx.pursuits.is_answering(id);
        let Some(fetch) = self.misses.get_mut(&id) else { return };
        let confirms = status == StatusCode::NOT_MODIFIED && fetch.confirms;
        if confirms && cx.mesh.as_ref().is_some_and(|mesh| !mesh.config.gateways.is_empty()) {
            // No trusted signer has confirmed the record: the whole response is requested again.
            let waiters = self.misses.retire(id);
            self.misses.end(id, &mut self.values);
            return self.ask_alone(cx, &waiters);
        }
        // The length is a part of the message; a field that contradicts it must not reach a client.
        headers.remove(header::CONTENT_LENGTH);
        if let Some(length) = opaque.length {
            headers.insert(header::CONTENT_LENGTH, length.into());
        }
        fetch.unstorable = Some(NotStored::Relayed);
        // The request has granted this much already.
        fetch.granted = u64::from(CREDIT);
        if let Some(pass) = fetch.pass() {
            pass.granted = u64::from(CREDIT);
        }
        fetch.status_line = opaque.status_line;
        if status != StatusCode::SWITCHING_PROTOCOLS {
            http::strip_hop_by_hop(&mut headers);
        }
        self.head(cx, id, status, headers);
    }

    /// Content of a response that is not stored, from a peer.
    pub fn opaque_bytes(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        peer: NodeId,
        offset: u64,
        bytes: Bytes,
    ) {
        let Some(pass) = self.misses.get_mut(&id).and_then(Miss::pass) else {
            return cx.events.stale(Stale::PeerAnswer);
        };
        let beyond = pass.received + bytes.len() as u64 > pass.granted;
        match offset == pass.received && !beyond {
            true => {
                cx.pursuits.came(id, cx.now);
                if let Some(pursuit) = cx.pursuits.get(&id) {
                    cx.account.fetched_from_peer(&pursuit.quest.ask, bytes.len() as u64);
                }
                self.handle_body(cx, id, bytes);
            }
            false => cx.expel(peer, Misbehaviour::Credit),
        }
    }
}

pub(super) fn selecting(fields: &[Selecting]) -> Vec<(HeaderName, Option<Vec<u8>>)> {
    let name = |name: &str| HeaderName::from_bytes(name.as_bytes()).ok();
    fields.iter().filter_map(|(n, value)| Some((name(n)?, value.clone()))).collect()
}
