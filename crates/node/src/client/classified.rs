//! What the content classes say of a request's target.

use crate::context::Context;
use crate::http::Target;
use classes::Verdict;

/// By the tables, and by the archives that were found by their indexes.
pub fn judge(cx: &Context, target: &Target) -> Verdict {
    cx.config.reach.classes.judge_proven(&cx.proven, target.url())
}
