//! A mesh with a key: what rests and what crosses is sealed, clients get it clear, and nothing that is
//! sealed with another key, or not at all, is taken for an object.

use crate::net::{Call, Forged, Mesh, Pace, Page, Plan, author, key_under};
use bytes::Bytes;
use content::Root;
use node::{OPEN_KEY, named};
use std::time::Duration;
use wire::peer::Message;

const URL: &str = "http://o.test/a-path-that-nobody-else-may-read";
const PATH: &[u8] = b"a-path-that-nobody-else-may-read";
const MARK: &[u8] = b"words that nobody else may read";
const KEY: [u8; 32] = [3; 32];

fn keyed() -> Plan {
    Plan { key: Some(KEY), ..Plan::default() }
}

/// A text that says the same words over and over, and never repeats itself.
fn telling(length: usize) -> Bytes {
    let mark = std::str::from_utf8(MARK).expect("ASCII");
    let mut text: String = (0..length / MARK.len()).map(|at| format!("{at}: {mark}; ")).collect();
    text.truncate(length);
    text.into()
}

fn told(length: usize) -> Page {
    Page::new(telling(length)).fresh(600)
}

fn times(bytes: &[u8], words: &[u8]) -> usize {
    memchr::memmem::find_iter(bytes, words).count()
}

/// How often words occur in what crossed connections, and in what rests on disks.
fn heard_and_kept(mesh: &mut Mesh, words: &[u8]) -> [usize; 2] {
    let heard = mesh.links.heard.as_ref().expect("somebody listens");
    let heard = heard.values().map(|bytes| times(bytes, words)).sum();
    let kept = (0..mesh.count()).map(|node| times(&mesh.disk(node).raw(), words)).sum();
    [heard, kept]
}

/// Small and large objects, one that pauses, ranges, and a router that comes later: all that is said of
/// them between routers, and written.
fn a_day(plan: &Plan) -> Mesh {
    let mut mesh = Mesh::chain_of(plan, 4);
    mesh.links.heard = Some(Default::default());
    let pages = [told(3_000), told(16_000), told(600_000).resting(50_000, Duration::from_secs(3))];
    for (number, page) in pages.into_iter().enumerate() {
        let url = format!("{URL}/{number}");
        mesh.origin.put(&url, page);
        for node in [3, 2] {
            let id = mesh.get(node, &url);
            assert!(mesh.client(id).is_ok(), "{url} at {node}: {:?}", mesh.client(id).head);
        }
        let part = mesh.call(3, Call::get(&url).with("range", "bytes=1000-2000"));
        mesh.finish();
        assert!(mesh.client(part).is_whole());
    }
    // What a store has lost comes once more, in part by name.
    mesh.disk(3).corrupt = true;
    mesh.restart(3);
    mesh.pass_seconds(1);
    let id = mesh.get(3, &format!("{URL}/2"));
    assert!(mesh.client(id).is_ok());
    mesh.disk(3).corrupt = false;
    mesh.pass_seconds(10);
    mesh
}

#[test]
fn nothing_of_an_object_or_its_url_crosses_or_rests_in_clear() {
    for scheme in [Plan::default(), Plan::thcp()] {
        let mut mesh = a_day(&Plan { key: Some(KEY), ..scheme });
        assert_eq!(heard_and_kept(&mut mesh, MARK), [0, 0]);
        assert_eq!(heard_and_kept(&mut mesh, PATH), [0, 0]);
        assert!(mesh.data(0, 1) + mesh.data(0, 3) > 600_000);
        mesh.done();
    }
    // The same in a mesh without a key, to see that it would have been found.
    let mut open = a_day(&Plan::default());
    let [heard, kept] = heard_and_kept(&mut open, MARK);
    assert!(heard > 3 * 10_000 && kept > 4 * 10_000, "{heard} times heard, {kept} kept");
    let [heard, kept] = heard_and_kept(&mut open, PATH);
    assert!(heard == 0 && kept > 0, "{heard} times heard, {kept} kept");
}

