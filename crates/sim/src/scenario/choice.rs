//! Keys whose values are words.

use radio::Rate;

/// A value that is one of a few words.
pub trait Choice: Copy + PartialEq + 'static {
    /// All values, with their words.
    const ALL: &'static [(Self, &'static str)];

    /// As it is written.
    fn word(self) -> &'static str {
        let known = Self::ALL.iter().find(|(value, _)| *value == self);
        known.map_or("", |(_, word)| word)
    }
}

/// A field that holds a [`Choice`].
pub trait Word {
    /// What may be written.
    fn words(&self) -> Vec<&'static str>;
    /// What is there.
    fn word(&self) -> &'static str;
    /// Takes another value.
    fn take(&mut self, word: &str) -> Option<()>;
}

impl<T: Choice> Word for T {
    fn words(&self) -> Vec<&'static str> {
        T::ALL.iter().map(|(_, word)| *word).collect()
    }

    fn word(&self) -> &'static str {
        Choice::word(*self)
    }

    fn take(&mut self, word: &str) -> Option<()> {
        *self = T::ALL.iter().find(|(_, it)| *it == word)?.0;
        Some(())
    }
}

/// In Mbit/s.
pub fn mbps(rate: Rate) -> f64 {
    rate.bits_per_second() as f64 / 1e6
}

/// All rates there are, for whoever wrote another.
pub fn rates() -> String {
    let rates: Vec<_> = Rate::ALL.iter().map(|rate| mbps(*rate).to_string()).collect();
    let (last, others) = rates.split_last().expect("there are rates");
    format!("{} or {last}", others.join(", "))
}
