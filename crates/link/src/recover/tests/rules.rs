//! Each rule alone.

use std::time::Duration;

use super::super::{Config, OnNotice, Timer};
use super::middle::{ISS, MSS, Middle, ack, data, with};
use super::{end, packet, segment};
use crate::{Flags, Lost, Message, Notice, Outcome, Tcp};

#[test]
fn what_the_mac_gives_up_goes_again_at_once_and_then_another_way() {
    let mut it = Middle::new(Config::default());
    it.other = Some(4);
    assert!(it.forward(data(0)));
    assert_eq!(it.took(), [(data(0), 3)]);
    it.verdict(data(0), 3, Outcome::GivenUp);
    assert_eq!(it.took(), [(data(0), 4)]);
    it.verdict(data(0), 4, Outcome::GivenUp);
    assert_eq!(it.took(), [(data(0), 3)]);
    assert_eq!(it.engine.counters().resent_given_up, 2);
    let mut paper = Middle::new(Config { link_red: None, ..Config::inpcm() });
    paper.forward(data(0));
    paper.took();
    paper.verdict(data(0), 3, Outcome::GivenUp);
    assert_eq!(paper.took(), []);
}

#[test]
fn a_neighbour_that_is_gone_makes_no_storm() {
    let mut it = Middle::new(Config { timer: Timer::Off, ..Config::default() });
    (0..100).for_each(|n| assert!(it.forward(data(n))));
    let mut transmissions = 0;
    while let Some((packet, hop)) = it.left.pop() {
        transmissions += 1;
        it.verdict(packet, hop, Outcome::GivenUp);
    }
    assert!(transmissions < 110, "{transmissions}");
}

#[test]
fn what_the_next_hop_passes_over_goes_again() {
    let mut it = Middle::new(Config::default());
    it.pass(0..4);
    it.overhear(data(0), 3);
    assert_eq!(it.took(), []);
    it.overhear(data(3), 8);
    assert_eq!(it.took(), [], "router 8 is not where they went");
    it.overhear(data(3), 3);
    assert_eq!(it.took(), [(data(1), 3), (data(2), 3)]);
    it.overhear(data(3), 3);
    assert_eq!(it.took(), [], "they are on their way");
}

#[test]
fn a_copy_that_was_heard_tells_nothing_of_order() {
    let mut it = Middle::new(Config::default());
    it.pass([0, 1]);
    it.overhear(data(1), 3);
    assert_eq!(it.took(), [(data(0), 3)]);
    it.verdict(data(0), 3, Outcome::Acked);
    it.pass([2]);
    it.overhear(data(0), 3);
    assert_eq!(it.took(), []);
}

#[test]
fn eldd_evicts_what_the_next_hop_forwards() {
    let mut it = Middle::new(Config { link_red: None, ..Config::inpcm() });
    it.pass(0..3);
    assert_eq!(it.engine.cached_bytes(), 3 * 1040);
    it.overhear(data(1), 3);
    it.overhear(data(2), 8);
    assert_eq!(it.engine.cached_bytes(), 2 * 1040);
    assert_eq!(it.engine.counters().evicted_eldd, 1);
}

#[test]
fn the_third_repeated_acknowledgement_sends_data_again() {
    // The paper's timer would too, so that it drops those before.
    let paper = Config { link_red: None, ..Config::inpcm() };
    for (config, pass) in [(Config::default(), true), (paper, false)] {
        let mut it = Middle::new(config);
        it.pass(0..6);
        assert!(it.forward(ack(1)));
        assert_eq!([it.forward(ack(1)), it.forward(ack(1))], [pass; 2]);
        it.took();
        assert!(!it.forward(ack(1)));
        assert_eq!(it.took(), [(data(1), 3)]);
        assert_eq!(it.engine.counters().duplicates_dropped, if pass { 1 } else { 3 });
    }
}

/// The next hop forwards each packet, which is heard, except for each seventh one. They were not lost: they are
/// acknowledged with the one after. Returns whether the last was sent again.
fn miss_one_in_seven(it: &mut Middle, numbers: std::ops::Range<u32>) -> bool {
    let mut resent = false;
    for n in numbers {
        it.pass([n]);
        if n % 7 == 5 {
            continue;
        }
        it.overhear(data(n), 3);
        if n % 7 == 6 {
            resent = it.took().contains(&(data(n - 1), 3));
            it.verdict(data(n - 1), 3, Outcome::Acked);
            it.wait(2);
            assert!(it.forward(ack(n + 1)));
        }
    }
    it.took();
    resent
}

