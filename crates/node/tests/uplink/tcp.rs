//! TCP flows of any kind by the pair.

use crate::bytes::{noise, page};
use crate::net::{CLIENT, CLOSED_PORT, Link, Net};
use node::FetchError;
use node::uplink::Reach;
use std::net::SocketAddr;
use std::time::Duration;

const SERVER: &str = "198.51.100.7:5432";

#[test]
fn either_side_may_speak_first_and_each_ends_by_itself() {
    let mut net = Net::up(Link::SLOW);
    let (client, server) = net.call(SERVER);
    net.server_says(server, b"220 ready\r\n");
    net.until(|net| !net.clients[&client].heard.is_empty());
    net.client_says(client, b"HELO\r\n");
    net.until(|net| !net.servers[&server].heard.is_empty());
    // Half of it is closed; the other half goes on.
    net.client_ends(client, Ok(()));
    net.until(|net| net.servers[&server].end.is_some());
    net.server_says(server, b"bye");
    net.server_ends(server, Ok(()));
    net.until(|net| net.clients[&client].end.is_some());
    let (client, server) = (&net.clients[&client], &net.servers[&server]);
    assert_eq!((&client.heard[..], client.end), (&b"220 ready\r\nbye"[..], Some(Ok(()))));
    assert_eq!((&server.heard[..], server.end), (&b"HELO\r\n"[..], Some(Ok(()))));
}

#[test]
fn the_server_may_end_first() {
    let mut net = Net::up(Link::FAST);
    let (client, server) = net.call(SERVER);
    net.server_ends(server, Ok(()));
    net.until(|net| net.clients[&client].end.is_some());
    net.client_says(client, b"more");
    net.client_ends(client, Ok(()));
    net.until(|net| net.servers[&server].end.is_some());
    assert_eq!(net.servers[&server].heard, b"more");
    assert_eq!(net.servers[&server].end, Some(Ok(())));
}

#[test]
fn few_bytes_wait_no_longer_than_they_may() {
    let mut net = Net::up(Link::SLOW);
    let (client, server) = net.call(SERVER);
    for length in [1, 100, 1000] {
        let (asked, heard) = (net.now, net.servers[&server].heard.len() + length);
        net.client_says(client, &vec![b'q'; length]);
        net.until(|net| net.servers[&server].heard.len() >= heard);
        let took = net.servers[&server].had(heard).since(asked);
        // Of the answer's way: the link, and 6 ms.
        let sent = Duration::from_secs_f64((length + 200) as f64 / 64_000.0);
        let most = Duration::from_millis(100 + 6) + sent;
        assert!(took <= most, "{length} bytes took {took:?}, more than {most:?}");
        net.run_for(Duration::from_secs(1));
    }
}

#[test]
fn what_a_server_says_again_crosses_as_references() {
    let mut net = Net::up(Link::FAST);
    let dump = page(7, 60_000);
    let first = net.hear_all(SERVER, &dump);
    let again = net.hear_all(SERVER, &dump);
    assert!(first > 40_000 && again < 2_000, "{first}, then {again}");
    // As much as the ledger is to count as saved.
    assert!(net.told.reference + 8_000 > dump.len() as u64, "{:?} of {}", net.told, dump.len());
    let mut changed = dump.clone();
    changed.splice(200_000..200_000, *b"a row that is new");
    let third = net.hear_all(SERVER, &changed);
    assert!(third < 3_000, "{third}");
}

#[test]
fn answers_of_a_dialogue_that_come_again_cross_as_references() {
    let mut net = Net::up(Link::FAST);
    let blocks: Vec<_> = (0..20).map(|number| noise(100 + number, 6_000)).collect();
    let mut crossed = Vec::new();
    for _ in 0..2 {
        let before = net.crossed.0;
        let (client, server) = net.call(SERVER);
        for block in &blocks {
            let heard = net.clients[&client].heard.len() + block.len();
            net.client_says(client, b"the next block");
            net.until(|net| net.servers[&server].heard.ends_with(b"block"));
            net.servers.get_mut(&server).unwrap().heard.clear();
            net.server_says(server, block);
            net.until(|net| net.clients[&client].heard.len() >= heard);
        }
        assert!(net.clients[&client].heard == blocks.concat());
        crossed.push(net.crossed.0 - before);
    }
    assert!(crossed[0] > 120_000 && crossed[1] < 6_000, "{crossed:?}");
}

