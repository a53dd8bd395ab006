//! How a request announces its content, on whatever way it came: said anew here, never passed on from its sender.

use super::headers::{content_length, strip_hop_by_hop};
use super::screen::{Refusal, Screen, Verdict};
use http::{HeaderMap, HeaderValue, Method, header};

/// Makes the fields that frame a request's content agree with what is sent (RFC 9112 §6). What announces content that does
/// not follow would swallow the next request on the connection; content that nothing announces would be lost, or be
/// read as that request.
pub fn frame(headers: &mut HeaderMap, has_content: bool) {
    headers.remove(header::TRANSFER_ENCODING);
    match (has_content, content_length(headers)) {
        (true, Some(_)) | (false, Some(0)) => {}
        (true, None) => {
            headers.remove(header::CONTENT_LENGTH);
            headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        (false, _) => {
            headers.remove(header::CONTENT_LENGTH);
        }
    }
}

/// Checks the head of a request that comes from another machine already parsed, as that machine's screen should have, and
/// strips what an intermediary strips. After this it has exactly one reading, and its framing agrees with `has_content`.
pub fn check_head(
    method: &Method,
    path: &str,
    headers: &mut HeaderMap,
    has_content: bool,
) -> Result<(), Refusal> {
    // Else its target would not be on the server that was dialled, or its connection would not stay HTTP.
    let is_origin_form = path.starts_with('/') || (*method == Method::OPTIONS && path == "*");
    let is_one_word = path.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    if !is_origin_form || !is_one_word || *method == Method::CONNECT {
        return Err(Refusal::StartLine);
    }
    strip_hop_by_hop(headers);
    headers.remove(header::EXPECT);
    let bytes = head_bytes(method, path, headers);
    match Screen::requests().judge(&bytes) {
        Verdict::Refuse(refusal) => return Err(refusal),
        Verdict::Pass(count) if count == bytes.len() => {}
        Verdict::Pass(_) | Verdict::More => return Err(Refusal::FieldLine),
    }
    match content_length(headers) {
        Some(length) if (length > 0) != has_content => Err(Refusal::ContentLength),
        _ => Ok(()),
    }
}

/// The bytes of a request's head.
pub fn head_bytes(method: &Method, path: &str, headers: &HeaderMap) -> Vec<u8> {
    let mut bytes = format!("{method} {path} HTTP/1.1\r\n").into_bytes();
    for (name, value) in headers {
        bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    bytes.extend(b"\r\n");
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;

    fn checked(
        method: &str,
        path: &str,
        fields: &[(&'static str, &'static str)],
        has_content: bool,
    ) -> Result<HeaderMap, Refusal> {
        let method = Method::from_bytes(method.as_bytes()).expect("a token");
        let mut headers = record(fields).headers;
        check_head(&method, path, &mut headers, has_content).map(|()| headers)
    }

    #[test]
    fn what_is_announced_is_what_is_sent() {
        let framed = |fields: &[(&'static str, &'static str)], has_content| {
            let mut headers = record(fields).headers;
            frame(&mut headers, has_content);
            let text = |name| headers.get(name).map(|it| it.to_str().unwrap().to_owned());
            (text(header::CONTENT_LENGTH), text(header::TRANSFER_ENCODING))
        };
        let (none, chunked) = ((None, None), (None, Some("chunked".to_owned())));
        assert_eq!(framed(&[("content-length", "60")], false), none);
        assert_eq!(framed(&[("transfer-encoding", "chunked")], false), none);
        assert_eq!(framed(&[("content-length", "0")], false), (Some("0".into()), None));
        assert_eq!(framed(&[("content-length", "6")], true), (Some("6".into()), None));
        assert_eq!(framed(&[], true), chunked);
        assert_eq!(framed(&[("content-length", "x")], true), chunked);
        assert_eq!(
            framed(&[("content-length", "6"), ("transfer-encoding", "x")], true),
            (Some("6".into()), None)
        );
    }

    #[test]
    fn a_head_with_two_readings_is_refused() {
        const HOST: (&str, &str) = ("host", "o.test");
        let refused = |method, path, fields: &[_], has_content| {
            checked(method, path, fields, has_content).expect_err("it has two readings")
        };
        assert_eq!(refused("GET", "/", &[], false), Refusal::Host);
        assert_eq!(refused("GET", "/", &[HOST, HOST], false), Refusal::Host);
        for path in ["", "x", "*", "http://a.test/", "/ HTTP/1.1\r\nx: y", "/a b", "/\0"] {
            let why = refused("GET", path, &[HOST], false);
            assert_eq!(why, Refusal::StartLine, "{path}");
        }
        assert_eq!(refused("CONNECT", "/", &[HOST], false), Refusal::StartLine);
        for (length, has_content) in [("60", false), ("0", true), ("x", true), ("+1", true)] {
            let fields = [HOST, ("content-length", length)];
            assert_eq!(refused("POST", "/", &fields, has_content), Refusal::ContentLength);
        }
        let twice = [HOST, ("content-length", "1"), ("content-length", "1")];
        assert_eq!(refused("POST", "/", &twice, true), Refusal::ContentLength);
    }

    #[test]
    fn a_length_that_agrees_with_the_content_is_kept() {
        for (length, has_content) in [("1", true), ("60", true), ("0", false)] {
            let fields = [("host", "o.test"), ("content-length", length)];
            assert_eq!(checked("POST", "/", &fields, has_content), Ok(record(&fields).headers));
        }
    }

    #[test]
    fn what_is_for_one_hop_goes_no_further() {
        let fields = [
            ("host", "o.test"),
            ("connection", "x-hop"),
            ("x-hop", "1"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("expect", "100-continue"),
            ("x-kept", "1"),
        ];
        let kept = record(&[("host", "o.test"), ("x-kept", "1")]).headers;
        assert_eq!(checked("GET", "/", &fields, false), Ok(kept.clone()));
        assert_eq!(checked("POST", "/", &fields, true), Ok(kept));
        assert!(checked("OPTIONS", "*", &[("host", "o.test")], false).is_ok());
    }
}
