//! Tokens that registries give to anyone: those of lately.

use crate::http::Target;
use crate::pursuits::detour::Challenge;
use ::http::HeaderValue;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::Instant;

/// Tokens that are kept; the one that expires first makes room.
const TOKENS_MAX: usize = 64;
/// The lifetime of a token that tells none (docker's token specification: 60 seconds).
const LIFETIME: Duration = Duration::from_secs(60);
/// No token is used for longer than this.
const LIFETIME_MAX: Duration = Duration::from_secs(3600);
/// A token is not used in its last seconds: it could expire on its way.
const MARGIN: Duration = Duration::from_secs(5);

/// A token.
#[derive(Clone, Debug)]
pub struct Token {
    /// The value of `Authorization`.
    pub field: HeaderValue,
    until: Instant,
}

#[derive(Deserialize)]
struct Given {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<u64>,
}

impl Token {
    /// Reads the answer of a token service; `None` if it has no token.
    pub fn read(body: &[u8], now: Instant) -> Option<Self> {
        let given: Given = serde_json::from_slice(body).ok()?;
        let text = given.token.or(given.access_token)?;
        let mut field = HeaderValue::try_from(format!("Bearer {text}")).ok()?;
        field.set_sensitive(true);
        let lifetime = given.expires_in.map_or(LIFETIME, Duration::from_secs).min(LIFETIME_MAX);
        Some(Self { field, until: now + lifetime.saturating_sub(MARGIN) })
    }
}

/// The tokens of lately.
#[derive(Debug, Default)]
pub struct Tokens {
    /// By the URL at which they were requested.
    given: BTreeMap<String, Token>,
    /// The URL that a repository named, by registry and repository.
    places: BTreeMap<String, String>,
}

impl Tokens {
    /// A token for this challenge, if one still holds.
    pub fn get(&self, challenge: &Challenge, now: Instant) -> Option<HeaderValue> {
        self.at(&challenge.service.to_string(), now)
    }

    /// A token for the repository of this URL, if one still holds.
    pub fn of_place(&self, target: &Target, now: Instant) -> Option<HeaderValue> {
        self.at(self.places.get(&place(target)?)?, now)
    }

    fn at(&self, service: &str, now: Instant) -> Option<HeaderValue> {
        let token = self.given.get(service).filter(|token| token.until > now)?;
        Some(token.field.clone())
    }

    /// An archive has refused a token before its time.
    pub fn forget(&mut self, field: &HeaderValue) {
        self.given.retain(|_, token| token.field != *field);
        self.places.retain(|_, service| self.given.contains_key(service));
    }

    /// A token was given for the repository of this URL.
    pub fn put(&mut self, target: &Target, challenge: Challenge, token: Token) {
        let service = challenge.service.to_string();
        if self.given.len() >= TOKENS_MAX && !self.given.contains_key(&service) {
            let first = self.given.iter().min_by_key(|(_, token)| token.until);
            let first = first.map(|(service, _)| service.clone());
            first.into_iter().for_each(|first| _ = self.given.remove(&first));
        }
        self.given.insert(service.clone(), token);
        self.places.retain(|_, service| self.given.contains_key(service));
        if let Some(place) = place(target)
            && self.places.len() < 2 * TOKENS_MAX
        {
            self.places.insert(place, service);
        }
    }
}

