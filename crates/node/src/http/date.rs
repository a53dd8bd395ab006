//! HTTP dates (RFC 9110 §5.6.7): all three forms are read, the preferred one is written.

use http::{HeaderMap, HeaderName, HeaderValue};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wire::Date;

/// The days' names; some forms of a date have their first three letters.
const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Reads a date; `None` if the text is not a date. Caches should read the names of days, months and the zone
/// in any case (RFC 9111 §4.2). The name of the day tells nothing that the date does not, so a wrong one is ignored: the
/// form is valid, and recipients are to be robust (RFC 9110 §5.6.7).
pub fn parse(text: &str) -> Option<Date> {
    let text = text.trim();
    // Nearly all dates are already capitalised as the RFC has them.
    let date = httpdate::parse_http_date(text);
    let date = date.ok().or_else(|| {
        let text = capitalised(text);
        httpdate::parse_http_date(&text).ok().or_else(|| on_any_day(&text))
    })?;
    Some(Date::from_unix(date.duration_since(UNIX_EPOCH).ok()?.as_secs()))
}

/// Reads a date that names the wrong day, which httpdate refuses.
fn on_any_day(text: &str) -> Option<SystemTime> {
    let (name, rest) = text.split_at(text.bytes().take_while(u8::is_ascii_alphabetic).count());
    let length_max = if DAYS.contains(&name) { usize::MAX } else { 3 };
    let mut names = DAYS.iter().map(|day| &day[..day.len().min(length_max)]);
    names.clone().any(|day| day == name).then_some(())?;
    names.find_map(|day| httpdate::parse_http_date(&format!("{day}{rest}")).ok())
}

/// `sun` and `SUN` become `Sun`; the zone becomes `GMT`.
fn capitalised(text: &str) -> String {
    let zone = text.len().saturating_sub(3);
    let mut after_letter = false;
    let letters = text.char_indices().map(|(at, letter)| {
        let inside = after_letter && at < zone;
        after_letter = letter.is_ascii_alphabetic();
        if inside { letter.to_ascii_lowercase() } else { letter.to_ascii_uppercase() }
    });
    letters.collect()
}

/// Writes a date in the preferred form (IMF-fixdate).
pub fn format(date: Date) -> HeaderValue {
    // Beyond the year 9999 the form has no digits left.
    let seconds = date.as_unix().min(253_402_300_799);
    let text = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    HeaderValue::try_from(text).expect("a date is ASCII")
}

/// The date in a header field; `None` if the field is absent, repeated or unreadable.
pub fn header(headers: &HeaderMap, name: HeaderName) -> Option<Date> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    parse(value.to_str().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_three_forms_mean_the_same_moment() {
        let date = Date::from_unix(784_111_777);
        assert_eq!(parse("Sun, 06 Nov 1994 08:49:37 GMT"), Some(date));
        assert_eq!(parse("Sunday, 06-Nov-94 08:49:37 GMT"), Some(date));
        assert_eq!(parse("Sun Nov  6 08:49:37 1994"), Some(date));
        assert_eq!(parse("SUN, 06 nov 1994 08:49:37 gmt"), Some(date));
        assert_eq!(parse("sunday, 06-NOV-94 08:49:37 Gmt"), Some(date));
        // It was a Sunday.
        assert_eq!(parse("Tue, 06 Nov 1994 08:49:37 GMT"), Some(date));
        assert_eq!(parse("friday, 06-Nov-94 08:49:37 GMT"), Some(date));
        assert_eq!(parse("Mon Nov  6 08:49:37 1994"), Some(date));
        assert_eq!(format(date), "Sun, 06 Nov 1994 08:49:37 GMT");
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "0",
            "-1",
            "Sun, 06 Nov 1994",
            "Sun, 36 Nov 1994 08:49:37 GMT",
            "Sun, 31 Nov 1994 08:49:37 GMT",
            "Day, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06 Nov 1994 08:49:37 GMT",
            ", 06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
