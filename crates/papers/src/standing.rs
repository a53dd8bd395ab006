//! What a row is evidence of.

/// Whether the row could have come out otherwise. Only a predicted row is evidence of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The model was fitted to this figure, or chosen after it was known. The text says what was.
    Set(&'static str),
    /// It cannot come out otherwise, or it follows from other rows. The text says why.
    Given(&'static str),
    /// Nothing was fitted to it or chosen by it.
    Predicted,
}

impl Standing {
    /// Its name in a table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Set(_) => "set",
            Self::Given(_) => "given",
            Self::Predicted => "predicted",
        }
    }

    /// What was set by it, or why it is given; empty for a predicted row.
    pub fn why(self) -> &'static str {
        match self {
            Self::Set(why) | Self::Given(why) => why,
            Self::Predicted => "",
        }
    }
}
