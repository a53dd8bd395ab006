//! Files that belong together, as an index and its signature: when one has changed, the others are of an older generation.

use super::Values;
use super::classified::judge;
use super::miss::Miss;
use super::misses::Misses;
use crate::context::Context;
use crate::http::Record;
use crate::input::FetchId;
use crate::request::{Ask, Asker};
use ::http::{HeaderMap, header};
use std::rc::Rc;

impl Misses {
    /// A response with these fields is about to replace what was stored for its URL. What is stored of its companions is
    /// not fresh any more; for a client of this router they are asked for at once.
    pub fn renew_companions(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        headers: &HeaderMap,
        values: &mut Values,
    ) {
        let Some(miss) = self.get(&id).filter(|miss| !miss.is_companion) else { return };
        let ask = Rc::clone(&miss.ask);
        let paths = cx.config.reach.classes.companions(ask.verdict.class, ask.target.path());
        if paths.is_empty() || !has_changed(miss, headers) {
            return;
        }
        for path in paths {
            let target = ask.target.with_path(&path);
            let key = target.key(&cx.config.secret, ask.audience);
            let row = cx.invalidate(key).filter(|_| ask.asker == Asker::Client);
            let Some(old) = row.as_ref().and_then(|row| row.records.first()) else { continue };
            let verdict = judge(cx, &target);
            let ask = Ask { target, key, verdict, expected: None, ..Ask::clone(&ask) };
            if let Some(miss) = self.revalidate_beside(cx, ask, old, values) {
                miss.is_companion = true;
            }
        }
    }
}

/// Whether a response is another version than what was stored. Without validators nobody can tell: then no, since each
/// would make the other old for ever.
fn has_changed(miss: &Miss, headers: &HeaderMap) -> bool {
    let is_other = |old: &Rc<Record>| {
        [header::ETAG, header::LAST_MODIFIED]
            .iter()
            .any(|it| headers.get(it) != old.headers.get(it))
    };
    miss.old.as_ref().is_none_or(is_other)
}
