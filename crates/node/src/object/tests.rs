use super::*;
use crate::context::tests::context;
use crate::exchanges::exchange::{ClientReader, Exchange, Source, State};
use crate::pursuits::Goal;
use crate::request::tests::ask;
use crate::transfers::cutting::Cutting;
use crate::transfers::transfer::Listing;
use crate::turns::Turn;
use ::http::{HeaderMap, StatusCode};
use wire::Date;

const ID: FetchId = FetchId(7);
const READER: ExchangeId = ExchangeId(1);
const MEBIBYTE: u64 = 1 << 20;

/// The machine, and the services that it uses.
struct Bench {
    objects: Objects,
    cx: Context,
}

impl Bench {
    fn new() -> Self {
        Self { objects: Objects::default(), cx: context() }
    }

    /// A transfer begins.
    fn begin(&mut self, id: FetchId, transfer: Transfer) -> &mut Incoming {
        let (record, came) = (RecordId([id.0 as u8; 16]), (Date::from_unix(1000), true));
        let incoming = Incoming::new(record, StatusCode::OK, HeaderMap::new(), came, transfer);
        self.objects.begin(&mut self.cx, id, incoming);
        self.cx.transfers.get_mut(&id).expect("it has begun")
    }

    /// An origin's body begins.
    fn begin_cut(&mut self, id: FetchId) -> &mut Incoming {
        let cutting = Cutting::new(self.cx.config.profile, None);
        self.begin(id, Transfer::Cutting(Box::new(cutting)))
    }

    /// An object begins that a client of this node wants from a peer, and the peer has answered.
    fn begin_listed(&mut self, id: FetchId) -> &mut Incoming {
        let ask = ask("http://o.test/a");
        let (headers, goal) = (ask.headers.clone(), Goal::Object);
        let quest = Quest { ask: Rc::new(ask), headers, have: None, content: None, goal };
        crate::source::Source::new(crate::select::none()).begin(&mut self.cx, id, quest);
        self.cx.pursuits.is_answering(id);
        let incoming = self.begin(id, Listing::from(0, 0));
        incoming.listing().expect("a peer lists it").wanted_here = true;
        incoming
    }

    /// The last reader of a transfer leaves. Returns whether the transfer goes on without one.
    fn goes_on_without(&mut self, of_peer: bool) -> bool {
        while self.cx.turns.next_transfer().is_some() {}
        self.objects.unread(&mut self.cx, ID, READER, of_peer);
        let ends = self.ended() == [ID];
        let is_orphan = self.objects.orphans.iter().any(|(_, id)| *id == ID);
        assert_ne!(ends, is_orphan, "it ends, or may run for a while");
        is_orphan
    }

    /// The transfers that were told to end, since this was last asked.
    fn ended(&mut self) -> Vec<FetchId> {
        let turns = std::iter::from_fn(|| self.cx.turns.next_transfer());
        turns.filter(|(_, turn)| *turn == Turn::End).map(|(id, _)| id).collect()
    }
}

/// So much is left of a body of which a hundred bytes have come.
fn lacks(incoming: &mut Incoming, left: u64) {
    incoming.received_bytes = 100;
    incoming.announced = Some(100 + left);
    incoming.readers.push(Reader::new(READER, true, 0));
}

#[test]
fn a_body_goes_on_without_readers_if_a_mebibyte_is_left_at_most() {
    for (left, goes_on) in [(0, true), (MEBIBYTE, true), (MEBIBYTE + 1, false)] {
        let mut bench = Bench::new();
        lacks(bench.begin_cut(ID), left);
        assert_eq!(bench.goes_on_without(false), goes_on, "from an origin, {left}");
        let mut bench = Bench::new();
        lacks(bench.begin_listed(ID), left);
        assert_eq!(bench.goes_on_without(false), goes_on, "from a peer, {left}");
    }
}

