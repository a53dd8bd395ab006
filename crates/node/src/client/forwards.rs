//! `Max-Forwards`: how many more proxies a TRACE or OPTIONS may pass (RFC 9110 §7.6.2, §9.3.7,
//! §9.3.8).

use crate::input::{ExchangeId, Request};
use crate::output::{ClientOutput, Head, Output};
use ::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use bytes::Bytes;
use std::collections::VecDeque;

/// Decrements `Max-Forwards`. True if this proxy is the last one, and has answered.
pub fn ends_here(out: &mut VecDeque<Output>, id: ExchangeId, request: &mut Request) -> bool {
    if !matches!(request.method, Method::TRACE | Method::OPTIONS) {
        return false;
    }
    // A value that is no number sets no limit.
    let Some(left) = max_forwards(&request.headers) else { return false };
    if let Some(left) = left.checked_sub(1) {
        request.headers.insert(header::MAX_FORWARDS, HeaderValue::from(left));
        return false;
    }
    answer_as_last(out, id, request);
    true
}

fn answer_as_last(out: &mut VecDeque<Output>, id: ExchangeId, request: &Request) {
    let mut headers = HeaderMap::new();
    let mut text = Bytes::new();
    if request.method == Method::TRACE {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("message/http"));
        text = reflection(request);
    }
    let length = text.len() as u64;
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    let head = Head { status: StatusCode::OK, headers, length: Some(length) };
    out.push_back(Output::Client(ClientOutput::Respond(id, Box::new(head))));
    if !text.is_empty() {
        // The reflected head passed the screen, so it is short enough to be sent without credit.
        out.push_back(Output::Client(ClientOutput::Data(id, text)));
    }
    out.push_back(Output::Client(ClientOutput::Finish(id)));
}

/// How many more proxies may forward the request; `None` if the field is absent, repeated or no
/// number.
fn max_forwards(headers: &HeaderMap) -> Option<u64> {
    let mut lines = headers.get_all(header::MAX_FORWARDS).iter();
    let (line, None) = (lines.next()?, lines.next()) else { return None };
    let text = line.to_str().ok()?.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

/// The request as received, without fields that may hold credentials.
fn reflection(request: &Request) -> Bytes {
    let Request { method, uri, version, headers, .. } = request;
    let mut text = format!("{method} {uri} {version:?}\r\n").into_bytes();
    for (name, value) in headers.iter().filter(|(name, _)| !is_secret(name)) {
        text.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    text.extend(b"\r\n");
    text.into()
}

/// Whether a field may hold credentials.
fn is_secret(name: &HeaderName) -> bool {
    [header::AUTHORIZATION, header::COOKIE].contains(name) || name.as_str().starts_with("proxy-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_number_limits() {
        let read = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::MAX_FORWARDS, HeaderValue::from_static(line));
            }
            max_forwards(&headers)
        };
        assert_eq!((read(&["0"]), read(&["07"])), (Some(0), Some(7)));
        assert_eq!(read(&["99999999999999999999999"]), Some(u64::MAX));
        for none in [&[][..], &[""], &["-1"], &["+1"], &["1, 2"], &["x"], &["1", "1"]] {
            assert_eq!(read(none), None, "{none:?}");
        }
    }
}
