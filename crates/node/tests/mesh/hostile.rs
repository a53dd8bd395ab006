//! A peer that lies, floods or stalls: the client gets the right bytes or an honest end, and no node
//! takes more memory than it may.

use crate::net::{Call, Forged, Heard, Mesh, Page, Plan, Play, Relay, Said};
use crate::net::{address, ask, author, chunk, noise, via};
use bytes::Bytes;
use node::testing::Peers;
use std::time::Duration;
use wire::peer::{ChunkHead, Get, Message, Outcome, Request, Want};
use wire::{ChunkId, Instant, RecordId, Signature};

const URL: &str = "http://o.test/a";
const LENGTH: usize = 300_000;

/// 1 is the liar between 2 and the gateway 0, whom all believe.
fn between(play: impl FnOnce() -> Box<dyn FnMut(Said) -> Vec<Said>>) -> Mesh {
    let plan = Plan { configured: true, ..Plan::default() };
    let mut mesh = Mesh::tree_of(&plan, &[0, 1]);
    mesh.start_liar(1, Relay::play(play()));
    mesh.pass_seconds(40);
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
    mesh
}

/// 1 is a liar that answers 2 itself. No gateway's key is configured, so 2 cannot tell which signer to trust.
fn alone(play: impl FnMut(&Peers, Message) -> Vec<Said> + 'static) -> Mesh {
    let mut mesh = Mesh::chain(3);
    mesh.start_liar(1, author(play));
    mesh.pass_seconds(40);
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
    mesh
}

fn served_all_the_same(mut mesh: Mesh) -> Mesh {
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id));
    assert!(mesh.took(id) < Duration::from_secs(30), "{:?}", mesh.took(id));
    // A liar may leave its requests open as long as it runs.
    mesh.kill(1);
    mesh.done();
    mesh
}

#[test]
fn an_honest_relay_of_this_make_serves() {
    let mesh = served_all_the_same(between(|| Box::new(|said| vec![said])));
    assert!(mesh.data(1, 2) >= LENGTH as u64);
    assert_eq!((mesh.origin.askers(URL), mesh.report(2).units_false), (vec![0], 0));
}

#[test]
fn false_bytes_under_a_true_name_are_dropped_and_asked_for_elsewhere() {
    let mut count = 0;
    let mesh = served_all_the_same(between(|| {
        Box::new(move |said| match said {
            Said::Chunk(head, bytes) => {
                count += 1;
                let mut bytes = bytes.to_vec();
                bytes[0] ^= u8::from(count > 5);
                vec![Said::Chunk(head, bytes.into())]
            }
            said => vec![said],
        })
    }));
    assert!(mesh.report(2).units_false >= 1);
}

#[test]
fn frames_that_contradict_what_was_asked_for_do_no_harm() {
    type Bend = fn(&mut ChunkHead);
    let bends: [Bend; 4] = [
        |head| head.total += 1,
        |head| head.offset = head.total - head.length.min(head.total),
        |head| head.name = ChunkId([9; 32]),
        |head| head.source = wire::peer::Source::Origin,
    ];
    for bend in bends {
        served_all_the_same(between(|| {
            Box::new(move |said| match said {
                Said::Chunk(mut head, bytes) => {
                    bend(&mut head);
                    vec![Said::Chunk(head, bytes)]
                }
                said => vec![said],
            })
        }));
    }
}

/// All units that a peer was told of, each by one byte too short.
fn short_wants(heard: &Heard) -> Vec<Want> {
    let heard = heard.of(1);
    let segments = heard.iter().filter_map(|message| match message {
        Message::Segment(_, _, bytes) => content::Segment::decode(bytes).ok(),
        _ => None,
    });
    let entries = segments.flat_map(|segment| segment.entries);
    entries.map(|it| Want { name: it.id, length: it.length - 1, missing: Vec::new() }).collect()
}

