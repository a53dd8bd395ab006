//! What whole runs came to, beside what is written down of them: a change that is to leave the engine's
//! behaviour as it is leaves these as they are.

use super::{figures, summary};
use node::{Output, Report};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use wire::Instant;

/// Digests all that nodes asked for, and when.
#[derive(Default)]
pub struct Trace(blake3::Hasher);

impl Trace {
    /// A node asks for something.
    pub fn note(&mut self, now: Instant, node: usize, output: &Output) {
        self.0.update(format!("{} {node} {}\n", now.as_nanos(), summary(output)).as_bytes());
    }

    /// What all of it came to.
    pub fn finish(&self) -> blake3::Hash {
        self.0.finalize()
    }

    /// The same, with what nodes have counted.
    pub fn finish_with(&self, reports: impl IntoIterator<Item = Report>) -> blake3::Hash {
        let mut all = self.0.clone();
        reports.into_iter().for_each(|it| _ = all.update(figures(&it).as_bytes()));
        all.finalize()
    }
}

/// Where `TRACES_TO` names a file, every world of every test is written there at its end.
impl Drop for Trace {
    fn drop(&mut self) {
        if let Some(path) = std::env::var_os("TRACES_TO") {
            let thread = std::thread::current();
            let test = thread.name().unwrap_or("nameless");
            write_to(Path::new(&path), &format!("{test} {}\n", self.finish()));
        }
    }
}

/// The file of lines that `scripts/digests` prints.
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts/digests.txt");

/// Holds the digests of runs, from seed 0 on, against what is kept of them. Where `DIGESTS_TO` names a
/// file they are written there instead.
pub fn judge(name: &str, runs: &[blake3::Hash]) {
    let lines = || runs.iter().enumerate().map(|(seed, run)| format!("{name}/{seed} {run}\n"));
    if let Some(path) = std::env::var_os("DIGESTS_TO") {
        return write_to(Path::new(&path), &lines().collect::<String>());
    }
    let kept = fs::read_to_string(Path::new(KEPT)).expect("digests are kept");
    let other: Vec<_> =
        lines().filter(|line| !kept.split_inclusive('\n').any(|it| it == line)).collect();
    assert!(
        other.is_empty(),
        "{} of {} runs differ from scripts/digests.txt. If the engine is meant to behave differently, \
         say so with `scripts/digests > scripts/digests.txt`:\n{}",
        other.len(),
        runs.len(),
        other.concat()
    );
}

fn write_to(path: &Path, lines: &str) {
    let mut file = OpenOptions::new().append(true).create(true).open(path).expect("it is writable");
    file.write_all(lines.as_bytes()).expect("it is writable");
}
