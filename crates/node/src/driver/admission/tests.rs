use super::*;
use std::net::IpAddr;

const MEMORY: u64 = 16 << 20;

fn at(seconds: u64) -> Instant {
    Instant::from_nanos(seconds * 1_000_000_000)
}

fn client(last: u8) -> Option<Network> {
    Some(Network::of(IpAddr::from([10, 0, 0, last])))
}

#[test]
fn a_flow_whose_server_speaks_first_is_not_closed_for_its_silence_at_once() {
    let mut admission = Admission::new(1, 64 << 20);
    let slot = arrive(&mut admission, 0, 1).expect("room");
    admission.flow(at(0), slot);
    assert_eq!(arrive(&mut admission, 1, 2), Err(Refused::Full));
    assert_eq!(admission.poll_closed(), None);
    admission.sweep(at(70));
    assert!(arrive(&mut admission, 70, 2).is_ok());
    assert_eq!(admission.poll_closed(), Some((slot, Closed::Tunnel)));
}

fn arrive(admission: &mut Admission, seconds: u64, last: u8) -> Result<Slot, Refused> {
    admission.arrive(at(seconds), client(last), Arc::default())
}

/// Adds connections of ten clients, which all wait for their origin, until no more are accepted.
fn fill(admission: &mut Admission) -> Vec<Slot> {
    let mut slots = Vec::new();
    for last in (0..10).cycle() {
        match arrive(admission, 0, last) {
            Ok(slot) => slots.push(slot),
            Err(_) => break,
        }
        assert!(admission.begin(at(0), slots[slots.len() - 1]).is_some());
    }
    slots
}

fn closed(admission: &mut Admission) -> Vec<(Slot, Closed)> {
    std::iter::from_fn(|| admission.poll_closed()).collect()
}

#[test]
fn each_reason_has_a_row() {
    let values = |metric: &str| {
        let rows = <Counters as wire::counters::Counters>::ROWS.iter();
        let labels = rows.filter(|row| row.metric == metric).filter_map(|row| row.label);
        labels.map(|(_, value)| value).collect::<Vec<_>>()
    };
    assert_eq!(values("hearsay_client_closed_total"), Closed::ALL.map(Closed::name));
    assert_eq!(values("hearsay_client_refused_total"), Refused::ALL.map(Refused::name));
}

#[test]
fn what_unpacks_is_counted_before_it_does() {
    let mut admission = Admission::new(2048, MEMORY);
    let slots: Vec<_> =
        (0..60).map(|last| arrive(&mut admission, 0, last).expect("room")).collect();
    assert!(slots.iter().all(|slot| admission.begin(at(0), *slot).is_some()));
    let mut unpacking = 0;
    for slot in &slots {
        unpacking += u64::from(admission.rewrite(at(0), *slot));
        assert!(admission.bytes() <= MEMORY, "{}", admission.bytes());
    }
    assert!((20..40).contains(&unpacking), "{unpacking}");
    assert_eq!(closed(&mut admission), [], "clients that wait for an answer are closed");
    // One that has its answer makes room for another's.
    admission.end(at(1), slots[0]);
    assert!(!admission.rewrite(at(1), slots[0]), "it asks for nothing");
    assert!(admission.rewrite(at(1), slots[59]));
    slots.into_iter().for_each(|slot| admission.leave(slot));
    assert_eq!(admission.bytes(), 0);
}

#[test]
fn memory_admits_and_not_the_number_alone() {
    let mut admission = Admission::new(2048, MEMORY);
    let slots = fill(&mut admission);
    assert_eq!(slots.len() as u64, MEMORY / 4 * 3 / OPEN_BYTES);
    assert!(admission.bytes() <= MEMORY, "{}", admission.bytes());
    assert_eq!(arrive(&mut admission, 1, 99), Err(Refused::Full));
    assert!(closed(&mut admission).is_empty(), "one that waits for us was closed");
    assert!(!admission.is_relieved(at(1)));
    slots.iter().for_each(|slot| admission.leave(*slot));
    assert!(admission.is_empty() && admission.bytes() == 0 && admission.networks.is_empty());
    // With ample memory, the number of connections is the limit.
    let mut admission = Admission::new(64, 1 << 30);
    assert_eq!(fill(&mut admission).len(), 64);
}

