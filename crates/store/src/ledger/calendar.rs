//! Hours, days and months by number, in UTC.

/// The last second that is counted: the end of the year 9999. Later dates are a clock's mistake.
const LAST: u64 = 253_402_300_799;
/// Seconds of a day.
const DAY: u64 = 86_400;

/// A length of time by which sums are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Period {
    /// An hour.
    Hour,
    /// A day.
    Day,
    /// A calendar month.
    Month,
}

impl Period {
    /// Each of them, the shortest first.
    pub const ALL: [Self; 3] = [Self::Hour, Self::Day, Self::Month];

    /// How many are kept.
    pub const fn kept(self) -> usize {
        match self {
            Self::Hour => 48,
            Self::Day => 62,
            Self::Month => 120,
        }
    }

    /// The number of the one that contains a time, in seconds since 1970.
    pub fn number(self, unix: u64) -> u32 {
        let unix = unix.min(LAST);
        // None is above 2^32: the last hour is number 70,389,527.
        (match self {
            Self::Hour => unix / 3600,
            Self::Day => unix / DAY,
            Self::Month => month_of(unix / DAY),
        }) as u32
    }

    /// When it begins, in seconds since 1970.
    pub fn start(self, number: u32) -> u64 {
        let number = u64::from(number);
        match self {
            Self::Hour => number * 3600,
            Self::Day => number * DAY,
            Self::Month => day_of(number) * DAY,
        }
    }

    /// A name, for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Month => "month",
        }
    }
}

/// The month of a day: both count from January 1970. (H. Hinnant, "chrono-Compatible Low-Level Date Algorithms",
/// `civil_from_days`; eras are 400 years from 1 March of year 0.)
fn month_of(days: u64) -> u64 {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    // 0 is March.
    let month = (5 * of_year + 2) / 153;
    let (year, month) = match month {
        0..10 => (era * 400 + year, month + 2),
        _ => (era * 400 + year + 1, month - 10),
    };
    (year - 1970) * 12 + month
}

/// The first day of a month (`days_from_civil`).
fn day_of(month: u64) -> u64 {
    let (year, month) = (1970 + month / 12, month % 12);
    let (year, from_march) = if month < 2 { (year - 1, month + 10) } else { (year, month - 2) };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * from_march + 2) / 5;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_are_those_of_the_calendar() {
        // `date -ud @N +%Y-%m`, and `date -ud 2024-03-01 +%s`.
        for (unix, year, month, start) in [
            (0, 1970, 1, 0),
            (951_782_399, 2000, 2, 949_363_200),
            (951_868_799, 2000, 2, 949_363_200),
            (951_868_800, 2000, 3, 951_868_800),
            (1_709_251_199, 2024, 2, 1_706_745_600),
            (1_709_251_200, 2024, 3, 1_709_251_200),
            (1_795_000_000, 2026, 11, 1_793_491_200),
            (4_107_542_399, 2100, 2, 4_105_123_200),
        ] {
            let number = Period::Month.number(unix);
            assert_eq!(number, (year - 1970) * 12 + month - 1, "{unix}");
            assert_eq!(Period::Month.start(number), start, "{unix}");
        }
    }

    #[test]
    fn a_period_contains_the_time_that_has_its_number() {
        for period in Period::ALL {
            for unix in (0..4_200_000_000).step_by(1_234_567) {
                let number = period.number(unix);
                assert!(period.start(number) <= unix && unix < period.start(number + 1), "{unix}");
            }
        }
    }

    #[test]
    fn no_date_is_too_late() {
        for period in Period::ALL {
            assert_eq!(period.number(u64::MAX), period.number(LAST));
            assert!(period.start(u32::MAX) > LAST);
        }
    }
}