#[test]
fn silence_is_not_believed_once_it_was_wrong_too_often_unless_acknowledgements_agree() {
    let mut it = Middle::new(Config::default());
    assert!(miss_one_in_seven(&mut it, 0..7));
    assert!(!miss_one_in_seven(&mut it, 7..210));
    assert!(it.engine.counters().resent_overheard < 15);
    // Now one is lost.
    it.pass(210..212);
    it.overhear(data(211), 3);
    assert_eq!(it.took(), []);
    assert!(!it.forward(ack(210)), "the first that is repeated is enough");
    assert_eq!(it.took(), [(data(210), 3)]);
}

#[test]
fn a_router_that_has_forwarded_data_absorbs_its_copies() {
    let mut it = Middle::new(Config::default());
    it.pass(0..1);
    it.wait(50);
    assert!(it.forward(ack(1)));
    it.pass(1..3);
    it.wait(40);
    assert!(!it.forward(data(1)), "a round trip has not passed");
    it.wait(20);
    assert!(it.forward(data(1)), "the sender may have repeated it");
    assert_eq!(it.engine.counters().data_absorbed, 1);
}

#[test]
fn beside_the_receiver_the_first_repeated_acknowledgement_is_enough() {
    let mut it = Middle::new(Config::default());
    it.hop = 9;
    it.pass(0..6);
    assert!(it.forward(ack(1)));
    it.took();
    it.wait(50);
    assert!(!it.forward(ack(1)));
    assert_eq!(it.took(), [(data(1), 9)]);
    assert!(!it.forward(ack(1)));
    assert_eq!(it.took(), [], "the copy is on its way");
    it.verdict(data(1), 9, Outcome::Acked);
    // Number 3 is missing too: it left before the copy of number 1.
    assert!(it.forward(ack(3)));
    let again: Vec<_> = it.took().into_iter().filter(|(_, hop)| *hop == 9).collect();
    assert_eq!(again, [(data(3), 9)]);
}

#[test]
fn a_repeated_acknowledgement_goes_on_if_its_data_is_not_here_or_it_says_more() {
    let mut it = Middle::new(Config::default());
    it.pass([0, 2, 3]);
    assert!(it.forward(ack(1)));
    assert!(it.forward(ack(1)), "number 1 was lost before here");
    assert!(it.forward(ack(2)));
    let changes: [fn(&mut Tcp); 6] = [
        |tcp| tcp.window += 1,
        |tcp| tcp.payload = 1,
        |tcp| tcp.flags = Flags::ACK | Flags::FIN,
        |tcp| tcp.flags = Flags::ACK | Flags::ECE,
        |tcp| tcp.has_other_options = true,
        |tcp| tcp.sack.push((ISS, ISS.wrapping_add(MSS))),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        assert!(it.forward(with(ack(2), change)), "change {number}");
        let _ = it.engine.incoming(it.now, &ack(2).0);
    }
    assert_eq!(it.engine.counters().old_acks_dropped, 0);
}

#[test]
fn repeated_acknowledgements_go_on_once_sending_again_has_failed() {
    let mut it = Middle::new(Config { link_red: None, ..Config::inpcm() });
    it.pass(0..3);
    assert!(it.forward(ack(1)));
    let mut dropped = 0;
    while !it.forward(ack(1)) {
        dropped += 1;
        it.verdict(data(1), 3, Outcome::Acked);
        it.wait(100);
        assert!(dropped < 100);
    }
    assert!((3..40).contains(&dropped), "{dropped}");
}

#[test]
fn sack_blocks_evict_and_name_all_holes_beside_the_receiver() {
    let mut it = Middle::new(Config::default());
    it.hop = 9;
    it.pass(0..6);
    let at = |n: u32| ISS.wrapping_add(n * MSS);
    assert!(it.forward(with(ack(1), |tcp| tcp.sack.push((at(2), at(3))))));
    assert_eq!(it.took()[0], (data(1), 9));
    let sacked = with(ack(1), |tcp| {
        tcp.sack.push((at(5), at(6)));
        tcp.sack.push((at(2), at(3)));
    });
    assert!(!it.forward(sacked));
    assert_eq!(it.took(), [(data(3), 9), (data(4), 9)]);
    assert_eq!(it.engine.cached_bytes(), 3 * 1040);
}

