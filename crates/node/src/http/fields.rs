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
