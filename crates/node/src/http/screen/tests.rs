use super::*;
use proptest::prelude::*;

/// Shows the bytes in pieces; returns those that passed, and the refusal if there was one.
fn screen(mut screen: Screen, bytes: &[u8], piece: usize) -> (Vec<u8>, Option<Refusal>) {
    let (mut passed, mut held) = (Vec::new(), Vec::new());
    for bytes in bytes.chunks(piece) {
        held.extend_from_slice(bytes);
        loop {
            match screen.judge(&held) {
                Verdict::Pass(count) => {
                    assert!(count > 0, "nothing passed");
                    passed.extend(held.drain(..count));
                }
                Verdict::More => break,
                Verdict::Refuse(refusal) => return (passed, Some(refusal)),
            }
        }
    }
    (passed, None)
}

fn refused(head: &str) -> Option<Refusal> {
    let text = head.replace('\n', "\r\n");
    let whole = screen(Screen::requests(), text.as_bytes(), usize::MAX).1;
    assert_eq!(whole, screen(Screen::requests(), text.as_bytes(), 1).1, "byte by byte: {head:?}");
    whole
}

fn refused_response(head: &str) -> Option<Refusal> {
    screen(Screen::responses(), head.replace('\n', "\r\n").as_bytes(), 1).1
}

#[test]
fn sound_requests_pass_one_after_the_other() {
    let requests = "GET / HTTP/1.1\r\nHost: a\r\n\r\n\
        POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nGET \
        PUT /y HTTP/1.1\r\nhost: a\r\ntransfer-encoding: Chunked\r\n\r\n\
        3;ext=\"v\"\r\nabc\r\n0\r\nTrailer: x\r\n\r\n\r\n\
        GET / HTTP/1.0\n\n";
    for piece in [1, 2, 7, 1000] {
        let (passed, refusal) = screen(Screen::requests(), requests.as_bytes(), piece);
        assert_eq!((passed.len(), refusal), (requests.len(), None));
    }
}

#[test]
fn smuggling_shapes_are_refused() {
    use Refusal::*;
    let post = "POST / HTTP/1.1\nHost: a\n";
    for (fields, refusal) in [
        ("Content-Length: 5\nTransfer-Encoding: chunked\n\n", TransferEncoding),
        ("Transfer-Encoding: chunked\nTransfer-Encoding: chunked\n\n", TransferEncoding),
        ("Transfer-Encoding: gzip, chunked\n\n", TransferEncoding),
        ("Transfer-Encoding: xchunked\n\n", TransferEncoding),
        ("Transfer-Encoding : chunked\n\n", FieldLine),
        ("Content-Length: 5\nContent-Length: 5\n\n", ContentLength),
        ("Content-Length: 5\nContent-Length: 6\n\n", ContentLength),
        ("Content-Length: 5, 5\n\n", ContentLength),
        ("Content-Length: +5\n\n", ContentLength),
        ("Content-Length: 0x5\n\n", ContentLength),
        ("Content-Length:\n\n", ContentLength),
        ("Content-Length: 99999999999999999999\n\n", ContentLength),
        ("X: a\n b\n\n", FieldLine),
        (" X: a\n\n", FieldLine),
        ("X\n\n", FieldLine),
        (": x\n\n", FieldLine),
        ("X: \u{1}\n\n", FieldLine),
        ("Host: b\n\n", Host),
        ("X: a\rb: c\n\n", Control),
        ("X: \0\n\n", Control),
    ] {
        assert_eq!(refused(&format!("{post}{fields}")), Some(refusal), "{fields:?}");
    }
}

#[test]
fn first_lines_must_be_of_http_1() {
    for line in ["GET /", "GET  / HTTP/1.1", "GET / HTTP/2.0", "G(T / HTTP/1.1", "GET /\t HTTP/1.1"]
    {
        let request = format!("{line}\nHost: a\n\n");
        assert_eq!(refused(&request), Some(Refusal::StartLine), "{line:?}");
    }
    assert_eq!(refused("GET / HTTP/1.1\n\n"), Some(Refusal::Host));
    assert_eq!(
        refused("GET / HTTP/1.0\nTransfer-Encoding: chunked\n\n"),
        Some(Refusal::TransferEncoding)
    );
}

