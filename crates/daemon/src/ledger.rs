//! The ledger: every byte by class, source and reason, as the daemon's parts exchange it.
//!
//! *What this is:* `counts.rs` translates the daemon's figures into amounts of `store::ledger`, and back; `file.rs` is
//! the file beside the store; `page.rs` is what the control socket answers. *Who calls it:* `keeper.rs`, which keeps the
//! ledger of the running daemon; `show_ledger.rs`, which prints it; the status. *What it never does:* ask a daemon.

mod counts;
mod file;
mod page;

use std::time::SystemTime;

pub use counts::{Counted, Figures, Now, total};
pub use file::{LedgerFile, NAME, damaged, load};
pub use page::{Damaged, LedgerPage, Saved, Summary};

/// Seconds since 1970, as the machine's clock says.
pub fn unix_now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}
