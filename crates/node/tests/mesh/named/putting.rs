//! Putting itself: what is promised once it is answered for, and what is refused.

use super::{fetch, miss};
use crate::net::{Call, Mesh, Page, Plan, noise};
use bytes::Bytes;
use content::Root;
use node::{PutError, named};
use wire::{ObjectKey, Oid};

/// One node with a small store.
fn small(store_bytes: u64) -> Mesh {
    let mut plan = Plan::default();
    plan.node.store_bytes = store_bytes;
    plan.node.object_bytes_max = store_bytes / 2;
    plan.node.memory_bytes = 1 << 20;
    Mesh::chain_of(&plan, 1)
}

#[test]
fn what_is_put_here_is_got_here() {
    let mut mesh = Mesh::chain(1);
    for length in [0, 1, 16_384, 300_000, 9_000_000] {
        let body = noise(length as u64, length);
        let name = mesh.publish(0, Page::new(body.clone()));
        let id = fetch(&mut mesh, 0, &name, &body);
        assert!(mesh.is_hit(id), "{}", mesh.cache(id));
        let root = mesh.client(id).header(named::ROOT).to_owned();
        assert_eq!(Root::name_of(&root), name);
        let root = Root::decode(&root).expect("it is one");
        assert_eq!((root.length, root.content), (length as u64, Root::digest(&body)));
    }
    assert!(mesh.origin.seen.is_empty());
    mesh.done();
}

#[test]
fn the_same_file_has_the_same_name_everywhere_and_however_it_comes() {
    let mut mesh = Mesh::chain(3);
    let body = noise(1, 700_000);
    let name = mesh.publish(0, Page::new(body.clone()));
    let mut slow = Page::new(body.clone()).steady();
    slow.piece = 999;
    assert_eq!(mesh.publish(1, slow), name);
    mesh.origin.put("http://o.test/a", Page::new(body.clone()).fresh(600));
    mesh.get(2, "http://o.test/a");
    let cut = mesh.report(2);
    assert_eq!(mesh.publish(2, Page::new(body.clone())), name);
    assert_eq!(mesh.publish(2, Page::new(body.clone())), name);
    let after = mesh.report(2);
    // Every unit of it was here: what an origin sent and what is put are cut alike.
    assert_eq!(after.known_bytes - cut.known_bytes, 2 * body.len() as u64);
    assert_eq!(after.index.units, cut.index.units);
    assert_eq!((after.published, after.published_bytes), (1, body.len() as u64));
    mesh.done();
}

#[test]
fn it_is_durable_before_it_is_answered_for() {
    let mut mesh = Mesh::chain(1);
    mesh.disk(0).slow_down(std::time::Duration::from_millis(20));
    let before = mesh.disk(0).syncs;
    let exchange = mesh.put(0, Page::new(noise(1, 100_000)));
    while !mesh.published.contains_key(&exchange) {
        assert!(mesh.shelf(0).iter().all(|it| !it.whole));
        mesh.pass_millis(1);
    }
    assert!(mesh.disk(0).syncs > before);
    assert!(mesh.published[&exchange].is_ok() && mesh.shelf(0)[0].whole);
    mesh.done();
}

