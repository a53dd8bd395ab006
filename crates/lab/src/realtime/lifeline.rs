//! The end of the lifeline inside the namespaces: when the outside closes it or is no more, the
//! run is over.

use std::io::Read as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use crate::failure::INTERRUPTED;

/// Whether somebody waits for the end of the line. If not, it ends the process.
static AWAITED: AtomicBool = AtomicBool::new(false);

/// Watches standard input.
pub struct Lifeline(Receiver<()>);

impl Lifeline {
    /// Begins to watch: if the line ends, so does this process, which is the namespaces' first and
    /// takes all the others with it.
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

    /// Waits for the end of the line.
    pub fn wait(self) {
        AWAITED.store(true, Ordering::SeqCst);
        let _ = self.0.recv();
    }
}
