//! What was heard of others' transfers comes in here, and what the listener found of it is handed on.

use super::Node;
use crate::input::Overheard;
use crate::overhear::{AHEAD, Value};
use crate::source::Pursuit;
use store::Provenance;

impl Node {
    /// Segments were heard that are for others. What is found in a few is handed on before the next are looked
    /// at: the listener collects no more of what is here.
    pub(super) fn overheard(&mut self, segments: &[Overheard]) {
        let aside = self.cx.flights.heard_cost();
        if let Some(ear) = &mut self.cx.ear {
            ear.set_aside(self.cx.now, aside);
        }
        for some in segments.chunks(AHEAD) {
            let Some(ear) = &mut self.cx.ear else { return };
            ear.handle_segments(self.cx.now, some);
            self.hand_on_heard();
        }
        self.cx.take_back();
    }

    /// Hands on all that the listener has found.
    pub(super) fn hand_on_heard(&mut self) {
        while let Some(value) = self.cx.poll_heard() {
            self.heard(value);
        }
    }

    fn heard(&mut self, value: Value) {
        match value {
            Value::Append(group) => self.cx.append(None, group),
            Value::Ready(id) => self.object.readers_ready(&mut self.cx, id),
            Value::Want(id, want) => self.source.want(&mut self.cx, id, &[want]),
            Value::NotFromPeer { readers, bytes, mended } => {
                for reader in readers {
                    self.client.with_serving(reader, |serving| {
                        serving.from_peer = serving.from_peer.saturating_sub(bytes);
                        serving.from_repair += mended;
                    });
                }
            }
            Value::Unit(name, flight, bytes) => {
                let asked = self.source.get(flight.fetch).and_then(Pursuit::giving);
                // Of what has begun to come, the rest is written already.
                if let Some((ear, asked)) = self.cx.ear.as_mut().zip(asked)
                    && !flight.has_begun()
                {
                    ear.take_back(asked, name);
                }
                self.unit_is_here(name, flight, bytes, Provenance::Overheard);
            }
        }
    }
}
