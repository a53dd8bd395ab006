//! Stalled and slow clients use bounded memory, and clients that read are served.

use crate::net::{Call, Net, Options, Pace, Page};

const LENGTH: usize = 2_000_000;

fn small() -> Net {
    Net::with(Options { memory_bytes: 2 << 20, ..Options::default() })
}

fn url(number: usize) -> String {
    format!("http://o.test/{number}")
}

#[test]
fn an_origin_is_asked_for_little_more_than_its_reader_takes() {
    let mut net = small();
    net.origin.put("http://o.test/a", Page::of(LENGTH).fresh(60));
    let id = net.call(Call::get("http://o.test/a").pace(Pace::Stalls(100_000)));
    net.settle();
    assert!((100_000..500_000).contains(&net.origin.sent), "{}", net.origin.sent);
    net.hurry(id);
    assert!(net.client(id).is_ok());
    net.done();
}

#[test]
fn what_is_relayed_is_asked_for_only_as_it_is_taken() {
    let mut net = small();
    net.origin.put("http://o.test/a", Page::of(LENGTH).with("cache-control", "private"));
    let id = net.call(Call::get("http://o.test/a").pace(Pace::Stalls(100_000)));
    net.settle();
    assert!((100_000..120_000).contains(&net.origin.sent), "{}", net.origin.sent);
    net.hurry(id);
    assert!(net.client(id).is_ok());
    net.done();
}

#[test]
fn many_stalled_clients_cost_little_and_hinder_nobody() {
    let mut net = small();
    for number in 0..100 {
        net.origin.put(&url(number), Page::of(LENGTH).fresh(60));
        net.call(Call::get(&url(number)).pace(Pace::Stalls(5_000)));
    }
    net.settle();
    net.origin.put("http://o.test/a", Page::of(LENGTH).fresh(60));
    let id = net.get("http://o.test/a");
    assert!(net.client(id).is_ok());
    (0..100).for_each(|id| net.leave(id));
    net.done();
}

#[test]
fn slow_and_fast_readers_of_stored_objects_all_get_them() {
    let mut net = small();
    for number in 0..4 {
        net.origin.put(&url(number), Page::of(LENGTH).fresh(60));
        net.get(&url(number));
    }
    let ids: Vec<_> = (0..40)
        .map(|n| {
            let pace = if n % 2 == 0 { Pace::Fast } else { Pace::Slow(1_000 * n as u64) };
            net.call(Call::get(&url(n % 4)).pace(pace))
        })
        .collect();
    net.settle();
    assert!(ids.iter().all(|id| net.client(*id).is_ok()));
    assert_eq!(net.origin.seen.len(), 4);
    net.done();
}

#[test]
fn a_client_that_takes_a_byte_at_a_time_is_served() {
    let mut net = small();
    net.origin.put("http://o.test/a", Page::of(30_000).fresh(600));
    for _ in 0..2 {
        let id = net.call(Call::get("http://o.test/a").pace(Pace::Slow(1)));
        net.settle();
        assert!(net.client(id).is_ok());
    }
    assert_eq!(net.origin.seen.len(), 1);
    net.done();
}

#[test]
fn an_origin_that_drips_is_passed_on_at_once() {
    let mut net = small();
    let mut page = Page::of(3_000).fresh(60);
    (page.piece, page.pause) = (10, std::time::Duration::from_millis(100));
    net.origin.put("http://o.test/a", page);
    let id = net.call(Call::get("http://o.test/a"));
    net.pass_seconds(10);
    assert!((900..=1000).contains(&net.client(id).content.len()));
    net.settle();
    assert!(net.client(id).is_ok());
    net.done();
}