#[test]
fn what_is_published_outlasts_what_is_only_cached() {
    let mut mesh = small(8 << 20);
    let body = noise(1, 3_000_000);
    // Half of it was cached before.
    mesh.origin.put("http://o.test/half", Page::new(body.slice(..1_500_000)).fresh(9000));
    mesh.get(0, "http://o.test/half");
    let name = mesh.publish(0, Page::new(body.clone()));
    for round in 0..2 {
        for number in 0..40 {
            let url = format!("http://o.test/{round}/{number}");
            mesh.origin.put(&url, Page::of(500_000).fresh(9000));
            for _ in 0..2 {
                let id = mesh.get(0, &url);
                assert!(mesh.client(id).is_ok());
            }
        }
        let report = mesh.report(0);
        assert!(report.index.evicted_bytes > 8 << 20 && report.index.bytes_on_disk <= 8 << 20);
        assert_eq!(report.store_failures, 0, "room was made in time");
        fetch(&mut mesh, 0, &name, &body);
        mesh.restart(0);
        mesh.pass_seconds(2);
        assert!(mesh.shelf(0)[0].whole);
    }
    // Taken back, it leaves.
    assert_eq!(mesh.withdraw(0, name), Ok(name));
    assert_eq!(mesh.withdraw(0, name), Err(PutError::Unknown));
    miss(&mut mesh, 0, &name);
    mesh.restart(0);
    mesh.pass_seconds(2);
    assert!(mesh.shelf(0).is_empty());
    miss(&mut mesh, 0, &name);
    mesh.done();
}

#[test]
fn what_two_objects_share_stays_when_one_is_taken_back() {
    let mut mesh = small(8 << 20);
    let body = noise(1, 1_500_000);
    let whole = mesh.publish(0, Page::new(body.clone()));
    let part = mesh.publish(0, Page::new(body.slice(..1_000_000)));
    assert_eq!(mesh.withdraw(0, whole), Ok(whole));
    for number in 0..40 {
        let url = format!("http://o.test/{number}");
        mesh.origin.put(&url, Page::of(500_000).fresh(9000));
        (0..2).for_each(|_| {
            mesh.get(0, &url);
        });
    }
    fetch(&mut mesh, 0, &part, &body.slice(..1_000_000));
    mesh.done();
}

#[test]
fn what_cannot_be_published_is_refused_and_leaves_nothing() {
    let mut mesh = small(8 << 20);
    let put = |mesh: &mut Mesh, length: usize, announced: usize| {
        let page = Page::new(noise(length as u64, length));
        let exchange = mesh.put_as(0, page, announced as u64);
        mesh.answered(exchange)
    };
    // What no name can certify is not even begun, and not for want of room.
    let (open, huge) = (Root::bytes_max(content::Profile::DEFAULT, false), 7 << 30);
    assert_eq!(put(&mut mesh, 10, huge), Err(PutError::TooLong(open)));
    assert_eq!(put(&mut mesh, 5_000_000, 5_000_000), Err(PutError::TooLarge(4 << 20)));
    let full = match put(&mut mesh, 3_000_000, 3_000_000) {
        Ok(_) => put(&mut mesh, 2_000_000, 2_000_000),
        Err(error) => Err(error),
    };
    assert!(matches!(full, Err(PutError::Full(_))), "{full:?}");
    assert_eq!(put(&mut mesh, 1000, 2000), Err(PutError::Broken));
    assert_eq!(put(&mut mesh, 2000, 1000), Err(PutError::Broken));
    let broken = mesh.put(0, Page::new(noise(1, 10_000)).breaking_at(5000));
    assert_eq!(mesh.answered(broken), Err(PutError::Broken));
    let left = mesh.put(0, Page::new(noise(1, 500_000)).steady());
    mesh.pass_millis(5);
    mesh.leave_put(0, left);
    assert_eq!(mesh.shelf(0).len(), 1);
    mesh.done();
}

#[test]
fn what_was_never_published_does_not_stay() {
    let mut mesh = small(8 << 20);
    let body = noise(99, 500_000);
    let name = mesh.publish(0, Page::new(body.clone()));
    for number in 0..6 {
        let page = Page::new(noise(number, 2_000_000)).breaking_at(1_990_000);
        let broken = mesh.put(0, page);
        assert_eq!(mesh.answered(broken), Err(PutError::Broken));
    }
    for number in 0..20 {
        let url = format!("http://o.test/{number}");
        mesh.origin.put(&url, Page::of(500_000).fresh(9000));
        let id = mesh.get(0, &url);
        assert!(mesh.client(id).is_ok());
    }
    let report = mesh.report(0);
    assert_eq!(report.store_failures, 0, "room was made");
    assert!(report.index.bytes_on_disk <= 8 << 20, "{}", report.index.bytes_on_disk);
    fetch(&mut mesh, 0, &name, &body);
    mesh.done();
}

