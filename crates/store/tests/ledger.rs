//! The ledger: what is added is found again, by time and after a restart, whatever the clock and the disk do.

use std::path::Path;

use proptest::prelude::*;
use store::ledger::{
    Amount, FILE_BYTES_MAX, HOSTS_MAX, Ledger, Lost, OTHER, Period, SNAPSHOT_BYTES_MAX, Topic,
    entry, read,
};

/// 25 November 2026, 20:00.
const NOW: u64 = 1_795_636_800;
const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;
const YEAR: u64 = 365 * DAY;

fn of_class(name: &str, count: u64) -> Amount {
    Amount { topic: Topic::Class, name: name.to_owned(), column: 6, count }
}

fn of_host(name: &str, count: u64) -> Amount {
    Amount { topic: Topic::Host, name: name.to_owned(), column: 0, count }
}

fn sum(amounts: &[Amount]) -> u64 {
    amounts.iter().map(|it| it.count).sum()
}

#[test]
fn what_was_added_is_found_by_time() {
    let mut ledger = Ledger::default();
    ledger.add(Some(NOW - 40 * DAY), &[of_class("apt", 1)]);
    ledger.add(Some(NOW - 3 * DAY), &[of_class("apt", 10), of_class("npm", 100)]);
    ledger.add(Some(NOW), &[of_class("apt", 1000)]);
    ledger.add(None, &[of_class("npm", 10_000)]);
    for (seconds, period, count) in [
        (Some(1), Period::Hour, 1000),
        (Some(2 * DAY), Period::Hour, 1000),
        (Some(2 * DAY + 1), Period::Day, 1000),
        (Some(4 * DAY), Period::Day, 1110),
        (Some(30 * DAY), Period::Day, 1110),
        (Some(41 * DAY), Period::Day, 1111),
        (Some(YEAR), Period::Month, 1111),
        (None, Period::Month, 11_111),
    ] {
        let extract = ledger.extract(seconds, NOW);
        assert_eq!((extract.period, sum(&extract.total)), (period, count), "{seconds:?}");
        let parts: u64 = extract.parts.iter().map(|(_, amounts)| sum(amounts)).sum();
        assert_eq!(parts, count % 10_000, "{seconds:?}");
    }
    assert_eq!(ledger.begun(), NOW - 40 * DAY);
    assert_eq!(ledger.extract(Some(4 * DAY), NOW).from, NOW - 20 * HOUR - 3 * DAY);
    assert_eq!(ledger.of(Period::Day, Period::Day.number(NOW)), [of_class("apt", 1000)]);
}

#[test]
fn a_clock_that_is_a_year_off_destroys_nothing_and_blocks_nothing() {
    for jump in [YEAR as i64, -(YEAR as i64)] {
        let mut ledger = Ledger::default();
        (0..60).for_each(|day| ledger.add(Some(NOW + day * DAY), &[of_class("apt", 1)]));
        let then = NOW + 60 * DAY;
        // The clock is off for three days, and is set right.
        for hour in 0..72 {
            let wrong = then.saturating_add_signed(jump) + hour * HOUR;
            ledger.add(Some(wrong), &[of_class("apt", 100)]);
        }
        (0..50).for_each(|hour| ledger.add(Some(then + hour * HOUR), &[of_class("apt", 1)]));
        let now = then + 49 * HOUR;
        assert_eq!(sum(&ledger.extract(Some(2 * DAY), now).total), 48, "{jump}");
        assert_eq!(sum(&ledger.extract(Some(50 * DAY), now).total), 47 + 50, "{jump}");
        assert_eq!(sum(&ledger.ever()), 60 + 7200 + 50, "{jump}");
        for period in Period::ALL {
            let all = 0..=period.number(NOW + 3 * YEAR);
            let there = all.filter(|it| !ledger.of(period, *it).is_empty());
            assert!(there.count() <= period.kept());
        }
    }
}

#[test]
fn names_and_hosts_are_limited() {
    let mut ledger = Ledger::default();
    for number in 0..100 {
        ledger.add(Some(NOW), &[of_class(&format!("class-{number}"), 1)]);
    }
    ledger.add(Some(NOW), &[of_class("tab\there", 1), of_class("", 1)]);
    let ever = ledger.ever();
    assert_eq!((ever.len(), sum(&ever)), (65, 102));
    assert_eq!(ever.iter().find(|it| it.name == OTHER).map(|it| it.count), Some(38));
    let hosts = HOSTS_MAX as u64 + 5;
    (0..hosts).for_each(|number| {
        ledger.add(Some(NOW + number), &[of_host(&format!("h{number}"), number + 1)]);
    });
    ledger.add(Some(NOW + 9000), &[of_host("h5", 1)]);
    let kept = ledger.hosts();
    assert_eq!(kept.len(), HOSTS_MAX);
    assert_eq!(kept[0].name, format!("h{}", hosts - 1));
    let is_there = |name: &str| kept.iter().any(|it| it.name == name);
    assert!(is_there("h5") && !is_there("h4"), "the one used longest ago goes");
    assert!(ledger.forget_hosts() && ledger.hosts().is_empty() && !ledger.forget_hosts());
}

