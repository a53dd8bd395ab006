//! Nodes that overhear what their neighbours send each other: a unit that was heard is not requested, only the missing
//! bytes of a unit that was heard in part are requested, and senders of false or useless units do no harm.

use crate::net::{Call, Mesh, Page, Plan, Relay, Said, Stranger, cut, noise};
use bytes::Bytes;
use node::overhear::Options;
use std::time::Duration;
use wire::ChunkId;

const URL: &str = "http://o.test/a";
const LENGTH: usize = 1_000_000;

/// Routers 1 and 2 are both behind 0, and 2 hears what 0 sends to 1, except this many segments in a thousand. It has a
/// daemon's default memory for overhearing.
fn siblings(lost_in_thousand: u64, seed: u64) -> Mesh {
    let plan = Plan { overhear: Some(8 << 20), ..Plan::listening() };
    let mut mesh = Mesh::tree_of(&plan.seeded(seed), &[0, 0]);
    mesh.air.listen(2, lost_in_thousand, seed);
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
    mesh
}

/// The same mesh, but 2 has heard nothing; and the units of the object.
fn unheard() -> (Mesh, Vec<(ChunkId, Bytes)>) {
    let mut mesh = siblings(1000, 1);
    let id = mesh.get(1, URL);
    let body = mesh.client(id).content.clone();
    (mesh, cut(&body.into()).1)
}

#[test]
fn end_to_end_overhearing_is_as_good() {
    let plan = Plan { overhear: Plan::listening().overhear, ..Plan::thcp() };
    let mut mesh = Mesh::tree_of(&plan, &[0, 0, 1]);
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
    mesh.air.listen(3, 0, 1);
    mesh.get(2, URL);
    let id = mesh.get(3, URL);
    assert!(mesh.client(id).is_ok());
    assert_eq!((mesh.report(3).wants_out, mesh.data(0, 3)), (0, 0));
    mesh.done();
}

#[test]
fn who_has_overheard_everything_asks_for_no_unit() {
    let mut mesh = siblings(0, 1);
    mesh.get(1, URL);
    let heard = mesh.report(2).overheard;
    assert_eq!((heard.bytes, heard.dropped_units), (LENGTH as u64, 0));
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok());
    let report = mesh.report(2);
    assert_eq!((report.asks_out, report.wants_out, mesh.data(0, 2)), (1, 0, 0));
    assert_eq!(report.served_overheard_bytes, LENGTH as u64);
    assert_eq!((report.served_local_bytes, report.served_peer_bytes), (0, 0));
    let recent = report.recent.last().expect("an object");
    assert_eq!((recent.bytes, recent.overheard_bytes), (LENGTH as u64, LENGTH as u64));
    let again = mesh.get(2, URL);
    assert!(mesh.is_hit(again) && mesh.cache(again).ends_with("; detail=overheard"));
    assert!(!mesh.cache(id).contains("detail"), "its manifest had not come: {}", mesh.cache(id));
    mesh.done();
}

#[test]
fn what_is_held_is_not_collected_again() {
    let mut mesh = siblings(1000, 1);
    mesh.get(1, URL);
    mesh.pass_seconds(20);
    mesh.air.listen(1, 0, 1);
    mesh.get(2, URL);
    let heard = mesh.report(1).overheard;
    assert!(heard.heard.payload_bytes > LENGTH as u64);
    assert_eq!((heard.units, heard.dropped_units, heard.heard.chunks), (0, 0, 0));
    // Of each unit no more than the segment in which it began.
    assert!(heard.heard.kept_bytes < LENGTH as u64 / 4, "{:?}", heard.heard);
    mesh.done();
}

#[test]
fn what_was_overheard_rests_on_disk() {
    let mut mesh = siblings(0, 1);
    mesh.get(1, URL);
    mesh.pass_seconds(3);
    mesh.air.deafen(2);
    mesh.restart(2);
    mesh.pass_seconds(40);
    let before = mesh.data(0, 2);
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok());
    let report = mesh.report(2);
    assert_eq!((report.wants_out, report.served_overheard_bytes), (0, LENGTH as u64));
    // Nothing but what comes unasked: it had not heard anything since it began.
    assert!(mesh.data(0, 2) - before < 17_000, "{}", mesh.data(0, 2) - before);
    mesh.done();
}

/// A mesh in which 2 missed some segments of an object, and how many bytes of its units it missed.
fn half_heard(lost_in_thousand: u64, seed: u64) -> (Mesh, u64) {
    let mut mesh = siblings(lost_in_thousand, seed);
    mesh.get(1, URL);
    let missing = LENGTH as u64 - mesh.air.heard_of_units(2);
    (mesh, missing)
}

