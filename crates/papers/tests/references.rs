//! Every case of `hearsay-lab validate --quick`: ns-3's chains, losses, cells and pairs, under ns-3's rules
//! of the medium and under those of the papers' experiments; and closed forms. Run with `--nocapture` to see
//! the figures; `hearsay-lab validate` runs them in full.

use std::thread;

use papers::validate::{self, Case, Checked, Effort, Verdict};

const SEEDS: [u64; 2] = [1, 2];

/// The figures of a case over the seeds.
fn check(case: &Case) -> Vec<Checked> {
    let runs = SEEDS.map(|seed| case.run(seed).expect("the case can be run").values);
    let figures = case.figures.iter().enumerate();
    figures.map(|(at, it)| Checked::of(it, runs.iter().map(|run| run[at]))).collect()
}

/// The figures that are too far off, of every `of`-th case from `first` on.
fn failed(cases: &[Case], first: usize, of: usize) -> Vec<String> {
    let mut failed = Vec::new();
    for case in cases.iter().skip(first).step_by(of) {
        for checked in check(case).iter().filter(|it| it.verdict() != Verdict::Uncompared) {
            let (figure, ours, word) =
                (&checked.figure, checked.ours.mean, checked.verdict().word());
            let text = format!("{}, {}: {} {ours:.4}", case.group.name, case.name, figure.name);
            println!("{text}, ratio {:.3?}, {word}", checked.ratio());
            failed.extend((checked.verdict() == Verdict::Failed).then_some(text));
        }
    }
    failed
}

/// The figures of all cases that are too far off, computed on two cores.
fn all_failed(settings: &[(String, String)]) -> Vec<String> {
    let cases = validate::cases(Effort::Quick, settings).expect("all cases can be run");
    assert!(cases.len() > 50);
    let (here, there) = thread::scope(|scope| {
        let other = scope.spawn(|| failed(&cases, 1, 2));
        (failed(&cases, 0, 2), other.join().expect("the other half ends"))
    });
    [here, there].concat()
}

/// This includes the fresh cases under the papers' rules.
#[test]
fn every_case_is_near_enough() {
    assert_eq!(all_failed(&[]), [""; 0]);
}

#[test]
fn ns3s_chains_losses_and_cells_are_near_enough_by_the_rules_of_the_papers_experiments() {
    let rules = [("reception", "capture"), ("dcf", "standard")];
    let rules = rules.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(all_failed(&rules), [""; 0]);
}
