//! The date in a simulated world.

use wire::{Date, Instant};

/// The date at which a world begins: 2027-01-15 08:00.
pub const BEGIN: Date = Date::from_unix(1_800_000_000);

/// The date at a moment of the world's time.
pub(crate) fn date(now: Instant) -> Date {
    BEGIN.plus(now.since(Instant::ZERO).as_secs())
}