#[test]
fn clients_get_it_clear_at_any_pace_and_in_any_part() {
    let mut mesh = Mesh::chain_of(&keyed(), 3);
    mesh.origin.put(URL, Page::of(900_000).fresh(600).etag("a").steady());
    let paces = [Pace::Fast, Pace::Slow(777), Pace::Slow(1), Pace::Leaves(300_000)];
    let calls = |mesh: &mut Mesh| -> Vec<usize> {
        let call = |mesh: &mut Mesh, node, pace: Pace, range: &str| {
            let call = Call::get(URL).pace(pace);
            mesh.call(node, if range.is_empty() { call } else { call.with("range", range) })
        };
        let mut ids = Vec::new();
        for node in 0..3 {
            ids.extend(paces.map(|pace| call(mesh, node, pace, "")));
            for range in ["bytes=0-0", "bytes=8191-500000", "bytes=-1", "bytes=899999-"] {
                ids.push(call(mesh, node, Pace::Slow(5_000), range));
            }
        }
        ids
    };
    // While it comes, out of memory, and from disks.
    for round in 0..3 {
        for id in calls(&mut mesh) {
            mesh.pass_millis(30);
            if matches!(mesh.client(id).call.pace, Pace::Slow(1)) {
                mesh.pass_millis(300);
                mesh.leave(id);
            }
        }
        mesh.finish();
        for client in mesh.clients() {
            let leaves = matches!(client.call.pace, Pace::Leaves(_) | Pace::Slow(1));
            assert!(client.is_whole() || leaves, "{round}: {:?} {:?}", client.call, client.head);
        }
        if round == 1 {
            (0..3).for_each(|node| mesh.restart(node));
            mesh.pass_seconds(1);
        }
    }
    let several = mesh.call(2, Call::get(URL).with("range", "bytes=5-9, 100000-100004, 0-2"));
    mesh.finish();
    let text = String::from_utf8_lossy(&mesh.client(several).content).into_owned();
    assert!(mesh.client(several).status() == 206 && text.contains("bytes 100000-100004/900000"));
    let whole = mesh.get(2, URL);
    let whole = mesh.client(whole).content.clone();
    let parts = &mesh.client(several).content;
    for part in [&whole[5..10], &whole[100_000..100_005], &whole[0..3]] {
        assert_eq!(times(parts, &[b"\r\n\r\n", part, b"\r\n"].concat()), 1);
    }
    mesh.done();
}

#[test]
fn equal_content_is_kept_once() {
    let mut mesh = Mesh::chain_of(&keyed(), 2);
    mesh.origin.put(URL, told(400_000));
    mesh.origin.put("http://elsewhere.test/b", told(400_000));
    mesh.get(1, URL);
    let crossed = mesh.data(0, 1);
    let id = mesh.get(1, "http://elsewhere.test/b");
    assert!(mesh.client(id).is_ok());
    assert_eq!(mesh.report(0).known_bytes, 400_000);
    // What comes unasked comes all the same.
    assert!(mesh.data(0, 1) - crossed < 17_000, "{}", mesh.data(0, 1) - crossed);
    mesh.done();
}

#[test]
fn a_hole_is_mended_from_the_origin_and_kept_sealed() {
    let mut mesh = Mesh::chain_of(&keyed(), 1);
    mesh.origin.put(URL, told(500_000).etag("a"));
    mesh.get(0, URL);
    mesh.restart(0);
    mesh.disk(0).corrupt = true;
    let id = mesh.get(0, URL);
    assert!(mesh.client(id).is_ok() && mesh.is_hit(id), "{}", mesh.cache(id));
    assert!(mesh.report(0).units_bad > 0);
    mesh.disk(0).corrupt = false;
    mesh.restart(0);
    let sent = mesh.origin.sent;
    let id = mesh.get(0, URL);
    assert!(mesh.client(id).is_ok() && mesh.is_hit(id));
    assert_eq!(mesh.origin.sent, sent, "what was mended is stored");
    assert_eq!(times(&mesh.disk(0).raw(), MARK), 0);
    mesh.done();
}

