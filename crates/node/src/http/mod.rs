//! The rules of HTTP caching (RFC 9110, RFC 9111): heads in, decisions out.
//!
//! `storing` decides whether a response may be stored, `freshness` for how long it is fresh, and
//! `reuse` whether it answers a request. `validate` and `ranges` find which part of it the client
//! needs. `headers` has the fields that an intermediary changes. `screen` refuses messages before they
//! reach a parser, and `framing` those that come parsed already. `record` is a stored response without its content.

mod bytes;
mod date;
mod directives;
mod fields;
mod framing;
mod freshness;
mod headers;
#[cfg(test)]
mod oracle_tests;
mod ranges;
mod record;
mod reuse;
mod screen;
mod storing;
mod uri;
mod validate;

pub use date::{format as format_date, parse as parse_date};
pub use directives::CacheControl;
pub use fields::{fields, headers};
pub use framing::{check_head, frame, head_bytes};
pub use freshness::{age, is_ruled};
pub use headers::{
    add_status, add_upstream, add_via, binds, bodiless, content_length, is_end_to_end, passed,
    strip_credentials, strip_hop_by_hop, take_cookies, wants_upgrade,
};
pub use ranges::{
    ContentRange, Ranges, content_range, only_range, parse as parse_ranges, range_field,
};
pub use record::{Record, RecordSignature, Row};
pub use reuse::{FOR_EVER, Reuse, decide, may_join, selects, stale_permitted};
pub use screen::{Refusal, Screen, Verdict, looks_like_http};
pub use storing::{Asked, NotStored, is_for_all, judge, selecting, vary};
pub use uri::{Audience, OPEN_KEY, Scheme, Target};
pub use validate::{
    CONDITIONS, confirms, freshened, make_conditional, make_ranged, not_modified, range_holds,
    repeats, strong_validator,
};