#[test]
fn units_that_a_peer_wants_with_false_lengths_stay_in_the_store() {
    let mut mesh = Mesh::chain(2);
    let urls = [URL, "http://o.test/b"];
    for url in urls {
        mesh.origin.put(url, Page::of(LENGTH).fresh(600));
        mesh.get(0, url);
    }
    mesh.pass_seconds(10);
    // Nothing is in memory.
    mesh.kill(0);
    mesh.restart(0);
    let heard = Heard::default();
    mesh.start_liar(1, heard.play());
    mesh.pass_seconds(40);
    for (number, url) in [1, 2].into_iter().zip(urls) {
        let ask = Get { sparing: true, ..ask(number, url) };
        mesh.liar_says(1, 0, vec![Message::Get(Box::new(ask))]);
    }
    mesh.pass_seconds(1);
    mesh.with_liar(1, |now, peers| {
        let gateway = peers.at(address(0)).expect("they have met");
        peers.open_data(now, gateway);
    });
    let wants = short_wants(&heard);
    assert!(wants.len() > 10, "{wants:?}");
    // The manifest of the second lists none of them.
    for number in [1, 2] {
        mesh.liar_says(1, 0, vec![Message::Want(Request(number), wants.clone())]);
        mesh.pass_seconds(1);
        let lost =
            |it: &Message| if let Message::DontHave(_, names) = it { names.len() } else { 0 };
        assert_eq!(heard.of(number).iter().map(lost).sum::<usize>(), wants.len());
    }
    mesh.kill(1);
    let id = mesh.get(0, URL);
    assert!(mesh.client(id).is_ok() && mesh.is_hit(id), "{}", mesh.cache(id));
    assert_eq!((mesh.origin.asked(URL), mesh.report(0).units_bad), (1, 0));
    mesh.done();
}

#[test]
fn a_manifest_that_the_gateway_did_not_sign_is_not_believed() {
    served_all_the_same(between(|| {
        Box::new(|said| match said {
            Said::Message(Message::Segment(request, signature, mut bytes)) => {
                let last = bytes.len() - 40;
                bytes[last] ^= 1;
                vec![Said::Message(Message::Segment(request, signature, bytes))]
            }
            said => vec![said],
        })
    }));
}

#[test]
fn a_head_that_the_gateway_did_not_sign_is_not_believed() {
    type Bend = fn(&mut wire::peer::Head);
    let bends: [Bend; 5] = [
        |head| head.signature = Signature([5; 64]),
        |head| head.fields.push(("x-more".into(), b"1".to_vec())),
        |head| head.status = 404,
        |head| head.record = RecordId([5; 16]),
        |head| head.signer = wire::PublicKey([5; 32]),
    ];
    for bend in bends {
        let mesh = served_all_the_same(between(|| {
            Box::new(move |said| match said {
                Said::Message(Message::Head(request, mut head)) => {
                    bend(&mut head);
                    vec![Said::Message(Message::Head(request, head))]
                }
                said => vec![said],
            })
        }));
        assert_eq!(mesh.client(0).header("x-more"), "");
    }
}

#[test]
fn a_true_record_of_another_object_is_not_taken_for_this_one() {
    let plan = Plan { configured: true, ..Plan::default() };
    let mut mesh = Mesh::tree_of(&plan, &[0, 1]);
    let play = Relay::both(
        |mut message| {
            if let Message::Get(ask) = &mut message {
                ask.uri = "http://o.test/b".into();
            }
            vec![message]
        },
        |said| vec![said],
    );
    mesh.start_liar(1, play);
    mesh.pass_seconds(40);
    mesh.origin.put("http://o.test/b", Page::of(LENGTH).fresh(600).with("x-page", "b"));
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600).with("x-page", "a"));
    let mesh = served_all_the_same(mesh);
    assert_eq!(mesh.client(0).header("x-page"), "a");
}

#[test]
fn an_age_that_is_told_too_large_makes_nothing_fresher() {
    let mesh = served_all_the_same(between(|| {
        Box::new(|said| match said {
            Said::Message(Message::Head(request, mut head)) => {
                head.age = u32::MAX;
                vec![Said::Message(Message::Head(request, head))]
            }
            said => vec![said],
        })
    }));
    assert!(mesh.client(0).is_ok());
}

#[test]
fn who_signs_for_itself_is_not_believed_where_the_gateway_s_key_is_configured() {
    let plan = Plan { configured: true, ..Plan::default() };
    let mut mesh = Mesh::tree_of(&plan, &[0, 1]);
    mesh.start_liar(1, liar_of(noise(1, LENGTH), |said| said));
    mesh.pass_seconds(40);
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
    served_all_the_same(mesh);
}

#[test]
fn who_is_believed_may_change_while_a_node_runs() {
    let mut mesh = Mesh::chain(3);
    mesh.start_liar(1, liar_of(noise(1, LENGTH), |said| said));
    mesh.pass_seconds(40);
    let right = noise(2, LENGTH);
    mesh.origin.put(URL, Page::new(right.clone()).fresh(600));
    mesh.believe(2, 0);
    let mesh = served_all_the_same(mesh);
    assert!(mesh.client(0).content == right, "it believed whom it believed before");
}

