//! Named objects: how a name is written as a URI, and what their records contain.
//!
//! *What it is:* what requests, records and publishing agree on. All of a named object follows from
//! its root, which the name certifies, so no signature is needed. *Who calls it:* `client`,
//! `publish`; the daemon, for the URI. *What it never does:* look anything up.

use crate::fault::Fault;
use crate::http::{Audience, RecordSignature, Scheme, Target};
use crate::input::Entrance;
use crate::request::Ask;
use ::http::uri::Authority;
use ::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use content::Root;
use wire::{Hint, ObjectKey, Oid, PublicKey, RecordId, Signature};

/// The host of all names. It never has an address (RFC 6761 §6.4), so a proxy that does not know
/// names fails with a proper error.
pub const HOST: &str = "oid.hearsay.invalid";
/// The header field with the root's text.
pub const ROOT: &str = "hearsay-root";
/// The bytes that a name certifies never change: a year is the longest lifetime that caches honour.
const CONTROL: &str = "public, max-age=31536000, immutable";
/// The remaining freshness to report, in seconds: a year, though it never ends.
pub const LEFT: i64 = 31_536_000;

const RECORD_CONTEXT: &str = "hearsay 2026-11 record of a published object";
const HINT_CONTEXT: &str = "hearsay 2026-11 short names of published objects";

/// In place of a signature: the name certifies the object.
pub const VOUCHER: RecordSignature =
    RecordSignature { signer: PublicKey([0; 32]), signature: Signature([0; Signature::LEN]) };

/// The URI of a name.
pub fn uri(name: &Oid) -> String {
    format!("http://{HOST}/{name}")
}

/// The target of a request for a name.
pub fn target(name: &Oid) -> Target {
    let slash = Target::new(Scheme::Http, &Authority::from_static(HOST), None);
    let slash = slash.expect("it is a host");
    slash.with_path(&format!("/{name}"))
}

/// The key of a named object.
pub fn key(name: &Oid, secret: &[u8; 32]) -> ObjectKey {
    target(name).key(secret, Audience::Everyone)
}

/// The id of its record. It is the same on all nodes, so any holder can continue a transfer.
pub fn record_id(name: &Oid) -> RecordId {
    let hash = blake3::derive_key(RECORD_CONTEXT, name.as_bytes());
    let mut id = [0; RecordId::LEN];
    id.copy_from_slice(&hash[..RecordId::LEN]);
    RecordId(id)
}

/// The key of the short names in a mesh whose objects have this secret.
pub fn hint_key(secret: &[u8; 32]) -> [u8; 32] {
    blake3::derive_key(HINT_CONTEXT, secret)
}

/// The short name of an object. Two objects share one with a chance of 2^-64. Then a peer that announced the other
/// object is asked in vain, once: the full name decides what is accepted.
pub fn hint(name: &Oid, key: &[u8; 32]) -> Hint {
    let hash = blake3::keyed_hash(key, name.as_bytes());
    let mut hint = [0; Hint::LEN];
    hint.copy_from_slice(&hash.as_bytes()[..Hint::LEN]);
    Hint(hint)
}

/// The header fields of its record: only those that follow from the root.
pub fn headers(name: &Oid, root: &str) -> HeaderMap {
    let value = |text: &str| HeaderValue::from_str(text).expect("digits are ASCII");
    HeaderMap::from_iter([
        (header::CACHE_CONTROL, HeaderValue::from_static(CONTROL)),
        (header::ETAG, value(&format!("\"{name}\""))),
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (HeaderName::from_static(ROOT), value(root)),
    ])
}

/// The root in a head's text, if the name certifies it.
pub fn root_of(name: &Oid, text: &[u8]) -> Option<Root> {
    let text = std::str::from_utf8(text).ok()?;
    let root = Root::decode(text)?;
    (Root::name_of(text) == *name).then_some(root)
}

/// The root in a record's header fields, if the name certifies it.
pub fn root_in(name: &Oid, headers: &HeaderMap) -> Option<Root> {
    root_of(name, headers.get(ROOT)?.as_bytes())
}

/// Translates a request for a name; any other request is unchanged. Header fields that could change
/// the response are dropped, because nothing can change it.
pub fn understand(mut ask: Ask, secret: &[u8; 32]) -> Result<Ask, Fault> {
    if ask.target.host() != HOST || ask.entrance != Entrance::Explicit {
        return Ok(ask);
    }
    if !matches!(ask.method, Method::GET | Method::HEAD) || ask.has_body || ask.upgrade {
        return Err(Fault::BadNameMethod);
    }
    let name: Oid = ask.target.path()[1..].parse().map_err(|_| Fault::BadName)?;
    let told = [header::RANGE, header::IF_RANGE, header::IF_NONE_MATCH, header::VIA];
    let mut headers = HeaderMap::new();
    for (name, value) in ask.headers.iter().filter(|(name, _)| told.contains(name)) {
        headers.append(name.clone(), value.clone());
    }
    ask.named = Some(name);
    ask.target = target(&name);
    ask.key = key(&name, secret);
    (ask.audience, ask.may_turn_home) = (Audience::Everyone, false);
    ask.headers = headers;
    Ok(ask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_spelling() {
        let name = Oid([0xab; 32]);
        assert_eq!(target(&name).to_string(), uri(&name));
        assert_ne!(key(&name, &[1; 32]), key(&name, &[2; 32]));
        assert_ne!(record_id(&name), record_id(&Oid([0xac; 32])));
    }

    #[test]
    fn a_root_under_another_name_is_none() {
        let root = Root { length: 1, content: [1; 32], segments: vec![[2; 32]] };
        let headers = headers(&root.name(), &root.encode());
        let text = headers[ROOT].as_bytes();
        assert_eq!(root_of(&root.name(), text), Some(root.clone()));
        assert_eq!(root_of(&Oid([0; 32]), text), None);
        assert_eq!(root_of(&Root::name_of("x"), b"x"), None);
    }
}
