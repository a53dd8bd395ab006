//! ns-3's guesses which segments have arrived.
//!
//! Without selective acknowledgements its sender takes each duplicate acknowledgement for the arrival of the
//! first segment after the missing one that it does not yet hold for arrived. What it holds for arrived is
//! not on its way, so as much more may be sent. If an acknowledgement asks for such a segment, the guess was
//! wrong: that one is taken for lost and sent again, and the guess moves to another. Only a timeout or an
//! acknowledgement beyond all of them ends the guesses, not the end of a recovery. So a segment that was only
//! late is sent twice, the second copy brings a duplicate, and that the next guess.

/// How many segments after the first unacknowledged one are held for arrived: they follow it and each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guesses(u32);

impl Guesses {
    /// A duplicate acknowledgement, while so many segments are unacknowledged.
    pub fn add(&mut self, unacknowledged: u32) {
        if self.0 + 1 < unacknowledged {
            self.0 += 1;
        }
    }

    /// So many more segments are acknowledged, after which so many are not. Whether the first of those was
    /// held for arrived.
    pub fn acknowledged(&mut self, count: u32, unacknowledged: u32) -> bool {
        let was_wrong = (1..=self.0).contains(&count) && unacknowledged > 0;
        self.0 = self.0.saturating_sub(count);
        if was_wrong {
            self.add(unacknowledged);
        }
        was_wrong
    }

    /// How many segments are held for arrived.
    pub fn count(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_guess_moves_to_another_segment() {
        let mut guesses = Guesses::default();
        (0..3).for_each(|_| guesses.add(10));
        // Held for arrived: the second, third and fourth of ten. The second is asked for.
        assert!(guesses.acknowledged(1, 9));
        assert_eq!(guesses.count(), 3);
        // Of two acknowledged at once one was rightly held for arrived.
        assert!(guesses.acknowledged(2, 7));
        assert_eq!(guesses.count(), 2);
        assert!(!guesses.acknowledged(3, 4), "it asks for one after all of them");
        assert_eq!(guesses.count(), 0);
    }

    #[test]
    fn there_are_no_more_guesses_than_segments_after_the_missing_one() {
        let mut guesses = Guesses::default();
        (0..9).for_each(|_| guesses.add(3));
        assert_eq!(guesses.count(), 2);
        assert!(guesses.acknowledged(1, 2));
        assert_eq!(guesses.count(), 1, "there is none left to which it could move");
        assert!(!guesses.acknowledged(2, 0));
        assert_eq!(guesses.count(), 0);
    }
}