/// Answers with a record of its own making.
fn liar_of(body: Bytes, mut bend: impl FnMut(Vec<Said>) -> Vec<Said> + 'static) -> Play {
    author(move |peers, message| {
        let forged = Forged::new(peers, URL, &body);
        match message {
            Message::Get(ask) => bend(forged.told(ask.request)),
            Message::Want(_, wants) => bend(forged.units(&wants)),
            _ => Vec::new(),
        }
    })
}

#[test]
fn a_manifest_without_an_end_takes_no_memory_without_an_end() {
    // Each segment follows the one before, and is signed; but there are more than 2 gave credit for.
    let mut mesh = alone(|peers, message| match message {
        Message::Get(ask) => Forged::endless(peers, URL, 300).told(ask.request),
        _ => Vec::new(),
    });
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).content.is_empty() || mesh.client(id).is_ok());
    mesh.done();
}

#[test]
fn a_segment_that_comes_twice_is_not_taken_twice() {
    let mut mesh = Mesh::chain(3);
    let twice = |said: Vec<Said>| [said.clone(), said].concat();
    mesh.start_liar(1, liar_of(noise(1, 1_000_000), twice));
    mesh.pass_seconds(40);
    mesh.get(2, URL);
    mesh.done();
}

#[test]
fn a_length_that_no_manifest_can_have_takes_no_memory() {
    for length in [u64::MAX, 1 << 50, 33 << 20, 0] {
        let mut mesh = Mesh::chain(3);
        let bend = move |said: Vec<Said>| {
            let bend = |said| match said {
                Said::Message(Message::Head(request, mut head)) => {
                    head.length = Some(length);
                    Said::Message(Message::Head(request, head))
                }
                said => said,
            };
            said.into_iter().map(bend).collect()
        };
        mesh.start_liar(1, liar_of(noise(1, LENGTH), bend));
        mesh.pass_seconds(40);
        mesh.get(2, URL);
        mesh.done();
    }
}

#[test]
fn units_that_nobody_asked_for_are_passed_over() {
    let flood: Vec<Said> = (0..500)
        .map(|number| {
            let bytes = noise(1_000 + number, 8_000);
            chunk(content::name(&bytes), &bytes)
        })
        .collect();
    let mesh = served_all_the_same(between(|| {
        Box::new(move |said| match said {
            Said::Message(Message::Head(..)) => [vec![said], flood.clone()].concat(),
            said => vec![said],
        })
    }));
    assert!(mesh.report(2).index.bytes_on_disk < 2 * LENGTH as u64);
}

#[test]
fn who_never_sends_what_was_wanted_is_passed_over_after_a_while() {
    let mesh = served_all_the_same(between(|| {
        Box::new(|said| match said {
            Said::Chunk(..) => Vec::new(),
            said => vec![said],
        })
    }));
    assert!(mesh.took(0) > Duration::from_secs(1), "{:?}", mesh.took(0));
    assert!(mesh.took(0) < Duration::from_secs(8), "{:?}", mesh.took(0));
}

#[test]
fn who_never_says_anything_is_passed_over_after_a_while() {
    let mesh = served_all_the_same(alone(|_, _| Vec::new()));
    assert!(mesh.took(0) < Duration::from_secs(8), "{:?}", mesh.took(0));
}

#[test]
fn who_says_that_everything_is_lost_is_passed_over() {
    let mesh = served_all_the_same(between(|| {
        let mut lost = None;
        Box::new(move |said| match said {
            Said::Message(Message::Head(request, _)) => {
                lost = Some(request);
                vec![said]
            }
            Said::Chunk(head, _) => {
                let request = lost.expect("the head came first");
                vec![Said::Message(Message::DontHave(request, vec![head.name]))]
            }
            said => vec![said],
        })
    }));
    assert!(mesh.report(2).wants_lost > 0);
}

