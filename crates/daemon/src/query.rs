//! The query of a URL on the control socket: `limit=5&url=http%3A%2F%2Fa%2F`.

/// The decoded value of a name; `None` if the query lacks it, or if it is not UTF-8.
pub fn text(query: &str, name: &str) -> Option<String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.into_iter().find(|(found, _)| *found == name)?;
    decode(value)
}

/// The value of a name, as a number.
pub fn number(query: &str, name: &str) -> Option<u64> {
    text(query, name)?.parse().ok()
}

/// Percent-encodes all but the unreserved characters of RFC 3986 §2.3.
pub fn encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(byte.into());
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
        encoded
    })
}

fn decode(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first == b'%' {
            let (digits, tail) = tail.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = tail;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_read_back() {
        for url in ["http://a/b?c=d&e=f%20g", "http://[::1]:80/ä#+ ", ""] {
            assert_eq!(text(&format!("x=1&url={}", encode(url)), "url").as_deref(), Some(url));
        }
        assert_eq!(number("limit=5&url=x", "limit"), Some(5));
    }

    #[test]
    fn broken_queries_have_no_value() {
        for query in ["", "url", "url=%", "url=%4", "url=%zz", "url=%ff", "lru=x"] {
            assert_eq!(text(query, "url"), None, "{query}");
        }
    }
}
