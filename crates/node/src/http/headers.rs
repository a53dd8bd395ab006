//! The header fields that an intermediary removes (RFC 9110 §7.6), and those that it adds.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};

/// Fields that are never forwarded, whether `Connection` names them or not.
const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Whether no field is hop-by-hop and none is `Content-Length`, as in a record.
pub fn is_end_to_end(headers: &HeaderMap) -> bool {
    !headers.contains_key(header::CONTENT_LENGTH)
        && !HOP_BY_HOP.iter().any(|name| headers.contains_key(name))
}

/// A copy of the fields without the hop-by-hop fields.
pub fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let mut kept = headers.clone();
    strip_hop_by_hop(&mut kept);
    kept
}

/// Removes the hop-by-hop fields.
pub fn strip_hop_by_hop(headers: &mut HeaderMap) {
    if headers.contains_key(header::CONNECTION) {
        for name in connection_names(headers) {
            headers.remove(name);
        }
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

/// Whether a head, of either direction, authenticates its connection instead of its message (RFC 4559 §5): then an origin
/// takes all that follows on the connection for that client's. Any scheme that begins so is taken for one of these, as
/// HAProxy does: there are variants (`Nego2`), and to be wrong costs one connection.
pub fn binds(headers: &HeaderMap) -> bool {
    let fields = [
        header::AUTHORIZATION,
        header::WWW_AUTHENTICATE,
        header::PROXY_AUTHORIZATION,
        header::PROXY_AUTHENTICATE,
    ];
    let begins = |member: &[u8], name: &[u8]| {
        member.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    fields.iter().flat_map(|name| headers.get_all(name)).any(|line| {
        // A comma within quotes may look like a further challenge, which harms nobody.
        let mut members = line.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        members.any(|member| begins(member, b"nego") || begins(member, b"ntlm"))
    })
}

/// Removes what a client says only to one origin, before its request goes on to another (RFC 9110 §15.4).
pub fn strip_credentials(headers: &mut HeaderMap) {
    for name in [
        header::AUTHORIZATION,
        header::COOKIE,
        HeaderName::from_static("cookie2"),
        header::PROXY_AUTHORIZATION,
    ] {
        headers.remove(name);
    }
}

/// Removes and returns the fields that set cookies. They are for one client: no other may get them (RFC 6265
/// §4.1, RFC 9111 §7.3).
pub fn take_cookies(headers: &mut HeaderMap) -> HeaderMap {
    let mut taken = HeaderMap::new();
    for name in [header::SET_COOKIE, HeaderName::from_static("set-cookie2")] {
        for value in headers.get_all(&name) {
            taken.append(&name, value.clone());
        }
        headers.remove(&name);
    }
    taken
}

fn connection_names(headers: &HeaderMap) -> Vec<HeaderName> {
    let lines = headers.get_all(header::CONNECTION).iter();
    let names = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    names
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        // Without one of these fields, which a malicious `Connection` may name, the next hop would
        // misread the message.
        .filter(|name| {
            ![header::CONTENT_LENGTH, header::HOST, header::CACHE_CONTROL].contains(name)
        })
        .collect()
}

/// Whether `Connection` asks for an upgrade, as WebSocket does. An upgrade to HTTP/2 is ignored: it is
/// obsolete (RFC 9113 §3.1), optional, and would only hide responses that could be cached.
pub fn wants_upgrade(headers: &HeaderMap) -> bool {
    headers.get(header::UPGRADE).is_some_and(|to| !to.as_bytes().eq_ignore_ascii_case(b"h2c"))
        && connection_names(headers).contains(&header::UPGRADE)
}

/// Adds this router to `Via` (§7.6.3): `us` is its pseudonym and a comment.
pub fn add_via(headers: &mut HeaderMap, version: Version, us: &str) {
    let number = if version == Version::HTTP_10 { "1.0" } else { "1.1" };
    let via = HeaderValue::try_from(format!("{number} {us}")).expect("a token is ASCII");
    headers.append(header::VIA, via);
}

/// Whether `Via` already names this router: a loop.
pub fn passed(headers: &HeaderMap, us: &str) -> bool {
    headers.get_all(header::VIA).iter().any(|line| {
        line.to_str().is_ok_and(|text| {
            let mut hops = text.split(',').filter_map(|hop| hop.trim().split_once(' '));
            hops.any(|(_, by)| by.trim() == us)
        })
    })
}

/// `Content-Length`. The screen has already ensured that it is one number.
pub fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

pub fn bodiless(method: &Method, status: StatusCode) -> bool {
    method == Method::HEAD || matches!(status.as_u16(), 100..200 | 204 | 304)
}

/// Adds a member to `Cache-Status` (RFC 9211).
pub fn add_status(headers: &mut HeaderMap, name: &str, detail: &str) {
    let value = HeaderValue::try_from(format!("{name}; {detail}")).expect("tokens are ASCII");
    headers.append("cache-status", value);
}

/// Adds the `Cache-Status` members of upstream caches, which come before ours (RFC 9211 §2).
pub fn add_upstream(headers: &mut HeaderMap, status_line: &str) {
    if !status_line.is_empty()
        && let Ok(value) = HeaderValue::try_from(status_line)
    {
        headers.append("cache-status", value);
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;

    #[test]
    fn what_ends_here_does_not_go_on() {
        let headers = record(&[
            ("connection", "X-Gone, close, Content-Length"),
            ("x-gone", "1"),
            ("keep-alive", "5"),
            ("te", "trailers"),
            ("content-length", "3"),
            ("x-kept", "1"),
        ])
        .headers;
        let kept: Vec<_> = end_to_end(&headers).keys().map(ToString::to_string).collect();
        assert_eq!(kept, ["content-length", "x-kept"]);
    }

    #[test]
    fn a_loop_is_seen_by_name() {
        let mut headers = HeaderMap::new();
        add_via(&mut headers, Version::HTTP_11, "other");
        assert!(!passed(&headers, "me"));
        add_via(&mut headers, Version::HTTP_10, "me (x 1)");
        assert!(passed(&headers, "me (x 1)") && !passed(&headers, "me (x 2)"));
        assert_eq!(headers.get_all(header::VIA).iter().next_back().unwrap(), "1.0 me (x 1)");
    }

    #[test]
    fn cookies_are_taken_out_whole() {
        let fields =
            [("set-cookie", "a=1"), ("x", "1"), ("set-cookie", "b=2"), ("set-cookie2", "c")];
        let mut headers = record(&fields).headers;
        let taken = take_cookies(&mut headers);
        assert_eq!(headers, record(&[("x", "1")]).headers);
        assert_eq!(taken, record(&[fields[0], fields[2], fields[3]]).headers);
    }

    #[test]
    fn what_a_client_says_to_one_origin_alone_is_stripped() {
        let fields = [
            ("authorization", "a"),
            ("cookie", "b"),
            ("cookie", "c"),
            ("cookie2", "d"),
            ("proxy-authorization", "e"),
            ("host", "o.test"),
            ("range", "bytes=1-"),
        ];
        let mut headers = record(&fields).headers;
        strip_credentials(&mut headers);
        assert_eq!(headers, record(&fields[5..]).headers);
    }

    #[test]
    fn schemes_that_authenticate_connections_are_known() {
        for (name, value) in [
            ("authorization", "NTLM TlRMTVNTUAABAAAA"),
            ("authorization", "negotiate YII"),
            ("www-authenticate", "Negotiate"),
            ("www-authenticate", "Basic realm=\"a, b\", Nego2 x"),
            ("proxy-authenticate", "ntlm"),
            ("proxy-authorization", "NTLM x"),
        ] {
            assert!(binds(&record(&[(name, value)]).headers), "{name}: {value}");
        }
        assert!(binds(
            &record(&[("www-authenticate", "Basic realm=x"), ("www-authenticate", "NTLM")]).headers
        ));
        for (name, value) in [
            ("authorization", "Basic bnRsbTpudGxt"),
            ("www-authenticate", "Bearer realm=\"https://ntlm.test/\""),
            ("cookie", "NTLM"),
        ] {
            assert!(!binds(&record(&[(name, value)]).headers), "{name}: {value}");
        }
    }

    #[test]
    fn an_upgrade_needs_both_fields() {
        assert!(wants_upgrade(
            &record(&[("connection", "x, Upgrade"), ("upgrade", "websocket")]).headers
        ));
        assert!(!wants_upgrade(&record(&[("upgrade", "websocket")]).headers));
        assert!(!wants_upgrade(&record(&[("connection", "Upgrade"), ("upgrade", "h2c")]).headers));
    }

    /// RFC 9110 §7.6.1; a record has its length elsewhere.
    #[test]
    fn a_record_has_neither_fields_of_one_hop_nor_a_length() {
        let is = |name| is_end_to_end(&record(&[("etag", "x"), (name, "x")]).headers);
        for name in [
            "connection",
            "keep-alive",
            "proxy-connection",
            "proxy-authenticate",
            "proxy-authorization",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
            "content-length",
        ] {
            assert!(!is(name), "{name}");
        }
        assert!(is("content-type"));
    }

    #[test]
    fn a_message_keeps_what_frames_and_directs_it_whatever_connection_names() {
        let fields = [("content-length", "3"), ("host", "a"), ("cache-control", "no-store")];
        let names = ("connection", "content-length, host, cache-control");
        let mut headers = record(&[fields[0], fields[1], fields[2], names]).headers;
        strip_hop_by_hop(&mut headers);
        assert_eq!(headers, record(&fields).headers);
    }

    #[test]
    fn a_length_is_a_number() {
        let of = |text| content_length(&record(&[("content-length", text)]).headers);
        assert_eq!((of("0"), of("1234"), of("x")), (Some(0), Some(1234), None));
        assert_eq!(content_length(&HeaderMap::new()), None);
    }

    /// RFC 9112 §6.3.
    #[test]
    fn heads_interim_responses_204_and_304_have_no_body() {
        let without = |method, status| bodiless(&method, StatusCode::from_u16(status).unwrap());
        assert!([100, 199, 204, 304].into_iter().all(|it| without(Method::GET, it)));
        assert!([200, 205, 206, 303, 404].into_iter().all(|it| !without(Method::GET, it)));
        assert!(without(Method::HEAD, 200));
    }

    /// RFC 9211 §2: the member of the cache that is nearest to the client is last.
    #[test]
    fn our_status_follows_those_of_caches_upstream() {
        let mut headers = HeaderMap::new();
        for line in ["", "a\nb"] {
            add_upstream(&mut headers, line);
        }
        assert!(headers.is_empty());
        add_upstream(&mut headers, "far; hit, near; fwd=miss");
        add_status(&mut headers, "us", "hit; ttl=5");
        let told: Vec<_> = headers.get_all("cache-status").iter().collect();
        assert_eq!(told, ["far; hit, near; fwd=miss", "us; hit; ttl=5"]);
    }
}