#[test]
fn of_what_was_half_heard_only_the_rest_is_sent() {
    for lost in [50, 100, 200, 500] {
        for seed in 1..4 {
            let (mut mesh, missing) = half_heard(lost, seed);
            let (to, from) = (mesh.control(0, 2), mesh.control(2, 0));
            let id = mesh.get(2, URL);
            assert!(mesh.client(id).is_ok());
            let sent = mesh.data(0, 2);
            let percent = sent as f64 * 100.0 / missing as f64;
            let (to, from) = (mesh.control(0, 2) - to, mesh.control(2, 0) - from);
            println!(
                "{lost} of 1000 lost, seed {seed}: {missing} bytes missing, {sent} sent, {percent:.1} %; messages {to} and {from}"
            );
            // Nothing that was heard is sent; beyond, each range that is missing has a head.
            assert!(sent >= missing, "{sent} bytes were sent of {missing} that were missing");
            assert!(sent * 100 <= missing * 105, "{sent} bytes were sent for {missing}, {lost}");
            let report = mesh.report(2);
            assert!(report.overheard.repaired_units > 0);
            assert_eq!(report.overheard.repaired_bytes, report.served_repaired_bytes);
            let recent = report.recent.last().expect("an object");
            let (air, mended) = (recent.overheard_bytes, recent.repaired_bytes);
            assert_eq!((recent.bytes, recent.local_bytes), (LENGTH as u64, 0));
            assert_eq!(air + mended + recent.peer_bytes, LENGTH as u64);
            assert_eq!(recent.peer_bytes, report.peer_units_in_bytes);
            mesh.done();
        }
    }
}

#[test]
fn what_is_missing_of_an_object_is_asked_for_in_few_round_trips() {
    const LATENCY: Duration = Duration::from_millis(100);
    let plan = Plan { overhear: Some(8 << 20), latency: LATENCY, ..Plan::listening() };
    let mut mesh = Mesh::tree_of(&plan, &[0, 0]);
    mesh.air.listen(2, 100, 1);
    mesh.origin.put(URL, Page::of(4 * LENGTH).fresh(600));
    mesh.get(1, URL);
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok() && mesh.report(2).overheard.repaired_units > 150);
    // If overheard bytes counted fully in the windows of 256 KiB, it would take 16 round trips; if they counted half,
    // 10.2, including the time that the bytes take.
    assert!(mesh.took(id) < 2 * LATENCY * 39 / 4, "{:?}", mesh.took(id));
    mesh.done();
}

#[test]
fn who_may_have_overheard_an_object_waits_no_longer_for_one_that_comes_slowly() {
    let (mut mesh, _) = half_heard(200, 1);
    let url = "http://o.test/slow";
    let page = Page::new(noise(7, LENGTH)).fresh(600).resting(12_000, Duration::from_secs(3));
    mesh.origin.put(url, page);
    let id = mesh.get(2, url);
    assert!(mesh.client(id).is_ok());
    let times = mesh.times(id);
    // A few round trips, and what the second piece of the manifest may take.
    let waited = times.first.expect("it came") - times.asked;
    assert!(waited < Duration::from_millis(120), "{waited:?}");
    mesh.done();
}

#[test]
fn a_mended_object_is_kept_whole() {
    let (mut mesh, _) = half_heard(300, 5);
    mesh.get(2, URL);
    mesh.pass_seconds(10);
    mesh.restart(2);
    mesh.pass_seconds(40);
    let (sent, id) = (mesh.data(0, 2), mesh.get(2, URL));
    assert!(mesh.client(id).is_ok() && mesh.is_hit(id), "{}", mesh.cache(id));
    assert_eq!(mesh.data(0, 2), sent);
    mesh.done();
}

#[test]
fn what_is_overheard_on_its_way_is_taken_back() {
    let mut mesh = Mesh::tree_of(&Plan::listening(), &[0, 1]);
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
    // What 2 has asked 1 for it hears when 0 sends it to 1, long before 1 has sent it.
    mesh.air.listen(2, 0, 1);
    mesh.links.rates.insert((1, 2), 200_000);
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok());
    let (report, relay) = (mesh.report(2), mesh.report(1));
    let heard = report.overheard;
    assert!(heard.cancelled_units > 100, "{heard:?}");
    assert!(relay.wants_taken_back > 50, "{}", relay.wants_taken_back);
    assert!(mesh.data(1, 2) < LENGTH as u64 / 2, "{}", mesh.data(1, 2));
    assert_eq!(report.served_overheard_bytes, heard.cancelled_bytes + heard.bytes);
    assert_eq!(report.served_overheard_bytes + report.served_peer_bytes, LENGTH as u64);
    assert!(!mesh.has_expelled(1, 2) && !mesh.has_expelled(2, 1));
    mesh.done();
}

