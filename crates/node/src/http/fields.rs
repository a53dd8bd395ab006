//! Header fields as peers say them.

use ::http::{HeaderMap, HeaderName, HeaderValue};
use wire::peer::Field;

/// Header fields as HTTP has them; `None` if they are none.
pub fn headers(fields: &[Field]) -> Option<HeaderMap> {
    let mut headers = HeaderMap::with_capacity(fields.len());
    for (name, value) in fields {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        headers.try_append(name, HeaderValue::from_bytes(value).ok()?).ok()?;
    }
    Some(headers)
}

/// Header fields as peers say them.
pub fn fields(headers: &HeaderMap) -> Vec<Field> {
    let field = |(name, value): (&HeaderName, &HeaderValue)| {
        (name.as_str().to_owned(), value.as_bytes().to_vec())
    };
    headers.iter().map(field).collect()
}
