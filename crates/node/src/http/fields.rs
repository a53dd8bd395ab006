//! Converts header fields between HTTP and the peers' protocol.

use ::http::{HeaderMap, HeaderName, HeaderValue};
use wire::peer::Field;

/// HTTP header fields of a peer's message; `None` if a name or value is not valid in HTTP.
pub fn headers(fields: &[Field]) -> Option<HeaderMap> {
    let mut headers = HeaderMap::with_capacity(fields.len());
    for (name, value) in fields {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        headers.try_append(name, HeaderValue::from_bytes(value).ok()?).ok()?;
    }
    Some(headers)
}

/// Header fields in the form of a peer's message.
pub fn fields(headers: &HeaderMap) -> Vec<Field> {
    let field = |(name, value): (&HeaderName, &HeaderValue)| {
        (name.as_str().to_owned(), value.as_bytes().to_vec())
    };
    headers.iter().map(field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, value: &[u8]) -> Field {
        (name.to_owned(), value.to_vec())
    }

    #[test]
    fn fields_go_over_and_come_back_with_all_their_values() {
        let sent = [field("x-a", b"1"), field("x-a", b"2"), field("x-b", b"\xfc, 3")];
        let read = headers(&sent).unwrap();
        let values: Vec<_> = read.get_all("x-a").iter().collect();
        assert_eq!(values, ["1", "2"]);
        assert_eq!(read["x-b"].as_bytes(), b"\xfc, 3");
        assert_eq!(fields(&read), sent);
    }

    #[test]
    fn what_is_not_valid_in_http_is_refused() {
        for wrong in [field("x a", b"1"), field("", b"1"), field("x", b"1\r\ny: 2")] {
            assert_eq!(headers(&[field("x-a", b"1"), wrong]), None);
        }
    }
}
