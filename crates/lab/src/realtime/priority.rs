//! A thread that runs before all ordinary ones, on processors that do not sleep, where the machine allows it.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
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

/// Keeps processors awake for as long as what this returns is there: a virtual one that sleeps may take
/// milliseconds to wake. `None` where that is not allowed, as for ordinary users. (Documentation of the
/// kernel, PM Quality of Service: a latency in microseconds, as 32 bits.)
pub fn stay_awake() -> Option<File> {
    let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency").ok()?;
    file.write_all(&0_i32.to_ne_bytes()).ok()?;
    Some(file)
}