#[test]
fn what_is_encrypted_is_neither_cut_nor_kept() {
    let mut net = Net::up(Link::FAST);
    let mut tls = b"\x16\x03\x03\x00\x7a".to_vec();
    tls.extend(noise(3, 100_000));
    for _ in 0..2 {
        let crossed = net.hear_all(SERVER, &tls);
        // Nothing is kept, so it costs its size again; headers and encryption are below half a percent.
        assert!((100_000..100_900).contains(&crossed), "{crossed}");
    }
    assert_eq!(net.far.report().sent_uncut, 2 * tls.len() as u64);
}

#[test]
fn a_flow_that_does_not_shrink_is_not_cut_from_then_on() {
    let mut net = Net::up(Link::FAST);
    let video = noise(4, 2_000_000);
    net.hear_all(SERVER, &video);
    let uncut = net.far.report().sent_uncut;
    assert!((1_500_000..1_800_000).contains(&uncut), "{uncut}");
    // What comes again is worth keeping: its beginning is known, so all of it is cut the second time.
    let again = net.hear_all(SERVER, &video);
    assert!((1_500_000..1_800_000).contains(&again), "{again}");
    let third = net.hear_all(SERVER, &video);
    assert!(third < 10_000, "{third}");
}

#[test]
fn a_server_that_refuses_is_an_error() {
    let mut net = Net::up(Link::FAST);
    let client = net.dial(&format!("198.51.100.7:{CLOSED_PORT}"));
    net.until(|net| net.clients[&client].end.is_some());
    assert_eq!(net.clients[&client].end, Some(Err(FetchError::Unreachable)));
}

#[test]
fn who_breaks_off_is_heard_of_at_the_other_side() {
    let mut net = Net::up(Link::FAST);
    for server_has_ended in [false, true] {
        let (client, server) = net.call(SERVER);
        if server_has_ended {
            net.server_ends(server, Ok(()));
            net.until(|net| net.clients[&client].end.is_some());
        }
        net.client_ends(client, Err(FetchError::Truncated));
        net.until(|net| net.servers[&server].end.is_some());
        assert_eq!(net.servers[&server].end, Some(Err(FetchError::Truncated)));
    }
    let (client, server) = net.call(SERVER);
    net.server_ends(server, Err(FetchError::Truncated));
    net.until(|net| net.clients[&client].end.is_some());
    assert_eq!(net.clients[&client].end, Some(Err(FetchError::Truncated)));
    net.run_for(Duration::from_secs(2));
}

#[test]
fn a_silent_far_end_breaks_connections_off() {
    let mut net = Net::up(Link::FAST);
    let (client, _) = net.call(SERVER);
    net.cut();
    net.until(|net| net.clients[&client].end.is_some());
    assert_eq!(net.clients[&client].end, Some(Err(FetchError::Truncated)));
    assert!(!net.near.may_dial(SERVER.parse().unwrap(), CLIENT));
    assert_eq!(net.near.reach(), None);
}

#[test]
fn a_connection_whose_server_has_said_all_may_still_break_off() {
    let mut net = Net::up(Link::FAST);
    let (client, server) = net.call(SERVER);
    net.server_ends(server, Ok(()));
    net.until(|net| net.clients[&client].end.is_some());
    assert!(!net.clients[&client].is_broken_off);
    net.restart_far(true);
    net.until(|net| net.clients[&client].is_broken_off);
    assert_eq!(net.clients[&client].end, Some(Ok(())), "what it has heard is all there was");
}

