//! Units of wanted objects that were overheard in neighbours' frames.

use super::{Objects, Value};
use crate::context::Context;
use crate::heard::{Heard, SEGMENTS_AT_ONCE};
use crate::input::Overheard;
use crate::pursuits::Pursuit;
use store::Provenance;

impl Objects {
    /// Gives overheard segments to the listener. The results of a few are applied before the next are read, so
    /// that the listener stops collecting units that are already held.
    pub fn handle_overheard(&mut self, cx: &mut Context, segments: &[Overheard]) {
        let aside = cx.in_flight.heard_cost();
        if let Some(ear) = &mut cx.ear {
            ear.set_aside(cx.now, aside);
        }
        for some in segments.chunks(SEGMENTS_AT_ONCE) {
            let Some(ear) = &mut cx.ear else { return };
            ear.handle_segments(cx.now, some);
            self.hand_on_heard(cx);
        }
        cx.take_back();
    }

    /// Applies everything that the listener has found.
    pub fn hand_on_heard(&mut self, cx: &mut Context) {
        while let Some(found) = cx.poll_heard() {
            self.hear(cx, found);
        }
    }

    fn hear(&mut self, cx: &mut Context, found: Heard) {
        match found {
            Heard::Append(group) => cx.append(None, group),
            Heard::Ready(id) => cx.turns.all_ready(cx.transfers.readers(id)),
            Heard::Want(id, want) => self.says(Value::Want(id, vec![want])),
            Heard::NotFromPeer { readers, bytes, mended } => {
                self.says(Value::NotFromPeer(readers, bytes, mended));
            }
            Heard::Unit(name, flight, bytes) => {
                let asked = cx.pursuits.get(&flight.fetch).and_then(Pursuit::giving);
                // If the peer has already begun to send the unit, it has written the rest too:
                // cancelling would save nothing.
                if let Some((ear, asked)) = cx.ear.as_mut().zip(asked)
                    && !flight.has_begun()
                {
                    ear.take_back(asked, name);
                }
                self.unit_is_here(cx, name, flight, bytes, Provenance::Overheard);
            }
        }
    }
}
