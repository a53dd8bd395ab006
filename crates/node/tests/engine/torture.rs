//! Chance: many clients, objects, variants, ranges, changes and failures at once. What must always
//! hold is checked by `net` at every step. This file checks that no client waits for ever, and that no stale response
//! is given as fresh.

use crate::net::{Call, Client, Dice, Net, Options, Pace, Page, judge, noise};
use http::Method;
use node::FetchError;
use std::time::Duration;

const URLS: u64 = 12;
/// Every object is fresh for this many seconds.
const FRESH: u64 = 20;
/// Some may be used for this many seconds more, while they are revalidated.
const WHILE_REVALIDATED: i64 = 30;

#[test]
fn nothing_ever_breaks_a_rule() {
    let runs: Vec<_> = (0..30).map(rules_hold).collect();
    judge("engine/torture", &runs);
}

fn rules_hold(seed: u64) -> blake3::Hash {
    let mut net = run(seed, 250);
    net.done();
    let answered = net.clients().iter().filter(|client| client.head.is_some());
    answered.for_each(nothing_stale_or_private_was_shared);
    net.trace.finish_with([net.report()])
}

fn nothing_stale_or_private_was_shared(client: &Client) {
    let (cache, control) = (client.cache(), client.header("cache-control"));
    if let Some(left) = cache.strip_prefix("hit; ttl=") {
        let left: i64 = left.parse().expect("a number");
        assert!(left >= -WHILE_REVALIDATED, "{client:?}");
    }
    if cache.starts_with("hit") || cache.ends_with("collapsed") {
        assert!(!control.contains("private") && !control.contains("no-cache"), "{client:?}");
    }
}

/// A world after `steps` random events.
pub fn run(seed: u64, steps: usize) -> Net {
    run_watched(seed, steps, false)
}

/// The same, perhaps with a note of what the engine did.
pub fn run_watched(seed: u64, steps: usize, is_watched: bool) -> Net {
    let mut dice = Dice(seed);
    let mut net = Net::with(Options {
        seed,
        memory_bytes: 1 << 20,
        store_bytes: 6 << 20,
        object_bytes_max: 1_500_000,
        disk_delay: Duration::from_millis(dice.below(4)),
        ..Options::default()
    });
    net.node.events().watch(is_watched);
    net.names.insert("o.test".into(), vec![[192, 0, 2, 1].into()]);
    for number in 0..URLS {
        net.origin.put(&url(number), page(&mut dice));
    }
    for _ in 0..steps {
        happen(&mut net, &mut dice);
        net.pass(Duration::from_micros(dice.below(20_000)));
    }
    calm_down(&mut net);
    net
}

/// Everything works again, and those who do not read leave.
fn calm_down(net: &mut Net) {
    net.origin.down = None;
    (net.disk.fail_appends, net.disk.fail_changes) = (false, false);
    (net.disk.corrupt, net.disk.fail_reads, net.disk.lose_segments) = (false, false, false);
    for id in 0..net.clients().len() {
        let client = net.client(id);
        if client.end.is_none() && matches!(client.call.pace, Pace::Stalls(_)) {
            if id % 2 == 0 { net.hurry(id) } else { net.leave(id) }
        }
    }
    net.pass_seconds(60);
    for (id, client) in net.clients().iter().enumerate() {
        assert!(client.end.is_some(), "client {id} waits for ever: {:?}", client.call);
    }
}

fn url(number: u64) -> String {
    format!("http://o.test/{number}")
}

fn page(dice: &mut Dice) -> Page {
    let length = match dice.below(4) {
        0 => dice.below(3),
        1 => dice.below(20_000),
        2 => dice.below(200_000),
        _ => dice.below(1_600_000),
    };
    // Content that repeats itself, and that others have too, now and then.
    let number = if dice.once_in(5) { dice.below(3) } else { dice.below(u64::MAX) };
    let body = noise(number, length as usize);
    let mut page = Page::new(if dice.once_in(6) { body.repeat(2).into() } else { body });
    let control = ["max-age=20", "max-age=20, stale-while-revalidate=30", "private", "no-cache"];
    page = page.with("cache-control", control[dice.below(4) as usize]);
    page.chunked = dice.once_in(3);
    page.piece = 500 + dice.below(16_000) as usize;
    page.pause = Duration::from_micros(dice.below(300));
    page.head_after = Some(Duration::from_micros(dice.below(30_000)));
    if dice.once_in(2) {
        page = page.etag(&dice.below(u64::MAX).to_string());
    }
    if dice.once_in(6) {
        page.breaks_at = Some(dice.below(page.body.len() as u64 + 1) as usize);
    }
    if dice.once_in(4) {
        page = page.with("vary", "accept-language");
    }
    page
}

fn happen(net: &mut Net, dice: &mut Dice) {
    match dice.below(40) {
        0 => net.origin.put(&url(dice.below(URLS)), page(dice)),
        1 => net.origin.put(&url(dice.below(URLS)), Page::new(noise(9, 9)).status(503)),
        2 => net.origin.down = dice.once_in(2).then_some(FetchError::Unreachable),
        3 => net.disk.fail_appends = dice.once_in(3),
        4 => net.disk.fail_changes = dice.once_in(3),
        5 => net.disk.corrupt = dice.once_in(3),
        6 => net.disk.fail_reads = dice.once_in(3),
        7 => net.disk.lose_segments = dice.once_in(3),
        8 => net.pass_seconds(dice.below(FRESH + 20)),
        9 | 10 if !net.clients().is_empty() => {
            let id = dice.below(net.clients().len() as u64) as usize;
            if net.client(id).end.is_none() {
                net.leave_soon(id);
            }
        }
        _ => {
            let call = call(dice);
            net.call(call);
        }
    }
}

fn call(dice: &mut Dice) -> Call {
    let url = url(dice.below(URLS));
    let mut call = match dice.below(20) {
        0 => Call::head(&url),
        1 => Call { has_body: true, ..Call::new(Method::POST, &url) },
        _ => Call::get(&url),
    };
    call.pace = match dice.below(10) {
        0 | 1 => Pace::Slow(500 + dice.below(5_000)),
        2 => Pace::Stalls(dice.below(100_000)),
        3 => Pace::Leaves(dice.below(300_000)),
        _ => Pace::Fast,
    };
    let first = dice.below(300_000);
    match dice.below(12) {
        0 => call.with("range", &format!("bytes={first}-{}", first + dice.below(100_000))),
        1 => call.with("range", &format!("bytes={first}-")).with("if-range", "\"x\""),
        2 => call.with("cache-control", "no-cache"),
        3 => call.with("cache-control", "max-stale=10"),
        4 => call.with("if-none-match", "\"x\""),
        5 => call.with("accept-language", ["de", "fr"][dice.below(2) as usize]),
        6 => call.dialling(["192.0.2.1:80", "192.0.2.9:80"][dice.below(2) as usize]),
        _ => call,
    }
}