#[test]
fn what_is_taken_back_before_it_is_all_here_has_an_answer() {
    let mut mesh = Mesh::chain(1);
    let body = noise(1, 300_000);
    let name = mesh.publish(0, Page::new(body.clone()));
    for wait in 0..60 {
        mesh.disk(0).slow_down(std::time::Duration::from_millis(20));
        let again = mesh.put(0, Page::new(body.clone()));
        mesh.pass_millis(wait);
        let taken = mesh.withdraw(0, name);
        assert!(matches!(taken, Ok(_) | Err(PutError::Unknown)), "{taken:?}");
        let put = mesh.answered(again);
        assert!(matches!(put, Ok(_) | Err(PutError::Unknown)), "{put:?}");
        mesh.disk(0).slow_down(std::time::Duration::ZERO);
        assert_eq!(mesh.publish(0, Page::new(body.clone())), name);
        fetch(&mut mesh, 0, &name, &body);
    }
    mesh.done();
}

#[test]
fn a_store_that_fails_publishes_nothing() {
    type Fail = fn(&mut crate::common::Shelf);
    let fails: [Fail; 3] = [
        |disk| disk.fail_appends = true,
        |disk| disk.fail_changes = true,
        |disk| {
            disk.lose_segments = true;
        },
    ];
    for fail in fails {
        let mut mesh = Mesh::chain(1);
        fail(mesh.disk(0));
        let exchange = mesh.put(0, Page::new(noise(1, 500_000)));
        assert_eq!(mesh.answered(exchange), Err(PutError::Store));
        assert!(mesh.shelf(0).iter().all(|it| !it.whole));
        mesh.done();
    }
}

#[test]
fn a_catalogue_that_fails_takes_nothing_back_that_was_published() {
    let (body, other) = (noise(1, 50_000), noise(2, 50_000));
    // As it was put before: put again, and the catalogue fails at any time meanwhile; or taken back in vain.
    for wait in (0..60).map(Some).chain([None]) {
        let mut mesh = Mesh::chain(1);
        let name = mesh.publish(0, Page::new(body.clone()));
        mesh.disk(0).slow_down(std::time::Duration::from_millis(5));
        match wait {
            Some(millis) => {
                let again = mesh.put(0, Page::new(body.clone()));
                mesh.pass_millis(millis);
                mesh.disk(0).fail_changes = true;
                let answer = mesh.answered(again);
                assert!(matches!(answer, Ok(_) | Err(PutError::Store)), "{answer:?}");
            }
            None => {
                mesh.disk(0).fail_changes = true;
                assert_eq!(mesh.withdraw(0, name), Err(PutError::Store));
            }
        }
        mesh.disk(0).fail_changes = false;
        mesh.pass_seconds(40);
        mesh.publish(0, Page::new(other.clone()));
        mesh.restart(0);
        mesh.pass_seconds(40);
        let shelf = mesh.shelf(0);
        assert!(shelf.iter().any(|it| it.name == name && it.whole), "{wait:?}: {shelf:?}");
        fetch(&mut mesh, 0, &name, &body);
        mesh.done();
    }
}

#[test]
fn a_published_object_that_decays_is_not_offered_and_can_be_put_again() {
    let mut mesh = Mesh::chain(2);
    let body = noise(1, 300_000);
    let name = mesh.publish(1, Page::new(body.clone()));
    mesh.restart(1);
    mesh.pass_seconds(40);
    mesh.disk(1).fail_reads = true;
    let id = mesh.call(1, Call::get(&named::uri(&name)));
    mesh.finish();
    assert!(!mesh.client(id).is_ok());
    assert!(!mesh.shelf(1)[0].whole);
    assert_eq!(mesh.report(0).hints, 0);
    assert!(mesh.notices.iter().any(|(node, line)| *node == 1 && line.contains("put it again")));
    mesh.disk(1).fail_reads = false;
    assert_eq!(mesh.publish(1, Page::new(body.clone())), name);
    fetch(&mut mesh, 0, &name, &body);
    mesh.done();
}

