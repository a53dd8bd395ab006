//! The way from a mirror's URL to its content: redirects, and tokens that anyone may have. The node that dials goes this
//! way, so that its clients and the routers between see one answer (RFC 9110 §15.4, RFC 6750 §3; the token is that of
//! the OCI registries' "anonymous" clients).

use super::token::{Token, Tokens};
use crate::context::Context;
use crate::hasher::Map;
use crate::http::{Target, strip_credentials};
use crate::input::FetchId;
use crate::output::{Dial, Fetch, OriginOutput, Output};
use crate::pursuits::detour::{Challenge, Detour, Permit};
use crate::pursuits::{Goal, Pursuit, Upstream};
use ::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use bytes::Bytes;

/// A request is redirected at most this many times: a circle ends here.
const REDIRECTS_MAX: u8 = 5;
/// The longest answer of a token service that is read, in bytes.
const TOKEN_BYTES_MAX: usize = 64 * 1024;

/// Requests that are sent on from the place where they were addressed.
#[derive(Default)]
pub struct Detours {
    /// The pursuits, by the driver's number of their further request.
    requests: Map<FetchId, FetchId>,
    /// Tokens that registries gave to this node.
    tokens: Tokens,
}

/// What an answer of an origin is to a pursuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The answer to its request.
    Arrived,
    /// It sends the request elsewhere, or is not complete yet.
    OnTheWay,
    /// It leads where this node may not go, or nowhere.
    Astray,
}

impl Detours {
    /// The pursuit that a further request belongs to.
    pub fn pursuit(&self, fetch: FetchId) -> Option<FetchId> {
        self.requests.get(&fetch).copied()
    }

    /// A pursuit has ended: its further request is forgotten.
    pub fn end(&mut self, fetch: FetchId) {
        self.requests.remove(&fetch);
    }

    /// A head has arrived from an origin.
    pub fn head(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Turn {
        let Some(pursuit) = cx.pursuits.get(&id).filter(|pursuit| pursuit.may_detour()) else {
            return Turn::Arrived;
        };
        if let Permit::Asked(..) = pursuit.detour.permit {
            return self.token_head(cx, id, status);
        }
        let is_refused = matches!(status.as_u16(), 400 | 401 | 403) && pursuit.detour.to.is_none();
        if let Permit::Remembered(field) = &pursuit.detour.permit
            && is_refused
        {
            // Some registries answer 400 or 403 to a token that they do not know any more.
            self.tokens.forget(field);
            let turn = self.challenged(cx, id, headers);
            let again = |detour: &mut Detour| detour.permit = Permit::None;
            return if turn == Turn::Arrived { self.set_out(cx, id, again) } else { turn };
        }
        if status == StatusCode::UNAUTHORIZED {
            return self.challenged(cx, id, headers);
        }
        let is_redirect = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
        let location = headers.get(header::LOCATION).filter(|_| is_redirect);
        let Some(location) = location else { return Turn::Arrived };
        match pursuit.redirected(location).filter(|to| may_go(cx, to)) {
            Some(to) => {
                let leaves = !to.is_same_origin(&pursuit.quest.ask.target);
                self.set_out(cx, id, |detour| {
                    detour.to = Some(to);
                    detour.redirects += 1;
                    detour.has_left |= leaves;
                })
            }
            None => self.leave_off(cx, id),
        }
    }

    /// A token service's answer begins.
    fn token_head(&mut self, cx: &mut Context, id: FetchId, status: StatusCode) -> Turn {
        let fetch = cx.pursuits.get(&id).and_then(|pursuit| pursuit.fetch(id));
        let Some(fetch) = fetch.filter(|_| status == StatusCode::OK) else {
            return self.leave_off(cx, id);
        };
        // One more, so that a longer answer is seen to be longer.
        let bytes = TOKEN_BYTES_MAX as u64 + 1;
        cx.out.push_back(Output::Origin(OriginOutput::Grant(fetch, bytes)));
        Turn::OnTheWay
    }

    /// Content of an answer has arrived: it may be a token's.
    pub fn body(&mut self, cx: &mut Context, id: FetchId, bytes: &Bytes) -> Turn {
        let permit = cx.pursuits.get_mut(&id).map(|it| &mut it.detour.permit);
        let Some(Permit::Asked(_, body)) = permit else { return Turn::Arrived };
        body.extend_from_slice(bytes);
        if body.len() > TOKEN_BYTES_MAX { self.leave_off(cx, id) } else { Turn::OnTheWay }
    }

    /// An answer has ended: it may have been a token's. Then the archive is asked again.
    pub fn ended(&mut self, cx: &mut Context, id: FetchId, well: bool) -> Turn {
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return Turn::Arrived };
        let Permit::Asked(challenge, body) = &mut pursuit.detour.permit else {
            return Turn::Arrived;
        };
        let (challenge, body) = (challenge.clone(), std::mem::take(body));
        let place = pursuit.quest.ask.target.clone();
        let Some(token) = Token::read(&body, cx.now).filter(|_| well) else { return Turn::Astray };
        let field = token.field.clone();
        self.tokens.put(&place, challenge, token);
        self.set_out(cx, id, |detour| detour.permit = Permit::Token(field))
    }

