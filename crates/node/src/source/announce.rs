//! Tells the upstream which units are wanted, and how many bytes it may send.

use super::{Source, Value};
use crate::context::Context;
use crate::input::FetchId;
use crate::output::{OriginOutput, Output};
use crate::pursuits::Upstream;
use crate::request::CREDIT;
use wire::NodeId;
use wire::peer::{Message, Want};

impl Source {
    /// Requests units of an object. If no upstream is known now, the next one will be told.
    pub fn want(&mut self, cx: &mut Context, id: FetchId, wants: &[Want]) {
        let Some(pursuit) = cx.pursuits.get(&id) else { return };
        let Some((peer, request)) = pursuit.giving().filter(|_| pursuit.answered) else { return };
        let Some(mesh) = &mut cx.mesh else { return };
        if !wants.is_empty() {
            mesh.peers.open_data(cx.now, peer);
        }
        for wants in wants.chunks(Message::WANTS_MAX) {
            cx.report.wants_out += wants.len() as u64;
            mesh.peers.send(cx.now, peer, &Message::Want(request, wants.to_vec()));
        }
    }

    /// Requests all units in flight again.
    pub fn want_again(&mut self, cx: &mut Context, id: FetchId) {
        let wants = cx.in_flight.wants_of(id);
        self.want(cx, id, &wants);
    }

    /// A data connection was lost with the units on it: requests them again from that peer.
    pub fn want_again_of(&mut self, cx: &mut Context, peer: NodeId) {
        for id in cx.pursuits.those(|pursuit| pursuit.supplier() == Some(peer)) {
            self.want_again(cx, id);
        }
    }

    /// Accepts an object's manifest up to this offset in bytes.
    pub fn extend_manifest_credit(&mut self, cx: &mut Context, id: FetchId, manifest_credit: u64) {
        let Some((mesh, pursuit)) = cx.mesh.as_mut().zip(cx.pursuits.get(&id)) else { return };
        for (peer, request) in pursuit.asked() {
            mesh.peers.send(cx.now, peer, &Message::Credit(request, 0, manifest_credit));
        }
    }

    /// Lets the peer send this many more loose bytes, which are in no unit.
    pub fn credit(&mut self, cx: &mut Context, id: FetchId, bytes: u32) {
        if let Some(Upstream::Peer(peer, request)) = cx.pursuits.via(id) {
            cx.say(peer, Message::Credit(request, bytes, 0));
        }
    }

    /// Grants this many more bytes, and reports how many of them were announced now. `waits`:
    /// silence counts from now on.
    pub fn grant(&mut self, cx: &mut Context, id: FetchId, bytes: u64, waits: bool) {
        let told = self.tell_granted(cx, id, bytes, waits);
        if told > 0 {
            self.values.push_back(Value::Granted(id, told));
        }
    }

    fn tell_granted(&mut self, cx: &mut Context, id: FetchId, bytes: u64, waits: bool) -> u64 {
        let Some(pursuit) = cx.pursuits.get_mut(&id) else {
            // A published file has no upstream.
            cx.out.push_back(Output::Origin(OriginOutput::Grant(id, bytes)));
            return bytes;
        };
        if let Upstream::Peer(peer, request) = pursuit.via {
            // A message for a few bytes would cost more air than the bytes themselves.
            pursuit.owed += bytes;
            if pursuit.owed < u64::from(CREDIT / 4) {
                return 0;
            }
            let owed = std::mem::take(&mut pursuit.owed);
            let credit = u32::try_from(owed).unwrap_or(u32::MAX);
            cx.say(peer, Message::Credit(request, credit, 0));
            return owed;
        }
        let Some(fetch) = pursuit.fetch(id).filter(|_| !pursuit.awaits_rest()) else { return 0 };
        if waits {
            pursuit.moved = cx.now;
        }
        cx.out.push_back(Output::Origin(OriginOutput::Grant(fetch, bytes)));
        bytes
    }
}