#[test]
fn what_the_far_end_does_not_reach_goes_past_it() {
    let mut net = Net::new(Link::FAST);
    net.reach = Reach { v4: true, v6: false };
    net.until(|net| net.near.is_up());
    assert_eq!(net.near.reach(), Some(net.reach));
    let mut may = |to: &str| net.near.may_dial(to.parse().unwrap(), CLIENT);
    assert!(may("198.51.100.7:25") && may("[::ffff:198.51.100.7]:25"));
    for past in ["[2001:db8::1]:25", "192.168.1.1:25", "10.0.0.1:25", "[fd00::1]:25"] {
        assert!(!may(past), "{past}");
    }
}

#[test]
fn a_client_that_does_not_read_holds_up_its_server_and_nobody_else() {
    let mut net = Net::up(Link::FAST);
    net.deaf.push(node::uplink::TcpId(1));
    let (deaf, server) = net.call(SERVER);
    net.server_says(server, &noise(5, 8_000_000));
    net.run_for(Duration::from_secs(20));
    let crossed = net.crossed.0;
    assert!(net.clients[&deaf].heard.is_empty() && crossed < 2_000_000, "{crossed}");
    let body = page(6, 40_000);
    net.hear_all(SERVER, &body);
}

#[test]
fn short_flows_do_not_wait_for_a_long_one() {
    let mut net = Net::up(Link { bytes_per_second: 125_000, delay: Duration::from_millis(500) });
    let (_, server) = net.call(SERVER);
    net.server_says(server, &noise(8, 4_000_000));
    net.run_for(Duration::from_secs(3));
    let begun = net.now;
    let clients: Vec<_> =
        (0..200).map(|number| net.dial(&format!("198.51.100.7:{}", 1000 + number))).collect();
    net.until(|net| net.dialled.len() == 201);
    let servers: Vec<_> = net.dialled[1..].iter().map(|(id, _)| *id).collect();
    for (number, server) in servers.into_iter().enumerate() {
        net.server_says(server, &noise(1000 + number as u64, 10_000));
        net.server_ends(server, Ok(()));
    }
    net.until(|net| clients.iter().all(|client| net.clients[client].end.is_some()));
    let took = net.now.since(begun);
    // All of them are 2 MB: 16 s of the link, a round trip, and what was in the queue.
    assert!(took < Duration::from_secs(18), "{took:?}");
}

#[test]
fn what_goes_on_trickling_does_not_wait_for_a_boundary() {
    let mut net = Net::up(Link::SLOW);
    let (client, server) = net.call(SERVER);
    let begun = net.now;
    for _ in 0..100 {
        net.client_says(client, b"6bytes");
        net.run_for(Duration::from_millis(4));
    }
    let first = net.servers[&server].times.first().expect("some of it came").0.since(begun);
    assert!(first < Duration::from_millis(100 + 30), "{first:?}");
    net.until(|net| net.servers[&server].heard.len() == 600);
}

#[test]
fn what_was_said_before_a_reset_still_comes() {
    let mut net = Net::up(Link::SLOW);
    let (client, server) = net.call(SERVER);
    net.server_says(server, b"554 go away");
    net.server_ends(server, Err(FetchError::Truncated));
    net.until(|net| net.clients[&client].end.is_some());
    assert_eq!(net.clients[&client].heard, b"554 go away");
    let (client, server) = net.call(SERVER);
    net.client_says(client, b"a line of a log");
    net.client_ends(client, Err(FetchError::Truncated));
    net.until(|net| net.servers[&server].end.is_some());
    assert_eq!(net.servers[&server].heard, b"a line of a log");
    assert_eq!(net.servers[&server].end, Some(Err(FetchError::Truncated)));
}