#[test]
fn a_hole_is_not_mended_with_bytes_of_another_version() {
    let mut mesh = Mesh::chain_of(&keyed(), 1);
    mesh.origin.put(URL, Page::of(500_000).fresh(600).etag("a"));
    mesh.get(0, URL);
    mesh.restart(0);
    mesh.disk(0).corrupt = true;
    // It says that it is the same, and is not.
    mesh.origin.put(URL, Page::of(500_000).fresh(600).etag("a"));
    let broken = mesh.get(0, URL);
    assert!(mesh.client(broken).is_broken() && mesh.client(broken).content.is_empty());
    mesh.done();
}

#[test]
fn a_key_that_went_bad_on_the_disk_opens_nothing() {
    let mut mesh = Mesh::chain_of(&keyed(), 1);
    mesh.origin.put(URL, Page::of(500_000).fresh(600));
    mesh.get(0, URL);
    mesh.restart(0);
    mesh.disk(0).spoil_keys = true;
    let broken = mesh.get(0, URL);
    assert!(mesh.client(broken).is_broken() && mesh.client(broken).content.is_empty());
    assert_eq!(mesh.report(0).units_false, 1);
    mesh.disk(0).spoil_keys = false;
    let whole = mesh.get(0, URL);
    assert!(mesh.client(whole).is_ok() && !mesh.is_hit(whole), "the record was dropped");
    mesh.done();
}

#[test]
fn what_was_kept_with_another_key_or_none_is_not_served() {
    let keys = [None, Some([1; 32]), Some([2; 32])];
    for before in keys {
        for after in keys {
            let mut mesh = Mesh::asleep(&Plan { key: before, ..Plan::default() }, &[]);
            mesh.start_all();
            mesh.origin.put(URL, Page::of(300_000).fresh(600));
            mesh.get(0, URL);
            mesh.plan(0).key = after;
            mesh.restart(0);
            let id = mesh.get(0, URL);
            assert!(mesh.client(id).is_ok());
            assert_eq!(mesh.is_hit(id), before == after, "{before:?}, {after:?}");
            let again = mesh.get(0, URL);
            assert!(mesh.client(again).is_ok() && mesh.is_hit(again));
            mesh.done();
        }
    }
}

/// The names of objects depend on the key too, which alone would hide what was kept without it: so the
/// record is put where it is found.
#[test]
fn a_record_that_is_not_sealed_as_it_should_be_is_a_miss() {
    for (before, after) in [(None, Some(KEY)), (Some(KEY), None), (Some([1; 32]), Some(KEY))] {
        let mut mesh = Mesh::asleep(&Plan { key: before, ..Plan::default() }, &[]);
        mesh.start_all();
        mesh.origin.put(URL, Page::of(300_000).fresh(600));
        mesh.get(0, URL);
        mesh.pass_seconds(6);
        let place = |key: Option<[u8; 32]>| key_under(URL, &key.unwrap_or(OPEN_KEY));
        mesh.disk(0).copy_row(place(before), place(after));
        mesh.plan(0).key = after;
        mesh.restart(0);
        let id = mesh.get(0, URL);
        // Sealed with another key: that shows in its first unit alone, when the head has left.
        let both = before.is_some() && after.is_some();
        assert_eq!((mesh.client(id).is_ok(), mesh.client(id).is_broken()), (!both, both));
        assert!(!both || mesh.client(id).content.is_empty());
        let again = mesh.get(0, URL);
        assert!(mesh.client(again).is_ok(), "{before:?}, {after:?}");
        assert_eq!(mesh.origin.askers(URL), [0, 0]);
        mesh.done();
    }
}

