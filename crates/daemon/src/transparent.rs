//! The transparent port and the rules that lead to it, while the daemon runs.
//!
//! The rules outlive their use by a little: an intercepted connection that is open reaches us by them
//! alone, so they go only when the daemon does.

use crate::clients::{self, ListenerKind};
use crate::config::{Config, Intercept};
use crate::driver::Driver;
use crate::observe::Observer;
use host::egress::Egress;
use host::intercept::{Rules, is_interface_name, missing_interfaces};
use std::net::SocketAddr;
use std::rc::Rc;
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, spawn_local};

/// Who takes in intercepted clients, and how they come here.
pub struct Transparent {
    driver: Driver,
    observer: Rc<Observer>,
    egress: Egress,
    state: State,
}

enum State {
    /// No rule of ours is there.
    Off,
    /// New connections come here.
    On { rules: Rules, accepting: AbortHandle },
    /// New connections go straight; those that are open still come here.
    Released(Rules),
}

/// Opens the transparent port.
pub fn open(intercept: &Intercept) -> std::io::Result<TcpListener> {
    host::listen::transparent(intercept.port)
}

/// Rules for the interfaces that lead out now. The kernel takes names that a ruleset cannot say.
pub fn in_step(rules: Rules, out: Vec<String>) -> Rules {
    let out = out.into_iter().filter(|name| is_interface_name(name)).collect();
    Rules { out, ..rules }
}

/// Where the transparent port is, for errors.
pub fn address(intercept: &Intercept) -> SocketAddr {
    SocketAddr::from(([0; 16], intercept.port))
}

impl Transparent {
    /// Nothing is intercepted yet.
    pub fn new(driver: Driver, observer: Rc<Observer>, egress: Egress) -> Self {
        Self { driver, observer, egress, state: State::Off }
    }

    /// Brings clients here, by a port that is open already. Without the rules it is closed: nothing
    /// would keep others from coming in by it.
    pub fn begin(&mut self, config: &Config, listener: TcpListener) {
        if let Some(rules) = self.rules(config)
            && self.apply(&rules)
        {
            let accept = clients::accept(self.driver.clone(), listener, ListenerKind::Transparent);
            self.state = State::On { rules, accepting: spawn_local(accept).abort_handle() };
        }
    }

    /// Puts the rules in force that the configuration and the routes make now; the port stays what it was.
    pub fn change(&mut self, config: &Config) {
        let intercept = &config.intercept;
        match (self.rules(config), &mut self.state) {
            (Some(wanted), State::On { .. }) => {
                if self.apply(&wanted)
                    && let State::On { rules, .. } = &mut self.state
                {
                    *rules = wanted;
                }
            }
            (Some(_), State::Off | State::Released(_)) => match open(intercept) {
                Ok(listener) => self.begin(config, listener),
                Err(error) => self.fail(&format!("cannot listen on {}: {error}", intercept.port)),
            },
            (None, State::On { .. }) => self.release(),
            (None, State::Off | State::Released(_)) => {}
        }
    }

    /// New connections go straight from here on.
    pub fn stop_accepting(&self) {
        if let State::On { accepting, .. } = &self.state {
            accepting.abort();
        }
    }

    /// Takes the rules away.
    pub fn end(self) {
        if let State::On { rules, .. } | State::Released(rules) = self.state
            && let Err(error) = rules.remove()
        {
            tracing::warn!(%error, "cannot remove the interception rules: run `hearsay intercept remove`");
        }
    }

    fn rules(&self, config: &Config) -> Option<Rules> {
        Some(in_step(config.intercept.rules(&config.mesh.direct)?, self.egress.interfaces()))
    }

    fn apply(&mut self, rules: &Rules) -> bool {
        match rules.apply() {
            Ok(applied) => {
                applied.notes.iter().for_each(|note| tracing::warn!("interception: {note}"));
                for name in missing_interfaces(&rules.interfaces) {
                    tracing::warn!(
                        "there is no interface {name}: its clients are intercepted once it is there \
                         (see `ip link`)"
                    );
                }
                self.observer.intercepts(true, applied.notes.first().cloned());
                true
            }
            Err(error) => {
                self.fail(&error.to_string());
                false
            }
        }
    }

    /// What was in force before still is.
    fn fail(&self, error: &str) {
        let works = matches!(self.state, State::On { .. });
        let effect = if works {
            "the interception rules stay as they were"
        } else {
            "nothing is intercepted: traffic goes on without us"
        };
        tracing::warn!(%error, "{effect}");
        self.observer.intercepts(works, Some(error.to_owned()));
    }

    /// Nothing new is intercepted; the port closes when no rule leads to it any more.
    fn release(&mut self) {
        let State::On { rules, accepting } = std::mem::replace(&mut self.state, State::Off) else {
            return;
        };
        if let Err(error) = rules.release() {
            // Without a listener they have no effect on new connections either.
            tracing::warn!(%error, "the interception rules stay until the end");
        }
        accepting.abort();
        self.observer.intercepts(false, None);
        self.state = State::Released(rules);
    }
}
