//! Telling the peer or origin that gives something what is wanted of it, and how much may come.

use super::{Source, Value};
use crate::context::Context;
use crate::input::FetchId;
use crate::output::{OriginOutput, Output};
use crate::pursuits::Upstream;
use crate::request::CREDIT;
use wire::NodeId;
use wire::peer::{Message, Want};

impl Source {
    /// Units of an object are wanted; if nobody listens now, the next one will be told.
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

    /// Wants once more what is on its way.
    pub fn want_again(&mut self, cx: &mut Context, id: FetchId) {
        let wants = cx.in_flight.wants_of(id);
        self.want(cx, id, &wants);
    }

    /// What a peer had on its way to us is lost with a connection, and wanted once more.
    pub fn want_again_of(&mut self, cx: &mut Context, peer: NodeId) {
        for id in cx.pursuits.those(|pursuit| pursuit.supplier() == Some(peer)) {
            self.want_again(cx, id);
        }
    }

    /// More of an object's manifest is welcome, up to there.
    pub fn extend_manifest_credit(&mut self, cx: &mut Context, id: FetchId, manifest_credit: u64) {
        let Some((mesh, pursuit)) = cx.mesh.as_mut().zip(cx.pursuits.get(&id)) else { return };
        for (peer, request) in pursuit.asked() {
            mesh.peers.send(cx.now, peer, &Message::Credit(request, 0, manifest_credit));
        }
    }

    /// The peer that is asked may send so many bytes more that are in no unit.
    pub fn credit(&mut self, cx: &mut Context, id: FetchId, bytes: u32) {
        if let Some(Upstream::Peer(peer, request)) = cx.pursuits.via(id) {
            cx.say(peer, Message::Credit(request, bytes, 0));
        }
    }

    /// This many more bytes may come; says how many of them are told now. `waits`: silence counts from now on.
    pub fn grant(&mut self, cx: &mut Context, id: FetchId, bytes: u64, waits: bool) {
        let told = self.tell_granted(cx, id, bytes, waits);
        if told > 0 {
            self.values.push_back(Value::Granted(id, told));
        }
    }

    fn tell_granted(&mut self, cx: &mut Context, id: FetchId, bytes: u64, waits: bool) -> u64 {
        let Some(pursuit) = cx.pursuits.get_mut(&id) else {
            // What is published comes by itself.
            cx.out.push_back(Output::Origin(OriginOutput::Grant(id, bytes)));
            return bytes;
        };
        if let Upstream::Peer(peer, request) = pursuit.via {
            // A message for each few bytes would cost more air than they do.
            pursuit.owed += bytes;
            if pursuit.owed < u64::from(CREDIT / 4) {
                return 0;
            }
            let owed = std::mem::take(&mut pursuit.owed);
            let credit = u32::try_from(owed).unwrap_or(u32::MAX);
            cx.say(peer, Message::Credit(request, credit, 0));
            return owed;
        }
        let Some(line) = pursuit.line(id).filter(|_| !pursuit.awaits_rest()) else { return 0 };
        if waits {
            pursuit.moved = cx.now;
        }
        cx.out.push_back(Output::Origin(OriginOutput::Grant(line, bytes)));
        bytes
    }
}
