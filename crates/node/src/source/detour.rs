//! The way from a mirror's URL to its content: redirects, and tokens that anyone may have. The node that dials goes this
//! way, so that its clients and the routers between see one answer (RFC 9110 §15.4, RFC 6750 §3; the token is that of
//! the OCI registries' "anonymous" clients).

use super::Source;
use super::token::Token;
use crate::access;
use crate::context::Context;
use crate::http::Target;
use crate::input::{FetchError, FetchId};
use crate::output::{Dial, Fetch, OriginOutput, Output};
use crate::pursuits::detour::{Challenge, Detour, Permit};
use crate::pursuits::{Goal, Pursuit, Upstream};
use ::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use bytes::Bytes;

/// A request is redirected at most this many times: a circle ends here.
const REDIRECTS_MAX: u8 = 5;
/// The longest answer of a token service that is read, in bytes.
const TOKEN_BYTES_MAX: usize = 64 * 1024;

impl Source {
    /// A head has arrived from an origin. True if it is not the answer yet: another request is sent, or has failed.
    pub fn goes_on_detour(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> bool {
        let Some(pursuit) = cx.pursuits.get(&id).filter(|pursuit| pursuit.may_detour()) else {
            return false;
        };
        if let Permit::Asked(..) = pursuit.detour.permit {
            match status {
                StatusCode::OK => self.take_more(cx, id),
                _ => self.go_astray(cx, id),
            }
            return true;
        }
        if status == StatusCode::UNAUTHORIZED {
            return self.challenged(cx, id, headers);
        }
        let is_redirect = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
        let location = headers.get(header::LOCATION).filter(|_| is_redirect);
        let Some(location) = location else { return false };
        match pursuit.redirected(location).filter(|to| may_go(cx, to)) {
            Some(to) => {
                self.leave_off(cx, id);
                self.set_out(cx, id, |detour| {
                    detour.to = Some(to);
                    detour.redirects += 1;
                });
            }
            None => self.go_astray(cx, id),
        }
        true
    }

    /// Content of a token service's answer has arrived; false if none is awaited.
    pub fn handle_token_bytes(&mut self, cx: &mut Context, id: FetchId, bytes: &Bytes) -> bool {
        let Some(Permit::Asked(_, body)) = cx.pursuits.get_mut(&id).map(|it| &mut it.detour.permit)
        else {
            return false;
        };
        body.extend_from_slice(bytes);
        if body.len() > TOKEN_BYTES_MAX {
            self.go_astray(cx, id);
        }
        true
    }

    /// A request has ended; false if it was not for a token.
    pub fn handle_token_end(&mut self, cx: &mut Context, id: FetchId, well: bool) -> bool {
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return false };
        let Permit::Asked(challenge, body) = &mut pursuit.detour.permit else { return false };
        let (challenge, body) = (challenge.clone(), std::mem::take(body));
        let place = pursuit.quest.ask.target.clone();
        let token = Token::read(&body, cx.now).filter(|_| well);
        match token {
            Some(token) => {
                let field = token.field.clone();
                self.tokens.put(&place, challenge, token);
                self.set_out(cx, id, |detour| detour.permit = Permit::Token(field));
            }
            None => self.ends(id, Err(FetchError::Astray)),
        }
        true
    }

    /// The archive wants a token. If anyone may have one, it is requested, or one of lately is used.
    fn challenged(&mut self, cx: &mut Context, id: FetchId, headers: &HeaderMap) -> bool {
        let Some(pursuit) = cx.pursuits.get(&id) else { return false };
        let is_first = matches!(pursuit.detour.permit, Permit::None) && pursuit.detour.to.is_none();
        let has_own = pursuit.quest.headers.contains_key(header::AUTHORIZATION);
        let challenge = headers.get(header::WWW_AUTHENTICATE).and_then(Challenge::read);
        let challenge = challenge.filter(|it| is_first && !has_own && may_go(cx, &it.service));
        let Some(challenge) = challenge else { return false };
        let permit = match self.tokens.get(&challenge, cx.now) {
            Some(field) => Permit::Token(field),
            None => Permit::Asked(challenge, Vec::new()),
        };
        self.leave_off(cx, id);
        self.set_out(cx, id, |detour| detour.permit = permit);
        true
    }

