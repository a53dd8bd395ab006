//! A path that is slow because many transfers share it is not dead: every client that waits long enough gets its whole
//! response, and nothing is requested twice meanwhile.

use crate::net::{Call, Mesh, Page, Plan};
use std::time::Duration;

const OBJECTS: usize = 24;
const LENGTH: usize = 100_000;

fn url(number: usize) -> String {
    format!("http://o.test/{number}")
}

/// A row whose hops carry so few bytes in a second that all objects together need two minutes.
fn slow_row(plan: &Plan, count: usize) -> Mesh {
    let mut mesh = Mesh::chain_of(plan, count);
    for number in 0..OBJECTS {
        mesh.origin.put(&url(number), Page::of(LENGTH).fresh(600));
    }
    mesh.links.rate = 20_000;
    mesh
}

#[test]
fn many_transfers_over_one_slow_way_all_come_and_none_is_asked_for_again() {
    for plan in [Plan::default(), Plan::thcp()] {
        let mut mesh = slow_row(&plan, 3);
        let ids: Vec<_> = (0..OBJECTS).map(|it| mesh.call(2, Call::get(&url(it)))).collect();
        mesh.finish();
        for id in &ids {
            assert!(mesh.client(*id).is_ok(), "{:?}", mesh.client(*id).end);
        }
        assert!(ids.iter().all(|id| mesh.took(*id) > Duration::from_secs(60)));
        assert_eq!(mesh.report(2).resumes, 0);
        let (data, all) = (mesh.data_out(0), (OBJECTS * LENGTH) as u64);
        assert!(data < all * 105 / 100, "{data} bytes for {all}");
        mesh.done();
    }
}

#[test]
fn those_who_share_a_slow_way_get_on_alike() {
    let mut mesh = slow_row(&Plan::default(), 2);
    let ids: Vec<_> = (0..OBJECTS).map(|it| mesh.call(1, Call::get(&url(it)))).collect();
    mesh.pass_seconds(60);
    // All that is on its way would be more than a unit for each.
    for id in &ids {
        assert!(!mesh.client(*id).content.is_empty(), "one has nothing, {:?}", mesh.client(*id));
    }
    mesh.finish();
    assert!(ids.iter().all(|id| mesh.client(*id).is_ok()));
    mesh.done();
}

#[test]
fn a_silence_that_ends_before_the_connection_does_costs_a_delay() {
    for plan in [Plan::default(), Plan::thcp()] {
        let mut mesh = slow_row(&plan, 3);
        let ids: Vec<_> = (0..4).map(|it| mesh.call(2, Call::get(&url(it)))).collect();
        mesh.pass_seconds(6);
        assert!(ids.iter().all(|id| mesh.client(*id).end.is_none()));
        mesh.cut(0, 1);
        mesh.pass_seconds(12);
        mesh.mend(0, 1);
        mesh.finish();
        assert!(ids.iter().all(|id| mesh.client(*id).is_ok()));
        assert_eq!(mesh.origin.asked(&url(0)), 1);
        mesh.done();
    }
}

#[test]
fn a_next_hop_that_dies_without_a_word_is_left_soon_by_all_that_come_over_it() {
    // 3 has two ways to 0: over 1, where its route leads before and after, and over 2.
    let mut mesh = Mesh::tree_of(&Plan::default(), &[0, 0, 1]);
    mesh.mend(3, 2);
    for number in 0..8 {
        mesh.origin.put(&url(number), Page::of(2_000_000).fresh(600));
    }
    mesh.links.rate = 400_000;
    let ids: Vec<_> = (0..8).map(|it| mesh.call(3, Call::get(&url(it)))).collect();
    mesh.pass_seconds(3);
    mesh.power_off(1);
    mesh.pass_seconds(1);
    let got = |mesh: &Mesh| ids.iter().map(|id| mesh.client(*id).content.len()).sum::<usize>();
    let before = got(&mesh);
    mesh.pass_seconds(5);
    assert!(got(&mesh) > before + 200_000, "{} and then {}", before, got(&mesh));
    mesh.finish();
    assert!(ids.iter().all(|id| mesh.client(*id).is_ok()));
    assert!((0..8).all(|it| mesh.origin.asked(&url(it)) == 1));
    mesh.done();
}

#[test]
fn a_gateway_that_hangs_is_passed_by_soon() {
    for plan in [Plan::default(), Plan::thcp()] {
        let mut mesh = slow_row(&plan, 2);
        mesh.links.rate = 1_000_000;
        mesh.links.deaf.insert(0);
        let ids: Vec<_> = (0..4).map(|it| mesh.call(1, Call::get(&url(it)))).collect();
        mesh.finish();
        for id in ids {
            assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
            assert!(mesh.took(id) < Duration::from_secs(7), "{:?}", mesh.took(id));
        }
        mesh.links.deaf.remove(&0);
        mesh.done();
    }
}

#[test]
fn a_silence_that_outlasts_the_connection_and_a_dial_costs_a_delay_too() {
    let mut mesh = slow_row(&Plan::thcp(), 3);
    let ids: Vec<_> = (0..4).map(|it| mesh.call(2, Call::get(&url(it)))).collect();
    mesh.pass_seconds(6);
    assert!(ids.iter().all(|id| mesh.client(*id).end.is_none()));
    mesh.cut(0, 1);
    // The connection ends after 20 s; the first dial comes to nothing 10 s later.
    mesh.pass_seconds(27);
    mesh.mend(0, 1);
    mesh.finish();
    assert!(ids.iter().all(|id| mesh.client(*id).is_ok()));
    mesh.done();
}
