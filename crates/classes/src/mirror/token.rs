//! Anonymous tokens of registries: the Docker registry's token authentication.

use crate::Reach;
use crate::path::Clean;

/// The longest token, in bytes.
const TOKEN_MAX: usize = 8 << 10;

/// What a registry asks for in `WWW-Authenticate`: a token from another place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// Where an anonymous token is fetched: an absolute URL.
    pub url: String,
}

impl Challenge {
    /// The challenge in a value of `WWW-Authenticate`: `Bearer realm="https://HOST/PATH",service="…",scope="…"`. `None`
    /// if it is another one, or its host is not listed.
    pub fn parse(reach: &Reach, value: &str) -> Option<Self> {
        let (scheme, parameters) = value.trim().split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let parameters = parameters_of(parameters)?;
        let find = |name: &str| parameters.iter().find(|(it, _)| it.eq_ignore_ascii_case(name));
        let (_, realm) = find("realm")?;
        let rest = realm.strip_prefix("https://")?;
        let (authority, path) = rest.split_at(rest.find('/')?);
        let path = Clean::new(path)?.path;
        let mut url = reach.authority(authority).filter(|it| it.tls)?.url() + path;
        let named = ["service", "scope"].into_iter().filter_map(find);
        for ((name, value), mark) in named.zip(["?", "&"]) {
            url += &format!("{mark}{}={}", name.to_ascii_lowercase(), encoded(value));
        }
        Some(Self { url })
    }
}

/// The token in a response: the member `token`, or `access_token`, of a JSON object.
pub fn token(body: &[u8]) -> Option<String> {
    let find = |name| crate::json::text_of(body, name);
    let token = find("token").or_else(|| find("access_token"))?;
    let is_token = |it: u8| it.is_ascii_alphanumeric() || b"-._~+/=".contains(&it);
    (token.len() <= TOKEN_MAX && !token.is_empty() && token.bytes().all(is_token))
        .then(|| token.to_owned())
}

/// Parameters of a challenge (RFC 9110, section 11.2), in quotes or not.
fn parameters_of(mut text: &str) -> Option<Vec<(&str, &str)>> {
    let mut found = Vec::new();
    while !text.trim_start_matches([' ', ',']).is_empty() {
        let (name, rest) = text.trim_start_matches([' ', ',']).split_once('=')?;
        let (value, rest) = match rest.strip_prefix('"') {
            Some(rest) => rest.split_once('"')?,
            None => rest.split_at(rest.find(',').unwrap_or(rest.len())),
        };
        found.push((name.trim(), value));
        text = rest;
    }
    Some(found)
}

/// A value for a query: other bytes than unreserved ones are encoded (RFC 3986, section 2.3).
fn encoded(value: &str) -> String {
    let is_unreserved = |it: u8| it.is_ascii_alphanumeric() || b"-._~".contains(&it);
    let encode = |it: u8| match is_unreserved(it) {
        true => char::from(it).to_string(),
        false => format!("%{it:02X}"),
    };
    value.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Classes;

    fn reach() -> Reach {
        Reach { classes: Classes::builtin().into(), ..Reach::default() }
    }

    fn url(value: &str) -> Option<String> {
        Challenge::parse(&reach(), value).map(|it| it.url)
    }

    #[test]
    fn a_challenge_says_where_a_token_is() {
        let docker = "Bearer realm=\"https://auth.docker.io/token\",service=\"registry.docker.io\",\
                      scope=\"repository:library/alpine:pull\"";
        let expected = "https://auth.docker.io/token?service=registry.docker.io\
                        &scope=repository%3Alibrary%2Falpine%3Apull";
        assert_eq!(url(docker).as_deref(), Some(expected));
        let quay = "bearer realm=\"https://quay.io/v2/auth\" , service=quay.io";
        assert_eq!(url(quay).as_deref(), Some("https://quay.io/v2/auth?service=quay.io"));
    }

    #[test]
    fn other_challenges_are_none() {
        for value in [
            "Basic realm=\"https://auth.docker.io/token\"",
            "Bearer realm=\"http://auth.docker.io/token\"",
            "Bearer realm=\"https://evil.test/token\"",
            "Bearer realm=\"https://auth.docker.io/../token\"",
            "Bearer realm=\"https://auth.docker.io",
            "Bearer service=x",
            "Bearer",
            "",
        ] {
            assert_eq!(url(value), None, "{value}");
        }
    }

    #[test]
    fn a_token_is_one_of_two_members() {
        assert_eq!(token(br#"{"expires_in":300,"token":"a.b-c"}"#).as_deref(), Some("a.b-c"));
        assert_eq!(token(br#"{"access_token":"abc"}"#).as_deref(), Some("abc"));
        for other in
            [&br#"{"token":"a\r\nb"}"#[..], br#"{"token":""}"#, br#"{"token":1}"#, b"[]", b""]
        {
            assert_eq!(token(other), None);
        }
    }
}
