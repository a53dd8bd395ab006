//! How much of an answer is on its way to a client, and when there is credit for more.

/// What may be on its way to one client, as [`Admission::begin`](super::admission::Admission::begin) says,
/// and what the client has taken of it. In bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientWindow {
    bytes: u64,
    owed: u64,
}

impl ClientWindow {
    /// Of so many bytes, which are the first credit.
    pub fn new(bytes: u64) -> Self {
        Self { bytes, owed: 0 }
    }

    /// The client took some of the answer.
    pub fn took(&mut self, bytes: u64) {
        self.owed += bytes;
    }

    /// The credit to give for what was taken: in larger portions, but all of it once nothing waits to be taken.
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