#[test]
fn data_that_the_receiver_has_is_answered_with_its_own_acknowledgement() {
    let mut it = Middle::new(Config::default());
    // The receiver's data, so that acknowledgements of the sender are known.
    assert!(it.forward(packet(end(9), end(0), segment(76, 1, ISS))));
    it.pass(0..3);
    assert!(it.forward(ack(2)));
    it.verdict(ack(2), 1, Outcome::Acked);
    it.took();
    assert!(!it.forward(data(0)));
    assert_eq!(it.took(), [], "the acknowledgement has just left");
    it.wait(100);
    assert!(!it.forward(data(0)));
    assert_eq!(it.took(), [(ack(2), 1)]);
    it.wait(100);
    assert!(it.forward(data(2)));
    // One byte may be a keep-alive, and a zero window asks for probes.
    assert!(it.forward(packet(end(0), end(9), segment(ISS.wrapping_add(2 * MSS - 1), 1, 77))));
    assert!(it.forward(packet(end(0), end(9), segment(ISS.wrapping_add(2 * MSS - 1), 0, 77))));
    assert!(it.forward(with(data(1), |tcp| tcp.ack = 78)), "it acknowledges something new");
    assert!(it.forward(with(data(1), |tcp| tcp.flags = Flags::ACK | Flags::FIN)));
}

#[test]
fn a_sender_that_insists_is_believed() {
    let mut it = Middle::new(Config::default());
    assert!(it.forward(packet(end(9), end(0), segment(76, 1, ISS))));
    it.pass(0..3);
    assert!(it.forward(ack(2)));
    let answered = (0..20).take_while(|_| !it.forward(data(0))).count();
    assert!((1..8).contains(&answered), "{answered}");
}

#[test]
fn acknowledgements_of_the_future_change_nothing() {
    let mut it = Middle::new(Config::default());
    it.pass(0..2);
    for n in [3, 50, 1 << 20] {
        assert!(it.forward(ack(n)));
    }
    assert_eq!(it.engine.cached_bytes(), 2 * 1040);
    it.took();
    assert!(it.forward(data(1)) && it.forward(data(2)), "nothing is answered");
    assert!(it.forward(ack(1)));
    assert_eq!(it.engine.counters().evicted_acked, 1);
}

#[test]
fn an_old_acknowledgement_is_dropped() {
    let mut it = Middle::new(Config::default());
    it.pass(0..3);
    assert!(it.forward(ack(2)));
    assert!(!it.forward(ack(1)));
    assert_eq!(it.engine.counters().old_acks_dropped, 1);
}

#[test]
fn only_the_first_unacknowledged_packet_is_timed_and_a_notice_goes_to_the_sender() {
    let config = Config { link_red: None, ..Config::inpcm() };
    let mut it = Middle::new(config);
    it.pass(0..4);
    it.wait(1000);
    assert_eq!(it.took(), [(data(0), 3)]);
    let lost = Lost::Data(ISS.wrapping_add(MSS));
    assert_eq!(it.messages, [Message::Notice(Notice { from: end(0), to: end(9), lost })]);
    it.wait(500);
    assert_eq!(it.took(), [], "it has not left the MAC");
}

#[test]
fn a_packet_in_the_macs_queue_is_not_sent_again() {
    let mut it = Middle::new(Config { timer: Timer::TcpLike, ..Config::default() });
    assert!(it.forward(data(0)));
    it.took();
    it.wait(1900);
    assert_eq!(it.took(), []);
    assert!(!it.forward(data(0)), "nor is a second copy queued");
    it.verdict(data(0), 3, Outcome::Acked);
    it.wait(1900);
    assert_eq!(it.took(), [(data(0), 3)]);
}

#[test]
fn a_notice_evicts_or_delays() {
    let lost = Lost::Data(ISS.wrapping_add(MSS));
    let notice = Notice { from: end(0), to: end(9), lost };
    let mut it = Middle::new(Config { link_red: None, ..Config::inpcm() });
    it.pass(0..2);
    it.engine.notice(it.now, &notice);
    assert_eq!(it.engine.cached_bytes(), 1040);
    let config = Config::default();
    let on_notice = OnNotice::Double;
    let mut it = Middle::new(Config { timer: Timer::TcpLike, on_notice, ..config });
    it.pass(0..2);
    it.wait(400);
    let before = it.engine.poll_timeout().unwrap();
    it.engine.notice(it.now, &notice);
    assert_eq!(it.engine.cached_bytes(), 2 * 1040);
    assert!(it.engine.poll_timeout().unwrap() > before);
}

#[test]
fn an_acknowledgement_is_sent_again_three_times_at_most() {
    let mut it = Middle::new(Config { link_red: None, ..Config::inpcm() });
    it.pass(0..1);
    assert!(it.forward(ack(1)));
    let mut sent = 0;
    for _ in 0..100 {
        while let Some((packet, hop)) = it.left.pop() {
            assert_eq!(packet, ack(1));
            sent += 1;
            it.verdict(packet, hop, Outcome::Acked);
        }
        it.wait(500);
    }
    assert_eq!(sent, 1 + 3);
}