/// The registry and the repository of a URL: the path without its last two parts, as in `/v2/NAME/manifests/TAG`.
fn place(target: &Target) -> Option<String> {
    let (path, _) = target.path().rsplit_once('/')?;
    let (path, _) = path.rsplit_once('/')?;
    Some(format!("{}{path}", target.authority()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Target {
        Target::read(&url.parse().expect("a URI")).expect("a target")
    }

    #[test]
    fn a_token_serves_its_repository_until_it_expires() {
        let mut tokens = Tokens::default();
        let now = Instant::ZERO;
        let challenge = Challenge { service: target("https://auth.test/token") };
        let token = Token::read(br#"{"token": "abc", "expires_in": 300}"#, now).expect("a token");
        let manifest = target("https://r.test/v2/library/x/manifests/1");
        tokens.put(&manifest, challenge.clone(), token);
        assert_eq!(tokens.get(&challenge, now).expect("one"), "Bearer abc");
        let blob = target("https://r.test/v2/library/x/blobs/sha256:00");
        assert!(tokens.of_place(&blob, now).is_some());
        assert!(tokens.of_place(&target("https://r.test/v2/library/y/blobs/1"), now).is_none());
        assert!(tokens.of_place(&blob, now + Duration::from_secs(296)).is_none());
    }

    #[test]
    fn tokens_are_bounded() {
        let mut tokens = Tokens::default();
        for n in 0..1000 {
            let service = target(&format!("https://auth.test/{n}"));
            let token = Token::read(br#"{"access_token": "abc"}"#, Instant::ZERO).expect("one");
            let place = target(&format!("https://r.test/v2/{n}/manifests/1"));
            tokens.put(&place, Challenge { service }, token);
        }
        assert_eq!((tokens.given.len(), tokens.places.len()), (TOKENS_MAX, TOKENS_MAX));
        assert!(Token::read(b"{}", Instant::ZERO).is_none());
        assert!(Token::read(b"\"\\u0000\"", Instant::ZERO).is_none());
    }

    #[test]
    fn a_token_is_not_used_in_its_last_five_seconds_nor_after_an_hour() {
        let challenge = Challenge { service: target("https://auth.test/token") };
        let holds = |body: &str, millis| {
            let token = Token::read(body.as_bytes(), Instant::ZERO).expect("a token");
            let mut tokens = Tokens::default();
            tokens.put(&target("https://r.test/v2/x/manifests/1"), challenge.clone(), token);
            tokens.get(&challenge, Instant::ZERO + Duration::from_millis(millis)).is_some()
        };
        for (body, seconds) in [
            (r#"{"token": "a", "expires_in": 300}"#, 295),
            (r#"{"token": "a"}"#, 55),
            (r#"{"token": "a", "expires_in": 99999}"#, 3595),
        ] {
            assert!(holds(body, seconds * 1000 - 1) && !holds(body, seconds * 1000), "{body}");
        }
        assert!(!holds(r#"{"token": "a", "expires_in": 5}"#, 0));
    }

    #[test]
    fn the_token_that_expires_first_makes_room() {
        let mut tokens = Tokens::default();
        let challenge = |n: u64| Challenge { service: target(&format!("https://auth.test/{n}")) };
        let put = |tokens: &mut Tokens, n: u64, lifetime: u64| {
            let body = format!(r#"{{"token": "a", "expires_in": {lifetime}}}"#);
            let token = Token::read(body.as_bytes(), Instant::ZERO).expect("a token");
            tokens.put(&target(&format!("https://r.test/v2/{n}/manifests/1")), challenge(n), token);
        };
        // The later ones expire earlier.
        (0..64).for_each(|n| put(&mut tokens, n, 300 - n));
        // A new one for a service that is known takes the place of its old one.
        put(&mut tokens, 0, 400);
        let has = |tokens: &Tokens, n| tokens.get(&challenge(n), Instant::ZERO).is_some();
        assert!((0..64).all(|n| has(&tokens, n)));
        put(&mut tokens, 64, 500);
        assert!((0..63).all(|n| has(&tokens, n)) && !has(&tokens, 63) && has(&tokens, 64));
    }

    #[test]
    fn a_129th_repository_is_not_remembered() {
        let mut tokens = Tokens::default();
        let place = |n: u32| target(&format!("https://r.test/v2/{n}/manifests/1"));
        for n in 0..129 {
            let token = Token::read(br#"{"token": "a"}"#, Instant::ZERO).expect("a token");
            let service = target("https://auth.test/token");
            tokens.put(&place(n), Challenge { service }, token);
        }
        let is_known = |n| tokens.of_place(&place(n), Instant::ZERO).is_some();
        assert!((0..128).all(is_known) && !is_known(128));
    }
}