#[test]
fn a_body_of_unknown_length_ends_with_its_last_reader() {
    let mut bench = Bench::new();
    lacks(bench.begin_cut(ID), 1);
    bench.cx.transfers.get_mut(&ID).expect("it has begun").announced = None;
    assert!(!bench.goes_on_without(false));
}

#[test]
fn a_body_that_a_peer_left_waits_for_it_to_resume_however_much_is_left() {
    let mut bench = Bench::new();
    lacks(bench.begin_cut(ID), MEBIBYTE + 1);
    assert!(bench.goes_on_without(true));
    let cutting = bench.cx.transfers.get_mut(&ID).and_then(Incoming::cutting);
    assert!(cutting.is_some_and(|it| it.awaits_resume));
}

#[test]
fn a_body_that_the_store_did_not_take_ends_with_its_last_reader() {
    for of_peer in [false, true] {
        for left in [1, MEBIBYTE + 1] {
            let mut bench = Bench::new();
            lacks(bench.begin_cut(ID), left);
            bench.objects.fail_storing(&mut bench.cx, ID, &[]);
            assert!(!bench.goes_on_without(of_peer), "from an origin, {left}");
            let mut bench = Bench::new();
            lacks(bench.begin_listed(ID), left);
            bench.objects.fail_storing(&mut bench.cx, ID, &[]);
            assert!(!bench.goes_on_without(of_peer), "from a peer, {left}");
        }
    }
}

#[test]
fn a_body_without_readers_ends_once_the_store_does_not_take_it() {
    let mut bench = Bench::new();
    lacks(bench.begin_cut(ID), 1);
    assert!(bench.goes_on_without(false));
    bench.objects.fail_storing(&mut bench.cx, ID, &[]);
    assert_eq!(bench.ended(), [ID]);
}

#[test]
fn the_rest_of_a_peers_object_is_wanted_only_for_a_client_here_and_after_an_answer() {
    let mut bench = Bench::new();
    lacks(bench.begin_listed(ID), 1);
    let listing = bench.cx.transfers.get_mut(&ID).and_then(Incoming::listing);
    listing.expect("a peer lists it").wanted_here = false;
    assert!(!bench.goes_on_without(true));
    let mut bench = Bench::new();
    lacks(bench.begin_listed(ID), 1);
    bench.cx.pursuits.get_mut(&ID).expect("it was begun").answered = false;
    assert!(!bench.goes_on_without(false));
}

#[test]
fn a_listed_object_is_stored_at_once_if_nothing_of_it_is_left() {
    let mut bench = Bench::new();
    let incoming = bench.begin_listed(ID);
    lacks(incoming, 0);
    let record = Record { length: 100, ..incoming.so_far() };
    incoming.listing().expect("a peer lists it").whole = Some(Rc::new(record));
    bench.objects.unread(&mut bench.cx, ID, READER, false);
    assert!(!bench.cx.transfers.contains_key(&ID) && bench.objects.orphans.is_empty());
}

#[test]
fn a_transfer_without_readers_has_a_minute() {
    let mut bench = Bench::new();
    lacks(bench.begin_cut(ID), 1);
    assert!(bench.goes_on_without(false));
    let (until, _) = bench.objects.poll_timeout().expect("it is not for ever");
    assert_eq!(until - bench.cx.now, Duration::from_secs(60));
    bench.cx.now = Instant::from_nanos(until.as_nanos() - 1);
    bench.objects.handle_timeout(&mut bench.cx);
    assert_eq!(bench.ended(), []);
    bench.cx.now = until;
    bench.objects.handle_timeout(&mut bench.cx);
    assert_eq!(bench.ended(), [ID]);
}

#[test]
fn a_transfer_that_is_read_again_has_no_last_minute() {
    let mut bench = Bench::new();
    lacks(bench.begin_cut(ID), 1);
    assert!(bench.goes_on_without(false));
    let joins = Joins::Client { head_alone: false };
    bench.objects.join(&mut bench.cx, ID, Reader::new(READER, false, 0), joins);
    bench.cx.now = bench.cx.now + Duration::from_secs(60);
    bench.objects.handle_timeout(&mut bench.cx);
    assert_eq!(bench.ended(), []);
}

