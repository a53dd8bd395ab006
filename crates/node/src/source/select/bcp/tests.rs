use super::*;
use crate::copies::Copies;
use crate::input::{Locating, SearchConfig};
use crate::routes::{Exit, Interface, Path, Route, RouteSource, RouteTable, Routes};
use crate::source::select::tests::config;
use std::time::Duration;
use wire::peer::Search;
use wire::{Date, Hint, ObjectKey, Selection};

const OWN: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 3));
const HOP: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));
const GATEWAY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
/// Routers off the way: as far as the gateway, nearer, and farther.
const EQUAL: IpAddr = router(7);
const NEAR: IpAddr = router(8);
const FAR: IpAddr = router(9);
const BESIDE: IpAddr = router(5);
const KEY: ObjectKey = ObjectKey([4; 32]);
const ID: FetchId = FetchId(1);

const fn router(number: u8) -> IpAddr {
    IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, number))
}

/// A router that is two hops from the gateway, and its scheme.
struct Bench {
    bcp: Bcp,
    routes: Routes,
    now: Instant,
    has: Vec<Hint>,
}

impl Bench {
    fn new(selection: Selection, search: SearchConfig) -> Self {
        let path = |next_hop, hops| Path { next_hop, interface: 3, metric: None, hops: Some(hops) };
        let paths = [(EQUAL, path(BESIDE, 2)), (NEAR, path(NEAR, 1)), (FAR, path(BESIDE, 3))];
        let exit = Exit::Mesh(Route {
            next_hop: HOP,
            interface: Interface { name: "wl0".into(), index: 3 },
            gateway: Some(GATEWAY),
            metric: None,
            hops: Some(2),
            address: Some(OWN),
            source: RouteSource::Config,
        });
        let mut routes = Routes::default();
        routes.set(
            Instant::ZERO,
            RouteTable { exit, paths: paths.into_iter().collect(), stopped: None },
        );
        let bcp = Bcp::new(&MeshConfig { search, ..config(selection) }, &[1; 32]);
        Self { bcp, routes, now: Instant::ZERO, has: Vec::new() }
    }

    fn per_hop() -> Self {
        Self::new(Selection::PhBcp, SearchConfig::default())
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut Bcp, &Here<'_>) -> T) -> T {
        let has = |name: &Hint| self.has.contains(name);
        let date = Date::from_unix(1_800_000_000);
        act(&mut self.bcp, &Here { now: self.now, date, routes: &self.routes, holds: &has })
    }

    fn query<T>(
        &mut self,
        id: FetchId,
        act: impl FnOnce(&mut Bcp, &Here<'_>, &Query<'_>) -> T,
    ) -> T {
        let (now, routes) = (self.now, self.routes.clone());
        let query = Query {
            now,
            id,
            key: KEY,
            per_hop: None,
            routes: &routes,
            copies: &Copies::default(),
            referred: Vec::new(),
            may: &|_| true,
        };
        self.with(|bcp, here| act(bcp, here, &query))
    }

    fn choose(&mut self, id: FetchId) -> Answer {
        self.query(id, |bcp, _, query| bcp.choose(query))
    }

    /// Begins a search, and returns it.
    fn search(&mut self, id: FetchId) -> Locate {
        assert_eq!(self.choose(id), Answer::Later);
        self.query(id, |bcp, here, query| bcp.begin(here, query));
        match self.said().as_slice() {
            [(None, Call::Locate(locate))] => *locate,
            other => panic!("{other:?}"),
        }
    }

    fn hears(&mut self, call: Call) {
        let bytes = Seal::new(None).seal(&call, [0; 24]);
        self.with(|bcp, here| bcp.handle_datagram(here, (router(99), 1).into(), &bytes));
    }

    fn found(&mut self, search: Search, holder: IpAddr) {
        self.hears(Call::Found(Found { search, holder, hops: 1 }));
    }

    /// Lets time pass; what was said, and to whom.
    fn pass(&mut self, millis: u64) -> Vec<(Option<IpAddr>, Call)> {
        self.now = self.now + Duration::from_millis(millis);
        while self.bcp.poll_timeout().is_some_and(|at| at <= self.now) {
            self.bcp.handle_timeout(self.now);
        }
        self.said()
    }

    fn said(&mut self) -> Vec<(Option<IpAddr>, Call)> {
        let open = |bytes: &[u8]| Seal::new(None).open(bytes).expect("a datagram");
        let said = std::iter::from_fn(|| self.bcp.poll()).filter_map(|said| match said {
            Said::Datagram(to, bytes) => Some((Some(to.ip()), open(&bytes))),
            Said::Broadcast(bytes) => Some((None, open(&bytes))),
            Said::Known(_) => None,
        });
        said.collect()
    }

    /// Searches, hears these, and waits for the timeout.
    fn chooses(&mut self, holders: &[IpAddr]) -> Answer {
        let locate = self.search(ID);
        holders.iter().for_each(|holder| self.found(locate.search, *holder));
        assert_eq!(self.choose(ID), Answer::Later);
        self.pass(25);
        self.choose(ID)
    }
}