#[test]
fn broken_chunks_are_refused() {
    let head = "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n";
    for body in ["x\n", "\n", "-1\n", "5 x\n", "3\nabcd\n", "fffffffffffffffff\n", "1;\u{1}\na\n"] {
        assert_eq!(refused(&format!("{head}{body}")), Some(Refusal::Chunk), "{body:?}");
    }
    let bare = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc";
    assert_eq!(screen(Screen::requests(), bare, 1).1, Some(Refusal::Chunk));
}

#[test]
fn nothing_grows_without_bound() {
    let long = format!("GET / HTTP/1.1\nHost: a\nX: {}\n\n", "x".repeat(HEAD_MAX));
    assert_eq!(refused(&long), Some(Refusal::TooLarge));
    let head = "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n";
    let extension = format!("{head}1;{}\n", "x".repeat(CHUNK_LINE_MAX));
    assert_eq!(refused(&extension), Some(Refusal::TooLarge));
    let trailers = format!("{head}0\n{}\n", "X: y\n".repeat(TRAILERS_MAX / 4));
    assert_eq!(refused(&trailers), Some(Refusal::TooLarge));
}

#[test]
fn what_follows_connect_or_upgrade_is_not_looked_at() {
    assert_eq!(refused("CONNECT a:443 HTTP/1.1\nHost: a\n\n\u{1}\r\0"), None);
    assert_eq!(refused("GET / HTTP/1.1\nHost: a\nUpgrade: x\n\n\u{1}\r\0"), None);
}

#[test]
fn responses_are_followed_by_their_own_rules() {
    assert_eq!(refused_response("HTTP/1.1 200 OK\n\nanything\0"), None, "until close");
    let next = "HTTP/1.1 200\nContent-Length: 0\n\n";
    for first in [
        "HTTP/1.1 100 Continue\n\n",
        "HTTP/1.1 304 x\nContent-Length: 9\n\n",
        "HTTP/1.0 204 \n\n",
        "HTTP/1.1 200 OK\nContent-Length: 3\nContent-Length: 3\n\nabc",
        "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n3\nabc\n0\n\n",
    ] {
        assert_eq!(refused_response(&format!("{first}{next}")), None, "{first:?}");
        let broken = format!("{first}HTTP/1.1 2x0\n\n");
        assert_eq!(refused_response(&broken), Some(Refusal::StartLine), "{first:?}");
    }
    let both = "HTTP/1.1 200 OK\nContent-Length: 3\nTransfer-Encoding: chunked\n\n";
    assert_eq!(refused_response(both), Some(Refusal::TransferEncoding));
    let two = "HTTP/1.1 200 OK\nContent-Length: 3\nContent-Length: 4\n\n";
    assert_eq!(refused_response(two), Some(Refusal::ContentLength));
    assert_eq!(refused_response("HTTP/1.1 200 OK\nX: a\n b\n\n"), Some(Refusal::FieldLine));
}

#[test]
fn a_reason_may_be_in_any_coding() {
    let text = b"HTTP/1.1 404 Nicht gef\xfcnden\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(screen(Screen::responses(), text, 1), (text.to_vec(), None));
}

#[test]
fn what_of_a_head_was_looked_at_is_not_looked_at_again() {
    let mut requests = Screen::requests();
    let head = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    for end in 1..head.len() {
        assert_eq!(requests.judge(&head[..end]), Verdict::More);
        assert!(requests.is_between());
        assert_eq!(requests.state, State::Head { scanned: end });
    }
    assert_eq!(requests.judge(head), Verdict::Pass(head.len()));
    assert_eq!(requests.state, State::NEXT);
}

#[test]
fn a_response_to_head_has_no_body() {
    let mut responses = Screen::responses();
    responses.expect(true);
    let text = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nHTTP/1.1 204 x\r\n\r\n";
    assert_eq!(screen(responses, text, 1), (text.to_vec(), None));
}

#[test]
fn http_is_told_from_the_rest_by_its_first_bytes() {
    assert_eq!(looks_like_http(b"GET / HT"), Some(true));
    assert_eq!(looks_like_http(b"\r\nM-SEARCH * "), Some(true));
    assert_eq!(looks_like_http(b"GE"), None);
    assert_eq!(looks_like_http(b"\r\n"), None);
    assert_eq!(looks_like_http(b"\x16\x03\x01"), Some(false));
    assert_eq!(looks_like_http(b" GET"), Some(false));
    assert_eq!(looks_like_http(b"PRI * HTTP/2.0\r\n"), Some(false));
    assert_eq!(looks_like_http(&[b'a'; 40]), Some(false));
}

