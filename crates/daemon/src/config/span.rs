//! Spans of time in the configuration and on the command line: `60s`, `5min`, `30d`, `0s`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A span of time, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

/// The error for a text that is not a span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a span of time: expected something like 60s, 5min or 0s")]
pub struct SpanError;

/// The units, and the number of seconds in each.
const UNITS: [(&str, u64); 4] = [("s", 1), ("min", 60), ("h", 3600), ("d", 86_400)];

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit.trim()).ok_or(SpanError)?;
        let seconds = number.parse::<u32>().map_err(|_| SpanError)?;
        Ok(Self(Duration::from_secs(u64::from(seconds) * unit)))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.0.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<Span>().map(|span| span.0.as_secs());
        assert_eq!(read("60s"), Ok(60));
        assert_eq!(read(" 5 min "), Ok(300));
        assert_eq!(read("2h"), Ok(7200));
        assert_eq!(read("30d"), Ok(30 * 86_400));
        assert_eq!(read("0s"), Ok(0));
        for bad in ["", "s", "60", "-1s", "1.5s", "forever", "99999999999s", "1m"] {
            assert_eq!(read(bad), Err(SpanError), "{bad}");
        }
        assert_eq!(Span(Duration::from_secs(90)).to_string().parse(), "90s".parse::<Span>());
    }
}
