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

#[test]
fn the_near_end_knows_what_crossed_as_a_reference_and_what_as_a_difference() {
    let mut net = Net::up(Link::FAST);
    let (body, other) = (noise(1, 200_000), noise(2, 50_000));
    let told = |net: &mut Net, path: &str, body: &[u8]| {
        net.origin(path, body.to_vec());
        let (got, _) = net.get_all(path);
        assert!(got == body);
        let answer = net.answers.values().next_back().expect("the latest answer");
        (answer.referred, answer.differed)
    };
    assert_eq!(told(&mut net, "/new", &body), (0, 0), "in full");
    assert_eq!(told(&mut net, "/same", &body), (body.len() as u64, 0));
    let both = [&body[..], &other[..]].concat();
    let (referred, differed) = told(&mut net, "/longer", &both);
    assert!(
        referred > 150_000 && referred + differed <= both.len() as u64,
        "{referred} {differed}"
    );
    let mut changed = page(7, 1200);
    assert_eq!(told(&mut net, "/page", &changed), (0, 0));
    let at = changed.len() / 2;
    changed.splice(at..at + 20, *b"another version");
    let (referred, differed) = told(&mut net, "/page2", &changed);
    assert!(differed > 0 && referred + differed <= changed.len() as u64, "{referred} {differed}");
}