/// Where the list of what is published rests.
const LIST: ObjectKey = ObjectKey(*b"hearsay: what is published here.");

/// Puts an object, and begins again with a list that cannot be read.
fn unread(spoil: impl Fn(&mut crate::common::Shelf)) -> (Mesh, Bytes, Oid) {
    let mut mesh = small(8 << 20);
    let body = noise(1, 3_000_000);
    let name = mesh.publish(0, Page::new(body.clone()));
    mesh.restart(0);
    spoil(mesh.disk(0));
    mesh.pass_seconds(2);
    let said = |(_, line): &&(usize, String)| line.contains("`catalogue`: nothing can be");
    assert_eq!(mesh.notices.iter().filter(said).count(), 1, "{:?}", mesh.notices);
    (mesh, body, name)
}

#[test]
fn a_list_that_cannot_be_read_is_not_an_empty_one() {
    type Spoil = fn(&mut crate::common::Shelf);
    let spoils: [Spoil; 2] =
        [|disk| disk.put_row(LIST, b"Pwhat".to_vec()), |disk| disk.fail_lookups = true];
    for (number, spoil) in spoils.into_iter().enumerate() {
        let (mut mesh, body, name) = unread(spoil);
        assert!(mesh.report(0).published_unread);
        // Nothing takes its place, nor is what was promised reclaimed for what is only cached.
        let put = mesh.put(0, Page::new(noise(2, 10_000)));
        assert_eq!(mesh.answered(put), Err(PutError::Unlisted));
        assert_eq!(mesh.withdraw(0, name), Err(PutError::Unlisted));
        mesh.disk(0).fail_lookups = false;
        for page in 0..40 {
            let url = format!("http://o.test/{page}");
            mesh.origin.put(&url, Page::of(500_000).fresh(9000));
            (0..2).for_each(|_| {
                let id = mesh.get(0, &url);
                assert!(mesh.client(id).is_ok());
            });
        }
        fetch(&mut mesh, 0, &name, &body);
        if number == 0 {
            assert_eq!(mesh.disk(0).row(LIST), Some(b"Pwhat".to_vec()));
        } else {
            // It is tried again.
            mesh.pass_seconds(40);
            assert!(mesh.shelf(0)[0].whole && !mesh.report(0).published_unread);
            mesh.publish(0, Page::new(noise(2, 10_000)));
        }
        mesh.done();
    }
}

#[test]
fn what_comes_at_the_same_time_otherwise_is_written_once() {
    let body = noise(1, 700_000);
    let mut once = small(16 << 20);
    once.publish(0, Page::new(body.clone()));
    let once = once.report(0).index;
    for wait in 0..40 {
        let mut mesh = small(16 << 20);
        mesh.disk(0).slow_down(std::time::Duration::from_millis(20));
        mesh.origin.put("http://o.test/a", Page::new(body.clone()).fresh(9000));
        let got = mesh.call(0, Call::get("http://o.test/a"));
        mesh.pass_millis(wait);
        let first = mesh.put(0, Page::new(body.clone()));
        mesh.pass_millis(wait / 2);
        let second = mesh.put(0, Page::new(body.clone()));
        let names = [first, second].map(|it| mesh.answered(it).expect("it is published"));
        mesh.finish();
        assert!(mesh.client(got).is_ok());
        let index = mesh.report(0).index;
        assert_eq!(index.units, once.units, "{wait} ms later");
        fetch(&mut mesh, 0, &names[0], &body);
        mesh.done();
    }
}
