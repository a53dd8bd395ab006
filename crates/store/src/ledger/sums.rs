//! Counts by slot.

/// A name and a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(u32);

impl Slot {
    /// The slot of a name's column.
    pub fn new(name: u16, column: u8) -> Self {
        Self(u32::from(name) << 8 | u32::from(column))
    }

    /// The name's number.
    pub fn name(self) -> usize {
        (self.0 >> 8) as usize
    }

    /// The column.
    pub fn column(self) -> u8 {
        self.0 as u8
    }
}

/// Counts above zero, in the order of their slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums(Vec<(Slot, u64)>);

impl Sums {
    /// Adds to a slot. A sum that would be too large stays at the largest number.
    pub fn add(&mut self, slot: Slot, count: u64) {
        match self.0.binary_search_by_key(&slot, |(slot, _)| *slot) {
            Ok(at) => self.0[at].1 = self.0[at].1.saturating_add(count),
            Err(at) if count > 0 => self.0.insert(at, (slot, count)),
            Err(_) => {}
        }
    }

    /// Adds all counts of another.
    pub fn add_all(&mut self, other: &Self) {
        other.0.iter().for_each(|(slot, count)| self.add(*slot, *count));
    }

    /// The counts.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &(Slot, u64)> {
        self.0.iter()
    }
}