#[test]
fn the_nearest_is_asked_and_a_tie_spares_the_gateway() {
    let near = Answer::Holder { at: NEAR, by: NEAR };
    assert_eq!(Bench::per_hop().chooses(&[EQUAL, FAR, NEAR, GATEWAY]), near);
    let equal = Answer::Holder { at: EQUAL, by: BESIDE };
    assert_eq!(Bench::per_hop().chooses(&[GATEWAY, EQUAL, FAR]), equal);
    let on_the_way = Answer::Found(HOP);
    for holders in [&[][..], &[FAR], &[GATEWAY], &[OWN]] {
        assert_eq!(Bench::per_hop().chooses(holders), on_the_way, "{holders:?}");
    }
    let mut end_to_end = Bench::new(Selection::Bcp, SearchConfig::default());
    assert_eq!(end_to_end.chooses(&[EQUAL]), Answer::Holder { at: EQUAL, by: EQUAL });
    let mut end_to_end = Bench::new(Selection::Bcp, SearchConfig::default());
    assert_eq!(end_to_end.chooses(&[FAR]), Answer::Found(GATEWAY));
}

#[test]
fn where_no_path_is_known_the_hops_of_the_locate_count() {
    let unknown = router(50);
    let mut bench = Bench::per_hop();
    let search = bench.search(ID).search;
    bench.hears(Call::Found(Found { search, holder: unknown, hops: 3 }));
    bench.pass(25);
    assert_eq!(bench.choose(ID), Answer::Found(HOP));
    bench.bcp.end(bench.now, ID);
    let search = bench.search(ID).search;
    bench.hears(Call::Found(Found { search, holder: unknown, hops: 2 }));
    bench.pass(25);
    assert_eq!(bench.choose(ID), Answer::Holder { at: unknown, by: unknown });
}

#[test]
fn a_locate_goes_two_hops_farther_than_the_gateway_is() {
    let locate = Bench::per_hop().search(ID);
    assert_eq!((locate.origin, locate.ttl, locate.hops), (OWN, 4, 1));
    assert_eq!(locate.name, name_of(&KEY));
}

#[test]
fn what_does_not_help_costs_one_question_and_is_asked_no_more() {
    let mut bench = Bench::per_hop();
    assert_eq!(bench.chooses(&[EQUAL, NEAR]), Answer::Holder { at: NEAR, by: NEAR });
    bench.bcp.in_vain(bench.now, ID, NEAR, false);
    assert_eq!(bench.choose(ID), Answer::Found(HOP), "it goes along the way");
    bench.bcp.end(bench.now, ID);
    // So does the next request, without a search.
    assert_eq!(bench.choose(ID), Answer::Found(HOP));
    bench.query(ID, |bcp, here, query| bcp.asked(here, query, Answer::Found(HOP)));
    bench.bcp.end(bench.now, ID);
    assert_eq!(bench.chooses(&[EQUAL, NEAR]), Answer::Holder { at: EQUAL, by: BESIDE });
    bench.bcp.helped(bench.now, ID, EQUAL);
    bench.bcp.end(bench.now, ID);
    assert_eq!(bench.chooses(&[NEAR]), Answer::Found(HOP));
    bench.bcp.end(bench.now, ID);
    bench.pass(601_000);
    assert_eq!(bench.chooses(&[NEAR]), Answer::Holder { at: NEAR, by: NEAR });
}

#[test]
fn only_answers_to_open_requests_count() {
    let mut bench = Bench::per_hop();
    let search = bench.search(ID).search;
    bench.found(Search { boot: search.boot + 1, ..search }, NEAR);
    bench.found(Search { sequence: search.sequence + 1, ..search }, NEAR);
    bench.pass(25);
    assert_eq!(bench.choose(ID), Answer::Found(HOP));
    // A late answer serves what is asked next.
    bench.found(search, NEAR);
    assert_eq!(bench.choose(ID), Answer::Holder { at: NEAR, by: NEAR });
    bench.bcp.end(bench.now, ID);
    bench.found(search, NEAR);
    assert_eq!(bench.bcp.poll_timeout(), None);
    assert_ne!(bench.search(ID).search, search);
}

#[test]
fn a_peer_that_asks_has_searched_itself() {
    let mut bench = Bench::per_hop();
    let routes = bench.routes.clone();
    let choice = bench.with(|bcp, here| {
        let (now, per_hop) = (here.now, Some(true));
        bcp.choose(&Query {
            now,
            id: ID,
            key: KEY,
            per_hop,
            routes: &routes,
            copies: &Copies::default(),
            referred: Vec::new(),
            may: &|_| true,
        })
    });
    assert_eq!(choice, Answer::Found(HOP));
}

#[test]
fn searches_and_answers_are_bounded() {
    let mut bench = Bench::per_hop();
    let first = bench.search(FetchId(0)).search;
    (1..256).for_each(|id| _ = bench.search(FetchId(id)));
    assert_eq!(bench.choose(FetchId(256)), Answer::Found(HOP));
    for number in 0..255 {
        bench.found(first, router(number));
    }
    bench.bcp.end(bench.now, FetchId(1));
    bench.search(FetchId(256));
    bench.pass(25);
    assert_eq!(bench.bcp.poll_timeout(), None);
}

