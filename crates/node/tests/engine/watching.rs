//! What the engine says that it does: its transitions, and inputs that came too late. Saying so changes nothing.

use crate::net::{Call, Net, Options, Page};
use crate::torture;
use http::{HeaderMap, StatusCode};
use node::events::{Judgement, RequestEnd, SourceKind, StoreState, TransferState};
use node::{
    ClientInput, Event, ExchangeId, FetchId, Forward, Input, NotStored, OriginInput, Stale,
    StoreInput, Ticket, Timer,
};
use wire::Instant;

const URL: &str = "http://o.test/a";

fn watched() -> Net {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(100_000).fresh(60));
    net.watch();
    net
}

/// The record of the first transfer that began.
fn record(events: &[Event]) -> wire::RecordId {
    let record = |event: &Event| match event {
        Event::Transfer { record, .. } => Some(*record),
        _ => None,
    };
    events.iter().find_map(record).expect("a transfer began")
}

#[test]
fn a_miss_and_a_hit_are_told_step_by_step() {
    let mut net = watched();
    net.get(URL);
    let miss = net.did();
    let (exchange, fetch, record) = (ExchangeId(0), FetchId(1), record(&miss));
    let transfer = |state| Event::Transfer { fetch, record, state };
    assert_eq!(
        miss,
        [
            Event::Request { exchange, peer: None, url: URL.into() },
            Event::Miss { exchange, fetch, why: Forward::UriMiss },
            Event::Source { fetch, of: SourceKind::Origin },
            Event::Head { fetch, status: 200, verdict: Judgement::Object },
            transfer(TransferState::Cutting),
            // The last bytes were sent before the end came.
            Event::RequestEnds { exchange, how: RequestEnd::Complete },
            transfer(TransferState::Closed),
            Event::TransferEnds { fetch, bytes: 100_000, stored: true },
        ]
    );
    net.get(URL);
    let exchange = ExchangeId(1);
    assert_eq!(
        net.did(),
        [
            Event::Request { exchange, peer: None, url: URL.into() },
            Event::Hit { exchange, record },
            Event::RequestEnds { exchange, how: RequestEnd::Complete },
        ]
    );
    net.done();
}

#[test]
fn requests_that_share_a_fetch_and_those_that_are_not_stored_are_told() {
    let mut net = watched();
    let secret = "http://o.test/secret";
    net.origin.put(secret, Page::of(10).with("cache-control", "private"));
    (0..2).for_each(|_| _ = net.call(Call::get(URL)));
    net.settle();
    let join = Event::Join { exchange: ExchangeId(1), fetch: FetchId(1) };
    assert!(net.did().contains(&join));
    net.call(Call::get(secret).with("range", "bytes=1-2"));
    net.settle();
    let passes = |event: &Event| match event {
        Event::Pass { exchange: ExchangeId(2), fetch, why: NotStored::Range } => Some(*fetch),
        _ => None,
    };
    assert!(net.did().iter().find_map(passes).is_some());
    net.get(secret);
    let passed = |event: &Event| {
        matches!(event, Event::Head { status: 200, verdict: Judgement::Passed, .. })
    };
    assert!(net.did().iter().any(passed));
    net.done();
}

#[test]
fn a_store_that_fails_and_works_again_is_told() {
    let mut net = watched();
    net.disk.fail_appends = true;
    net.get(URL);
    net.disk.fail_appends = false;
    let timers = |net: &Net| net.node.poll_timeout().map(|(_, timer)| timer);
    net.pass_seconds(10);
    assert_eq!(timers(&net), Some(Timer::StoreRetry));
    net.pass_seconds(21);
    net.origin.put("http://o.test/b", Page::of(1000).fresh(60));
    net.get("http://o.test/b");
    let state = |event: &Event| match event {
        Event::Store { state } => Some(*state),
        _ => None,
    };
    let mut states: Vec<_> = net.did().iter().filter_map(state).collect();
    states.dedup();
    let expected = [StoreState::Failed, StoreState::Tried, StoreState::Doubted, StoreState::Works];
    assert_eq!(states, expected);
    net.done();
}

#[test]
fn the_timer_that_is_due_first_is_named() {
    let mut net = watched();
    assert_eq!(net.node.poll_timeout(), None);
    net.get(URL);
    assert_eq!(net.node.poll_timeout().map(|(_, timer)| timer), Some(Timer::Sync));
    net.pass_seconds(10);
    // The transfer has ended with its only reader's request; that is looked at once more.
    assert_eq!(net.node.poll_timeout().map(|(_, timer)| timer), Some(Timer::Orphan));
    assert!(net.watched.contains(&Event::Timer { timer: Timer::Sync }));
}

#[test]
fn inputs_that_come_too_late_are_counted_by_kind() {
    let mut net = watched();
    let (gone, over) = (ExchangeId(9), FetchId(9));
    let inputs = [
        (Stale::ClientCredit, Input::Client(ClientInput::Credit(gone, 1))),
        (
            Stale::OriginHead,
            Input::Origin(OriginInput::Head(over, StatusCode::OK, HeaderMap::new())),
        ),
        (Stale::OriginBody, Input::Origin(OriginInput::Body(over, "a".into()))),
        (Stale::OriginEnd, Input::Origin(OriginInput::End(over, Ok(())))),
        (Stale::Written, Input::Store(StoreInput::Appended(Ticket(9), Some(Vec::new())))),
    ];
    for (what, input) in inputs {
        net.node.handle_input(Instant::ZERO, input);
        while net.node.poll_output().is_some() {}
        let events = net.node.events();
        assert_eq!((events.poll(), events.poll()), (Some(Event::Stale { what }), None));
        assert_eq!(events.stale_inputs().get(what), 1, "{what:?}");
    }
}

#[test]
fn who_leaves_while_the_disk_reads_leaves_stale_answers() {
    let mut net = Net::with(Options {
        disk_delay: std::time::Duration::from_millis(5),
        memory_bytes: 1 << 20,
        ..Options::default()
    });
    net.origin.put(URL, Page::of(900_000).fresh(60));
    net.get(URL);
    net.restart(&Options { memory_bytes: 1 << 20, ..Options::default() });
    net.watch();
    let id = net.call(Call::get(URL));
    net.leave_soon(id);
    net.settle();
    let left = Event::RequestEnds { exchange: ExchangeId(id as u64), how: RequestEnd::Left };
    let did = net.did();
    let place = |event: &Event| did.iter().position(|it| it == event);
    let row = Event::Stale { what: Stale::Row };
    assert!(place(&left) < place(&row), "{did:?}");
    assert_eq!(net.node.events().stale_inputs().get(Stale::Row), 1);
}

#[test]
fn whether_somebody_watches_changes_nothing_else() {
    for seed in [4, 11] {
        let mut alone = torture::run(seed, 120);
        let mut watched = torture::run_watched(seed, 120, true);
        assert!(watched.watched.len() > 300, "{}", watched.watched.len());
        assert!(alone.watched.is_empty());
        for what in Stale::ALL {
            let counts =
                [&mut alone, &mut watched].map(|it| it.node.events().stale_inputs().get(what));
            assert_eq!(counts[0], counts[1], "{what:?}");
        }
        assert_eq!(watched.trace.finish(), alone.trace.finish());
        let again = torture::run_watched(seed, 120, true);
        assert_eq!(again.watched, watched.watched);
    }
}
