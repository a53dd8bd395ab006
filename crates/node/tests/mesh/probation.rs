//! Overheard units that no client requested do no harm, in any number.

use crate::net::{Call, Mesh, Page, Plan, Stranger, cut, noise};

const URL: &str = "http://o.test/a";
const LENGTH: usize = 1_000_000;

/// A node that listens, behind a gateway, with a store of eight times the object.
fn listening() -> Mesh {
    let mut plan = Plan::listening();
    plan.node.store_bytes = 8 << 20;
    let mut mesh = Mesh::chain_of(&plan, 2);
    mesh.origin.put(URL, Page::new(noise(1, LENGTH)).fresh(6000));
    mesh
}

/// Node 1 hears `count` units that no client requests. Each kind always gives the same units.
fn flood(mesh: &mut Mesh, stranger: &mut Stranger, kind: u64, count: u64, length: usize) {
    for number in 0..count {
        let unit = noise(kind * 10_000 + number, length);
        let said = stranger.say(content::name(&unit), &unit, 0..unit.len());
        mesh.hear(1, said);
        mesh.pass_millis(10);
    }
}

/// Gets the object on node 1: how many bytes of units came for that.
fn came(mesh: &mut Mesh) -> u64 {
    let before = mesh.report(1).peer_units_in_bytes;
    let id = mesh.get(1, URL);
    assert!(mesh.client(id).is_ok());
    mesh.report(1).peer_units_in_bytes - before
}

#[test]
fn a_flood_leaves_what_was_asked_for() {
    let mut mesh = listening();
    assert_eq!(came(&mut mesh), LENGTH as u64);
    let mut stranger = Stranger::new(50_000);
    // Something new each time, and then the same again.
    for (round, kind) in [(1, 1), (2, 2), (3, 2), (4, 2)] {
        flood(&mut mesh, &mut stranger, kind, 2000, 10_000);
        let report = mesh.report(1);
        assert_eq!(report.overheard.units, round * 2000);
        assert!(report.index.evicted_bytes > (round * 20 - 12) << 20, "{:?}", report.index);
    }
    assert_eq!(came(&mut mesh), 0);
    mesh.done();
}

#[test]
fn what_is_asked_for_before_it_is_written_is_on_probation_no_more() {
    for is_asked_for in [false, true] {
        let mut mesh = listening();
        let mut stranger = Stranger::new(50_000);
        for (name, unit) in cut(&noise(1, LENGTH)).1 {
            let said = stranger.say(name, &unit, 0..unit.len());
            mesh.hear(1, said);
        }
        if is_asked_for {
            assert_eq!(came(&mut mesh), 0);
        }
        flood(&mut mesh, &mut stranger, 1, 2000, 10_000);
        // When a segment is reclaimed and all of its units were used, a quarter of it is evicted.
        let came = came(&mut mesh) as usize;
        assert!(if is_asked_for { came < LENGTH / 3 } else { came == LENGTH }, "{came}");
        mesh.done();
    }
}

#[test]
fn units_shorter_than_their_place_is_worth_are_not_kept() {
    let mut mesh = listening();
    flood(&mut mesh, &mut Stranger::new(50_000), 1, 2000, 100);
    let report = mesh.report(1);
    assert_eq!((report.overheard.units, report.overheard.dropped_units), (0, 2000));
    assert_eq!((report.index.units, report.store_failures), (0, 0));
    mesh.done();
}

#[test]
fn a_flood_while_the_disk_is_stuck_holds_nobody_back() {
    let plan = Plan::listening();
    let mut mesh = Mesh::chain_of(&plan, 2);
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
    mesh.disk(1).stuck = true;
    let mut stranger = Stranger::new(50_000);
    for number in 0..2000 {
        let unit = noise(1000 + number, 10_000);
        let said = stranger.say(content::name(&unit), &unit, 0..unit.len());
        mesh.hear(1, said);
    }
    let report = mesh.report(1);
    let share = plan.node.memory_bytes / 8;
    assert!(report.pinned_bytes <= share, "{}", report.pinned_bytes);
    assert_eq!(report.overheard.waiting_bytes, report.pinned_bytes);
    assert_eq!(report.overheard.units + report.overheard.dropped_units, 2000);
    let id = mesh.call(1, Call::get(URL));
    mesh.pass_seconds(5);
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).end);
    mesh.unstick(1);
    mesh.pass_seconds(1);
    assert_eq!(mesh.report(1).overheard.waiting_bytes, 0);
    mesh.done();
}
