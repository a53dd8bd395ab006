//! Keeps the rules that bring clients here in step with the routes.

use crate::config::Config;
use crate::observe::Observer;
use host::egress::Egress;
use host::intercept::{Rules, is_interface_name};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::{spawn_blocking, spawn_local};

/// The rules in force; `None` once they are removed. Commands that change them are run on other threads.
#[derive(Clone)]
pub struct Interception(Arc<Mutex<Option<Rules>>>);

impl Interception {
    /// Brings clients here, where that was asked for and is possible, and follows the routes from then on.
    pub fn begin(config: &Config, egress: &Egress, observer: &Rc<Observer>) -> Option<Self> {
        let rules = in_step(config.intercept.rules(&config.mesh.direct)?, egress);
        match rules.apply() {
            Ok(applied) => {
                applied.notes.iter().for_each(|note| tracing::warn!("interception: {note}"));
                observer.intercepts(true, applied.notes.first().cloned());
                let it = Self(Arc::new(Mutex::new(Some(rules))));
                spawn_local(it.clone().follow(egress.clone(), Rc::clone(observer)));
                Some(it)
            }
            Err(error) => {
                tracing::warn!(%error, "nothing is intercepted: traffic goes on without us");
                observer.intercepts(false, Some(error.to_string()));
                None
            }
        }
    }

    /// Applies the rules anew whenever other interfaces lead out; never returns.
    async fn follow(self, mut egress: Egress, observer: Rc<Observer>) {
        loop {
            egress.changed().await;
            let (it, now) = (self.clone(), egress.clone());
            let applied = spawn_blocking({
                let out = now.interfaces();
                move || it.lead_out(out)
            });
            match applied.await {
                Ok(Ok(note)) => observer.intercepts(true, note),
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the interception rules do not follow the routes");
                    observer.intercepts(false, Some(error));
                }
                Err(error) => tracing::warn!(%error, "the interception rules were not changed"),
            }
        }
    }

    fn lead_out(&self, out: Vec<String>) -> Result<Option<String>, String> {
        let mut rules = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(rules) = rules.as_mut() else { return Ok(None) };
        rules.out = sayable(out);
        tracing::info!(out = ?rules.out, "intercepted is what leads out by these interfaces");
        let applied = rules.apply().map_err(|error| error.to_string())?;
        Ok(applied.notes.first().cloned())
    }

    /// Takes the rules away.
    pub fn end(&self) {
        let rules = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Err(error)) = rules.map(|rules| rules.remove()) {
            tracing::warn!(%error, "cannot remove the interception rules: run `hearsay intercept remove`");
        }
    }
}

/// Rules for the interfaces that lead out now.
pub fn in_step(rules: Rules, egress: &Egress) -> Rules {
    Rules { out: sayable(egress.interfaces()), ..rules }
}

/// The kernel takes names that a ruleset cannot say.
fn sayable(names: Vec<String>) -> Vec<String> {
    names.into_iter().filter(|name| is_interface_name(name)).collect()
}
