//! A client's connection on which the client authenticates the connection itself: from then on its requests go to origins
//! by connections of their own, which end with it.

use crate::driver::Driver;
use http::HeaderMap;
use node::{Binding, binds};
use std::cell::Cell;

/// Whether a client's connection is one of these.
pub struct Bound {
    driver: Driver,
    number: Cell<Option<Binding>>,
}

impl Bound {
    /// A connection on which nothing was said.
    pub fn new(driver: &Driver) -> Self {
        Self { driver: driver.clone(), number: Cell::new(None) }
    }

    /// A request with this header has come. Returns the connection's number, if the client authenticates by it.
    pub fn see(&self, headers: &HeaderMap) -> Option<Binding> {
        if self.number.get().is_none() && binds(headers) {
            self.number.set(Some(self.driver.bind()));
        }
        self.number.get()
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if let Some(number) = self.number.get() {
            self.driver.pool().release(number);
        }
    }
}