#[test]
fn the_33rd_transfer_without_readers_ends_the_one_left_first() {
    let mut bench = Bench::new();
    let leave = |bench: &mut Bench, number| {
        bench.begin_cut(FetchId(number));
        bench.objects.orphan(&mut bench.cx, FetchId(number));
    };
    (0..32).for_each(|number| leave(&mut bench, number));
    assert_eq!(bench.ended(), []);
    leave(&mut bench, 32);
    assert_eq!(bench.ended(), [FetchId(0)]);
    // It was read again, and left again.
    bench.objects.orphan(&mut bench.cx, FetchId(1));
    assert_eq!(bench.ended(), [], "it counts once");
    leave(&mut bench, 33);
    assert_eq!(bench.ended(), [FetchId(2)]);
}

#[test]
fn units_that_a_peer_lacks_are_remembered_up_to_4096() {
    let mut bench = Bench::new();
    bench.begin_listed(ID);
    let names: Vec<_> = (0..4097u32).map(|number| content::name(&number.to_le_bytes())).collect();
    for name in &names {
        bench.cx.in_flight.begin(*name, ID, Unit { length: 4, parent_end: false, end: 0 });
    }
    bench.objects.units_lost(&mut bench.cx, ID, &names);
    let lost = &bench.cx.transfers[&ID].lost;
    assert_eq!(lost.len(), 4096);
    assert!(names[..4096].iter().all(|name| lost.contains(name)));
    // Beyond the bound one is only not remembered.
    assert_eq!((bench.cx.in_flight.len(), bench.cx.report.wants_lost), (0, 4097));
}

#[test]
fn a_body_may_be_as_long_as_the_store_accepts() {
    let mut bench = Bench::new();
    bench.begin_cut(ID).bytes_max = 5;
    bench.objects.take_in(&mut bench.cx, ID, &Bytes::from_static(b"1234"));
    bench.objects.take_in(&mut bench.cx, ID, &Bytes::from_static(b"5"));
    assert!(!bench.cx.transfers[&ID].memory_only);
    bench.cx.transfers.get_mut(&ID).expect("it has begun").readers =
        vec![Reader::new(READER, true, 0)];
    bench.objects.take_in(&mut bench.cx, ID, &Bytes::from_static(b"6"));
    assert!(bench.cx.transfers[&ID].memory_only);
}

#[test]
fn a_client_gets_the_rest_from_the_origin_unless_it_has_waited_for_40_seconds() {
    for (waited, gets_rest) in [(Duration::from_nanos(39_999_999_999), true), (WAITED, false)] {
        let mut bench = Bench::new();
        let incoming = bench.begin_listed(ID);
        lacks(incoming, 10);
        let record = Rc::new(Record { length: 110, ..incoming.so_far() });
        incoming.listing().expect("a peer lists it").whole = Some(Rc::clone(&record));
        let reader = ClientReader::new(Source::Incoming(ID), record.id, VecDeque::new());
        let state = State::ClientReader(Box::new(reader));
        let exchange = Exchange { ask: ask("http://o.test/a"), credit: 0, state };
        bench.cx.exchanges.insert(READER, exchange);
        bench.cx.now = bench.cx.now + waited;
        bench.objects.broken(&mut bench.cx, ID, Broken::Short);
        let gets = |value: &Value| matches!(value, Value::Closed(READER, _, true));
        let breaks = |value: &Value| matches!(value, Value::Broken(READER));
        let values: Vec<_> = std::iter::from_fn(|| bench.objects.poll()).collect();
        assert_eq!((values.iter().any(gets), values.iter().any(breaks)), (gets_rest, !gets_rest));
    }
}

const WAITED: Duration = Duration::from_secs(40);