#[test]
fn the_longest_idle_goes_first_then_the_longest_incomplete_head() {
    let mut admission = Admission::new(64, 1 << 30);
    let slots = fill(&mut admission);
    admission.end(at(7), slots[3]);
    admission.end(at(5), slots[8]);
    let newer = arrive(&mut admission, 9, 50).unwrap();
    let newest = arrive(&mut admission, 10, 51).unwrap();
    assert_eq!(closed(&mut admission), [(slots[8], Closed::Idle), (slots[3], Closed::Idle)]);
    assert!(arrive(&mut admission, 11, 52).is_ok());
    assert!(arrive(&mut admission, 12, 53).is_ok());
    assert_eq!(closed(&mut admission), [(newer, Closed::Head), (newest, Closed::Head)]);
    assert_eq!((admission.counters().closed_idle, admission.counters().closed_head), (2, 2));
    assert_eq!(admission.len(), 64);
}

#[test]
fn who_idles_makes_room_and_nobody_is_closed_in_vain() {
    let mut admission = Admission::new(2048, MEMORY);
    let slots = fill(&mut admission);
    admission.end(at(1), slots[0]);
    admission.end(at(2), slots[1]);
    // The memory that the two idle connections have released is enough for another …
    let late = arrive(&mut admission, 3, 99).unwrap();
    assert!(admission.begin(at(3), late).is_some());
    assert_eq!(closed(&mut admission), []);
    // … but then not for the next request of the first, too.
    assert!(admission.begin(at(4), slots[0]).is_some());
    assert_eq!(closed(&mut admission), [(slots[1], Closed::Idle)]);
    assert_eq!(arrive(&mut admission, 5, 99), Err(Refused::Full));
    assert_eq!(closed(&mut admission), []);
}

#[test]
fn a_connection_is_not_closed_to_make_room_for_itself() {
    let mut admission = Admission::new(2048, (OPEN_BYTES + IDLE_BYTES) / 3 * 4 + 8);
    let idle = arrive(&mut admission, 0, 1).unwrap();
    assert!(admission.begin(at(0), idle).is_some());
    admission.end(at(0), idle);
    let busy = arrive(&mut admission, 1, 2).unwrap();
    assert!(admission.begin(at(1), busy).is_some());
    assert!(!admission.head(at(2), idle), "there was no room for it");
    assert_eq!(admission.begin(at(2), idle), None);
    assert_eq!((admission.len(), closed(&mut admission)), (2, vec![]));
    admission.leave(busy);
    assert!(admission.head(at(3), idle));
}

#[test]
fn a_client_has_its_share_and_pays_with_its_own() {
    let mut admission = Admission::new(160, 1 << 30);
    let greedy: Vec<_> = (0..20).map(|_| arrive(&mut admission, 0, 1).unwrap()).collect();
    greedy.iter().for_each(|slot| assert!(admission.begin(at(0), *slot).is_some()));
    assert_eq!(arrive(&mut admission, 1, 1), Err(Refused::Share));
    assert!(arrive(&mut admission, 1, 2).is_ok());
    admission.end(at(2), greedy[4]);
    assert!(arrive(&mut admission, 3, 1).is_ok());
    assert_eq!(closed(&mut admission), [(greedy[4], Closed::Idle)]);
    // Clients on this machine may use all connections.
    for _ in 20..160 {
        assert!(admission.arrive(at(4), None, Arc::default()).is_ok());
    }
}

#[test]
fn one_client_alone_does_not_take_all_that_memory_admits() {
    let mut admission = Admission::new(2048, MEMORY);
    let half = MEMORY / 4 * 3 / OPEN_BYTES / 2;
    for _ in 0..half {
        let slot = arrive(&mut admission, 0, 1).unwrap();
        assert!(admission.begin(at(0), slot).is_some());
    }
    assert_eq!(arrive(&mut admission, 0, 1), Err(Refused::Share));
    let others = (0..half / 8 * 2).map(|_| arrive(&mut admission, 0, 2).unwrap());
    assert_eq!(others.count(), 24);
    assert_eq!(arrive(&mut admission, 1, 3).map(|_| ()), Ok(()));
    assert_eq!(closed(&mut admission), []);
}