proptest! {
    #[test]
    fn how_the_bytes_are_split_does_not_matter(
        parts in prop::collection::vec(prop_oneof![
            Just("GET / HTTP/1.1\r\n"), Just("Host: a\r\n"), Just("\r\n"), Just("Content-Length: 3\r\n"),
            Just("Transfer-Encoding: chunked\r\n"), Just("3\r\nabc\r\n0\r\n"), Just("abc"), Just("\n"),
            Just("\r"), Just("HTTP/1.1 200 OK\r\n"), Just("Upgrade: x\r\n"), Just(" "),
        ], 0..12),
        piece in 1usize..9,
    ) {
        let text = parts.concat();
        for make in [Screen::requests, Screen::responses] {
            let (whole, refusal) = screen(make(), text.as_bytes(), usize::MAX);
            let (split, split_refusal) = screen(make(), text.as_bytes(), piece);
            prop_assert_eq!(refusal, split_refusal);
            prop_assert_eq!(whole, split);
        }
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(bytes: Vec<u8>) {
        let _ = screen(Screen::requests(), &bytes, 3);
        let _ = screen(Screen::responses(), &bytes, 3);
        let _ = looks_like_http(&bytes);
    }
}

/// Whether bytes pass; shown in pieces of either size, they have the same fate.
fn pass(bytes: &str) -> Result<(), Refusal> {
    let shown = |piece| {
        let (passed, refusal) = screen(Screen::requests(), bytes.as_bytes(), piece);
        assert!(refusal.is_some() || passed.len() == bytes.len());
        refusal
    };
    assert_eq!(shown(usize::MAX), shown(509));
    shown(usize::MAX).map_or(Ok(()), Err)
}

#[test]
fn heads_chunk_lines_and_trailers_may_be_as_long_as_their_bounds() {
    let head = |length: usize| {
        let empty = "GET / HTTP/1.1\r\nHost: a\r\nx: \r\n\r\n".len();
        format!("GET / HTTP/1.1\r\nHost: a\r\nx: {}\r\n\r\n", "y".repeat(length - empty))
    };
    let chunked = "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let line =
        |length: usize| format!("{chunked}0;{}\r\n\r\n", "y".repeat(length - "0;\r\n".len()));
    // The line that ends the trailers counts, too.
    let trailers = |length: usize| {
        format!("{chunked}0\r\nx: {}\r\n\r\n", "y".repeat(length - "x: \r\n\r\n".len()))
    };
    for (message, bound) in
        [(&head as &dyn Fn(usize) -> String, 32 * 1024), (&line, 1024), (&trailers, 16 * 1024)]
    {
        assert_eq!(pass(&message(bound)), Ok(()));
        assert_eq!(pass(&message(bound + 1)), Err(Refusal::TooLarge));
    }
}

#[test]
fn what_has_no_end_is_waited_for_until_it_exceeds_its_bound() {
    let chunked = "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let trailers = format!("{chunked}0\r\nx: y\r\n");
    let last = format!("{chunked}0\r\n");
    for (before, counted, bound) in [
        ("", "", 32 * 1024),
        (chunked, "", 1024),
        (&last, "", 16 * 1024),
        (&trailers, "x: y\r\n", 16 * 1024),
    ] {
        let judged = |length: usize| {
            let mut requests = Screen::requests();
            let mut at = 0;
            while at < before.len() {
                let Verdict::Pass(count) = requests.judge(&before.as_bytes()[at..]) else {
                    panic!()
                };
                at += count;
            }
            requests.judge(&vec![b'1'; length - counted.len()])
        };
        assert_eq!(judged(bound), Verdict::More, "{before}");
        assert_eq!(judged(bound + 1), Verdict::Refuse(Refusal::TooLarge), "{before}");
    }
}

#[test]
fn lines_of_a_head_may_end_without_carriage_return() {
    for end in ["\n\n", "\n\r\n", "\r\n\n"] {
        let head = format!("PUT / HTTP/1.1\nHost: a\nContent-Length: 1{end}");
        let mut requests = Screen::requests();
        assert_eq!(requests.judge(format!("{head}x").as_bytes()), Verdict::Pass(head.len()));
        assert_eq!(requests.unseen(), 1);
    }
}

#[test]
fn a_chunk_extension_may_have_white_space() {
    // RFC 9112 §7.1.1: BWS is a space or a tab.
    let chunked = "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(pass(&format!("{chunked}3 ;\ta = b\r\nabc\r\n0\r\n\r\n")), Ok(()));
    assert_eq!(pass(&format!("{chunked}3;a\x1fb\r\nabc\r\n")), Err(Refusal::Chunk));
}

#[test]
fn a_method_has_less_than_32_letters() {
    let looks = |text: &str| looks_like_http(text.as_bytes());
    assert_eq!(looks(&"A".repeat(31)), None, "a space may follow");
    assert_eq!(looks(&"A".repeat(32)), Some(false));
    assert_eq!(looks(" "), Some(false));
}

#[test]
fn content_need_not_be_shown() {
    let body = |screen: &mut Screen, head: &str| {
        let head = head.replace('\n', "\r\n");
        assert_eq!(screen.judge(head.as_bytes()), Verdict::Pass(head.len()));
        (screen.unseen(), screen.is_between())
    };
    let mut requests = Screen::requests();
    assert_eq!((requests.unseen(), requests.is_between()), (0, true));
    let put = "PUT / HTTP/1.1\nHost: a\n";
    assert_eq!(body(&mut requests, &format!("{put}Content-Length: 9\n\n")), (9, false));
    requests.skip(4);
    assert_eq!((requests.unseen(), requests.is_between()), (5, false));
    assert_eq!(requests.judge(b"abPUT"), Verdict::Pass(5));
    assert_eq!((requests.unseen(), requests.is_between()), (0, true));
    assert_eq!(body(&mut requests, &format!("{put}Content-Length: 9\n\n")), (9, false));
    requests.skip(9);
    assert_eq!((requests.unseen(), requests.is_between()), (0, true));
    assert_eq!(body(&mut requests, &format!("{put}Transfer-Encoding: chunked\n\n")), (0, false));
    assert_eq!(body(&mut requests, "a\n"), (10, false));
    requests.skip(4);
    assert_eq!(requests.judge(b"ab"), Verdict::Pass(2));
    assert_eq!(requests.unseen(), 4);
    requests.skip(4);
    // The line after a chunk is shown.
    assert_eq!((requests.unseen(), requests.is_between()), (0, false));
    assert_eq!(requests.judge(b"x"), Verdict::Refuse(Refusal::Chunk));
    let mut responses = Screen::responses();
    assert_eq!(body(&mut responses, "HTTP/1.1 200 OK\n\n"), (u64::MAX, false));
    responses.skip(7);
    assert_eq!(responses.unseen(), u64::MAX);
    assert_eq!(responses.judge(b"\0"), Verdict::Pass(1));
}

#[test]
fn a_refusal_has_a_status_and_a_reason() {
    // RFC 6585 §5.
    assert_eq!(Refusal::TooLarge.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    for refusal in [Refusal::StartLine, Refusal::Host, Refusal::ContentLength, Refusal::Chunk] {
        assert_eq!(refusal.status(), StatusCode::BAD_REQUEST);
    }
    assert_eq!(Refusal::Host.to_string(), "there must be exactly one Host");
}

#[test]
fn nothing_is_judged_before_it_is_there() {
    for mut screen in [Screen::requests(), Screen::responses()] {
        assert_eq!(screen.judge(b""), Verdict::More);
        assert_eq!(screen.judge(b"\r\n\nGET"), Verdict::Pass(3));
        assert_eq!(screen.judge(b"GET"), Verdict::More);
        assert_eq!(screen.judge(b"GET \0"), Verdict::Refuse(Refusal::Control), "at once");
    }
}

/// RFC 9112 §3 and §4.
#[test]
fn a_first_line_has_three_parts() {
    let is_refused =
        |line: &str| refused(&format!("{line}\nHost: a\n\n")) == Some(Refusal::StartLine);
    for line in [
        " / HTTP/1.1",
        "GET / x HTTP/1.1",
        "GET / HTTP/1.1 ",
        "GET /\u{7f} HTTP/1.1",
        "GET /\u{1} HTTP/1.1",
        "GET / HTTP/1.2",
        "GET / http/1.1",
        "GET /",
    ] {
        assert!(is_refused(line), "{line:?}");
    }
    for line in ["GET / HTTP/1.0", "M-SEARCH * HTTP/1.1", "GET /\u{fc}~! HTTP/1.1"] {
        assert!(!is_refused(line), "{line:?}");
    }
    for line in ["HTTP/1.2 200 x", "HTTP/1.1200 x", "HTTP/1.1 20", "HTTP/2 200", "http/1.1 200"] {
        assert_eq!(refused_response(&format!("{line}\n\n")), Some(Refusal::StartLine), "{line}");
    }
}

#[test]
fn a_field_has_a_token_for_its_name_and_text_for_its_value() {
    let of = |field: &[u8]| {
        let head = [b"GET / HTTP/1.1\r\nHost: a\r\n", field, b"\r\n\r\n"].concat();
        screen(Screen::requests(), &head, usize::MAX).1
    };
    for field in [&b"x:"[..], b"!#$%&'*+-.^_`|~09azAZ: \t b\tc \xfc ~", b"x:y:z"] {
        assert_eq!(of(field), None, "{field:?}");
    }
    for field in [&b"x\x7f: y"[..], b"x: \x7f", b"x: \x1f", b"x\xfc: y", b"x(: y", b"x\t: y"] {
        assert_eq!(of(field), Some(Refusal::FieldLine), "{field:?}");
    }
}

#[test]
fn a_request_has_one_host_unless_it_is_of_http_1_0() {
    assert_eq!(refused("GET / HTTP/1.0\n\n"), None);
    assert_eq!(refused("GET / HTTP/1.0\nHost: a\n\n"), None);
    assert_eq!(refused("GET / HTTP/1.0\nHost: a\nHost: a\n\n"), Some(Refusal::Host));
    assert_eq!(refused("CONNECT a:1 HTTP/1.1\n\n"), Some(Refusal::Host));
    assert_eq!(refused_response("HTTP/1.1 204 x\nHost: a\nHost: b\n\n"), None);
}

/// RFC 9112 §6.3.
#[test]
fn a_message_is_as_long_as_its_fields_say() {
    let next = "GET / HTTP/1.1\nHost: a\n\n";
    let head = "PUT / HTTP/1.1\nHost: a\n";
    for message in [
        format!("{head}\n"),
        format!("{head}Content-Length: 0\n\n"),
        format!("{head}Content-Length: 1\n\n\0"),
        format!("{head}Transfer-Encoding: chunked\n\n0\n\n"),
        format!("{head}Transfer-Encoding: chunked\n\n00000000000000a;b\n0123456789\n0\nx: y\n\n"),
    ] {
        assert_eq!(refused(&format!("{message}{next}")), None, "{message:?}");
        assert_eq!(refused(&format!("{message}?\n\n")), Some(Refusal::StartLine), "{message:?}");
    }
    // Numbers that fit.
    assert_eq!(refused(&format!("{head}Content-Length: 9999999999999999999\n\nx")), None);
    let chunked = format!("{head}Transfer-Encoding: chunked\n\n");
    assert_eq!(refused(&format!("{chunked}fffffffffffffff\nx")), None);
    assert_eq!(refused(&format!("{chunked}ffffffffffffffff\nx")), Some(Refusal::Chunk));
    assert_eq!(refused(&format!("{chunked}0\nx y: z\n")), Some(Refusal::FieldLine));
}

#[test]
fn a_response_may_switch_or_come_later() {
    let old = "HTTP/1.0 200 OK\nTransfer-Encoding: chunked\n\n";
    assert_eq!(refused_response(old), Some(Refusal::TransferEncoding));
    assert_eq!(refused_response("HTTP/1.1 101 x\nUpgrade: y\n\n\0?"), None);
    // A request's `Upgrade` makes way for another protocol, a response's does not by itself.
    let kept = "HTTP/1.1 200 x\nUpgrade: h2c\nContent-Length: 1\n\nx";
    assert_eq!(refused_response(&format!("{kept}?\n\n")), Some(Refusal::StartLine));
    let interim = "HTTP/1.1 103 x\nContent-Length: 5\n\n";
    assert_eq!(refused_response(&format!("{interim}?\n\n")), Some(Refusal::StartLine));
    let mut requests = Screen::requests();
    requests.expect(true);
    assert_eq!(requests.judge(b"HTTP/1.1 200 x\r\n\r\n"), Verdict::Refuse(Refusal::StartLine));
}
