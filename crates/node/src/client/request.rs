//! A client's request: parsed, then refused, tunnelled, or looked up.

use super::Client;
use super::classified::classify;
use super::forwards::ends_here;
use crate::access::{Access, Caller, may_use};
use crate::context::Context;
use crate::events::Event;
use crate::exchanges::exchange::{Exchange, State};
use crate::fault::Fault;
use crate::http::{Audience, Scheme, Target};
use crate::input::{Entrance, ExchangeId, FetchError, Request};
use crate::output::{ClientOutput, Dial, Output, StoreOutput};
use crate::request::{Ask, Asker, MANIFEST_CREDIT, PeerHops};
use crate::{dns, http, named};
use ::http::uri::Authority;
use ::http::{HeaderMap, HeaderValue, Method, Uri, Version, header};
use std::net::SocketAddr;

/// A request passes at most this many nodes: a cache is of no use across a wider mesh.
const HOPS_MAX: u8 = wire::peer::Get::VISITED_MAX as u8;

impl Client {
    /// A client sends a request.
    pub fn ask(&mut self, cx: &mut Context, id: ExchangeId, mut request: Request) {
        let Request { client, behind_uplink, entrance, .. } = request;
        let by_us = !matches!(entrance, Entrance::Intercepted(_));
        if by_us && !may_use(client, behind_uplink, &cx.config.allow) {
            return self.refuse(cx, id, Fault::NotLocal);
        }
        // Our own `Via` member shows a forwarding loop (RFC 9110 §7.6.3).
        if http::passed(&request.headers, &cx.via) {
            return self.refuse(cx, id, Fault::Loop);
        }
        if ends_here(&mut cx.out, id, &mut request) {
            return;
        }
        if request.method == Method::CONNECT {
            return self.tunnel(cx, id, &request);
        }
        // Access is checked last, because it needs the target; the engine refuses before the driver
        // dials.
        match understand(request, cx) {
            Err(why) => {
                self.refuse(cx, id, why);
            }
            Ok(ask) => match named::understand(ask, &cx.config.secret) {
                Err(why) => self.refuse(cx, id, why),
                Ok(ask) => match ask.forbidden(&cx.config.access) {
                    Some(why) => self.unreachable(cx, id, Some(FetchError::Forbidden(why))),
                    None => {
                        let url = || ask.target.to_string();
                        cx.events.emit(|| Event::Request { exchange: id, peer: None, url: url() });
                        let exchange = Exchange { ask, credit: 0, state: State::Looking };
                        cx.exchanges.insert(id, exchange);
                        self.admit(cx, id);
                    }
                },
            },
        }
    }

    fn tunnel(&mut self, cx: &mut Context, id: ExchangeId, request: &Request) {
        let target = request.uri.authority().and_then(|authority| {
            Some((authority.host().to_owned(), authority.port_u16().filter(|port| *port != 0)?))
        });
        match (target, request.entrance) {
            (Some((host, port)), Entrance::Explicit) => {
                let caller = if request.at_home { Caller::ThisMachine } else { Caller::Tunnel };
                if let Err(why) = cx.config.access.check_port(caller, port) {
                    return self.unreachable(cx, id, Some(FetchError::Forbidden(why)));
                }
                cx.report.requests.tunnel += 1;
                let dial = Dial::Name(host, port);
                let output = ClientOutput::Tunnel(id, dial, request.client, caller);
                cx.out.push_back(Output::Client(output));
            }
            _ => {
                self.refuse(cx, id, Fault::BadConnect);
            }
        }
    }

    /// Looks up the host's name first, if the decision depends on its addresses.
    fn admit(&mut self, cx: &mut Context, id: ExchangeId) {
        let ask = &cx.exchanges[&id].ask;
        let matters = match ask.caller() {
            Caller::Intercepted => true,
            // They decide whether the answer may be shared with everyone.
            Caller::Explicit => ask.named.is_none() && !cx.config.access.private.is_empty(),
            Caller::ThisMachine | Caller::Tunnel | Caller::Peer | Caller::Gateway => false,
        };
        if ask.caller() == Caller::Intercepted && cx.dns.verified.loads() {
            cx.out.push_back(Output::Store(StoreOutput::Lookup(dns::VERIFIED)));
        }
        let waiter = (ask.client, id);
        if matters && cx.dns.look_up(&ask.target, waiter, &cx.outside, cx.now, &mut cx.out) {
            cx.exchanges.put_state(id, State::Resolving);
        } else {
            self.look(cx, id);
        }
    }
}