#[test]
fn who_moves_too_little_is_closed_once_half_of_the_room_is_taken() {
    let mut admission = Admission::new(64, 1 << 30);
    let meters: Vec<Arc<Meter>> = (0..31).map(|_| Arc::default()).collect();
    let mut slots = Vec::new();
    for (last, meter) in meters.iter().enumerate() {
        slots.push(admission.arrive(at(0), client(last as u8), Arc::clone(meter)).unwrap());
    }
    // The first has an incomplete head, the second's client does not read, the third waits for us,
    // and the fourth's client reads fast enough.
    slots[1..].iter().for_each(|slot| assert!(admission.begin(at(0), *slot).is_some()));
    meters[1].waits();
    // A burst counts for no longer than a minute.
    meters[1].moved(1 << 20);
    for seconds in (5..=60).step_by(5) {
        meters[3].waits();
        meters[3].moved(5 * PACE_BYTES);
        meters[0].moved(5 * PACE_BYTES - 1);
        admission.sweep(at(seconds));
    }
    meters[3].moved(5 * PACE_BYTES);
    admission.sweep(at(65));
    assert_eq!(closed(&mut admission), [], "less than half was taken");
    arrive(&mut admission, 66, 99).unwrap();
    meters[3].moved(5 * PACE_BYTES);
    admission.sweep(at(70));
    assert_eq!(closed(&mut admission), [(slots[0], Closed::Slow), (slots[1], Closed::Slow)]);
    assert_eq!(admission.counters().closed_slow, 2);
}

/// Admits this many connections of clients on this machine, all waiting for their origin.
fn busy(connections_max: usize, memory_bytes: u64, count: usize) -> Admission {
    let mut admission = Admission::new(connections_max, memory_bytes);
    for _ in 0..count {
        let slot = admission.arrive(at(0), None, Arc::default()).expect("room");
        assert!(admission.begin(at(0), slot).is_some());
    }
    admission
}

/// Memory that admits 48 connections.
const OF_48: u64 = 48 * OPEN_BYTES / 3 * 4;

#[test]
fn admission_is_relieved_when_an_eighth_is_free_or_can_be_freed() {
    let is_relieved = |it: &Admission| it.is_relieved(at(1));
    // Of 64 connections, 8 must be free.
    assert!(is_relieved(&busy(64, 1 << 30, 56)) && !is_relieved(&busy(64, 1 << 30, 57)));
    // Of memory for 48, that for 6.
    assert!(is_relieved(&busy(2048, OF_48, 42)) && !is_relieved(&busy(2048, OF_48, 43)));
    for mut admission in [busy(64, 1 << 30, 57), busy(2048, OF_48, 43)] {
        admission.end(at(0), Slot(0));
        assert!(is_relieved(&admission), "the idle one can be closed");
    }
}

#[test]
fn admission_is_crowded_from_a_half_on_and_at_ease_below_three_eighths() {
    for (connections_max, memory_bytes, all) in [(64, 1 << 30, 64), (2048, OF_48, 48)] {
        let busy = |count| busy(connections_max, memory_bytes, count);
        assert!(busy(all / 2).is_crowded() && !busy(all / 2 - 1).is_crowded());
        assert!(busy(all / 8 * 3 - 1).is_at_ease() && !busy(all / 8 * 3).is_at_ease());
    }
}

#[test]
fn the_last_connection_may_take_all_that_is_left() {
    for (connections_max, memory_bytes, all) in [(64, 1 << 30, 64), (2048, OF_48, 48)] {
        let mut admission = busy(connections_max, memory_bytes, all);
        assert_eq!(admission.arrive(at(1), None, Arc::default()), Err(Refused::Full));
        assert_eq!((admission.len(), admission.counters().full), (all, 1));
    }
}

#[test]
fn room_is_made_by_idle_connections_then_heads_then_tunnels() {
    let mut admission = Admission::new(3, 1 << 30);
    let meter: Arc<Meter> = Arc::default();
    let tunnel = admission.arrive(at(0), None, Arc::clone(&meter)).expect("room");
    admission.tunnel(at(0), tunnel);
    meter.moved(1);
    admission.sweep(at(0));
    let head = admission.arrive(at(1), None, Arc::default()).expect("room");
    let idle = admission.arrive(at(2), None, Arc::default()).expect("room");
    assert!(admission.begin(at(2), idle).is_some());
    admission.end(at(2), idle);
    // The order is not that of their age.
    for expected in [(idle, Closed::Idle), (head, Closed::Head), (tunnel, Closed::Tunnel)] {
        let slot = admission.arrive(at(90), None, Arc::default()).expect("room");
        assert!(admission.begin(at(90), slot).is_some());
        assert_eq!(closed(&mut admission), [expected]);
    }
}

