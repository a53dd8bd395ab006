//! Wanax as published, over the emulated link: exact, and what crosses.

use crate::bytes::{edited, noise, page};
use crate::net::{Link, Net};
use crate::rogue::{AgainstNear, literals};
use node::FetchError;
use node::uplink::Message;
use std::time::Duration;

const SERVER: &str = "198.51.100.7:5432";
const SCHEMES: [&str; 4] = ["mrc-8-128", "mrc-2-64", "mrc-large-4-256", "src-1024"];

/// A net whose ends are connected.
fn up(link: Link, scheme: &str) -> Net {
    let mut net = Net::published(link, scheme, 64 << 20);
    net.until(Net::is_up);
    net
}

/// Gets these bytes at a URL of their own; returns what crossed.
fn get(net: &mut Net, path: &str, body: &[u8]) -> u64 {
    net.origin(path, body.to_vec());
    let (got, crossed) = net.get_all(path);
    assert!(got == body, "{path}");
    crossed
}

#[test]
fn what_an_origin_sends_arrives_and_the_second_time_as_names() {
    for scheme in SCHEMES {
        let mut net = up(Link::FAST, scheme);
        for (path, length) in [("/empty", 0), ("/byte", 1), ("/small", 2000)] {
            get(&mut net, path, &noise(length as u64, length));
        }
        let body = noise(1, 1_000_000);
        let first = get(&mut net, "/a", &body);
        assert!(first > 1_000_000, "it does not compress, {scheme}: {first}");
        let second = get(&mut net, "/b", &body);
        let (most, least) = if scheme == "src-1024" { (40_000, 20_000) } else { (2_500, 200) };
        assert!((least..most).contains(&second), "{scheme}: {second}");
        let report = net.near.report();
        assert!(report.chunk_reads > 0 && report.chunk_writes > 0, "{scheme}");
        assert_eq!((report.hints_wrong, report.units_wanted), (0, 0), "{scheme}");
        let sent = net.far.report();
        // There is no least length, and chunks of one or two bytes repeat in noise.
        let by_name = sent.sent_as_references;
        assert!((1_000_000..1_000_200).contains(&by_name), "{scheme}: {by_name}");
        assert_eq!(sent.sent_as_new, sent.content_out_bytes - by_name, "{scheme}");
    }
}

#[test]
fn smaller_chunks_find_more_in_what_differs_a_little() {
    let old = noise(2, 600_000);
    let new = edited(&old, 40, 3);
    let crossed = ["mrc-2-64", "mrc-2-1024", "src-65536"].map(|scheme| {
        let mut net = up(Link::FAST, scheme);
        get(&mut net, "/old", &old);
        get(&mut net, "/new", &new)
    });
    let [fine, coarse, whole] = crossed;
    assert!(2 * fine < coarse && 5 * coarse < 4 * whole, "{crossed:?}");
}

#[test]
fn many_flows_at_once_are_all_exact() {
    for scheme in SCHEMES {
        let mut net = up(Link::FAST, scheme);
        let bodies: Vec<_> =
            (0..40).map(|seed| page(seed % 10, 100 + 97 * seed as usize)).collect();
        net.get_together(&bodies);
    }
}

#[test]
fn content_of_a_request_crosses_too_and_only_once() {
    let mut net = up(Link::SLOW, "mrc-8-128");
    let body = noise(11, 300_000);
    let costs = [net.echo(&body), net.echo(&body)];
    assert!(costs[0].1 > 300_000 && costs[1].1 < 4_000 && costs[1].0 < 30_000, "{costs:?}");
}

#[test]
fn both_ends_notice_by_requests_what_one_has_lost() {
    let mut net = up(Link::FAST, "mrc-8-128");
    let body = noise(4, 400_000);
    get(&mut net, "/0", &body);
    net.restart_near(false);
    net.until(Net::is_up);
    assert!(get(&mut net, "/1", &body) > 400_000, "it is asked for");
    assert!(net.near.report().hints_wrong > 0);
    assert!(get(&mut net, "/2", &body) < 2_000);
    net.restart_far(false);
    net.until(Net::is_up);
    assert!(get(&mut net, "/3", &body) > 400_000, "the sender knows of nothing");
    assert!(get(&mut net, "/4", &body) < 2_000);
    net.cut();
    net.mend();
    net.until(Net::is_up);
    assert!(get(&mut net, "/5", &body) < 2_000, "a break loses nothing");
}

#[test]
fn what_the_log_has_overwritten_is_asked_for() {
    let mut net = Net::published(Link::FAST, "mrc-8-128", 3 << 20);
    net.until(Net::is_up);
    let first = noise(5, 200_000);
    get(&mut net, "/0", &first);
    (1..8).for_each(|it| _ = get(&mut net, &format!("/{it}"), &noise(100 + it, 200_000)));
    let before = net.near.report();
    assert!(get(&mut net, "/again", &first) > 200_000);
    let after = net.near.report();
    assert!(after.hints_wrong > before.hints_wrong);
    assert!(after.chunk_entries < 2 * before.chunk_entries, "the index is evicted with the log");
}