    /// Before the first request: a token that was given for the same repository lately saves the challenge.
    pub(super) fn remember_token(&mut self, cx: &mut Context, id: FetchId) {
        let Some(pursuit) = cx.pursuits.get_mut(&id).filter(|it| it.may_detour()) else { return };
        if !pursuit.quest.headers.contains_key(header::AUTHORIZATION)
            && let Some(field) = self.tokens.of_place(&pursuit.quest.ask.target, cx.now)
        {
            pursuit.detour.permit = Permit::Token(field);
        }
    }

    /// Cancels the request under way: its answer is read no further.
    fn leave_off(&mut self, cx: &mut Context, id: FetchId) {
        let fetch = cx.pursuits.get(&id).and_then(|pursuit| pursuit.fetch(id));
        if let Some(fetch) = fetch {
            self.range_requests.remove(&fetch);
            cx.out.push_back(Output::Origin(OriginOutput::Cancel(fetch)));
        }
    }

    /// Sends the next request of the detour.
    fn set_out(&mut self, cx: &mut Context, id: FetchId, turn: impl FnOnce(&mut Detour)) {
        let fetch = cx.ids.fetch();
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return };
        turn(&mut pursuit.detour);
        pursuit.detour.fetch = Some(fetch);
        pursuit.moved = cx.now;
        let request = pursuit.origin_request(pursuit.quest.headers.clone());
        self.range_requests.insert(fetch, id);
        cx.report.detours += 1;
        cx.out.push_back(Output::Origin(OriginOutput::Fetch(fetch, Box::new(request))));
    }

    /// Lets a token's answer arrive.
    fn take_more(&mut self, cx: &mut Context, id: FetchId) {
        let fetch = cx.pursuits.get(&id).and_then(|pursuit| pursuit.fetch(id));
        // One more, so that a longer answer is seen to be longer.
        let bytes = TOKEN_BYTES_MAX as u64 + 1;
        let grant = fetch.map(|fetch| Output::Origin(OriginOutput::Grant(fetch, bytes)));
        cx.out.extend(grant);
    }

    /// The way leads where this node may not go, or nowhere.
    fn go_astray(&mut self, cx: &mut Context, id: FetchId) {
        self.leave_off(cx, id);
        self.ends(id, Err(FetchError::Astray));
    }
}

/// Whether a request may be sent on to a place: only by TLS, and only to a host that the tables or the operator name.
fn may_go(cx: &Context, to: &Target) -> bool {
    let is_inside = to.address().is_some_and(access::is_local);
    to.is_tls() && (cx.config.classes.may_reach(true, to.host(), to.port()) && !is_inside)
}

impl Pursuit {
    /// Whether an answer that sends elsewhere is followed.
    fn may_detour(&self) -> bool {
        let begins = matches!(self.quest.goal, Goal::Head | Goal::Pass | Goal::Range);
        let is_open = self.via == Upstream::Origin && self.resumed.is_none();
        self.quest.ask.follow && begins && is_open
    }

    /// Where a `Location` leads from here; `None` if nowhere, or if it was followed too often.
    fn redirected(&self, location: &HeaderValue) -> Option<Target> {
        let from = self.detour.to.as_ref().unwrap_or(&self.quest.ask.target);
        let text = location.to_str().ok().filter(|_| self.detour.redirects < REDIRECTS_MAX)?;
        if let Some(rest) = text.strip_prefix("//") {
            return Target::read(&format!("https://{rest}").parse().ok()?);
        }
        let uri: Uri = text.parse().ok()?;
        match uri.scheme() {
            Some(_) => Target::read(&uri),
            // A reference to a path beside this one is of no use to archives.
            None => text.starts_with('/').then(|| from.with_path(text)),
        }
    }

    /// Turns the request to the place where the detour has got to.
    pub(super) fn redirect(&self, fetch: &mut Fetch) {
        match (&self.detour.permit, &self.detour.to) {
            (Permit::Asked(challenge, _), _) => {
                fetch.headers.clear();
                fetch.method = Method::GET;
                turn(fetch, &challenge.service);
            }
            // The token is for the archive, not for the place to which it sends.
            (_, Some(to)) => turn(fetch, to),
            (Permit::Token(field), None) => {
                fetch.headers.insert(header::AUTHORIZATION, field.clone());
            }
            (Permit::None, None) => {}
        }
    }
}

fn turn(fetch: &mut Fetch, to: &Target) {
    fetch.dial = Dial::Name(to.host().to_owned(), to.port());
    fetch.tls = to.is_tls();
    to.path().clone_into(&mut fetch.path);
    let host = HeaderValue::try_from(to.authority());
    fetch.headers.insert(header::HOST, host.expect("it was read as one"));
}
