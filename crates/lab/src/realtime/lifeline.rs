//! The lifeline's end inside the namespaces: when the launcher closes it or dies, the run ends.

use std::io::Read as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use crate::failure::INTERRUPTED;

/// Whether a thread waits for the lifeline to be cut. If none does, the watcher ends the process.
static AWAITED: AtomicBool = AtomicBool::new(false);

/// Watches standard input.
pub struct Lifeline(Receiver<()>);

impl Lifeline {
    /// Begins to watch. When the line is cut, this process ends. It is the namespaces' first process, so the
    /// kernel ends all others.
    pub fn watch() -> Self {
        let (cut, is_cut) = channel();
        std::thread::spawn(move || {
            let mut stdin = std::io::stdin().lock();
            while stdin.read(&mut [0; 64]).is_ok_and(|length| length > 0) {}
            if !AWAITED.load(Ordering::SeqCst) {
                std::process::exit(i32::from(INTERRUPTED));
            }
            let _ = cut.send(());
        });
        Self(is_cut)
    }

    /// Waits until the line is cut.
    pub fn wait(self) {
        AWAITED.store(true, Ordering::SeqCst);
        let _ = self.0.recv();
    }
}