/// Reads a request's target from its request line or from `Host` (RFC 9112 §3.3).
fn understand(request: Request, cx: &Context) -> Result<Ask, Fault> {
    let (via, config) = (&cx.via, &cx.config);
    let Request { method, uri, version, mut headers, has_body, client, .. } = request;
    let Request { at_home, entrance, expected, binding, .. } = request;
    let target = target(&uri, headers.get(header::HOST), entrance)?;
    // An intercepted client has chosen an address: no other is dialled for it.
    let dial = match entrance {
        Entrance::Intercepted(dialled) => Dial::Address(dialled),
        Entrance::Explicit | Entrance::Mirror => {
            Dial::Name(target.host().to_owned(), target.port())
        }
    };
    let upgrade = http::wants_upgrade(&headers);
    // `Upgrade` is hop by hop, and would be stripped with the others.
    let upgrades = headers.get(header::UPGRADE).cloned().filter(|_| upgrade);
    http::strip_hop_by_hop(&mut headers);
    // The target replaces it; it is made anew for the origin.
    headers.remove(header::HOST);
    // Who dials waits for what the origin makes of it (RFC 9110 §10.1.1).
    if !has_body {
        headers.remove(header::EXPECT);
    }
    if let Some(upgrades) = upgrades {
        headers.insert(header::UPGRADE, upgrades);
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    }
    http::add_via(&mut headers, version, via);
    // Content, or a connection to be upgraded, can be sent only once: there is no second attempt.
    let repeatable = !has_body && !upgrade;
    // By `https` another node may dial: what this machine may dial itself does not count.
    let at_home = at_home && !target.is_tls();
    let may_turn_home = at_home && repeatable && may_be_shared(&target, &config.access);
    // Answers to this machine's own programs may come from places that others cannot reach: they
    // are kept apart.
    let exempt = at_home && !may_turn_home;
    let audience = if exempt { Audience::ThisMachine } else { Audience::Everyone };
    let key = target.key(&config.secret, audience);
    let (verdict, expected) = classify(cx, &target, expected);
    Ok(Ask {
        asker: Asker::Client,
        peer_hops: PeerHops {
            hops: HOPS_MAX,
            manifest_credit: MANIFEST_CREDIT,
            ..PeerHops::default()
        },
        method,
        expected,
        follow: entrance == Entrance::Mirror,
        verdict,
        target,
        key,
        named: None,
        headers,
        client,
        audience,
        may_turn_home,
        entrance,
        dial,
        has_body,
        upgrade,
        takes_interim: version >= Version::HTTP_11,
        binding,
        alone: false,
        cookies: HeaderMap::new(),
        // An intercepted connection may lead anywhere, until its address is found to be the host's.
        verified: !matches!(entrance, Entrance::Intercepted(_)),
    })
}

/// Whether any client of the proxy could make the same request from this machine, as far as the
/// target shows. Then the answer is shared with all of them.
fn may_be_shared(target: &Target, access: &Access) -> bool {
    let port = target.port();
    let permitted = match target.address() {
        Some(address) => access.check(Caller::Explicit, (address, port).into()),
        None => access.check_port(Caller::Explicit, port),
    };
    permitted.is_ok()
}

fn target(uri: &Uri, host: Option<&HeaderValue>, entrance: Entrance) -> Result<Target, Fault> {
    if uri.scheme().is_some() {
        return match (Scheme::of(uri).ok_or(Fault::BadScheme)?, entrance) {
            // The client has dialled in clear.
            (Scheme::Https, Entrance::Intercepted(_)) => Err(Fault::BadScheme),
            _ => Target::read(uri).ok_or(Fault::NoHost),
        };
    }
    match entrance {
        Entrance::Explicit | Entrance::Mirror => Err(Fault::NotForProxy),
        Entrance::Intercepted(dialled) => {
            let authority = match host {
                Some(host) => Authority::try_from(host.as_bytes()).map_err(|_| Fault::BadHost)?,
                None => literal(dialled)?,
            };
            Target::new(Scheme::Http, &authority, uri.path_and_query()).ok_or(Fault::BadHost)
        }
    }
}

fn literal(address: SocketAddr) -> Result<Authority, Fault> {
    let plain = SocketAddr::new(address.ip().to_canonical(), address.port());
    Authority::try_from(plain.to_string()).map_err(|_| Fault::BadAddress)
}
