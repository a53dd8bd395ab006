//! SIGHUP: a far end's settings are read again while it runs.
//!
//! *What it never does:* end the connection of a gateway that stays, or apply any part of a file that has an error.

use super::observe::{MetricsPort, Observer};
use crate::changes::{self, Key, fixed, live};
use crate::config::{FarGiven, FarSettings};
use crate::log::Log;
use crate::service::ServiceManager;
use std::rc::Rc;
use tokio::signal::unix::Signal;

/// All settings.
const KEYS: [Key<FarSettings>; 10] = [
    fixed!("listen", listen),
    live!("gateways", gateways),
    live!("memory", memory),
    fixed!("ca", ca),
    fixed!("control", control),
    fixed!("[store] path", place),
    fixed!("[store] size", store_bytes),
    live!("[access] private", private),
    live!("[metrics] listen", metrics),
    live!("[log] level", log),
];

/// Reads the settings again at each SIGHUP.
pub struct Reload {
    /// The sources of the settings; the command line still overrides the file.
    pub given: FarGiven,
    /// The current settings.
    pub held: FarSettings,
    pub observer: Rc<Observer>,
    pub metrics: MetricsPort,
    pub log: Log,
    /// Told before and after each reload.
    pub manager: Rc<ServiceManager>,
}

impl Reload {
    /// Reloads at SIGHUP; never returns.
    pub async fn heed(&mut self, mut hangup: Signal) {
        while hangup.recv().await.is_some() {
            self.manager.reloading();
            self.read_again().await;
            self.manager.ready();
        }
        std::future::pending().await
    }

    async fn read_again(&mut self) {
        match self.given.load() {
            Ok(new) => {
                let changes = changes::take_over(&KEYS, &mut self.held, &new);
                self.log.set(self.held.log);
                self.metrics.change(&mut self.held, &self.observer).await;
                self.observer.held.borrow_mut().clone_from(&self.held);
                self.observer.gateways.admit(&self.held).await;
                changes.say();
            }
            Err(error) => changes::refuse(&error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::tests::every_key_is_known;
    use crate::config::FAR_KEYS;

    #[test]
    fn every_key_of_the_file_is_known() {
        every_key_is_known(&KEYS, &FAR_KEYS, |key| key);
    }
}
