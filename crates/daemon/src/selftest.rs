//! The daemon's own checks: soon after the start, and every hour.
//!
//! *What this is:* those checks of `hearsay doctor` that need no namespace and no other machine but the resolver
//! ([`doctor::own`]). The status and the metric `hearsay_selftest_success` show what they found. *What it never
//! does:* wait on the loop's thread.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use crate::control::Observed as _;
use crate::doctor::{self, Kernel, View};
use crate::observe::Observer;
use crate::status::{Check, Finding, Verdict};

/// From the start to the first round: routes and interfaces have settled by then.
const FIRST_AFTER: Duration = Duration::from_secs(5);
/// Between rounds.
const EVERY: Duration = Duration::from_secs(3600);

/// Looks at intervals; never returns. What breaks or mends is logged.
pub async fn run(observer: Rc<Observer>) {
    let mut wait = FIRST_AFTER;
    let mut before = BTreeMap::new();
    loop {
        tokio::time::sleep(wait).await;
        wait = EVERY;
        let view = view(&observer);
        let Ok(found) = tokio::task::spawn_blocking(move || doctor::own(&view, &None)).await else {
            continue;
        };
        say_changes(&found, &mut before);
        if found.iter().any(|it| it.check == Check::Rules && it.verdict == Verdict::Broken) {
            observer.misses_rules();
        }
        observer.tested(found);
    }
}

/// What is known before the checks look.
fn view(observer: &Observer) -> View {
    let (config, status) = (observer.config(), observer.status());
    let out = status.intercept.out.clone();
    let (peers, process) = (observer.peers(), Some(std::process::id()));
    let kernel = Kernel::Helper(observer.helper());
    View { config, status: Some(status), peers, process, out, kernel }
}

fn say_changes(found: &[Finding], before: &mut BTreeMap<&'static str, Verdict>) {
    for it in found {
        let was = before.insert(it.check.name(), it.verdict);
        match (it.verdict, was) {
            (Verdict::Broken, Some(Verdict::Broken)) => {}
            (Verdict::Broken, _) => tracing::warn!("self-test: {it}"),
            (Verdict::Fine, Some(Verdict::Broken)) => tracing::info!("self-test: well again: {it}"),
            _ => {}
        }
    }
}