#[test]
fn who_asks_without_an_end_is_not_served_without_an_end() {
    // 2 asks the honest 1 for one thing after the other, and takes nothing.
    let mut mesh = Mesh::chain(3);
    mesh.origin.put(URL, Page::of(5_000_000).fresh(600));
    let before = mesh.origin.seen.len();
    mesh.start_liar(2, Heard::default().play());
    mesh.liar_says(2, 1, Vec::new());
    for number in 1..5_000 {
        mesh.with_liar(2, |now, peers| is_greedy(now, peers, number));
        if number % 100 == 0 {
            mesh.pass_millis(1);
            let at_once = mesh.report(1).exchanges;
            assert!(at_once <= 128, "{at_once} requests at once");
        }
    }
    mesh.pass_seconds(5);
    assert!(mesh.origin.seen.len() > before, "nothing was asked");
    let id = mesh.get(1, URL);
    assert!(mesh.client(id).is_ok());
    mesh.kill(2);
    mesh.done();
}

#[test]
fn who_wants_again_what_it_waits_for_is_not_left_and_who_wants_too_much_is() {
    let want = |number: usize| {
        let mut name = [0; 32];
        name[..8].copy_from_slice(&number.to_be_bytes());
        Want { name: ChunkId(name), length: 8_000, missing: Vec::new() }
    };
    for (batches, is_left) in [(0..7, false), (0..9, true)] {
        let mut mesh = Mesh::chain(2);
        mesh.origin.put(URL, Page::of(500_000).fresh(600));
        let heard = Heard::default();
        mesh.start_liar(1, heard.play());
        mesh.liar_says(1, 0, vec![Message::Get(Box::new(ask(1, URL)))]);
        mesh.pass_millis(500);
        assert!(matches!(heard.of(1).first(), Some(Message::Head(..))));
        // It has no data connection: all of it waits.
        let wants = |batch: usize| (batch * 256..(batch + 1) * 256).map(want).collect();
        let twice = batches.clone().chain(batches);
        mesh.liar_says(1, 0, twice.map(|it| Message::Want(Request(1), wants(it))).collect());
        mesh.pass_millis(500);
        let left = mesh.notices.iter().any(|(_, line)| line.contains("more wants queued"));
        assert_eq!(left, is_left, "{:?}", mesh.notices);
        mesh.kill(1);
        mesh.done();
    }
}

/// Sends 1 one more request, wants units that do not exist, and cancels some of these wants.
fn is_greedy(now: Instant, peers: &mut Peers, number: u32) {
    let Some(peer) = peers.at(address(1)) else { return };
    let ask = ask(number, &format!("http://o.test/{number}"));
    peers.send(now, peer, &Message::Get(Box::new(ask)));
    let name = ChunkId([number as u8; 32]);
    let want = Want { name, length: 8_000, missing: Vec::new() };
    peers.send(now, peer, &Message::Want(Request(number), vec![want; 256]));
    peers.send(now, peer, &Message::CancelWant(Request(number), vec![name, ChunkId([0; 32])]));
}

#[test]
fn who_stops_reading_in_mid_transfer_is_passed_over() {
    let mut mesh = between(|| Box::new(|said| vec![said]));
    mesh.origin.put(URL, Page::of(4_000_000).fresh(600).steady());
    let id = mesh.call(2, Call::get(URL));
    mesh.pass_millis(500);
    assert!(!mesh.client(id).content.is_empty() && mesh.client(id).end.is_none());
    mesh.links.deaf.insert(1);
    mesh.finish();
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).end);
    assert!(mesh.took(id) < Duration::from_secs(60), "{:?}", mesh.took(id));
    mesh.kill(1);
    mesh.done();
}

#[test]
fn an_asker_that_stops_reading_holds_back_nobody_else() {
    let mut mesh = Mesh::chain(3);
    mesh.origin.put(URL, Page::of(6_000_000).fresh(600).steady());
    let far = mesh.call(2, Call::get(URL));
    mesh.pass_millis(500);
    mesh.links.deaf.insert(2);
    let near = mesh.call(1, Call::get(URL));
    mesh.pass_seconds(5);
    assert!(mesh.client(near).is_ok() && mesh.client(far).end.is_none());
    mesh.kill(2);
    mesh.done();
}

/// 2 has asked the liar 1 once, which may send it chunks since; but it asks 0 now, on a slow line.
fn beside() -> (Mesh, Vec<ChunkId>) {
    let plan = Plan { rate: 60_000, ..Plan::default() };
    let mut mesh = Mesh::tree_of(&plan, &[0, 0]);
    mesh.mend(1, 2);
    mesh.start_liar(1, author(|_, _| Vec::new()));
    mesh.route(2, via(1, Some(0), 2));
    mesh.pass_seconds(40);
    mesh.origin.put("http://o.test/b", Page::of(1_000).fresh(600));
    mesh.get(2, "http://o.test/b");
    mesh.route(2, via(0, Some(0), 1));
    let page = Page::of(LENGTH).fresh(600);
    let mut names = Vec::new();
    mesh.with_liar(1, |_, peers| {
        let forged = Forged::new(peers, URL, &page.body);
        names = forged.units.iter().map(|(name, _)| *name).collect();
    });
    mesh.origin.put(URL, page);
    (mesh, names)
}

