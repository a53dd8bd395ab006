//! Numbers for operations of the driver.

use crate::input::{FetchId, Ticket};

/// Draws numbers, each only once.
#[derive(Debug, Default)]
pub struct Ids(u64);

impl Ids {
    pub fn draw(&mut self) -> Ticket {
        self.0 += 1;
        Ticket(self.0)
    }

    pub fn fetch(&mut self) -> FetchId {
        self.0 += 1;
        FetchId(self.0)
    }
}
