//! Flows that wait: for units that have not come, and for readers while what they name is about to be removed.

use super::{Receiver, WAITING_MAX};
use std::collections::BTreeSet;

impl Receiver {
    /// Goes on with the flows whose first batch lacked a unit that has come.
    pub(super) fn wake(&mut self) {
        if self.lacking.is_empty() {
            return;
        }
        let mut lack = std::mem::take(&mut self.lacking);
        let mut came = lack.split_off(&(self.known, 0));
        std::mem::swap(&mut lack, &mut came);
        for position in self.early.iter().copied() {
            while let Some(entry) = lack.range((position, 0)..=(position, u64::MAX)).next().copied()
            {
                lack.remove(&entry);
                came.insert(entry);
            }
        }
        self.lacking = lack;
        let ids: BTreeSet<_> = came.into_iter().map(|(_, id)| id).collect();
        ids.into_iter().for_each(|id| self.advance(id));
    }

    /// Reads what names positions that are about to be removed, without waiting for credit.
    pub(super) fn hurry(&mut self) {
        while let Some((lowest, id)) = self.naming.first().copied()
            && lowest < self.lasting
        {
            self.naming.pop_first();
            if let Some(flow) = self.flows.get_mut(&id) {
                (flow.is_hurried, flow.lowest) = (true, u64::MAX);
                self.advance(id);
            }
        }
        self.spare_memory();
    }

    /// Breaks off a flow that is not read, if what waits takes too much memory.
    pub(super) fn spare_memory(&mut self) {
        while self.waits > WAITING_MAX
            && let Some((id, _)) = self.flows.iter().max_by_key(|(_, flow)| flow.uncut + flow.early)
        {
            self.break_off(*id);
        }
    }
}