#[test]
fn resets_and_new_connections_forget() {
    let mut it = Middle::new(Config::default());
    it.pass(0..3);
    assert!(it.forward(with(data(0), |tcp| tcp.flags = Flags::RST)));
    assert_eq!(it.engine.cached_bytes(), 0);
    it.pass(0..3);
    let syn = with(data(0), |tcp| {
        (tcp.seq, tcp.payload, tcp.flags) = (5000, 0, Flags::SYN);
    });
    assert!(it.forward(syn));
    assert_eq!(it.engine.cached_bytes(), 512, "the SYN itself, at the least cost");
    it.took();
    assert_eq!(it.engine.poll_timeout(), Some(it.now + Duration::from_secs(2)));
}

#[test]
fn a_full_queue_is_the_senders_concern() {
    for (config, bytes) in [(Config::default(), 1040), (Config::inpcm(), 0)] {
        let mut it = Middle::new(config);
        it.pass(0..1);
        it.wait(50);
        assert!(it.forward(ack(1)) && it.forward(data(1)));
        it.took();
        it.verdict(data(1), 3, Outcome::QueueFull);
        assert_eq!(it.engine.cached_bytes(), bytes);
        it.wait(20);
        let absorbs = bytes > 0;
        assert_eq!(it.forward(data(1)), !absorbs, "the router before this one repeats it");
        it.took();
        it.wait(60);
        assert!(it.forward(data(1)), "its sender does");
    }
}

#[test]
fn strays_to_this_router_begin_its_flow_anew() {
    let mut middle = Middle::new(Config::default());
    let here = end(2);
    // Its own acknowledgement makes the flow known.
    assert!(middle.forward(packet(here, end(0), segment(77, 0, ISS))));
    // More than a counter of a byte holds, each far from the last: its TCP gets all of them.
    for n in 0..600_u32 {
        let seq = ISS.wrapping_add((n % 7 + 1) << 28);
        assert!(middle.forward(packet(end(0), here, segment(seq, MSS, 77))));
    }
}

#[test]
fn old_numbers_of_every_kind_do_not_stop_a_flow_for_long() {
    let mut middle = Middle::new(Config::default());
    for n in 0..50 {
        assert!(middle.forward(data(n)));
    }
    // Somebody acknowledges for the receiver what it does not have.
    middle.forward(ack(50));
    let stopped = (0..200).filter(|n| !middle.forward(ack(n % 50))).count();
    assert!(stopped < 40, "{stopped} of 200 true acknowledgements were kept back");
}

#[test]
fn keep_alives_and_window_probes_go_on() {
    let mut it = Middle::new(Config::default());
    it.pass(0..4);
    // The receiver has sent 100 bytes of its own.
    assert!(it.forward(packet(end(9), end(0), segment(77, 100, ISS))));
    let asks = with(ack(1), |tcp| tcp.seq = 176);
    let plain = with(ack(1), |tcp| tcp.seq = 177);
    assert!(it.forward(plain));
    let kept = it.engine.counters();
    // The first that is missing waits for the MAC again: now a repeated acknowledgement is dropped.
    it.verdict(data(1), 3, Outcome::GivenUp);
    assert!(!it.forward(plain) && it.forward(asks) && it.forward(asks));
    let counters = it.engine.counters();
    assert_eq!(counters.duplicates_dropped, kept.duplicates_dropped + 1);
}

#[test]
fn notices_put_a_hole_off_once() {
    let config = Config { timer: Timer::TcpLike, on_notice: OnNotice::Double, ..Config::inpcm() };
    let mut it = Middle::new(config);
    it.pass(0..3);
    let lost = Lost::Data(ISS.wrapping_add(MSS));
    let notice = Notice { from: end(0), to: end(9), lost };
    for _ in 0..100 {
        it.wait(100);
        it.engine.notice(it.now, &notice);
    }
    assert_eq!(it.engine.counters().notices_obeyed, 1);
    assert!(it.engine.counters().resent_timer >= 2, "{:?}", it.engine.counters());
}

#[test]
fn a_flow_that_nobody_acknowledges_is_over_soon() {
    let mut it = Middle::new(Config { timer: Timer::TcpLike, ..Config::inpcm() });
    it.pass(0..100);
    (0..10_000).for_each(|_| it.wait(100));
    let counters = it.engine.counters();
    assert!((3..=8).contains(&counters.resent_timer), "{counters:?}");
    assert_eq!((it.engine.cached_bytes(), it.engine.poll_timeout()), (0, None));
}