/// The liar sends 2 these bytes of each unit, and all of them are false.
fn pushes(mesh: &mut Mesh, names: &[ChunkId], (offset, length): (u32, u32), total: u32) {
    mesh.with_liar(1, |now, peers| {
        let peer = peers.at(address(2)).expect("they have met");
        for name in names {
            let source = wire::peer::Source::Held;
            let head = ChunkHead { name: *name, total, offset, length, source };
            assert!(peers.chunk_room(peer) > 0, "nothing can be sent");
            peers.send_chunk(now, peer, head, Bytes::from(vec![7; length as usize]));
        }
    });
    mesh.pass_millis(200);
}

#[test]
fn who_sends_false_units_early_is_blamed_itself() {
    let (mut mesh, names) = beside();
    pushes(&mut mesh, &names[..1], (0, 9_000), 9_000);
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok());
    assert!(mesh.has_expelled(2, 1) && !mesh.has_expelled(2, 0), "{:?}", mesh.notices);
    assert_eq!(mesh.report(2).resumes, 0);
    mesh.kill(1);
    mesh.done();
}

#[test]
fn parts_of_who_was_not_asked_are_not_joined_to_others() {
    for (part, total) in [((0, 3_000), 4_000), ((20_000, 3_000), 30_000)] {
        let (mut mesh, names) = beside();
        let id = mesh.call(2, Call::get(URL));
        mesh.pass_millis(400);
        pushes(&mut mesh, &names[15..20], part, total);
        assert!(mesh.client(id).end.is_none());
        // All connections break; what is on its way is wanted again.
        (0..8).for_each(|number| mesh.break_link(number));
        mesh.finish();
        assert!(mesh.client(id).is_ok());
        assert!(!mesh.has_expelled(2, 0), "{:?}", mesh.notices);
        assert!(mesh.took(id) < Duration::from_secs(12), "{:?}", mesh.took(id));
        mesh.kill(1);
        mesh.done();
    }
}

#[test]
fn who_breaks_off_in_mid_transfer_is_gone_around() {
    for outcome in [Outcome::Truncated, Outcome::Busy, Outcome::TimedOut, Outcome::Forbidden] {
        let mesh = served_all_the_same(between(|| {
            let (mut request, mut count) = (None, 0);
            let outcome = outcome.clone();
            Box::new(move |said| match said {
                Said::Message(Message::Head(its, _)) => {
                    request = Some(its);
                    vec![said]
                }
                Said::Chunk(..) => {
                    count += 1;
                    let request = request.expect("the head came first");
                    let end = Message::End(request, outcome.clone());
                    match count {
                        1..6 => vec![said],
                        6 => vec![Said::Message(end)],
                        _ => Vec::new(),
                    }
                }
                said => vec![said],
            })
        }));
        assert!(mesh.took(0) < Duration::from_secs(2), "{outcome:?}: {:?}", mesh.took(0));
    }
}

#[test]
fn false_parts_of_one_are_not_held_against_another() {
    // The beginning of each unit, false; then nothing more. A part behind the end. Too many parts.
    let bends: [fn(ChunkHead, Bytes) -> Vec<Said>; 3] = [
        |mut head, bytes| {
            head.length = head.total / 2;
            vec![Said::Chunk(head, vec![7; bytes.len() / 2].into())]
        },
        |mut head, bytes| {
            (head.total, head.offset) = (60_000, 30_000);
            vec![Said::Chunk(head, bytes)]
        },
        |head, bytes| {
            let part = |number| {
                let offset = number * 2;
                let byte = bytes.slice(offset..=offset);
                Said::Chunk(ChunkHead { offset: offset as u32, length: 1, ..head }, byte)
            };
            (0_usize..40).map(part).collect()
        },
    ];
    for bend in bends {
        let mesh = served_all_the_same(between(|| {
            Box::new(move |said| match said {
                Said::Chunk(head, bytes) => bend(head, bytes),
                said => vec![said],
            })
        }));
        assert!(!mesh.has_expelled(2, 0), "{:?}", mesh.notices);
    }
}
