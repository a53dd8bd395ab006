//! What crosses for content of several kinds. The pairs are generated; larger ones are in `scripts/bench uplink`.

use crate::bytes::{noise, page};
use crate::net::{Link, Net};

#[test]
fn what_was_never_seen_costs_little_more_than_itself() {
    let mut net = Net::up(Link { bytes_per_second: 1_250_000, ..Link::SLOW });
    let body = noise(1, 10_000_000);
    net.origin("/new", body.clone());
    let (got, crossed) = net.get_all("/new");
    assert!(got == body);
    let more = (crossed as f64 / body.len() as f64 - 1.0) * 100.0;
    assert!(more < 0.5, "{more:.3} % more");
}

#[test]
fn pages_that_change_a_little_hardly_cross() {
    let mut net = Net::up(Link::FAST);
    let pages: Vec<_> = (0..100).map(|seed| page(seed, 1200)).collect();
    for (number, page) in pages.iter().enumerate() {
        net.origin(&format!("/v1/{number}.html"), page.clone());
        net.get_all(&format!("/v1/{number}.html"));
    }
    let (mut sent, mut total) = (0, 0);
    for (number, page) in pages.iter().enumerate() {
        let mut new = page.clone();
        let at = new.len() / 2;
        new.splice(at..at + 20, format!("version 2 of {number}").into_bytes());
        net.origin(&format!("/v2/{number}.html"), new.clone());
        let (got, crossed) = net.get_all(&format!("/v2/{number}.html"));
        assert!(got == new);
        (sent, total) = (sent + crossed, total + new.len() as u64);
    }
    let saved = 100.0 * (1.0 - sent as f64 / total as f64);
    assert!(saved > 97.5, "{saved:.2} % saved of {total}, {} a page", sent / 100);
}
