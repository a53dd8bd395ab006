//! ns-3's guesses which segments have arrived.
//!
//! Without selective acknowledgements, ns-3's sender takes each duplicate acknowledgement as the arrival of
//! one more segment: the first one after the missing segment that it does not yet assume to have arrived.
//! Segments assumed to have arrived do not count as in flight, so the sender may send more.
//!
//! If an acknowledgement asks for such a segment, the guess was wrong. The segment counts as lost and is sent
//! again, and the guess moves to another segment. The end of a recovery does not end the guesses; only a
//! timeout or an acknowledgement beyond all of them does. A segment that was merely late is therefore sent
//! twice. Its second copy causes another duplicate, and so the next guess.

/// How many segments are assumed to have arrived; they directly follow the first unacknowledged one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guesses(u32);

impl Guesses {
    /// Takes a duplicate acknowledgement while `unacknowledged` segments are unacknowledged.
    pub fn add(&mut self, unacknowledged: u32) {
        if self.0 + 1 < unacknowledged {
            self.0 += 1;
        }
    }

    /// `count` more segments are acknowledged, and `unacknowledged` remain. Returns whether the first of
    /// those was wrongly assumed to have arrived.
    pub fn acknowledged(&mut self, count: u32, unacknowledged: u32) -> bool {
        let was_wrong = (1..=self.0).contains(&count) && unacknowledged > 0;
        self.0 = self.0.saturating_sub(count);
        if was_wrong {
            self.add(unacknowledged);
        }
        was_wrong
    }

    /// How many segments are assumed to have arrived.
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
        // The second, third and fourth of ten are assumed to have arrived. The peer asks for the second.
        assert!(guesses.acknowledged(1, 9));
        assert_eq!(guesses.count(), 3);
        // Of two segments acknowledged at once, one was rightly assumed to have arrived.
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
