//! Simulates a power cut at every write of a history, and checks that what was confirmed is there,
//! and nothing that was forgotten.

use std::collections::BTreeMap;
use std::sync::Arc;

use store::{Files, History, HistoryOptions, HistoryState};

use crate::common::Random;
use crate::common::history::{EPOCH, Unit, entries, entry, held, open, options};
use crate::common::recorder::{Event, Recorder, cut};

/// What the history was told and has confirmed.
#[derive(Clone, Debug)]
enum Mark {
    /// These units are about to be appended at this position.
    Appending(u64, Vec<Unit>),
    /// A sync has returned this end.
    Synced(u64),
    /// A truncation to this end begins; it has returned.
    Truncating(u64),
    Truncated(u64),
    /// A reset begins; it has returned.
    Resetting([u8; 16], u64),
    Reset([u8; 16], u64),
    /// The call before has returned, with this first position.
    First(u64),
}

struct Workload {
    recorder: Arc<Recorder<Mark>>,
    options: HistoryOptions,
    history: History,
    random: Random,
}

impl Workload {
    fn new(options: HistoryOptions) -> Self {
        let recorder = Arc::new(Recorder::new());
        let (history, _) = open(recorder.clone(), options);
        recorder.mark(Mark::Reset(EPOCH, 0));
        Self { recorder, options, history, random: Random(3) }
    }

    fn append(&mut self) {
        let count = if self.random.below(3) == 0 { 1 + self.random.below(20) } else { 250 };
        let units = entries(&mut self.random, count, 30);
        let end = self.history.state().end;
        self.recorder.mark(Mark::Appending(end, units.clone()));
        self.history.append(end, &units).unwrap();
        self.recorder.mark(Mark::First(self.history.state().first));
    }

    fn sync(&mut self) {
        let end = self.history.sync().unwrap();
        self.recorder.mark(Mark::Synced(end));
    }

    fn truncate(&mut self, most: u64) {
        let HistoryState { first, end, .. } = self.history.state();
        let end = (end - self.random.below(most).min(end)).max(first);
        self.recorder.mark(Mark::Truncating(end));
        self.history.truncate(end).unwrap();
        self.recorder.mark(Mark::Truncated(end));
    }

    fn reset(&mut self) {
        let (epoch, first) = ([self.random.next() as u8; 16], self.random.below(4000));
        self.recorder.mark(Mark::Resetting(epoch, first));
        self.history.reset(epoch, first).unwrap();
        self.recorder.mark(Mark::Reset(epoch, first));
    }

    /// The process ends, with or without a sync, and starts again.
    fn restart(&mut self) {
        let state = self.history.state();
        let (history, _) = open(self.recorder.clone(), self.options);
        self.history = history;
        assert_eq!(self.history.state(), state);
        self.recorder.mark(Mark::Synced(state.end));
    }

    fn run(&mut self, steps: u64) {
        for step in 1..=steps {
            self.append();
            // At last several blocks are begun without a sync between them.
            if step % 3 == 0 && step % 36 < 18 {
                self.sync();
            }
            match step % 36 {
                7 | 16 => self.truncate(100),
                12 => self.truncate(1500),
                32 => self.truncate(5000),
                4 | 34 => self.restart(),
                35 => self.reset(),
                _ => {}
            }
        }
    }
}

/// The requirements at a cut.
struct Promise {
    epoch: [u8; 16],
    /// The units appended to the history of this epoch and not forgotten.
    units: BTreeMap<u64, Unit>,
    first: u64,
    durable_end: u64,
    /// A reset that has begun.
    next: Option<([u8; 16], u64)>,
    is_created: bool,
}

impl Promise {
    fn new() -> Self {
        let units = BTreeMap::new();
        Self { epoch: EPOCH, units, first: 0, durable_end: 0, next: None, is_created: false }
    }

    fn hear(&mut self, mark: &Mark) {
        match mark {
            Mark::Appending(first, units) => {
                self.units.extend((*first..).zip(units.iter().cloned()));
            }
            Mark::Synced(end) => self.durable_end = *end,
            Mark::Truncating(end) => self.durable_end = self.durable_end.min(*end),
            Mark::Truncated(end) => drop(self.units.split_off(end)),
            Mark::Resetting(epoch, first) => {
                self.durable_end = self.first;
                self.next = Some((*epoch, *first));
            }
            Mark::Reset(epoch, first) => {
                *self = Self { epoch: *epoch, first: *first, is_created: true, ..Self::new() };
                self.durable_end = *first;
            }
            Mark::First(first) => self.first = *first,
        }
    }

    /// `first`: the first position after the call that was interrupted.
    fn check(&self, files: Arc<dyn Files>, options: HistoryOptions, first: u64, context: &str) {
        let (mut history, reader, state) = History::open(files.clone(), options, [9; 16]).unwrap();
        let is_fresh = !self.is_created && state.epoch == [9; 16] && state.end == 0;
        let is_next = self.next == Some((state.epoch, state.first)) && state.first == state.end;
        if !is_fresh && !is_next {
            assert_eq!(state.epoch, self.epoch, "{context}: another history");
            let is_durable = state.end >= self.durable_end && state.first <= self.first.max(first);
            assert!(is_durable, "{context}: {state:?}, not {}", self.durable_end);
            let (first, found) = held(&reader);
            for (position, unit) in (first..).zip(found) {
                assert!(unit.is_some(), "{context}: {position} cannot be read");
                assert_eq!(unit.as_ref(), self.units.get(&position), "{context}: {position}");
            }
        }
        // The history can be used further.
        let more = [entry(1, 10), entry(2, 20)];
        history.append(state.end, &more).unwrap();
        assert_eq!(history.sync().unwrap(), state.end + 2);
        drop((history, reader));
        let (_, reader) = open(files, options);
        assert_eq!(reader.read(state.end, 2).unwrap().unwrap(), more, "{context}");
        assert_eq!(reader.state(), HistoryState { end: state.end + 2, ..reader.state() });
    }
}

/// Without optimisation each cut takes thirty times as long, so fewer are tested.
const OUTCOMES: u64 = if cfg!(debug_assertions) { 1 } else { 12 };
const STEPS: u64 = if cfg!(debug_assertions) { 40 } else { 150 };

fn cut_everywhere(options: HistoryOptions) {
    let mut workload = Workload::new(options);
    workload.run(STEPS);
    let trace = workload.recorder.trace();
    let mut promise = Promise::new();
    let mut cuts = 0;
    for at in 0..=trace.len() {
        if let Some(Event::Mark(mark)) = trace.get(at) {
            promise.hear(mark);
            continue;
        }
        let first = trace[at..].iter().find_map(|event| match event {
            Event::Mark(Mark::First(first)) => Some(*first),
            _ => None,
        });
        for outcome in 0..OUTCOMES {
            let seed = at as u64 * OUTCOMES + outcome;
            let memory = cut(&trace[..at], seed);
            let context = format!("cut at {at} of {}, seed {seed}", trace.len());
            promise.check(Arc::new(memory), options, first.unwrap_or(0), &context);
            cuts += 1;
        }
    }
    println!("{cuts} power cuts over {} calls", trace.len());
}

#[test]
fn what_was_confirmed_survives_a_power_cut_at_any_write() {
    cut_everywhere(options(1 << 40, false));
}

#[test]
fn it_does_so_while_blocks_are_removed_and_units_enciphered() {
    cut_everywhere(options(500_000, true));
}
