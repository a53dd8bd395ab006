//! Real-time priority for a thread, and processors that do not sleep, if the machine allows it.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::num::NonZeroU64;
use std::process::{Command, Stdio};

/// Above all ordinary threads, below the kernel's own at 50 and more.
const PRIORITY: &str = "10";

/// Gives the calling thread the policy SCHED_FIFO, and returns whether that worked. Its timers become exact
/// in any case.
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

/// Keeps processors awake as long as the returned file is open: a virtual processor may take milliseconds to
/// wake. `None` if it is not allowed, as for ordinary users. (Kernel documentation, PM Quality of Service: a
/// latency in microseconds, as 32 bits.)
pub fn stay_awake() -> Option<File> {
    let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency").ok()?;
    file.write_all(&0_i32.to_ne_bytes()).ok()?;
    Some(file)
}
