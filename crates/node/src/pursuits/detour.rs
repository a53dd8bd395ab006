//! How far a request got whose origin sent it elsewhere (`source/detour.rs` goes the way).

use crate::http::Target;
use crate::input::FetchId;
use ::http::{HeaderValue, Uri};

/// Where a pursuit of an origin has got to, if it was sent elsewhere.
#[derive(Debug, Default)]
pub struct Detour {
    /// The driver's number of the request now under way; `None`: the pursuit's own.
    pub fetch: Option<FetchId>,
    /// Where it was redirected to.
    pub to: Option<Target>,
    /// How often it was redirected.
    pub redirects: u8,
    /// A redirect led to another origin. From then on its client's credentials stay here, also if a further one leads
    /// back: else a foreign host would choose what is asked with them (as Fetch §4.4 and Go do, after CVE-2024-45336).
    pub has_left: bool,
    pub permit: Permit,
}

/// What allows the request to the archive itself.
#[derive(Debug, Default)]
pub enum Permit {
    /// Nothing; nothing was asked for yet.
    #[default]
    None,
    /// A token is being requested; this much of the answer has arrived.
    Asked(Challenge, Vec<u8>),
    /// This field, of a token that was given before. The archive may have withdrawn it: then it is forgotten.
    Remembered(HeaderValue),
    /// This field, of a token that was given for this request. If it does not help, the archive's refusal is final.
    Token(HeaderValue),
}

/// A registry's demand for a bearer token: `WWW-Authenticate: Bearer realm="…",service="…",scope="…"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// The URL at which the token is requested.
    pub service: Target,
}

impl Challenge {
    /// Reads the field's value; `None` if it asks for something else.
    pub fn read(value: &HeaderValue) -> Option<Self> {
        let text = value.to_str().ok()?;
        let (scheme, mut rest) = text.split_once(' ')?;
        let (mut realm, mut query) = (None, String::new());
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        while let Some((name, after)) = rest.split_once("=\"") {
            let (value, next) = after.split_once('"')?;
            match name.trim_matches([',', ' ']) {
                "realm" => realm = Some(value),
                name @ ("service" | "scope") => {
                    query.push(if query.is_empty() { '?' } else { '&' });
                    query.push_str(name);
                    query.push('=');
                    escape(value, &mut query);
                }
                _ => {}
            }
            rest = next;
        }
        let realm: Uri = realm?.parse().ok()?;
        let service = Target::read(&realm)?;
        // A realm with a query of its own keeps it.
        let joined = match service.path().contains('?') {
            true => query.replacen('?', "&", 1),
            false => query,
        };
        let path = format!("{}{joined}", service.path());
        path.parse::<Uri>().ok()?;
        Some(Self { service: service.with_path(&path) })
    }
}

/// Percent-encodes what has a meaning in a query.
fn escape(value: &str, out: &mut String) {
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'-'
            | b'.'
            | b'_'
            | b'~'
            | b':'
            | b'/'
            | b',' => out.push(byte as char),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str) -> Option<String> {
        Challenge::read(&HeaderValue::from_static(text)).map(|it| it.service.to_string())
    }

    #[test]
    fn a_challenge_names_where_the_token_is() {
        let docker = "Bearer realm=\"https://auth.test/token\",service=\"r.test\",\
                      scope=\"repository:library/x:pull\"";
        let url = "https://auth.test/token?service=r.test&scope=repository:library/x:pull";
        assert_eq!(read(docker).as_deref(), Some(url));
        let spaced = "bearer scope=\"a b\", realm=\"https://auth.test/t?x=1\"";
        assert_eq!(read(spaced).as_deref(), Some("https://auth.test/t?x=1&scope=a%20b"));
        for bad in [
            "Basic realm=\"x\"",
            "Bearer",
            "Bearer realm=\"",
            "Bearer scope=\"x\"",
            "Bearer realm=\"/x\"",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