#[test]
fn a_locate_of_another_is_answered_and_passed_on_once() {
    let mut bench = Bench::per_hop();
    let search = Search { boot: 1, sequence: 1 };
    let locate = Locate { origin: EQUAL, search, name: Hint([9; 8]), ttl: 3, hops: 2 };
    bench.hears(Call::Locate(locate));
    let passed = Call::Locate(Locate { ttl: 2, hops: 3, ..locate });
    assert_eq!(bench.pass(5), [(None, passed)]);
    bench.hears(Call::Locate(locate));
    assert_eq!(bench.pass(5), []);
    bench.has.push(Hint([9; 8]));
    let last = Locate { search: Search { sequence: 2, ..search }, ttl: 1, ..locate };
    bench.hears(Call::Locate(last));
    let found = Found { search: last.search, holder: OWN, hops: 2 };
    assert_eq!(bench.pass(5), [(Some(EQUAL), Call::Found(found))]);
    // Who is somewhere else gets no answer.
    let search = Search { sequence: 3, ..search };
    let outside = Locate { origin: [192, 0, 2, 1].into(), search, ttl: 1, ..locate };
    bench.hears(Call::Locate(outside));
    assert_eq!(bench.pass(5), []);
    // One's own comes back from neighbours.
    let own = bench.search(ID);
    bench.hears(Call::Locate(Locate { ttl: 3, hops: 2, ..own }));
    assert_eq!(bench.pass(5), []);
}

#[test]
fn an_answer_is_no_longer_than_its_question() {
    let (search, name) = (Search { boot: 1, sequence: 1 }, Hint([9; 8]));
    for key in [None, Some(&[1; 32])] {
        let seal = Seal::new(key);
        let of = |origin, holder: IpAddr| {
            let locate = Locate { origin, search, name, ttl: 3, hops: 2 };
            let found = Found { search, holder, hops: 2 };
            [Call::Locate(locate), Call::Found(found)].map(|it| seal.seal(&it, [0; 24]).len())
        };
        let v6 = IpAddr::from([7; 16]);
        for [question, answer] in [of(OWN, NEAR), of(v6, v6)] {
            assert!(answer <= question);
        }
    }
}

#[test]
fn rubbish_is_counted_and_nothing_else() {
    let mut bench = Bench::per_hop();
    let sealed = Seal::new(Some(&[1; 32])).seal(
        &Call::Found(Found { search: Search { boot: 1, sequence: 1 }, holder: NEAR, hops: 1 }),
        [0; 24],
    );
    for bytes in [&[][..], b"HSDG", &[0; 2000], &sealed] {
        bench.with(|bcp, here| bcp.handle_datagram(here, (NEAR, 1).into(), bytes));
    }
    assert_eq!((bench.bcp.counts().refused, bench.pass(100)), (4, Vec::new()));
}

/// The paper's scheme: a setup message goes before the request.
fn published() -> Bench {
    let locating = Locating::Paper { refresh: Duration::from_secs(60) };
    Bench::new(Selection::PhBcp, SearchConfig { locating, ..SearchConfig::default() })
}

#[test]
fn by_the_paper_the_way_is_set_up_and_the_next_miss_searches_no_more() {
    let mut bench = published();
    let answer = bench.chooses(&[EQUAL]);
    assert_eq!(answer, Answer::Found(BESIDE));
    bench.query(ID, |bcp, here, query| bcp.asked(here, query, answer));
    let [(Some(BESIDE), Call::Setup(setup))] = bench.said()[..] else { panic!("one is told") };
    assert_eq!((setup.name, setup.holder), (name_of(&KEY), EQUAL));
    bench.bcp.end(bench.now, ID);
    assert_eq!(bench.choose(FetchId(2)), Answer::Found(BESIDE));
    bench.pass(61_000);
    assert_eq!(bench.choose(FetchId(2)), Answer::Later, "the mapping has expired");
}

#[test]
fn by_the_paper_routers_on_the_way_pass_the_setup_on_until_the_last() {
    let setup =
        |holder| Setup { search: Search { boot: 1, sequence: 1 }, name: name_of(&KEY), holder };
    let mut bench = published();
    bench.hears(Call::Setup(setup(FAR)));
    assert_eq!(bench.said(), [(Some(BESIDE), Call::Setup(setup(FAR)))]);
    assert_eq!(bench.choose(ID), Answer::Found(BESIDE));
    // The last one before the holder, and the holder itself.
    bench.hears(Call::Setup(setup(NEAR)));
    assert_eq!((bench.said(), bench.choose(ID)), (Vec::new(), Answer::Found(NEAR)));
    let mut holder = published();
    holder.hears(Call::Setup(setup(OWN)));
    assert_eq!((holder.said(), holder.choose(ID)), (Vec::new(), Answer::Later));
    // Without the paper's scheme there is no such table.
    let mut ours = Bench::per_hop();
    ours.hears(Call::Setup(setup(NEAR)));
    assert_eq!((ours.said(), ours.choose(ID)), (Vec::new(), Answer::Later));
}