#[test]
fn a_tunnel_is_quiet_after_a_minute() {
    let mut admission = Admission::new(1, 1 << 30);
    let slot = arrive(&mut admission, 7, 1).expect("room");
    admission.flow(at(7), slot);
    assert_eq!(arrive(&mut admission, 66, 2), Err(Refused::Full));
    assert!(arrive(&mut admission, 67, 2).is_ok());
    assert_eq!(closed(&mut admission), [(slot, Closed::Tunnel)]);
}

#[test]
fn a_window_is_an_eighth_of_what_is_free_within_16_and_128_kib() {
    let window = |free| {
        let mut admission = Admission::new(64, 1 << 30);
        admission.windows_max = free;
        let slot = arrive(&mut admission, 0, 1).expect("room");
        admission.begin(at(0), slot)
    };
    // Its first 16 KiB are counted with the connection; 112 KiB are an eighth of 896 KiB.
    assert_eq!(window(0), Some(16 << 10));
    assert_eq!(window(8), Some((16 << 10) + 1));
    assert_eq!(window((896 << 10) - 8), Some((128 << 10) - 1));
    assert_eq!(window(896 << 10), Some(128 << 10));
    assert_eq!(window(1 << 30), Some(128 << 10));
    assert_eq!(Admission::new(64, 4000).windows_max, 1000, "a quarter of the memory");
}

#[test]
fn a_connection_has_a_minute_before_it_counts_as_slow() {
    // One of two connections is half of the room.
    let mut admission = Admission::new(2, 1 << 30);
    let slot = arrive(&mut admission, 0, 1).expect("room");
    for seconds in (5..60).step_by(5) {
        admission.sweep(at(seconds));
        assert_eq!(closed(&mut admission), [], "after {seconds} s");
    }
    admission.sweep(at(60));
    assert_eq!(closed(&mut admission), [(slot, Closed::Slow)]);
}

#[test]
fn a_tunnel_makes_room_only_if_it_is_quiet_or_never_said_a_word() {
    let mut admission = Admission::new(16, 1 << 30);
    let meters: Vec<Arc<Meter>> = (0..16).map(|_| Arc::default()).collect();
    let slots: Vec<_> = meters
        .iter()
        .map(|meter| admission.arrive(at(0), None, Arc::clone(meter)).unwrap())
        .collect();
    meters[1..].iter().for_each(|meter| meter.moved(1));
    slots.iter().for_each(|slot| admission.tunnel(at(0), *slot));
    assert!(admission.arrive(at(1), None, Arc::default()).is_ok());
    assert_eq!(closed(&mut admission), [(slots[0], Closed::Head)]);
    let newest = admission.slots.iter().flatten().count() - 1;
    assert!(admission.begin(at(1), Slot(newest)).is_some());
    assert_eq!(admission.arrive(at(59), None, Arc::default()), Err(Refused::Full));
    meters[1].moved(1);
    admission.sweep(at(60));
    assert!(admission.arrive(at(61), None, Arc::default()).is_ok());
    assert_eq!(closed(&mut admission), [(slots[2], Closed::Tunnel)]);
}

#[test]
fn windows_shrink_as_more_are_answered_and_stay_within_a_quarter() {
    let mut admission = Admission::new(2048, MEMORY);
    let first = arrive(&mut admission, 0, 1).unwrap();
    assert_eq!(admission.begin(at(0), first), Some(WINDOW_MAX));
    fill(&mut admission);
    assert!(admission.windows <= MEMORY / 4, "{}", admission.windows);
    let small = WINDOW_MIN + (MEMORY / 4 - admission.windows) / WINDOW_SHARE;
    admission.leave(first);
    let last = arrive(&mut admission, 0, 2).unwrap();
    assert!(admission.begin(at(0), last).unwrap() >= small);
}

#[test]
fn what_is_closed_counts_no_more_and_is_named_once() {
    let mut admission = Admission::new(16, 1 << 30);
    let slots: Vec<_> = (0..16).map(|last| arrive(&mut admission, 0, last).unwrap()).collect();
    let late = arrive(&mut admission, 1, 99).unwrap();
    assert_eq!(admission.len(), 16);
    assert!(admission.begin(at(1), slots[0]).is_none(), "it is closed");
    admission.leave(slots[0]);
    assert_eq!((admission.len(), closed(&mut admission)), (16, vec![]));
    admission.leave(late);
    assert_eq!(admission.len(), 15);
    assert!(admission.is_relieved(at(1)));
}
