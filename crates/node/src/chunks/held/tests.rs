use super::*;
use store::Policy;

/// The units under test, and their outputs.
struct Bench {
    chunks: Chunks,
    ids: Ids,
    out: VecDeque<Output>,
}

impl Bench {
    fn new() -> Self {
        let chunks = Chunks::new(Index::new(64 << 20, Policy::Lru), 1 << 20);
        Self { chunks, ids: Ids::default(), out: VecDeque::new() }
    }

    fn enter(&mut self, fetch: FetchId, (id, bytes): &(ChunkId, Bytes)) -> bool {
        let (ids, out) = (&mut self.ids, &mut self.out);
        self.chunks.enter(fetch, (*id, bytes), Provenance::Own, ids, out)
    }

    fn append(&mut self, fetch: FetchId, unit: &(ChunkId, Bytes)) -> Option<Ticket> {
        let (ids, out) = (&mut self.ids, &mut self.out);
        self.chunks.append(Some(fetch), false, vec![unit.clone()], ids, out);
        match self.out.pop_back()? {
            Output::Store(StoreOutput::Append(ticket, _)) => Some(ticket),
            other => panic!("{other:?}"),
        }
    }

    /// Writes units of at most 16 bytes next to each other; returns their names and lengths.
    fn store(&mut self, contents: [&'static [u8]; 3]) -> [(ChunkId, u32); 3] {
        for (content, number) in contents.into_iter().zip(1..) {
            let unit = (content::name(content), Bytes::from_static(content));
            assert!(self.enter(FetchId(1), &unit));
            let ticket = self.append(FetchId(1), &unit).expect("it is written");
            // With its header and padding, each takes 64 bytes.
            let place = Location { segment: SegmentId(1), offset: 64 * number };
            self.chunks.handle_appended(ticket, Some(vec![place]), &mut self.out);
        }
        contents.map(|content| (content::name(content), content.len() as u32))
    }

    /// Wants these units; returns the lengths of those that are read at once for it.
    fn want(&mut self, units: &[(ChunkId, u32)], bytes_max: u64) -> Vec<u32> {
        let (ids, out) = (&mut self.ids, &mut self.out);
        let units = units.iter().copied();
        assert!(self.chunks.want(units, true, bytes_max, ExchangeId(1), ids, out));
        match self.out.pop_back() {
            Some(Output::Store(StoreOutput::Read(_, _, lengths))) => lengths,
            None => Vec::new(),
            Some(other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_read_goes_on_up_to_its_bound_and_has_one_unit_at_least() {
    let read = |bytes_max| {
        let mut bench = Bench::new();
        let units = bench.store([b"six by", b"seven b", b"four"]);
        bench.want(&units, bytes_max)
    };
    assert_eq!(read(6 + 7 + 4), [6, 7, 4]);
    assert_eq!(read(6 + 7 + 3), [6, 7]);
    assert_eq!(read(6 + 7), [6, 7]);
    assert_eq!(read(6 + 6), [6]);
    assert_eq!(read(0), [6]);
}

#[test]
fn a_unit_that_is_being_read_is_not_read_twice() {
    let mut bench = Bench::new();
    let units = bench.store([b"six by", b"seven b", b"four"]);
    assert_eq!(bench.want(&units[1..], 99), [7, 4]);
    assert_eq!(bench.want(&units, 99), [6]);
    assert!(bench.want(&units[2..], 99).is_empty(), "it is awaited");
}

#[test]
fn units_missing_on_disk_are_noted_up_to_a_bound_and_then_forgotten() {
    let mut chunks = Bench::new().chunks;
    let name = |number: u32| content::name(&number.to_le_bytes());
    let nowhere = Location { segment: SegmentId(1), offset: 64 };
    (0..4096).for_each(|number| chunks.spoil(&name(number), nowhere));
    assert_eq!(chunks.absent.len(), 4096);
    chunks.spoil(&name(4096), nowhere);
    assert_eq!(chunks.absent, Set::from_iter([name(4096)]));
    assert_eq!(chunks.counts().bad, 4097);
}

#[test]
fn what_the_disk_shows_one_is_told_to_all_who_wait_for_it() {
    let mut bench = Bench::new();
    let bytes = Bytes::from_static(b"a unit");
    let unit = (content::name(&bytes), bytes);
    let [cached, first, second, third] = [1, 2, 3, 4].map(FetchId);
    [first, second, third].into_iter().for_each(|fetch| bench.chunks.keep_for(fetch));
    // `cached` has received the unit but not written it; `first` writes it meanwhile.
    assert!(bench.enter(cached, &unit) && bench.enter(first, &unit));
    let ticket = bench.append(first, &unit).expect("it is written");
    let place = Location { segment: SegmentId(1), offset: 64 };
    bench.chunks.handle_appended(ticket, Some(vec![place]), &mut bench.out);
    bench.out.clear();
    // `second` checks the unit on disk; `third` waits until `cached` has written it.
    assert!(!bench.enter(second, &unit));
    let Some(Output::Store(StoreOutput::Read(doubt, ..))) = bench.out.pop_back() else {
        panic!("it is looked for")
    };
    assert!(bench.append(cached, &unit).is_some());
    assert!(!bench.enter(third, &unit));
    let shown = [unit.clone()];
    let (ids, out) = (&mut bench.ids, &mut bench.out);
    let told = bench.chunks.handle_doubt(doubt, Some(&shown), ids, out);
    assert_eq!(told, Some(vec![second, third]));
    assert!(!bench.chunks.is_writing_for(third) && !bench.chunks.is_pinned(&unit.0));
}