#[test]
fn a_file_never_grows_beyond_its_budget() {
    let mut ledger = Ledger::default();
    let busy = |seed: u64| -> Vec<Amount> {
        let classes = (0..64).map(|number| format!("a-class-with-a-long-name-{number}"));
        let all = classes.flat_map(|name| (0..17).map(move |column| (name.clone(), column)));
        let count = |at: usize| u64::MAX / 1000 - seed - at as u64;
        all.enumerate()
            .map(|(at, (name, column))| Amount {
                topic: Topic::Class,
                name,
                column,
                count: count(at),
            })
            .collect()
    };
    for hour in 0..60 {
        ledger.add(Some(NOW + hour * 20 * HOUR), &busy(hour));
    }
    let (before, day) = (ledger.ever(), Period::Day.number(NOW + 59 * 20 * HOUR));
    let file = ledger.snapshot();
    assert!(file.len() <= SNAPSHOT_BYTES_MAX + 100, "{}", file.len());
    let read = read(&file);
    assert_eq!((read.lost, read.bytes), (Lost::Nothing, file.len()));
    assert_eq!(read.ledger, ledger);
    assert_eq!(ledger.ever(), before, "the sums of all are whole");
    assert!(!ledger.of(Period::Day, day).is_empty(), "the newest is there");
}

/// A date near now, or far from it.
fn date() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![
        4 => (NOW..NOW + 90 * DAY).prop_map(Some),
        1 => any::<u64>().prop_map(Some),
        1 => Just(None),
    ]
}

fn amount() -> impl Strategy<Value = Amount> {
    let topic = (0..Topic::ALL.len()).prop_map(|at| Topic::ALL[at]);
    let count = prop_oneof![0u64..1 << 40, any::<u64>()];
    (topic, "[a-z]{1,3}", 0u8..40, count).prop_map(|(topic, name, column, count)| Amount {
        topic,
        name,
        column,
        count,
    })
}

fn additions() -> impl Strategy<Value = Vec<(Option<u64>, Vec<Amount>)>> {
    prop::collection::vec((date(), prop::collection::vec(amount(), 0..10)), 0..80)
}

proptest! {
    #[test]
    fn a_file_reads_back_as_far_as_it_was_written(additions in additions(), cut in 0usize..4000) {
        let mut ledger = Ledger::default();
        let mut file = ledger.snapshot();
        let (mut states, mut ends) = (vec![ledger.clone()], vec![file.len()]);
        for (date, amounts) in &additions {
            ledger.add(*date, amounts);
            file.extend(entry(*date, amounts));
            states.push(ledger.clone());
            ends.push(file.len());
        }
        prop_assert_eq!(&read(&file).ledger, &ledger);
        // The power fails: the end is missing, or has bytes that no frame ends with.
        let cut = cut.min(file.len());
        let whole = ends.iter().filter(|end| **end <= cut).count();
        for tail in [&[][..], &[0xff; 40]] {
            let got = read(&[&file[..cut], tail].concat());
            match whole.checked_sub(1) {
                Some(last) => {
                    prop_assert_eq!(&got.ledger, &states[last]);
                    prop_assert_eq!(got.bytes, ends[last]);
                }
                None if cut + tail.len() > 0 => prop_assert_eq!(got.lost, Lost::All),
                None => prop_assert_eq!(got.lost, Lost::Nothing),
            }
        }
        let compact = ledger.snapshot();
        prop_assert_eq!(read(&compact).ledger, ledger);
    }

    #[test]
    fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..300), with_head: bool) {
        if with_head {
            let file = Ledger::default().snapshot();
            bytes.splice(..0, file);
        }
        let mut ledger = read(&bytes).ledger;
        let file = ledger.snapshot();
        prop_assert!(file.len() <= FILE_BYTES_MAX);
        prop_assert_eq!(read(&file).ledger, ledger);
    }

    #[test]
    fn no_change_of_one_byte_passes_for_another_snapshot(at in 0usize..1000, flip in 1u8..) {
        let mut ledger = Ledger::default();
        ledger.add(Some(NOW), &[of_class("apt", 5), of_host("a.test", 7)]);
        let mut file = ledger.snapshot();
        let at = at % file.len();
        file[at] ^= flip;
        prop_assert_eq!(read(&file).lost, Lost::All);
    }
}

#[test]
fn the_corpus_is_read_or_refused() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/ledger");
    let (mut whole, mut damaged) = (0, 0);
    for file in std::fs::read_dir(corpus).expect("the corpus is part of the repository") {
        let path = file.expect("a directory entry").path();
        let reading = read(&std::fs::read(&path).expect("a corpus file"));
        *(if reading.lost == Lost::Nothing { &mut whole } else { &mut damaged }) += 1;
        let mut ledger = reading.ledger;
        assert_eq!(read(&ledger.snapshot()).ledger, ledger, "{}", path.display());
    }
    assert!(whole > 0 && damaged > 0, "the corpus has both kinds");
}
