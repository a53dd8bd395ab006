//! A thread that runs before all ordinary ones, where the machine allows it.

use std::num::NonZeroU64;
use std::process::{Command, Stdio};

/// Above everything ordinary, below what the kernel runs at 50 and more.
const PRIORITY: &str = "10";

/// Makes the calling thread SCHED_FIFO, and says whether that worked. Where it did not, at least
/// its timers are exact.
pub fn claim() -> bool {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
    Command::new("chrt")
        .args(["--fifo", "--pid", PRIORITY, &thread])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
