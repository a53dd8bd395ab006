//! Full histories, and content that nobody takes: what must go does not take others with it.

use crate::bytes::{noise, page};
use crate::net::{Link, Net};
use node::FetchError;
use node::uplink::NearInput;
use std::time::Duration;

/// Histories of this many units at both ends, some 4 MiB.
const UNITS: usize = 512;

/// Gets bodies that cross anew, in part, and again, several at a time, one in eight by a slow reader. Returns how many
/// ended otherwise than well, and how many bodies were wrong.
fn transfer(net: &mut Net, count: u64) -> (usize, usize) {
    let (mut broken, mut wrong, mut under_way) = (0, 0, Vec::new());
    for number in 0..count {
        // Of three bodies one is new; the others come again when the histories are about to forget them.
        let age = 100 + 3 * (number % 150);
        let seed = if number % 3 == 0 {
            number
        } else {
            (number - number % 3).saturating_sub(age / 3 * 3)
        };
        let path = format!("/{seed}");
        let body = match seed % 2 {
            0 => noise(seed, 20_000 + (seed * 7919 % 60_000) as usize),
            _ => page(seed, 200),
        };
        net.origin(&path, body);
        net.grant = if number % 8 == 0 { 1000 } else { u64::MAX / 2 };
        under_way.push((net.get(&path), path));
        net.run_for(Duration::from_millis(3));
        if under_way.len() >= 12 || number + 1 == count {
            for (id, _) in &under_way {
                net.allow(*id, u64::MAX / 2);
            }
            net.until(|net| under_way.iter().all(|(id, _)| net.answers[id].end.is_some()));
            for (id, path) in under_way.drain(..) {
                let answer = net.answers.remove(&id).unwrap();
                broken += usize::from(answer.end != Some(Ok(())));
                wrong += usize::from(answer.body != net.origins[&path]);
            }
            net.origins.clear();
        }
    }
    (broken, wrong)
}

fn check(count: u64) {
    let far_away = Link { delay: Duration::from_millis(20), ..Link::FAST };
    let mut net = Net::with_histories(far_away, UNITS, UNITS);
    net.until(|net| net.near.is_up());
    assert_eq!(transfer(&mut net, count), (0, 0));
    let (near, far) = (net.near.report(), net.far.report());
    assert_eq!((near.connections, near.flows_broken_off), (1, 0));
    assert!(far.sent_as_new + far.sent_as_differences > 8 << 20, "the histories were full");
    assert!(far.sent_as_references > 1 << 20, "old units were named");
}

#[test]
fn full_histories_of_equal_size_break_nothing_off() {
    check(1500);
}

#[test]
#[ignore = "takes minutes without optimisation: scripts/test --long runs it"]
fn full_histories_of_equal_size_break_nothing_off_in_ten_thousand_transfers() {
    check(10_000);
}

#[test]
fn a_reader_that_paused_while_the_history_was_renewed_gets_its_body() {
    let mut net = Net::with_histories(Link::FAST, UNITS, UNITS);
    net.until(|net| net.near.is_up());
    net.origin("/slow", noise(1, 900_000));
    let body = net.get_all("/slow").0;
    net.grant = 1;
    let slow = net.get("/slow");
    net.run_for(Duration::from_millis(500));
    net.grant = u64::MAX / 2;
    for seed in 2..14 {
        let path = format!("/{seed}");
        net.origin(&path, noise(seed, 1_500_000));
        net.get_all(&path);
    }
    net.allow(slow, u64::MAX / 2);
    net.until(|net| net.answers[&slow].end.is_some());
    assert_eq!(net.answers[&slow].end, Some(Ok(())));
    assert!(net.answers[&slow].body == body && body.len() == 900_000);
    assert_eq!(net.near.report().units_wanted, 0, "it was read before it went");
}

#[test]
fn readers_that_pause_for_ever_do_not_fill_the_memory() {
    let mut net = Net::with_histories(Link::FAST, UNITS, UNITS);
    net.until(|net| net.near.is_up());
    net.grant = 1;
    let slow: Vec<_> = (0..12)
        .map(|seed| {
            let path = format!("/slow/{seed}");
            net.origin(&path, noise(100 + seed, 2_500_000));
            net.get(&path)
        })
        .collect();
    net.run_for(Duration::from_secs(4));
    let broken = |net: &Net| slow.iter().filter(|id| net.answers[id].end.is_some()).count();
    // 12 times 2.5 MB are more than 16 MiB, and more than the history holds.
    let ends = slow.iter().filter_map(|id| net.answers[id].end);
    assert!(ends.clone().count() > 0 && ends.clone().all(|it| it == Err(FetchError::Truncated)));
    assert_eq!(net.near.report().flows_broken_off, broken(&net) as u64);
    net.grant = u64::MAX / 2;
    net.origin("/next", noise(7, 100_000));
    assert!(net.get_all("/next").0 == noise(7, 100_000), "others go on");
}

#[test]
fn a_client_that_reads_nothing_leaves_the_others_their_room() {
    let mut net = Net::up(Link::FAST);
    net.far.limit(1 << 20, 10_000);
    net.grant = 0;
    for seed in 0..200 {
        let path = format!("/{seed}");
        net.origin(&path, noise(seed, 5_000_000));
        net.get(&path);
    }
    net.run_for(Duration::from_secs(3));
    net.origin("/other", noise(900, 3_000_000));
    net.grant = u64::MAX / 2;
    let fetch = node::Fetch { client: [10, 0, 0, 77].into(), ..Net::fetch_of("/other") };
    let other = net.fetch(fetch, false);
    net.until(|net| net.answers[&other].end.is_some());
    assert!(net.answers[&other].body == noise(900, 3_000_000));
}

#[test]
fn flows_of_one_client_take_turns_if_there_is_little_memory() {
    let mut net = Net::up(Link::FAST);
    net.far.limit(64 << 10, 10_000);
    let ids: Vec<_> = (0..100)
        .map(|seed| {
            let path = format!("/{seed}");
            net.origin(&path, page(seed, 2000));
            net.get(&path)
        })
        .collect();
    net.until(|net| ids.iter().all(|id| net.answers[id].end.is_some()));
    assert!(ids.iter().all(|id| net.answers[id].end == Some(Ok(()))));
    // A flow that is cancelled while it waits does not hold up the next.
    net.grant = 0;
    let stuck: Vec<_> = (0..100).map(|seed| net.get(&format!("/{seed}"))).collect();
    net.run_for(Duration::from_secs(1));
    stuck.iter().for_each(|id| net.cancel(*id));
    net.grant = u64::MAX / 2;
    net.near.handle_input(net.now, NearInput::Tick);
    assert_eq!(net.get_all("/7").0, page(7, 2000));
}

#[test]
fn connections_that_are_idle_leave_room_for_one_that_is_not() {
    let mut net = Net::up(Link::FAST);
    net.far.limit(64 << 10, 10_000);
    let idle: Vec<_> = (0..200).map(|_| net.call("198.51.100.7:5432")).collect();
    net.run_for(Duration::from_millis(100));
    for (_, server) in &idle {
        net.server_says(*server, b"ready");
    }
    let (client, server) = net.call("198.51.100.7:5432");
    net.server_says(server, &noise(5, 300_000));
    net.run_for(Duration::from_secs(5));
    assert!(net.clients[&client].heard == noise(5, 300_000));
    assert!(idle.iter().all(|(client, _)| net.clients[client].heard == b"ready"));
}