#[test]
fn where_nothing_is_taken_back_all_that_was_asked_for_comes() {
    let listening = Options { cancels: false, ..Options::default() };
    let mut mesh = Mesh::tree_of(&Plan { listening, ..Plan::listening() }, &[0, 1]);
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
    mesh.air.listen(2, 0, 1);
    mesh.links.rates.insert((1, 2), 200_000);
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok());
    let (report, relay) = (mesh.report(2), mesh.report(1));
    assert_eq!((report.overheard.cancelled_units, relay.wants_taken_back), (0, 0));
    // What was heard before it was asked for is of use all the same.
    assert!(report.overheard.bytes > 0);
    assert!(mesh.data(1, 2) >= report.served_peer_bytes);
    assert_eq!(report.served_overheard_bytes, report.overheard.bytes);
    assert_eq!(report.served_overheard_bytes + report.served_peer_bytes, LENGTH as u64);
    mesh.done();
}

/// Routers that overhear as in the Ditto paper: they use only whole chunks behind a head that was heard.
#[test]
fn without_what_is_ours_chunks_are_heard_whole_or_not_at_all() {
    let listening =
        Options { guesses_heads: false, repairs: false, cancels: false, ..Options::default() };
    let mut mesh = Mesh::tree_of(&Plan { listening, ..Plan::listening() }, &[0, 0]);
    mesh.air.listen(2, 100, 1);
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
    mesh.get(1, URL);
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok());
    let report = mesh.report(2);
    let heard = report.overheard;
    assert!(heard.units > 0 && heard.heard.heads > 0, "{heard:?}");
    assert_eq!((heard.heard.heads_guessed, heard.repaired_units, heard.cancelled_units), (0, 0, 0));
    assert_eq!(report.served_overheard_bytes, heard.bytes);
    assert_eq!(report.served_overheard_bytes + report.served_peer_bytes, LENGTH as u64);
    mesh.done();
}

#[test]
fn what_is_overheard_on_its_way_is_no_peers_for_any_who_wait_for_it() {
    let mut mesh = Mesh::tree_of(&Plan::listening(), &[0, 1]);
    let (body, tail) = (noise(1, LENGTH), noise(2, LENGTH));
    mesh.publish(2, Page::new(tail.clone()));
    let both = Bytes::from([body.as_ref(), tail.as_ref()].concat());
    mesh.origin.put(URL, Page::new(body).fresh(600));
    mesh.origin.put("http://o.test/b", Page::new(both).fresh(600));
    mesh.air.listen(2, 0, 1);
    mesh.links.rates.insert((1, 2), 200_000);
    let ids = [URL, "http://o.test/b"].map(|url| mesh.call(2, Call::get(url)));
    mesh.finish();
    assert!(ids.iter().all(|id| mesh.client(*id).is_ok()));
    let report = mesh.report(2);
    assert!(report.overheard.cancelled_units > 50, "{:?}", report.overheard);
    let recent = report.recent.iter().find(|it| it.uri.ends_with("/b")).expect("an object");
    // All but where the two join rests here: none of it came from a peer because of what was heard.
    assert!(recent.local_bytes > LENGTH as u64 - 50_000, "{recent:?}");
    assert!(recent.peer_bytes <= report.peer_units_in_bytes, "{recent:?}");
    mesh.done();
}

#[test]
fn true_names_with_false_bytes_do_no_harm() {
    let (mut mesh, units) = unheard();
    let mut liar = Stranger::new(50_000);
    for (name, unit) in &units {
        let mut lie = unit.to_vec();
        lie[unit.len() / 2] ^= 1;
        let said = liar.say(*name, &lie.into(), 0..unit.len());
        mesh.hear(2, said);
    }
    assert_eq!(mesh.report(2).overheard.units, 0);
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok() && !mesh.has_expelled(2, 0));
    assert_eq!(mesh.report(2).served_peer_bytes, LENGTH as u64);
    mesh.done();
}

