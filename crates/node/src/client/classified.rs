//! What the content classes say of a request's target.

use crate::context::Context;
use crate::http::Target;
use classes::{Heeds, Kind, Verdict};
use wire::Digest;

/// By the tables, and by the archives that were found by their indexes.
pub fn judge(cx: &Context, target: &Target) -> Verdict {
    cx.config.reach.classes.judge_proven(&cx.proven, target.url())
}

/// What the classes say of a request's target, and the digest that its content must have: the one that the request names,
/// or one that an index promised. What is known by its digest cannot be fresher.
pub fn classify(cx: &Context, target: &Target, named: Option<Digest>) -> (Verdict, Option<Digest>) {
    let mut verdict = judge(cx, target);
    let expected = named.or_else(|| promised(cx, target, &verdict));
    if expected.is_some() && matches!(verdict.kind, Kind::Immutable { .. }) {
        verdict.heeds = Heeds::Nothing;
    }
    (verdict, expected)
}

/// The digest that the content of a target must have: the one in its URL, or the one that an index promised. What changes
/// may have changed since the index was read, so only of what does not is a promise believed.
fn promised(cx: &Context, target: &Target, verdict: &Verdict) -> Option<Digest> {
    match verdict.kind {
        Kind::Immutable { digest: None } => cx.promises.get(target.url()),
        Kind::Immutable { digest } => digest,
        Kind::Undecided | Kind::Changing { .. } => None,
    }
}
