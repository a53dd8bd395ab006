//! The progress of a run: a bar on a terminal, else a line for each step.

use std::io::IsTerminal as _;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

use crate::console;

/// Shows progress on standard error.
#[derive(Debug)]
pub struct Progress {
    quiet: bool,
}

/// A step with a known number of parts.
#[derive(Debug)]
pub struct Step {
    what: &'static str,
    began: Instant,
    bar: ProgressBar,
    quiet: bool,
}

impl Progress {
    /// Shows nothing if `quiet`.
    pub fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    fn target(&self) -> ProgressDrawTarget {
        let draws = !self.quiet && std::io::stderr().is_terminal();
        if draws { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
    }

    /// A bar for reading a file of `length` bytes, if the length is known. The bar vanishes when it is
    /// dropped.
    pub fn bytes(&self, what: String, length: Option<u64>) -> ProgressBar {
        let template = match length {
            Some(_) => "{prefix} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}",
            None => "{prefix} {spinner} {bytes} {bytes_per_sec}",
        };
        let style = ProgressStyle::with_template(template).expect("the template is valid");
        ProgressBar::with_draw_target(length, self.target())
            .with_style(style.progress_chars("━╸─"))
            .with_prefix(what)
            .with_finish(ProgressFinish::AndClear)
    }

    /// Begins a step with `parts` parts.
    pub fn step(&self, what: &'static str, parts: usize) -> Step {
        let target = self.target();
        let style = ProgressStyle::with_template("{prefix:<12} {bar:30} {pos}/{len} {msg}")
            .expect("the template is valid");
        let bar = ProgressBar::with_draw_target(Some(parts as u64), target)
            .with_style(style.progress_chars("━╸─"))
            .with_prefix(what);
        bar.tick();
        Step { what, began: Instant::now(), bar, quiet: self.quiet }
    }
}

impl Step {
    /// One part is done.
    pub fn tick(&self) {
        self.bar.inc(1);
    }

    /// One part is done; `text` is shown beside the bar.
    pub fn tick_with(&self, text: String) {
        self.bar.set_message(text);
        self.bar.inc(1);
    }

    /// All parts are done.
    pub fn done(self) {
        self.bar.finish_and_clear();
        if !self.quiet {
            let seconds = self.began.elapsed().as_secs_f64();
            let parts = self.bar.length().unwrap_or(0);
            console::err(&format!("{:<12} {parts:>4} in {seconds:.1} s", self.what));
        }
    }
}
