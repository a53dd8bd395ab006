//! What a hostile far end says of TCP flows.

use crate::bytes::noise;
use crate::rogue::{AgainstNear, literals, reference};
use node::FetchError;
use node::uplink::{Message, NearInput, TcpId};

/// The number of a TCP flow in messages.
const fn number(id: u64) -> u64 {
    id << 1 | 1
}

/// A near end with a client of TCP that takes this many bytes.
fn with_client(id: u64, takes: u64) -> AgainstNear {
    let mut rogue = AgainstNear::up();
    dial(&mut rogue, id);
    rogue.near.handle_input(rogue.now, NearInput::GrantTcp(TcpId(id), takes));
    rogue
}

fn dial(rogue: &mut AgainstNear, id: u64) {
    let to = "198.51.100.7:25".parse().unwrap();
    rogue.tcp.insert(TcpId(id), Default::default());
    let dial = NearInput::Dial(TcpId(id), to, [10, 0, 0, 1].into());
    rogue.near.handle_input(rogue.now, dial);
}

fn piece(id: u64, bytes: &[u8]) -> Message {
    Message::Piece(number(id), bytes.to_vec().into())
}

#[test]
fn parts_of_all_kinds_are_delivered_in_their_order() {
    let mut rogue = with_client(1, 1 << 20);
    let (mut batch, payload) = literals(1, 0, &[&[1; 4000]]);
    batch.flow = number(1);
    let mut again = reference(1, 0, &[&[1; 4000]]);
    again.flow = number(1);
    let messages = [
        piece(1, b"first"),
        Message::Batch(batch),
        Message::Raw(number(1), 5),
        Message::Batch(again),
        piece(1, b"last"),
        Message::Finish(number(1), Ok(())),
    ];
    // The later payload comes first.
    rogue.say_with(&messages, &[(1, b"third"), (2, &payload)]);
    let expected = [&b"first"[..], &[1; 4000], b"third", &[1; 4000], b"last"].concat();
    assert!(rogue.tcp[&TcpId(1)] == (expected, Some(Ok(()))), "{:?}", rogue.tcp[&TcpId(1)].1);
}

#[test]
fn uncut_bytes_beyond_the_window_end_the_connection() {
    let mut rogue = with_client(1, 0);
    let bytes = [7; 2048];
    let mut said = 0;
    while rogue.near.is_up() {
        rogue.say(&[piece(1, &bytes), piece(1, &bytes), piece(1, &bytes)]);
        said += 3 * bytes.len();
        assert!(said < 4 << 20, "it is kept without end");
    }
    assert!(said > 1 << 20, "{said} bytes are within the window");
    assert_eq!(rogue.tcp[&TcpId(1)], (Vec::new(), Some(Err(FetchError::Truncated))));
}

#[test]
fn clients_that_do_not_read_are_broken_off_before_they_take_too_much() {
    let mut rogue = AgainstNear::up();
    (1..=40).for_each(|id| dial(&mut rogue, id));
    let bytes = noise(1, 16 * 1024 - 256);
    for _ in 0..50 {
        for id in 1..=40 {
            let raw = Message::Raw(number(id), bytes.len() as u32);
            rogue.say_with(&[raw], &[(1, &bytes)]);
        }
    }
    assert!(rogue.near.is_up());
    let broken = rogue.tcp.values().filter(|(_, end)| end.is_some()).count();
    // 50 times 16 KiB of each that is left are at most 16 MiB.
    assert!((18..40).contains(&broken), "{broken}");
    let cancels = rogue.heard.iter().filter(|it| matches!(it, Message::Cancel(_))).count();
    assert_eq!(cancels, broken, "the far end is told");
}

#[test]
fn uncut_bytes_come_in_one_piece_or_not_at_all() {
    for part in [&[1; 99][..], &[1; 101], &[]] {
        let mut rogue = with_client(1, 1000);
        rogue.say_with(&[Message::Raw(number(1), 100)], &[(1, part)]);
        assert!(!rogue.near.is_up(), "{}", part.len());
        assert!(rogue.tcp[&TcpId(1)].0.is_empty());
    }
    // Announced without end, and never sent.
    let mut rogue = with_client(1, 1000);
    let mut said = 0;
    while rogue.near.is_up() {
        rogue.say(&vec![Message::Raw(number(9), 1); 500]);
        said += 500;
        assert!(said < 20_000, "it is expected without end");
    }
}

#[test]
fn nothing_is_delivered_after_the_end_or_to_nobody() {
    let mut rogue = with_client(1, 1000);
    rogue.say(&[piece(1, b"all"), Message::Finish(number(1), Ok(())), piece(1, b"more")]);
    rogue.say(&[piece(7, b"whose?"), Message::Finish(number(7), Ok(()))]);
    // A response's head is none of TCP's, and TCP's bytes are no response.
    rogue.say(&[Message::Head(number(1), http::StatusCode::OK, http::HeaderMap::new())]);
    assert!(rogue.near.is_up());
    assert_eq!(rogue.tcp[&TcpId(1)], (b"all".to_vec(), Some(Ok(()))));
    assert_eq!(rogue.tcp.len(), 1);
}
