//! What neighbours' frames give for objects that come.

use super::{Objects, Value};
use crate::context::Context;
use crate::heard::{Heard, SEGMENTS_AT_ONCE};
use crate::input::Overheard;
use crate::pursuits::Pursuit;
use store::Provenance;

impl Objects {
    /// Segments were heard that are for others. What is found in a few is taken before the next are looked at:
    /// the listener collects no more of what is here.
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

    /// Takes all that the listener has found.
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
                // Of what has begun to come, the rest is written already.
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
