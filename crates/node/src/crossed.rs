//! How content crossed the uplink: as references to what had crossed before, as differences from it, or in full.
//!
//! *Who calls it:* the uplink's near end tells it for each batch; `pursuits.rs` keeps it until the bytes are counted.

/// How content crossed the uplink that the far end sent, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crossed {
    /// As references to what had crossed before.
    pub reference: u64,
    /// As differences from what had crossed before.
    pub difference: u64,
}

impl Crossed {
    /// Both together.
    pub fn total(self) -> u64 {
        self.reference + self.difference
    }

    /// Takes what belongs to the next `bytes`.
    pub fn take(&mut self, bytes: u64) -> Self {
        let reference = self.reference.min(bytes);
        let difference = self.difference.min(bytes - reference);
        self.reference -= reference;
        self.difference -= difference;
        Self { reference, difference }
    }

    /// Adds more.
    pub fn add(&mut self, more: Self) {
        self.reference = self.reference.saturating_add(more.reference);
        self.difference = self.difference.saturating_add(more.difference);
    }
}

/// What the far end has said of a body, and what of that was not counted yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByFarEnd {
    fetched: Crossed,
    served: Crossed,
}

impl ByFarEnd {
    /// The next bytes of the body crossed like this.
    pub fn comes(&mut self, crossed: Crossed) {
        self.fetched.add(crossed);
        self.served.add(crossed);
    }

    /// How these bytes crossed, which have arrived.
    pub fn fetched(&mut self, bytes: u64) -> Crossed {
        self.fetched.take(bytes)
    }

    /// How these bytes crossed, which a client was given.
    pub fn served(&mut self, bytes: u64) -> Crossed {
        self.served.take(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_taken_once_from_each_side() {
        let mut far = ByFarEnd::default();
        far.comes(Crossed { reference: 10, difference: 5 });
        assert_eq!(far.fetched(12), Crossed { reference: 10, difference: 2 });
        assert_eq!(far.fetched(100), Crossed { reference: 0, difference: 3 });
        assert_eq!(far.fetched(100), Crossed::default());
        assert_eq!(far.served(100).total(), 15);
    }
}