#[test]
fn a_false_half_reaches_no_client_and_no_peer_is_blamed_for_it() {
    let (mut mesh, units) = unheard();
    let mut liar = Stranger::new(50_000);
    for (name, unit) in &units {
        let mut lie = unit.to_vec();
        lie[0] ^= 1;
        let said = liar.say(*name, &lie.into(), 0..unit.len() / 2);
        mesh.hear(2, said);
    }
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok() && !mesh.has_expelled(2, 0));
    let report = mesh.report(2);
    assert!(report.overheard.false_units as usize > units.len() / 2, "{:?}", report.overheard);
    assert_eq!((report.units_false, report.overheard.repaired_bytes), (0, 0));
    // What the peer had sent of a unit is not sent again.
    let sent = mesh.data(0, 2);
    assert!(sent < LENGTH as u64 / 100 * 104, "{sent}");
    assert_eq!(report.served_peer_bytes, LENGTH as u64);
    mesh.done();
}

#[test]
fn a_false_rest_is_its_senders_fault() {
    let plan = Plan::listening();
    let mut mesh = Mesh::tree_of(&plan, &[0, 1]);
    let page = Page::of(LENGTH).fresh(600);
    let units = cut(&page.body).1;
    mesh.origin.put(URL, page);
    mesh.start_liar(
        1,
        Relay::play(|said| match said {
            Said::Chunk(head, bytes) if head.length < head.total => {
                let mut lie = bytes.to_vec();
                lie[0] ^= 1;
                vec![Said::Chunk(head, lie.into())]
            }
            other => vec![other],
        }),
    );
    mesh.pass_seconds(40);
    let mut stranger = Stranger::new(50_000);
    for (name, unit) in &units {
        let said = stranger.say(*name, unit, 0..unit.len() / 2);
        mesh.hear(2, said);
    }
    let id = mesh.get(2, URL);
    // What was heard is the first that is not believed; then it is clear who lies.
    assert!(mesh.report(2).overheard.false_units > 0 && mesh.report(2).units_false > 0);
    assert!(mesh.has_expelled(2, 1) && mesh.client(id).is_ok());
    mesh.kill(1);
    mesh.done();
}

#[test]
fn a_row_of_nodes_that_all_listen_serves_the_right_bytes() {
    for (plan, lost) in [(Plan::listening(), 0), (Plan::listening(), 300)] {
        let mut mesh = Mesh::chain_of(&plan, 5);
        (0..5).for_each(|node| mesh.air.listen(node, lost, node as u64));
        for number in 0..3 {
            let url = format!("http://o.test/{number}");
            mesh.origin.put(&url, Page::new(noise(number, LENGTH)).fresh(600));
            for node in [4, 2, 3] {
                let id = mesh.get(node, &url);
                assert!(mesh.client(id).is_ok());
            }
        }
        let expelled = |one| (0..5).any(|other| mesh.has_expelled(one, other));
        assert!(!(0..5).any(expelled));
        mesh.done();
    }
}

#[test]
fn what_is_put_before_what_was_overheard_of_it_is_written_waits_no_longer() {
    let mut mesh = Mesh::chain_of(&Plan::listening(), 1);
    let body = noise(1, 100_000);
    let mut stranger = Stranger::new(50_000);
    for (name, unit) in cut(&body).1 {
        let said = stranger.say(name, &unit, 0..unit.len());
        mesh.hear(0, said);
    }
    assert_eq!(mesh.report(0).overheard.waiting_bytes, body.len() as u64);
    mesh.publish(0, Page::new(body));
    mesh.pass_seconds(3);
    let report = mesh.report(0);
    assert_eq!((report.overheard.waiting_bytes, report.pinned_bytes), (0, 0));
    mesh.done();
}

#[test]
fn objects_that_were_not_overheard_come_unasked_again() {
    let mut mesh = siblings(0, 1);
    mesh.get(1, URL);
    mesh.air.deafen(2);
    for (number, asked) in [(1, 1), (2, 1)] {
        let url = format!("http://o.test/small{number}");
        mesh.origin.put(&url, Page::of(9000).fresh(600));
        mesh.get(2, &url);
        // The first time it was sparing, and had to ask.
        assert_eq!(mesh.report(2).wants_out > 0, asked > 0);
    }
    let first = mesh.report(2).wants_out;
    assert!(first <= 2, "{first}");
    mesh.done();
}

#[test]
fn who_does_not_listen_takes_no_notice() {
    let mut mesh = Mesh::tree_of(&Plan::default(), &[0, 0]);
    mesh.air.listen(2, 0, 1);
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
    mesh.get(1, URL);
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok());
    let report = mesh.report(2);
    assert_eq!((report.overheard.units, report.overheard.heard.segments), (0, 0));
    assert_eq!(report.served_peer_bytes, LENGTH as u64);
    mesh.done();
}