    /// The archive wants a token. If anyone may have one, it is requested, or one of lately is used.
    fn challenged(&mut self, cx: &mut Context, id: FetchId, headers: &HeaderMap) -> Turn {
        let Some(pursuit) = cx.pursuits.get(&id) else { return Turn::Arrived };
        let is_first =
            !matches!(pursuit.detour.permit, Permit::Token(_)) && pursuit.detour.to.is_none();
        let has_own = pursuit.quest.headers.contains_key(header::AUTHORIZATION);
        let challenge = headers.get(header::WWW_AUTHENTICATE).and_then(Challenge::read);
        let challenge = challenge.filter(|_| is_first && !has_own);
        let Some(challenge) = challenge else { return Turn::Arrived };
        if !may_go(cx, &challenge.service) {
            return self.leave_off(cx, id);
        }
        let permit = match self.tokens.get(&challenge, cx.now) {
            Some(field) => Permit::Remembered(field),
            None => Permit::Asked(challenge, Vec::new()),
        };
        self.set_out(cx, id, |detour| detour.permit = permit)
    }

    /// Before the first request: a token that was given for the same repository lately saves the challenge.
    pub fn remember_token(&self, cx: &mut Context, id: FetchId) {
        let Some(pursuit) = cx.pursuits.get_mut(&id).filter(|it| it.may_detour()) else { return };
        if !pursuit.quest.headers.contains_key(header::AUTHORIZATION)
            && let Some(field) = self.tokens.of_place(&pursuit.quest.ask.target, cx.now)
        {
            pursuit.detour.permit = Permit::Remembered(field);
        }
    }

    /// Cancels the request under way: its answer is read no further, and none other is sought.
    fn leave_off(&mut self, cx: &mut Context, id: FetchId) -> Turn {
        let fetch = cx.pursuits.get(&id).and_then(|pursuit| pursuit.fetch(id));
        if let Some(fetch) = fetch {
            self.end(fetch);
            cx.out.push_back(Output::Origin(OriginOutput::Cancel(fetch)));
        }
        Turn::Astray
    }

    /// Sends the next request in place of the one under way.
    fn set_out(&mut self, cx: &mut Context, id: FetchId, change: impl FnOnce(&mut Detour)) -> Turn {
        self.leave_off(cx, id);
        let fetch = cx.ids.fetch();
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return Turn::Astray };
        change(&mut pursuit.detour);
        pursuit.detour.fetch = Some(fetch);
        pursuit.moved = cx.now;
        let request = pursuit.origin_request(pursuit.quest.headers.clone());
        self.requests.insert(fetch, id);
        cx.report.detours += 1;
        cx.out.push_back(Output::Origin(OriginOutput::Fetch(fetch, Box::new(request))));
        Turn::OnTheWay
    }
}

/// Whether a request may be sent on to a place: only by TLS, and only to a host that the tables or the operator name.
/// Where its name leads is checked when it is dialled.
fn may_go(cx: &Context, to: &Target) -> bool {
    to.is_tls() && cx.config.reach.may(true, to.host(), to.port())
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
            (_, Some(to)) => {
                turn(fetch, to);
                if self.detour.has_left {
                    strip_credentials(&mut fetch.headers);
                }
            }
            (Permit::Remembered(field) | Permit::Token(field), None) => {
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
