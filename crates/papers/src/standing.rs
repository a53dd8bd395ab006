//! What a row that is held against a reference is evidence of.

/// Whether the row could have come out otherwise. Only what was predicted is evidence of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The model was set by this figure, or chosen after it had been looked at. The text says what was.
    Set(&'static str),
    /// It cannot come out otherwise, or it follows from other rows. The text says why.
    Given(&'static str),
    /// Nothing was set or chosen by it.
    Predicted,
}

impl Standing {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Set(_) => "set",
            Self::Given(_) => "given",
            Self::Predicted => "predicted",
        }
    }

    /// By what it was set, or why it is given; empty of what was predicted.
    pub fn why(self) -> &'static str {
        match self {
            Self::Set(why) | Self::Given(why) => why,
            Self::Predicted => "",
        }
    }
}
