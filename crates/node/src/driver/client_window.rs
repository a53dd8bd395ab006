//! The window of one response: how much of it may be in flight to the client, and when the engine gets more
//! credit.

/// The window that [`Admission::begin`](super::admission::Admission::begin) granted to a response, and
/// how much the client has read since the last credit. In bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientWindow {
    bytes: u64,
    owed: u64,
}

impl ClientWindow {
    /// A window of `bytes`, all of them given to the engine as its first credit.
    pub fn new(bytes: u64) -> Self {
        Self { bytes, owed: 0 }
    }

    /// The client has read this many more bytes of the response.
    pub fn took(&mut self, bytes: u64) {
        self.owed += bytes;
    }

    /// The credit to return to the engine for bytes that the client has read: half a window or more at
    /// a time, and all of it if no bytes wait for the client (`nothing_waits`).
    pub fn give_back(&mut self, nothing_waits: bool) -> Option<u64> {
        let is_due = self.owed > 0 && (nothing_waits || self.owed >= self.bytes / 2);
        is_due.then(|| std::mem::take(&mut self.owed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_comes_back_in_halves_and_when_nothing_waits() {
        let mut window = ClientWindow::new(100);
        assert_eq!(window.give_back(true), None);
        window.took(49);
        assert_eq!(window.give_back(false), None);
        window.took(1);
        assert_eq!((window.give_back(false), window.give_back(true)), (Some(50), None));
        window.took(1);
        assert_eq!(window.give_back(true), Some(1));
    }
}
