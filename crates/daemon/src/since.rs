//! Since when `hearsay ledger --since` counts: a span of time, a day in words, or a date. All are in UTC, as the ledger's
//! periods are.

use std::str::FromStr;

use store::ledger::Period;
use toml::value::{Date, Datetime, Offset, Time};

use crate::config::Span;

/// Since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// This many seconds before now.
    Ago(u64),
    /// The beginning of the day this many days before today.
    Days(u64),
    /// This time, in seconds since 1970.
    At(u64),
}

/// The error for a text that is none of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SinceError {
    /// It is none of them.
    #[error(
        "not a time: expected something like 24h, 30d, today, yesterday, 2026-11-01 or 2026-11-01T14:00"
    )]
    Unknown,
    /// It is no time at all.
    #[error("no time at all: give something like 30d")]
    Empty,
}

impl FromStr for Since {
    type Err = SinceError;

    fn from_str(text: &str) -> Result<Self, SinceError> {
        let text = text.trim();
        match text {
            "today" => return Ok(Self::Days(0)),
            "yesterday" => return Ok(Self::Days(1)),
            _ => {}
        }
        match text.parse::<Span>().map(|span| span.0.as_secs()) {
            Ok(0) => Err(SinceError::Empty),
            Ok(seconds) => Ok(Self::Ago(seconds)),
            Err(_) => text.parse().ok().and_then(unix).map(Self::At).ok_or(SinceError::Unknown),
        }
    }
}

impl Since {
    /// How long ago that is, in seconds, such that the ledger's first period is the one that contains it; `None`: it is
    /// in the future.
    pub fn seconds_before(self, now: u64) -> Option<u64> {
        let day = |back| Period::Day.start(Period::Day.number(now).saturating_sub(back));
        let at = match self {
            Self::Ago(seconds) => return Some(seconds),
            Self::Days(back) => day(u32::try_from(back).unwrap_or(u32::MAX)),
            Self::At(at) => at,
        };
        if at > now {
            return None;
        }
        let since_start = |period: Period| now - period.start(period.number(at));
        for period in [Period::Hour, Period::Day] {
            let periods = period.number(now) - period.number(at) + 1;
            if periods as usize <= period.kept() {
                // The period of now counts too, also in its first second.
                return Some(since_start(period) + 1);
            }
        }
        Some(since_start(Period::Day))
    }
}

/// A date, with or without a time, in seconds since 1970. Without an offset it is in UTC.
fn unix(date: Datetime) -> Option<u64> {
    let Date { year, month, day } = date.date?;
    let months = (u32::from(year).checked_sub(1970)? * 12).checked_add(u32::from(month) - 1)?;
    let midnight = Period::Month.start(months) + (u64::from(day) - 1) * 86_400;
    let of_day = |Time { hour, minute, second, .. }| {
        u64::from(hour) * 3600 + u64::from(minute) * 60 + u64::from(second.unwrap_or(0))
    };
    let offset = match date.offset {
        Some(Offset::Custom { minutes }) => i64::from(minutes) * 60,
        Some(Offset::Z) | None => 0,
    };
    (midnight + date.time.map_or(0, of_day)).checked_add_signed(-offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::ledger::{Amount, Ledger, Topic};

    /// 29 November 2026, 10:05:00 UTC.
    const NOW: u64 = 1_795_946_700;
    /// The midnight before.
    const MIDNIGHT: u64 = NOW - 10 * 3600 - 300;

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, expected) in [
            ("24h", Ok(Since::Ago(86_400))),
            ("30d", Ok(Since::Ago(30 * 86_400))),
            ("today", Ok(Since::Days(0))),
            (" yesterday ", Ok(Since::Days(1))),
            ("2026-11-29", Ok(Since::At(MIDNIGHT))),
            ("2026-11-29T10:05:00", Ok(Since::At(NOW))),
            ("2026-11-29 10:05", Ok(Since::At(NOW))),
            ("2026-11-29T10:05", Ok(Since::At(NOW))),
            ("2026-11-29T10:05:00Z", Ok(Since::At(NOW))),
            ("2026-11-29T12:05+02:00", Ok(Since::At(NOW))),
            ("0s", Err(SinceError::Empty)),
            ("2026-11", Err(SinceError::Unknown)),
            ("2026-02-30", Err(SinceError::Unknown)),
            ("1969-12-31", Err(SinceError::Unknown)),
            ("10:05", Err(SinceError::Unknown)),
            ("tomorrow", Err(SinceError::Unknown)),
            ("", Err(SinceError::Unknown)),
        ] {
            assert_eq!(text.parse::<Since>(), expected, "{text}");
        }
    }

    #[test]
    fn the_first_period_is_the_one_that_contains_the_time() {
        let mut ledger = Ledger::default();
        ledger.add(
            Some(NOW),
            &[Amount { topic: Topic::Class, name: "a".into(), column: 0, count: 1 }],
        );
        let from = |text: &str, now: u64| {
            let since: Since = text.parse().expect("a time");
            let seconds = since.seconds_before(now)?;
            let extract = ledger.extract(Some(seconds), now);
            Some((extract.period, extract.from))
        };
        let day = 86_400;
        for (text, period, start) in [
            ("today", Period::Hour, MIDNIGHT),
            ("yesterday", Period::Hour, MIDNIGHT - day),
            ("2026-11-29T08:30", Period::Hour, MIDNIGHT + 8 * 3600),
            ("2026-11-29T10:05", Period::Hour, MIDNIGHT + 10 * 3600),
            ("2026-11-01", Period::Day, MIDNIGHT - 28 * day),
            ("2026-11-01T14:00", Period::Day, MIDNIGHT - 28 * day),
            ("2026-01-15", Period::Month, MIDNIGHT - 332 * day),
            ("2026-01-01", Period::Month, MIDNIGHT - 332 * day),
        ] {
            assert_eq!(from(text, NOW), Some((period, start)), "{text}");
        }
        // In the first second of an hour and of a day, too.
        assert_eq!(from("today", MIDNIGHT), Some((Period::Hour, MIDNIGHT)));
        assert_eq!(
            from("2026-11-29T08:30", MIDNIGHT + 10 * 3600),
            Some((Period::Hour, MIDNIGHT + 8 * 3600))
        );
        assert_eq!(from("2026-11-01", MIDNIGHT), Some((Period::Day, MIDNIGHT - 28 * day)));
        assert_eq!(from("2026-11-29T10:06", NOW), None, "it is still to come");
    }
}
