//! Clients and origins that break the rules, and processes that die at the wrong moment.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use crate::world::{Hearsay, Nginx, Raw, Script, Visit, World, assert_same, noise, wait_until};

const FRESH: &str = "Cache-Control: max-age=3600\r\n";

/// An origin that answers every request with a valid response.
fn willing_origin() -> Script {
    Script::start(|visit| {
        while visit.head().is_some() {
            visit.send(format!("HTTP/1.1 200 OK\r\n{FRESH}Content-Length: 2\r\n\r\nok"));
        }
    })
}

/// Request heads that are invalid, or that two parsers could read in two ways. `U` is an absolute URL.
const AMBIGUOUS: [(&str, &str); 28] = [
    (
        "length and coding",
        "POST U HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "coding and length",
        "POST U HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    ),
    (
        "two lengths",
        "POST U HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    ),
    (
        "one length twice",
        "POST U HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nabcde",
    ),
    ("a list of lengths", "POST U HTTP/1.1\r\nHost: h\r\nContent-Length: 5, 5\r\n\r\nabcde"),
    ("a length with a sign", "POST U HTTP/1.1\r\nHost: h\r\nContent-Length: +5\r\n\r\nabcde"),
    ("a negative length", "POST U HTTP/1.1\r\nHost: h\r\nContent-Length: -5\r\n\r\nabcde"),
    ("a hexadecimal length", "POST U HTTP/1.1\r\nHost: h\r\nContent-Length: 0x5\r\n\r\nabcde"),
    (
        "an endless length",
        "POST U HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\nab",
    ),
    ("no length at all", "POST U HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\nabcde"),
    (
        "an unknown coding",
        "POST U HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "a coding in quotes",
        "POST U HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n",
    ),
    (
        "two codings",
        "POST U HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "chunked twice",
        "POST U HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "a coding in HTTP/1.0",
        "POST U HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "a space before the colon",
        "POST U HTTP/1.1\r\nHost: h\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "a control before the colon",
        "POST U HTTP/1.1\r\nHost: h\r\nTransfer-Encoding\x0b: chunked\r\n\r\n0\r\n\r\n",
    ),
    ("a bare CR in a value", "GET U HTTP/1.1\r\nHost: h\r\nX: a\rContent-Length: 5\r\n\r\n"),
    ("a bare CR as a line's end", "GET U HTTP/1.1\r\nHost: h\rX: a\r\n\r\n"),
    ("a NUL", "GET U HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n"),
    (
        "a folded line",
        "POST U HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    ),
    ("a folded first field", "GET U HTTP/1.1\r\n Host: h\r\nHost: h\r\n\r\n"),
    ("a line without a colon", "GET U HTTP/1.1\r\nHost: h\r\nContent-Length 5\r\n\r\n"),
    ("a field without a name", "GET U HTTP/1.1\r\nHost: h\r\n: 5\r\n\r\n"),
    ("two hosts", "GET U HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
    ("no host", "GET U HTTP/1.1\r\nX: a\r\n\r\n"),
    ("HTTP/2", "GET U HTTP/2.0\r\nHost: h\r\n\r\n"),
    ("no version", "GET U\r\n\r\n"),
];

#[test]
fn ambiguous_requests_are_refused_and_the_connection_closed() {
    let world = World::new();
    let origin = willing_origin();
    let hearsay = Hearsay::start(&world);
    for (what, text) in AMBIGUOUS {
        let mut client = Raw::connect(hearsay.proxy);
        let reply = client.send(text.replace('U', &origin.url("a"))).reply();
        assert_eq!(reply.status, 400, "{what}: {reply:?}");
        assert!(client.rest().is_empty(), "{what}: more than a refusal was said");
    }
    assert!(origin.heads().is_empty(), "{:?}", origin.heads());
    assert_eq!(hearsay.get(&origin.url("a")).expect(200).text(), "ok");
}

#[test]
fn a_good_request_does_not_open_the_door_to_a_bad_one() {
    let world = World::new();
    let origin = willing_origin();
    let hearsay = Hearsay::start(&world);
    let good = format!("GET {} HTTP/1.1\r\nHost: h\r\n\r\n", origin.url("good"));
    let posted =
        format!("POST {} HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\na\r\n", origin.url("p"));
    let chunked = format!(
        "POST {} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        origin.url("c")
    );
    for (what, text) in AMBIGUOUS {
        let bad = text.replace('U', &origin.url("bad"));
        let mut client = Raw::connect(hearsay.proxy);
        for first in [&good, &posted, &chunked] {
            // The origin reads heads only, so it answers a POST before its body.
            assert_eq!(client.send(first).reply().status, 200, "before {what}");
        }
        assert_eq!(client.send(&bad).reply().status, 400, "{what}");
        assert!(client.rest().is_empty(), "{what}: more than a refusal was said");
    }
    let bad = origin.heads().into_iter().find(|head| head.contains("/bad"));
    assert_eq!(bad, None, "it reached the origin");
}

#[test]
fn a_bad_request_right_behind_a_good_one_does_not_spoil_its_answer() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    let file = noise(1, 3_000_000);
    nginx.put("file", &file);
    let hearsay = Hearsay::start(&world);
    let good = format!("GET {} HTTP/1.1\r\nHost: h\r\n\r\n", nginx.url("file"));
    for _ in ["miss", "hit"] {
        let mut client = Raw::connect(hearsay.proxy);
        client.send(format!("{good}GET {} HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", nginx.url("x")));
        assert_same(&client.reply().expect(200).body, &file);
        let rest = client.rest_text();
        assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 400 "), "{rest}");
    }
    assert_eq!(nginx.count("/x"), 0);
}

#[test]
fn an_oversized_head_is_refused() {
    let world = World::new();
    let origin = willing_origin();
    let hearsay = Hearsay::start(&world);
    let begin = format!("GET {} HTTP/1.1\r\nHost: h\r\nX: ", origin.url("a"));
    for length in [70_000, 10_000_000] {
        let mut client = Raw::connect(hearsay.proxy);
        let reply = client.send(&begin).send(vec![b'a'; length]).send("\r\n\r\n").reply();
        // A client that continues to send may lose the 431 to a reset, but gets no other response.
        let refused = reply.status == 431 || (length > 100_000 && reply.status == 0);
        assert!(refused, "{length}: {reply:?}");
        client.rest();
    }
    let mut client = Raw::connect(hearsay.proxy);
    let many = "a:b\r\n".repeat(20_000);
    assert_eq!(client.send(&begin).send("1\r\n").send(many).send("\r\n").reply().status, 431);
    assert!(origin.heads().is_empty());
    // A long head below the limit is accepted.
    let mut client = Raw::connect(hearsay.proxy);
    let reply = client.send(&begin).send(vec![b'a'; 6000]).send("\r\n\r\n").reply();
    assert_eq!(reply.status, 200, "{reply:?}");
}

#[test]
fn broken_chunks_never_reach_the_origin_as_a_whole_body() {
    let world = World::new();
    let (told, heard) = mpsc::channel();
    let origin = Script::start(move |visit| {
        let Some(_) = visit.head() else { return };
        let mut all = Vec::new();
        while let Some(byte) = visit.body(1) {
            all.extend(byte);
            // Only a body with its last chunk is reported.
            if all.ends_with(b"0\r\n\r\n") {
                let _ = told.send(String::from_utf8_lossy(&all).into_owned());
                visit.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            }
        }
    });
    let hearsay = Hearsay::start(&world);
    let long = format!("5;{}\r\nabcde\r\n0\r\n\r\n", "x".repeat(5000));
    let trailers = format!("0\r\nX: {}\r\n\r\n", "x".repeat(40_000));
    for (what, body) in [
        ("no digits", "zz\r\nab\r\n0\r\n\r\n"),
        ("a sign", "+2\r\nab\r\n0\r\n\r\n"),
        ("a prefix", "0x2\r\nab\r\n0\r\n\r\n"),
        ("too many digits", "10000000000000002\r\nab\r\n0\r\n\r\n"),
        ("data longer than said", "2\r\nabc\r\n0\r\n\r\n"),
        ("a size line that ends with LF", "2\nab\r\n0\r\n\r\n"),
        ("data that ends with LF", "2\r\nab\n0\r\n\r\n"),
        ("a bare CR in an extension", "2;a\rb\r\nab\r\n0\r\n\r\n"),
        ("a folded trailer", "2\r\nab\r\n0\r\nX: a\r\n b\r\n\r\n"),
        ("an endless extension", &long),
        ("endless trailers", &trailers),
    ] {
        let mut client = Raw::connect(hearsay.proxy);
        let head = "HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked";
        client.send(format!("POST {} {head}\r\n\r\n{body}", origin.url("a")));
        let answer = client.rest_text();
        assert!(answer.starts_with("HTTP/1.1 400 "), "{what}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{what}: {answer}");
        assert_eq!(heard.try_recv().ok(), None, "{what}: the origin got a whole body");
    }
    wait_until("no exchange to be left", || hearsay.number("/report/exchanges") == 0);
}

#[test]
fn a_body_that_ends_early_never_reaches_the_origin_as_a_whole() {
    let world = World::new();
    let (told, heard) = mpsc::channel();
    let origin = Script::start(move |visit| {
        if visit.head().is_some() {
            let _ = told.send(visit.body(1000).is_some());
        }
    });
    let hearsay = Hearsay::start(&world);
    let mut client = Raw::connect(hearsay.proxy);
    let head = format!("POST {} HTTP/1.1\r\nHost: h\r\nContent-Length: 1000", origin.url("a"));
    client.send(format!("{head}\r\n\r\nonly this")).finish();
    client.rest();
    assert!(!heard.recv().expect("the origin was asked"), "it took a part for the whole");
}

#[test]
fn a_request_in_single_bytes_is_read_like_another() {
    let world = World::new();
    let origin = willing_origin();
    let hearsay = Hearsay::start(&world);
    let mut client = Raw::connect(hearsay.proxy);
    for text in ["GET U HTTP/1.1\r\nHost: h\r\n\r\n", "GET U HTTP/1.1\nHost: h\n\n"] {
        let reply = client.dribble(text.replace('U', &origin.url("a"))).reply().expect(200);
        assert_eq!(reply.text(), "ok");
    }
    let bad = "GET U HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n".replace('U', &origin.url("a"));
    assert_eq!(client.dribble(bad).reply().status, 400);
    assert!(client.rest().is_empty());
}

#[test]
fn clients_that_never_finish_their_heads_do_not_keep_others_out() {
    let world = World::new();
    let origin = willing_origin();
    let hearsay = Hearsay::start(&world);
    let slow: Vec<_> = (0..300)
        .map(|_| {
            let mut client = Raw::connect(hearsay.proxy);
            client.send("GET http://a/ HTTP/1.1\r\nHost: a\r\nX: ");
            client
        })
        .collect();
    assert_eq!(hearsay.get(&origin.url("a")).expect(200).text(), "ok");
    assert!(hearsay.number("/rss_bytes") < 100 << 20);
    drop(slow);
}

#[test]
#[ignore = "takes the minute that a client has for its head; scripts/test --long runs it"]
fn a_client_that_never_finishes_its_head_is_cut_off() {
    let world = World::new();
    let hearsay = Hearsay::start(&world);
    let begun = Instant::now();
    let mut client = Raw::connect(hearsay.proxy);
    client.send("GET http://a/ HTTP/1.1\r\nHost: a\r\nX: ");
    // A minute, in which it goes on sending.
    while !client.ends_within(Duration::from_secs(1)) {
        assert!(begun.elapsed() < Duration::from_secs(600), "it stays");
        client.send("a");
    }
}

/// Responses of an origin that are not valid HTTP.
#[test]
fn unsound_answers_become_an_error_and_are_not_stored() {
    let huge = format!("HTTP/1.1 200 OK\r\n{FRESH}X: {}\r\n\r\n", "x".repeat(100_000));
    let many = format!("HTTP/1.1 200 OK\r\n{FRESH}{}\r\n", "a: b\r\n".repeat(20_000));
    let sound = "Cache-Control: max-age=99\r\n";
    for (what, answer) in [
        ("garbage", "\x01\x02\x03 this is no HTTP\r\n\r\n".to_owned()),
        ("nothing", String::new()),
        ("half a head", format!("HTTP/1.1 200 OK\r\n{sound}")),
        ("no status", "HTTP/1.1 abc OK\r\n\r\n".into()),
        ("another version", format!("HTTP/3.0 200 OK\r\n{sound}Content-Length: 0\r\n\r\n")),
        (
            "length and coding",
            format!(
                "HTTP/1.1 200 OK\r\n{sound}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            ),
        ),
        (
            "two lengths",
            format!("HTTP/1.1 200 OK\r\n{sound}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"),
        ),
        ("a negative length", format!("HTTP/1.1 200 OK\r\n{sound}Content-Length: -3\r\n\r\nabcd")),
        (
            "an unknown coding",
            format!("HTTP/1.1 200 OK\r\n{sound}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        ),
        ("a bare CR", format!("HTTP/1.1 200 OK\r\n{sound}X: a\rContent-Length: 3\r\n\r\nabc")),
        ("a NUL", format!("HTTP/1.1 200 OK\r\n{sound}X: a\0\r\nContent-Length: 3\r\n\r\nabc")),
        (
            "a space before the colon",
            format!("HTTP/1.1 200 OK\r\n{sound}Content-Length : 3\r\n\r\nabc"),
        ),
        ("a huge head", huge),
        ("many fields", many),
    ] {
        let world = World::new();
        let origin = Script::saying(answer);
        let hearsay = Hearsay::start_with(&world, &["--store", "memory"]);
        for round in 1..=2 {
            let reply = hearsay.get(&origin.url("a"));
            assert!(reply.exit == 0 && reply.status == 502, "{what}: {reply:?}");
            assert!(!reply.field("proxy-status").is_empty(), "{what}: {reply:?}");
            assert!(origin.heads().len() >= round, "{what}: the origin was not asked again");
        }
        assert!(!hearsay.log().contains("panicked"), "{}", hearsay.log());
    }
}

#[test]
fn interim_responses_and_slow_heads_are_no_trouble() {
    let world = World::new();
    let origin = Script::start(|visit| {
        while let Some(head) = visit.head() {
            let last = format!("HTTP/1.1 200 OK\r\n{FRESH}Content-Length: 2\r\n\r\nok");
            if head.contains(" /interim ") {
                visit.send(
                    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
                );
                visit.send(last);
            } else {
                for byte in last.as_bytes() {
                    visit.send([*byte]);
                }
            }
        }
    });
    let hearsay = Hearsay::start(&world);
    for path in ["interim", "slow"] {
        assert_eq!(hearsay.get(&origin.url(path)).expect(200).text(), "ok");
        assert_eq!(hearsay.get(&origin.url(path)).expect_hit().text(), "ok");
    }
}

/// An origin that sends the first half of the body, then runs `breaks`. On later connections it sends the whole
/// body.
fn breaking_origin(
    body: &[u8],
    chunked: bool,
    breaks: impl Fn(&mut Visit) + Send + Sync + 'static,
) -> Script {
    let body = body.to_vec();
    Script::start(move |visit| {
        if visit.head().is_none() {
            return;
        }
        let (first, second) = body.split_at(body.len() / 2);
        let framing = match chunked {
            true => "Transfer-Encoding: chunked".to_owned(),
            false => format!("Content-Length: {}", body.len()),
        };
        visit.send(format!("HTTP/1.1 200 OK\r\n{FRESH}{framing}\r\n\r\n"));
        if chunked {
            visit.send(format!("{:x}\r\n", body.len()));
        }
        visit.send(first);
        if visit.number == 0 {
            return breaks(visit);
        }
        visit.send(second);
        if chunked {
            visit.send("\r\n0\r\n\r\n");
        }
    })
}

#[test]
fn a_body_that_breaks_off_breaks_off_for_the_client_and_is_not_stored() {
    for chunked in [false, true] {
        let world = World::new();
        let body = noise(2, 800_000);
        let origin = breaking_origin(&body, chunked, |_| {});
        let hearsay = Hearsay::start(&world);
        let broken = hearsay.get(&origin.url("a"));
        assert_eq!(broken.status, 200, "{broken:?}");
        assert_ne!(broken.exit, 0, "a part was given out as the whole: {broken:?}");
        assert!(body.starts_with(&broken.body), "wrong bytes");
        let whole = hearsay.get(&origin.url("a")).expect(200);
        assert!(!whole.is_hit(), "{whole:?}");
        assert_same(&whole.body, &body);
        assert_eq!(origin.heads().len(), 2);
        assert_same(&hearsay.get(&origin.url("a")).expect_hit().body, &body);
    }
}

#[test]
fn a_broken_chunk_of_an_origin_breaks_the_transfer() {
    let world = World::new();
    let body = noise(3, 400_000);
    let length = body.len();
    let origin = breaking_origin(&body, true, move |visit| {
        // The chunk has the announced length, but no CRLF follows its data.
        visit.send(vec![b'x'; length - length / 2]);
        visit.send("0\r\n\r\n");
    });
    let hearsay = Hearsay::start(&world);
    let broken = hearsay.get(&origin.url("a"));
    assert_ne!(broken.exit, 0, "{broken:?}");
    assert_same(&hearsay.get(&origin.url("a")).expect(200).body, &body);
}

#[test]
fn more_than_was_announced_is_not_taken_for_the_next_answer() {
    let world = World::new();
    let origin = Script::start(|visit| {
        while let Some(head) = visit.head() {
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            let length = path.len();
            visit.send(format!("HTTP/1.1 200 OK\r\n{FRESH}Content-Length: {length}\r\n\r\n{path}"));
            visit.send(format!("HTTP/1.1 200 OK\r\n{FRESH}Content-Length: 6\r\n\r\nforged"));
        }
    });
    let hearsay = Hearsay::start(&world);
    for number in 0..10 {
        let path = format!("file{number}");
        let reply = hearsay.get(&origin.url(&path)).expect(200);
        assert_eq!(reply.text(), format!("/{path}"));
    }
}

#[test]
fn merged_clients_all_learn_that_their_origin_died() {
    let world = World::new();
    let (release, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let body = noise(4, 3_000_000);
    let origin = breaking_origin(&body, false, move |_| {
        let _ = held.lock().unwrap().recv();
    });
    let hearsay = Hearsay::start(&world);
    let clients: Vec<_> = (0..6).map(|_| hearsay.curl(&origin.url("a")).start()).collect();
    wait_until("all clients to be served", || {
        clients.iter().all(|client| client.received() > 1_000_000)
    });
    assert_eq!(origin.heads().len(), 1);
    drop(release);
    for client in clients {
        let broken = client.wait();
        assert!(broken.exit != 0 && body.starts_with(&broken.body), "{broken:?}");
    }
    let whole = hearsay.get(&origin.url("a")).expect(200);
    assert!(!whole.is_hit(), "{whole:?}");
    assert_same(&whole.body, &body);
    wait_until("no transfer to be left", || hearsay.number("/report/fetches") == 0);
}

#[test]
fn a_daemon_killed_in_mid_transfer_serves_no_part_as_the_whole() {
    let world = World::new();
    let body = noise(5, 4_000_000);
    let origin = breaking_origin(&body, false, Visit::wait_for_end);
    let mut hearsay = Hearsay::start(&world);
    let client = hearsay.curl(&origin.url("a")).start();
    wait_until("half of it to arrive", || client.received() > 1_500_000);
    // The durable part must not become an object either.
    hearsay.wait_until_synced();
    hearsay.kill();
    let broken = client.wait();
    assert!(broken.exit != 0 && body.starts_with(&broken.body), "{broken:?}");
    hearsay.restart();
    let whole = hearsay.get(&origin.url("a")).expect(200);
    assert!(!whole.is_hit(), "{whole:?}");
    assert_same(&whole.body, &body);
    assert_same(&hearsay.get(&origin.url("a")).expect_hit().body, &body);
}

#[test]
fn a_transfer_that_nobody_wants_any_more_is_given_up() {
    let world = World::new();
    let body = noise(6, 4_000_000);
    let origin = breaking_origin(&body, false, Visit::wait_for_end);
    let hearsay = Hearsay::start(&world);
    let client = hearsay.curl(&origin.url("a")).start();
    wait_until("some of it to arrive", || client.received() > 1_000_000);
    client.kill();
    wait_until("the origin to be left alone", || hearsay.number("/report/fetches") == 0);
    let whole = hearsay.get(&origin.url("a")).expect(200);
    assert!(!whole.is_hit(), "{whole:?}");
    assert_same(&whole.body, &body);
}

#[test]
fn a_transfer_that_is_nearly_done_is_finished_for_the_next_client() {
    let world = World::new();
    let (release, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let (sent, body) = (noise(7, 900_000), noise(7, 900_000));
    let origin = Script::start(move |visit| {
        if visit.head().is_some() {
            let length = sent.len();
            visit.send(format!("HTTP/1.1 200 OK\r\n{FRESH}Content-Length: {length}\r\n\r\n"));
            visit.send(&sent[..200_000]);
            let _ = held.lock().unwrap().recv();
            visit.send(&sent[200_000..]);
        }
    });
    let hearsay = Hearsay::start(&world);
    let client = hearsay.curl(&origin.url("a")).start();
    wait_until("some of it to arrive", || client.received() > 0);
    client.kill();
    wait_until("the client to be forgotten", || hearsay.number("/report/exchanges") == 0);
    drop(release);
    wait_until("the rest to arrive", || hearsay.number("/report/fetches") == 0);
    assert_same(&hearsay.get(&origin.url("a")).expect_hit().body, &body);
    assert_eq!(origin.heads().len(), 1);
}

#[test]
fn a_client_that_does_not_read_holds_the_origin_back() {
    for cached in [true, false] {
        let world = World::new();
        let sent = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&sent);
        let origin = Script::start(move |visit| {
            let part = noise(8, 1 << 16);
            let control = if cached { "max-age=99" } else { "no-store" };
            if visit.head().is_some() {
                visit.send(format!("HTTP/1.1 200 OK\r\nCache-Control: {control}\r\n"));
                visit.send("Content-Length: 400000000\r\n\r\n");
                while visit.send(&part) && counter.load(Ordering::Relaxed) < 300_000_000 {
                    counter.fetch_add(part.len() as u64, Ordering::Relaxed);
                }
            }
        });
        let hearsay = Hearsay::start(&world);
        let mut client = Raw::connect(hearsay.proxy);
        client.send(format!("GET {} HTTP/1.1\r\nHost: h\r\n\r\n", origin.url("a")));
        assert_eq!(client.take(15), b"HTTP/1.1 200 OK");
        let (mut last, mut looks) = (0, 0);
        wait_until("the origin to be held back", || {
            let now = sent.load(Ordering::Relaxed);
            looks = if now == last { looks + 1 } else { 0 };
            last = now;
            looks > 20
        });
        // The sockets on both sides buffer some megabytes.
        assert!(last < 40_000_000, "cached {cached}: the origin could send {last} bytes");
        assert!(hearsay.number("/rss_bytes") < 150 << 20);
        drop(client);
        wait_until("the origin to be left alone", || hearsay.number("/report/fetches") == 0);
    }
}

#[test]
fn a_connection_that_was_to_be_upgraded_and_is_not_ends() {
    let world = World::new();
    let origin = willing_origin();
    let hearsay = Hearsay::start(&world);
    let head = "HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";
    let smuggled = format!("GET {} HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", origin.url("bad"));
    let mut client = Raw::connect(hearsay.proxy);
    let reply = client.send(format!("GET {} {head}{smuggled}", origin.url("a"))).reply();
    assert_eq!((reply.status, reply.field("connection")), (200, "close"), "{reply:?}");
    assert!(client.rest().is_empty(), "more was answered");
    assert!(origin.heads().iter().all(|head| !head.contains("/bad")), "it reached the origin");
}

#[test]
fn another_protocol_that_nobody_asked_for_is_no_answer() {
    let world = World::new();
    let origin = Script::saying("HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nxyz");
    let hearsay = Hearsay::start(&world);
    let reply = hearsay.get(&origin.url("a"));
    assert_eq!(reply.status, 502, "{reply:?}");
}
