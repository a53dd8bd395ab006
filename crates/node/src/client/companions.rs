//! Files that belong together, as an index and its signature: when one has changed, the others are of an older generation.

use super::classified::judge;
use super::miss::{Forward, Miss};
use super::misses::Misses;
use super::{Value, Values};
use crate::context::Context;
use crate::http::Row;
use crate::input::FetchId;
use crate::request::{Ask, Asker};
use ::http::{HeaderMap, header};
use std::rc::Rc;
use std::sync::Arc;

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
        let miss = self.get(&id).filter(|miss| !miss.is_companion && has_changed(miss, headers));
        let Some(ask) = miss.map(|miss| Rc::clone(&miss.ask)) else { return };
        let classes = Arc::clone(&cx.config.reach.classes);
        for path in classes.companions(ask.verdict.class, ask.target.path()) {
            let target = ask.target.with_path(&path);
            let key = target.key(&cx.config.secret, ask.audience);
            let Some(row) = cx.rows.get(&key) else {
                match cx.rows.is_awaited(&key) {
                    // The look-up under way may return the row from before the change.
                    true => cx.write_row(key, Row::default()),
                    false => cx.remove_row(key),
                }
                continue;
            };
            cx.mark_invalid(key, &row);
            let is_asked = self.joinable.contains_key(&key) || ask.asker != Asker::Client;
            let Some(old) = row.records.first().filter(|_| !is_asked) else { continue };
            let (verdict, old) = (judge(cx, &target), Some(Rc::clone(old)));
            let ask = Ask { target, key, verdict, expected: None, ..Ask::clone(&ask) };
            let ask = ask.in_background();
            let id = self.fetch(cx, ask, old, Forward::Stale, Vec::new(), values);
            self.get_mut(&id).into_iter().for_each(|miss| miss.is_companion = true);
            // Without readers it would be cancelled.
            values.push_back(Value::Orphan(id));
        }
    }
}

/// Whether a response is another version than what was stored. Without validators nobody can tell: then no, since each
/// would make the other old for ever.
fn has_changed(miss: &Miss, headers: &HeaderMap) -> bool {
    let validators =
        |it: &HeaderMap| [header::ETAG, header::LAST_MODIFIED].map(|name| it.get(name).cloned());
    miss.old.as_ref().is_none_or(|old| validators(headers) != validators(&old.headers))
}