#[test]
fn a_reader_that_takes_nothing_gets_nothing_and_holds_up_nobody() {
    let mut net = up(Link::FAST, "mrc-8-128");
    let body = noise(6, 4_000_000);
    net.origin("/big", body.clone());
    net.origin("/other", noise(7, 100_000));
    net.grant = 0;
    let slow = net.get("/big");
    net.run_for(Duration::from_secs(20));
    assert!(net.answers[&slow].body.is_empty() && net.answers[&slow].status.is_some());
    let crossed = net.crossed.0;
    assert!(crossed < 1_600_000, "no more than the window: {crossed}");
    net.grant = u64::MAX / 2;
    assert_eq!(net.get_all("/other").0.len(), 100_000);
    net.allow(slow, u64::MAX / 4);
    net.until(|net| net.answers[&slow].end.is_some());
    assert!(net.answers[&slow].body == body);
}

#[test]
fn what_is_cancelled_stops_and_spoils_nothing_for_others() {
    let mut net = up(Link::SLOW, "mrc-8-128");
    let body = noise(8, 1_000_000);
    net.origin("/a", body.clone());
    net.origin("/b", body.clone());
    let (first, second) = (net.get("/a"), net.get("/b"));
    net.run_for(Duration::from_secs(3));
    net.cancel(first);
    net.until(|net| net.answers[&second].end.is_some());
    assert!(net.answers[&second].body == body && net.answers[&first].end.is_none());
    let before = net.crossed.0;
    net.run_for(Duration::from_secs(5));
    assert!(net.crossed.0 - before < 300_000, "nothing more of what nobody wants crosses");
}

#[test]
fn a_body_that_pauses_is_not_held_back() {
    let mut net = up(Link::FAST, "mrc-8-128");
    net.origin("/events", page(3, 20));
    net.open_ended.push("/events".into());
    let id = net.get("/events");
    net.run_for(Duration::from_millis(200));
    assert!(net.answers[&id].body == page(3, 20));
    assert_eq!(net.answers[&id].end, None);
}

#[test]
fn a_far_end_that_falls_silent_is_noticed_within_five_seconds() {
    let mut net = up(Link::FAST, "mrc-8-128");
    net.origin("/a", noise(12, 50_000_000));
    let begun = net.get("/a");
    net.run_for(Duration::from_millis(300));
    net.silence();
    let cut = net.now;
    net.until(|net| net.answers[&begun].end.is_some());
    assert!(net.now.since(cut) <= Duration::from_millis(5100), "{:?}", net.now.since(cut));
    assert_eq!(net.answers[&begun].end, Some(Err(FetchError::Truncated)));
}

#[test]
fn messages_of_another_scheme_end_the_connection() {
    let root = Message::Root { flow: 1, length: 40, listing: 21, payload: 61 };
    let request = Message::Request(0, vec![[1; 20]]);
    for message in [root, request, Message::Chunks(vec![0])] {
        let mut rogue = AgainstNear::with_requests(1..2);
        rogue.say(std::slice::from_ref(&message));
        assert!(rogue.is_broken(), "{message:?}");
    }
    let batch = Message::Batch(literals(1, 0, &[&[1; 40]]).0);
    for message in [batch, Message::Unit(0, vec![1])] {
        let mut rogue = AgainstNear::published("mrc-8-128");
        rogue.get(1, u64::MAX / 4);
        rogue.say(std::slice::from_ref(&message));
        assert!(rogue.is_broken(), "{message:?}");
    }
}

#[test]
fn what_a_rogue_says_is_checked_by_its_name() {
    let chunk = noise(1, 100);
    let name: [u8; 20] = content::name(&chunk).as_bytes()[..20].try_into().unwrap();
    for (content, is_true) in [(chunk.clone(), true), (noise(2, 100), false)] {
        let mut rogue = AgainstNear::published("mrc-8-128");
        rogue.get(1, u64::MAX / 4);
        let payload = [&name[..], &[0xc9, 0x01], &content].concat();
        let root = Message::Root { flow: 2, length: 100, listing: 22, payload: 122 };
        rogue.say_with(&[crate::rogue::head(1), root], &[(1, &payload)]);
        assert_eq!(rogue.is_broken(), !is_true);
        assert_eq!(rogue.answers[&1].body == chunk, is_true);
    }
}

#[test]
fn any_tcp_flow_crosses_and_the_second_time_as_names() {
    for scheme in SCHEMES {
        let mut net = up(Link::FAST, scheme);
        let dump = noise(21, 300_000);
        let (first, again) = (net.hear_all(SERVER, &dump), net.hear_all(SERVER, &dump));
        let most = if scheme == "src-1024" { 12_000 } else { 2_000 };
        assert!(first > 300_000 && again < most, "{scheme}: {first}, {again}");
    }
}

#[test]
fn each_side_of_a_tcp_flow_may_speak_first_and_few_bytes_do_not_wait() {
    let mut net = up(Link::FAST, "mrc-8-128");
    let (client, server) = net.call("198.51.100.7:5432");
    for round in 1..10usize {
        let begun = net.now;
        net.server_says(server, b"220 ready\r\n");
        net.until(|net| net.clients[&client].heard.len() == 11 * round);
        net.client_says(client, b"HELO\r\n");
        net.until(|net| net.servers[&server].heard.len() == 6 * round);
        let took = net.now.since(begun);
        assert!(took <= Duration::from_millis(2 + 2 * 6), "{took:?}");
    }
    net.client_ends(client, Ok(()));
    net.server_ends(server, Ok(()));
    net.until(|net| net.clients[&client].end.is_some() && net.servers[&server].end.is_some());
}
