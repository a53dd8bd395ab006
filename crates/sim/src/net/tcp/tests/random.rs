//! A line loses, reorders and duplicates segments: all data arrives, unless the line is dead.

use super::*;
use crate::net::tcp::{End, Recovery, State};
use proptest::prelude::*;

/// What the line does in turn with the segments sent over it.
fn line() -> impl Strategy<Value = Vec<Vec<Duration>>> {
    let delay = prop_oneof![4 => Just(0), 1 => 0..400u64].prop_map(Duration::from_millis);
    let copies = prop_oneof![
        2 => Just(0..1usize),
        8 => Just(1..2),
        1 => Just(2..3),
    ];
    let fate = copies.prop_flat_map(move |count| prop::collection::vec(delay.clone(), count));
    prop::collection::vec(fate, 1..60)
        .prop_filter("something has to pass", |line| line.iter().any(|fate| !fate.is_empty()))
}

fn config() -> impl Strategy<Value = Config> {
    let kinds = [Recovery::Standard, Recovery::Reno, Recovery::Sack, Recovery::Ns3];
    let recovery = prop::sample::select(kinds.to_vec());
    let numbers = (1..1500u16, 1..5u32, 1..4u32, 1..9000u32, 100..9000u32, any::<bool>());
    (numbers, recovery, any::<bool>()).prop_map(
        |(
            (mss, initial_window, delayed_ack, send_buffer, receive_buffer, nodelay),
            recovery,
            timestamps,
        )| Config {
            // Options must leave room for data.
            mss: mss.max(if timestamps || recovery == Recovery::Sack { 80 } else { 20 }),
            recovery,
            timestamps,
            initial_window,
            delayed_ack,
            send_buffer,
            receive_buffer,
            nodelay,
            // No side gives up in these runs.
            retries: 1000,
            syn_retries: 1000,
            rto_max: Duration::from_secs(2),
            fin_wait: Duration::from_secs(7200),
            ..Config::default()
        },
    )
}

/// A different number each time, so that no pattern of the line coincides with one of TCP's.
fn turn(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 20) as usize
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn all_arrives_in_order_exactly_once_and_both_ends_close(
        line in line(),
        configs in (config(), config()),
        iss: [u32; 2],
        sizes in (0..40_000usize, 0..20_000usize),
        seed in 1..u64::MAX,
        alike: bool,
    ) {
        // Half of the pairs have the same options, so that they agree on them.
        let Config { recovery, timestamps, .. } = if alike { configs.0 } else { configs.1 };
        let configs = (configs.0, Config { recovery, timestamps, ..configs.1 });
        let mut state = seed;
        let fate = Box::new(move |_: &Sent| line[turn(&mut state) % line.len()].clone());
        let mut pair = Pair::with(configs.0, configs.1, iss, fate);
        pair.write(CLIENT, data(sizes.0));
        pair.pending[SERVER] = data(sizes.1).into();
        for minute in 0..2000 {
            pair.run_for(60_000 * MS);
            pair.sent.clear();
            if pair.pending[CLIENT].is_empty() {
                pair.then(CLIENT, Connection::close);
            }
            if pair.server.is_some() && pair.pending[SERVER].is_empty() {
                pair.then(SERVER, Connection::close);
            }
            if pair.next().is_none() && minute > 0 {
                break;
            }
        }
        prop_assert!(pair.got[SERVER] == data(sizes.0), "{} of {}", pair.got[SERVER].len(), sizes.0);
        prop_assert!(pair.got[CLIENT] == data(sizes.1), "{} of {}", pair.got[CLIENT].len(), sizes.1);
        prop_assert_eq!(pair.client.state(), State::Closed);
        prop_assert_eq!(pair.server().state(), State::Closed);
    }

    /// Meaningless segments at any time cause no panic, and nothing grows beyond its limits.
    #[test]
    fn nothing_a_peer_sends_does_harm(
        segments in prop::collection::vec(
            (0..5000u32, 0..5000u32, 0..32u8, 0..20_000u32, 0..1500usize, any::<bool>()), 1..100),
    ) {
        let config = Config { receive_buffer: 3000, ..round() };
        let mut pair = Pair::opened(config);
        pair.reads[SERVER] = false;
        pair.write(SERVER, data(20_000));
        for (seq, ack, bits, window, len, read) in segments {
            let flags = [Flags::FIN, Flags::SYN, Flags::RST, Flags::PSH, Flags::ACK];
            let flags = flags.into_iter().filter(|it| bits & it.0 != 0 && *it != Flags::RST);
            let flags = flags.fold(Flags::default(), |all, it| all | it);
            let payload = Bytes::from(vec![1; len]);
            let (seq, ack) = (CLIENT_ISS.wrapping_sub(1000) + seq, SERVER_ISS - 1000 + ack);
            let segment = Segment { seq, ack, flags, window, mss: None, payload, ..Segment::default() };
            let now = pair.now;
            let server = pair.server();
            if server.poll_timeout().is_some_and(|at| at <= now) {
                server.handle_timeout(now);
            }
            server.handle_segment(now, segment);
            if read {
                server.read(700);
            }
            let sent = std::iter::from_fn(|| server.poll_transmit(now)).take(1000).count();
            prop_assert!(sent < 1000);
            prop_assert!(server.readable() <= 3000 && server.buffered_pieces() < 100);
            if let Some(at) = server.poll_timeout() {
                prop_assert!(at > now);
            }
            pair.now = now + 10 * MS;
        }
    }
}

#[test]
fn a_reset_connection_says_so_and_forgets_its_data() {
    let mut pair = Pair::opened(round());
    pair.reads[SERVER] = false;
    pair.write(CLIENT, data(5000));
    pair.write(SERVER, data(5000));
    pair.run_for(60 * MS);
    pair.then(CLIENT, Connection::abort);
    pair.run_for(60 * MS);
    assert_eq!(pair.server().end(), Some(End::Reset));
    assert_eq!((pair.server().readable(), pair.server().writable()), (0, 0));
}