/// 1 has the mesh's key, answers by itself, and lists its units as `bend` leaves them.
fn beside_a_liar(bend: fn(&mut content::Entry)) -> Mesh {
    let mut mesh = Mesh::chain_of(&keyed(), 3);
    mesh.start_liar(
        1,
        author(move |peers, message| {
            let forged = Forged::sealed(peers, URL, &telling(300_000), &KEY, bend);
            match message {
                Message::Get(ask) => forged.all(ask.request),
                Message::Want(_, wants) => forged.units(&wants),
                _ => Vec::new(),
            }
        }),
    );
    mesh.pass_seconds(40);
    mesh.origin.put(URL, told(300_000));
    mesh
}

#[test]
fn units_that_are_sealed_as_they_are_listed_are_served() {
    let mut mesh = beside_a_liar(|_| ());
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).content == telling(300_000), "{:?}", mesh.client(id).head);
    assert!(mesh.origin.askers(URL).is_empty());
    mesh.kill(1);
    mesh.done();
}

#[test]
fn units_that_are_listed_with_false_keys_reach_nobody() {
    let mut mesh = beside_a_liar(|entry| entry.key = Some([9; 32]));
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_broken() && mesh.client(id).content.is_empty());
    assert_eq!(mesh.report(2).units_false, 1);
    // What it listed is not kept: who asks when it is gone is served.
    mesh.kill(1);
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok() && !mesh.is_hit(id), "{:?}", mesh.client(id).head);
    mesh.done();
}

#[test]
fn who_lists_units_in_clear_is_left() {
    let mut mesh = beside_a_liar(|entry| entry.key = None);
    let id = mesh.get(2, URL);
    assert!(mesh.has_expelled(2, 1), "{:?}", mesh.notices);
    assert!(mesh.client(id).content.is_empty() || mesh.client(id).is_ok());
    mesh.kill(1);
    mesh.done();
}

#[test]
fn what_is_put_is_sealed_for_the_mesh_and_got_by_name() {
    for scheme in [Plan::default(), Plan::thcp()] {
        let mut mesh = Mesh::chain_of(&Plan { key: Some(KEY), ..scheme }, 2);
        mesh.links.heard = Some(Default::default());
        let body = telling(600_000);
        let name = mesh.publish(1, Page::new(body.clone()));
        mesh.pass_seconds(40);
        for node in [0, 0, 1] {
            let id = mesh.get(node, &named::uri(&name));
            let client = mesh.client(id);
            assert!(client.is_ok() && client.content == body[..], "{node}: {:?}", client.head);
            let root = Root::decode(client.header(named::ROOT)).expect("it is one");
            // What a client can check without the mesh's key is of clear bytes.
            assert_eq!((root.length, root.content), (600_000, Root::digest(&body)));
        }
        assert!(mesh.origin.seen.is_empty() && mesh.data(1, 0) > 600_000);
        assert_eq!(heard_and_kept(&mut mesh, MARK), [0, 0]);
        // After a restart it is published still, and opened still.
        mesh.restart(1);
        mesh.pass_seconds(2);
        assert!(mesh.shelf(1)[0].whole);
        let id = mesh.get(1, &named::uri(&name));
        assert!(mesh.client(id).is_ok());
        mesh.done();
    }
}

#[test]
fn the_same_file_has_another_name_under_another_key() {
    let body = telling(100_000);
    let name = |key: Option<[u8; 32]>| {
        let mut mesh = Mesh::chain_of(&Plan { key, ..Plan::default() }, 2);
        let name = mesh.publish(0, Page::new(body.clone()));
        assert_eq!(mesh.publish(1, Page::new(body.clone())), name);
        mesh.done();
        name
    };
    let names = [None, Some(KEY), Some([4; 32])].map(name);
    assert!(names[0] != names[1] && names[1] != names[2] && names[2] != names[0]);
}
