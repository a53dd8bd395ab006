//! `Max-Forwards`: how many proxies a TRACE or an OPTIONS may pass (RFC 9110 §7.6.2, §9.3.7, §9.3.8).

use crate::input::{ExchangeId, Request};
use crate::output::{ClientOutput, Head, Output};
use ::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use bytes::Bytes;
use std::collections::VecDeque;

/// Counts a request down. True if it was to go no further than this, and is answered.
pub fn ends_here(out: &mut VecDeque<Output>, id: ExchangeId, request: &mut Request) -> bool {
    if !matches!(request.method, Method::TRACE | Method::OPTIONS) {
        return false;
    }
    // What is no number limits nothing.
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
        // A head is no longer than the screen lets through: that is given without asking for credit.
        out.push_back(Output::Client(ClientOutput::Data(id, text)));
    }
    out.push_back(Output::Client(ClientOutput::Finish(id)));
}

/// How many more proxies may pass a request on; `None` if that is not said, or not in one number.
fn max_forwards(headers: &HeaderMap) -> Option<u64> {
    let mut lines = headers.get_all(header::MAX_FORWARDS).iter();
    let (line, None) = (lines.next()?, lines.next()) else { return None };
    let text = line.to_str().ok()?.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

/// A request as it came, without what is secret.
fn reflection(request: &Request) -> Bytes {
    let Request { method, uri, version, headers, .. } = request;
    let mut text = format!("{method} {uri} {version:?}\r\n").into_bytes();
    for (name, value) in headers.iter().filter(|(name, _)| !is_secret(name)) {
        text.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    text.extend(b"\r\n");
    text.into()
}

/// Whether a field may have credentials.
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