#[test]
fn a_server_that_resets_after_its_last_word_is_heard_of() {
    let mut net = Net::up(Link::FAST);
    let (client, server) = net.call(SERVER);
    net.server_ends(server, Ok(()));
    net.until(|net| net.clients[&client].end.is_some());
    net.clients.get_mut(&client).unwrap().end = None;
    net.client_says(client, b"more");
    net.until(|net| net.servers[&server].heard == b"more");
    net.server_ends(server, Err(FetchError::Truncated));
    net.until(|net| net.clients[&client].end.is_some());
    assert_eq!(net.clients[&client].end, Some(Err(FetchError::Unsent)));
    assert!(!net.near.carries(node::uplink::FlowId::Tcp(client)));
}

#[test]
fn a_client_that_breaks_off_does_not_wait_for_a_server_that_does_not_read() {
    let mut net = Net::up(Link::FAST);
    let (client, server) = net.call(SERVER);
    net.deaf_servers.push(server);
    net.client_says(client, &page(9, 100_000));
    net.run_for(Duration::from_secs(5));
    net.client_ends(client, Err(FetchError::Truncated));
    net.until(|net| net.servers[&server].end.is_some());
    assert_eq!(net.servers[&server].end, Some(Err(FetchError::Truncated)));
}

#[test]
fn flows_without_number_leave_nothing_behind() {
    short_flows(3000);
}

#[test]
#[ignore = "takes minutes without optimisation: scripts/test --long runs it"]
fn a_million_short_flows_leave_nothing_behind() {
    short_flows(1_000_000);
}

fn short_flows(count: u64) {
    let mut net = Net::up(Link { bytes_per_second: 125_000_000, delay: Duration::from_micros(50) });
    for number in 0..count {
        let (client, server) = net.call(SERVER);
        net.client_says(client, &[number as u8]);
        if number % 3 == 0 {
            net.server_says(server, b"x");
        }
        let end = |broken| if broken { Err(FetchError::Truncated) } else { Ok(()) };
        net.client_ends(client, end(number % 5 == 0));
        if number % 5 != 0 {
            net.server_ends(server, end(number % 7 == 0));
            net.until(|net| net.clients[&client].end.is_some());
        }
        if number % 7 != 0 {
            net.until(|net| net.servers[&server].end.is_some());
        }
        net.clients.remove(&client);
        net.servers.remove(&server);
        net.dialled.clear();
    }
    net.run_for(Duration::from_secs(1));
    assert_eq!((net.near.flows(), net.far.flows()), (0, 0));
    assert_eq!(net.near.report().connections, 1, "the pair was never broken");
}

#[test]
fn uploads_that_the_link_cannot_take_wait_at_their_clients() {
    let mut net = Net::up(Link::SLOW);
    let clients: Vec<_> = (0..200).map(|_| net.dial(SERVER)).collect();
    clients.iter().for_each(|client| net.client_says(*client, &noise(1, 200_000)));
    net.run_for(Duration::from_secs(2));
    assert!(net.near.waiting() < 6_000_000, "{}", net.near.waiting());
}

#[test]
fn the_near_end_hears_when_a_family_is_lost() {
    let mut net = Net::up(Link::FAST);
    let lost = Reach { v4: true, v6: false };
    net.far.handle_input(net.now, node::uplink::FarInput::Reaches(lost));
    net.until(|net| net.near.reach() == Some(lost));
    assert!(!net.near.may_dial("[2001:db8::1]:25".parse().unwrap(), CLIENT));
}

#[test]
fn a_client_with_connections_without_end_leaves_half_of_them_to_others() {
    let mut net = Net::up(Link::FAST);
    let (greedy, other) = (CLIENT, [10, 0, 0, 2].into());
    let to: SocketAddr = SERVER.parse().unwrap();
    let mut count = 0;
    while net.near.may_dial(to, greedy) {
        net.dial_from(greedy, SERVER);
        count += 1;
    }
    assert_eq!(count, 512);
    assert!(net.near.may_dial(to, other));
    net.dial_from(other, SERVER);
    assert!(!net.near.may_dial(to, greedy));
}
