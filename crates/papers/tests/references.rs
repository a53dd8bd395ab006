//! Every case of `hearsay-lab validate --quick`: ns-3's chains, cells and pairs, and closed
//! forms. Run with `--nocapture` to see the figures; `hearsay-lab validate` has them in full.

use std::thread;

use papers::validate::{self, Case, Checked, Effort, Verdict};

const SEEDS: [u64; 2] = [1, 2];

/// A case's figures over the seeds.
fn check(case: &Case) -> Vec<Checked> {
    let runs = SEEDS.map(|seed| case.run(seed).expect("the case can be run").values);
    let figures = case.figures.iter().enumerate();
    figures.map(|(at, it)| Checked::of(it, runs.iter().map(|run| run[at]))).collect()
}

/// Those that are too far off, of every `of`-th case.
fn failed(cases: &[Case], first: usize, of: usize) -> Vec<String> {
    let mut failed = Vec::new();
    for case in cases.iter().skip(first).step_by(of) {
        for checked in check(case).iter().filter(|it| it.verdict() != Verdict::Told) {
            let (figure, ours, word) =
                (&checked.figure, checked.ours.mean, checked.verdict().word());
            let text = format!("{}, {}: {} {ours:.4}", case.group.name, case.name, figure.name);
            println!("{text}, ratio {:.3?}, {word}", checked.ratio());
            failed.extend((checked.verdict() == Verdict::Failed).then_some(text));
        }
    }
    failed
}

#[test]
fn every_case_is_near_enough() {
    let cases = validate::cases(Effort::Quick, &[]).expect("all cases can be run");
    assert!(cases.len() > 50);
    let (here, there) = thread::scope(|scope| {
        let other = scope.spawn(|| failed(&cases, 1, 2));
        (failed(&cases, 0, 2), other.join().expect("the other half ends"))
    });
    assert_eq!([here, there].concat(), [""; 0]);
}
