//! What an operator removes.

use super::misses::Misses;
use crate::context::Context;
use crate::input::FetchId;
use crate::stock::name_of;
use crate::transfers::incoming::Incoming;
use std::collections::BTreeSet;
use wire::ObjectKey;

impl Misses {
    /// Removes what is stored under these keys, except what is published here. Who reads it gets all of it. Returns the
    /// transfers of it, which are not to be stored any more.
    pub fn purge(&mut self, cx: &mut Context, keys: Vec<ObjectKey>) -> Vec<FetchId> {
        let mut keys = BTreeSet::from_iter(keys);
        for object in cx.published.objects.values() {
            keys.remove(&object.key);
        }
        self.joinable.retain(|key, _| !keys.contains(key));
        let is_of_them = |incoming: &Incoming| {
            incoming.label.as_ref().is_some_and(|label| keys.contains(&label.key))
        };
        let of_them = cx.transfers.iter().filter(|(_, incoming)| is_of_them(incoming));
        let mut of_them: Vec<FetchId> = of_them.map(|(id, _)| *id).collect();
        // A table has no order of its own.
        of_them.sort_unstable();
        for key in keys {
            if let Some(mesh) = &mut cx.mesh {
                mesh.stock.remove(&name_of(&key));
            }
            if let Some(part) = cx.parts.take(&key) {
                cx.parts.reject(&part);
            }
            cx.remove_row(key);
        }
        of_them
    }
}
