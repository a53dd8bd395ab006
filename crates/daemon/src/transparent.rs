//! The transparent listener and the firewall rules that redirect connections to it. The rules are
//! removed only when the daemon ends, even if interception is turned off earlier. Without them the
//! packets of open intercepted connections would not reach the daemon.

use crate::clients::{self, ListenerKind};
use crate::config::{Config, Intercept};
use crate::driver::Driver;
use crate::observe::Observer;
use host::egress::Egress;
use host::helper::{Helper, HelperError};
use host::intercept::{Bridged, Moment, Rules, is_interface_name, missing_interfaces};
use std::net::SocketAddr;
use std::rc::Rc;
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, spawn_local};

/// The state of interception.
pub struct Transparent {
    driver: Driver,
    observer: Rc<Observer>,
    egress: Egress,
    state: State,
    /// Which bridges filtered when rules were set last.
    bridged: Bridged,
    /// All rules were removed, by hand.
    is_removed: bool,
    /// Rules may be set, even if the answer was not waited for.
    may_have_rules: bool,
    /// The helper did not answer the last request in time, and may do later what it was asked.
    is_late: bool,
}

enum State {
    /// None of the daemon's rules is set.
    Off,
    /// New connections are intercepted, by these rules; `None` if it is not known by which.
    On { accepting: AbortHandle, rules: Option<Rules> },
    /// New connections bypass the daemon; open ones are still intercepted.
    Released,
}

/// Opens the transparent port at the start. It waits: a thread that did so would keep rights that this one is to give up.
pub fn open(intercept: &Intercept, helper: &Helper) -> std::io::Result<TcpListener> {
    opened(intercept, helper.transparent())
}

fn opened(
    intercept: &Intercept,
    passed: Result<std::net::TcpListener, HelperError>,
) -> std::io::Result<TcpListener> {
    match passed {
        Ok(listener) => TcpListener::from_std(listener),
        // Without a helper there are no rights to open it here either, and that error says which.
        Err(HelperError::None(_)) => host::listen::transparent(intercept.port),
        Err(HelperError::Kernel(error)) => Err(error),
        Err(error) => Err(std::io::Error::other(error)),
    }
}

/// The names that can stand in an nftables ruleset: the kernel allows more names.
pub fn nameable(names: Vec<String>) -> Vec<String> {
    names.into_iter().filter(|name| is_interface_name(name)).collect()
}

/// The address of the transparent listener, for error messages.
pub fn address(intercept: &Intercept) -> SocketAddr {
    SocketAddr::from(([0; 16], intercept.port))
}

impl Transparent {
    /// Nothing is intercepted yet.
    pub fn new(driver: Driver, observer: Rc<Observer>, egress: Egress) -> Self {
        Self {
            driver,
            observer,
            egress,
            state: State::Off,
            bridged: Bridged::default(),
            is_removed: false,
            may_have_rules: false,
            is_late: false,
        }
    }

    /// Applies the rules and accepts clients on `listener`. If the rules cannot be applied, the
    /// listener is closed: without them any machine could connect to it.
    pub async fn begin(&mut self, config: &Config, listener: TcpListener) {
        if let Some(rules) = self.rules(config)
            && self.apply(&rules).await
        {
            let accept = clients::accept(self.driver.clone(), listener, ListenerKind::Transparent);
            self.state =
                State::On { accepting: spawn_local(accept).abort_handle(), rules: Some(rules) };
        }
    }

    /// As [`change`](Self::change), if the rules are to be others than those in force: to apply rules takes a while, and
    /// their counters begin anew.
    pub async fn follow(&mut self, config: &Config) {
        let wanted = self.rules(config);
        if !matches!(&self.state, State::On { rules, .. } if rules.is_some() && *rules == wanted) {
            self.change(config).await;
        }
    }

    /// As [`change`](Self::change), if something else of the kernel has changed than what it tells of by itself.
    pub async fn look(&mut self, config: &Config) {
        let State::On { rules: Some(rules), .. } = &self.state else { return };
        if rules.bridged() != self.bridged {
            tracing::info!("br_netfilter is on or off now: the interception rules are set anew");
            self.change(config).await;
        } else if rules.delivers_marked() {
            self.is_removed = false;
        } else {
            self.mend(config).await;
        }
    }

    /// Sets the rules again if another program has removed a part of them: a firewall that flushes all tables, a manager
    /// of networks that removes routing rules of others. If all are gone, `hearsay intercept remove` was run: they stay so.
    pub async fn mend(&mut self, config: &Config) {
        let State::On { rules: Some(rules), .. } = &self.state else { return };
        if self.is_removed {
            return;
        }
        let moment = rules.moment();
        match self.helper().aside(move |it| it.check(moment)).await {
            Ok(report) if report.is_complete() => {}
            Ok(report) if report.is_absent() => {
                self.is_removed = true;
                tracing::warn!(
                    "the interception rules were removed: traffic bypasses the daemon until \
                     `hearsay intercept apply`, or a restart"
                );
            }
            Ok(_) => {
                tracing::warn!(
                    "another program has removed interception rules: they are set again"
                );
                self.change(config).await;
            }
            Err(error) => tracing::debug!(%error, "cannot check the interception rules"),
        }
    }

    /// Whether the helper is to be asked again, because it may have done something else than what is wanted.
    pub fn is_late(&self) -> bool {
        self.is_late
    }

    /// Applies the rules that follow from the current configuration, routes and far end; the port does not change.
    pub async fn change(&mut self, config: &Config) {
        self.is_late = false;
        let intercept = &config.intercept;
        match (self.rules(config), &self.state) {
            (Some(wanted), State::On { .. }) => {
                let applied = self.apply(&wanted).await.then_some(wanted);
                if let State::On { rules, .. } = &mut self.state {
                    *rules = applied;
                }
            }
            (Some(_), State::Off | State::Released) => {
                let passed = self.helper().aside(Helper::transparent).await;
                match opened(intercept, passed) {
                    Ok(listener) => self.begin(config, listener).await,
                    Err(error) => {
                        self.is_late = self.helper().is_silent();
                        self.fail(&format!("cannot listen on {}: {error}", intercept.port));
                    }
                }
            }
            (None, State::On { .. }) => self.release().await,
            (None, State::Off | State::Released) => {}
        }
    }

    /// Stops to accept; from here on new connections bypass the daemon.
    pub fn stop_accepting(&self) {
        if let State::On { accepting, .. } = &self.state {
            accepting.abort();
        }
    }

    /// Removes the rules.
    pub async fn end(self) {
        if self.may_have_rules
            && let Err(error) = self.helper().aside(Helper::remove).await
        {
            tracing::warn!(%error, "cannot remove the interception rules: run `hearsay intercept remove`");
        }
    }

    fn helper(&self) -> &Helper {
        self.driver.helper()
    }

    /// What the helper makes of the configuration, which it reads itself.
    fn rules(&self, config: &Config) -> Option<Rules> {
        let (out, reach) = (nameable(self.egress.interfaces()), self.driver.reaches());
        Some(config.rules()?.at(&Moment { out, reach }))
    }

    async fn apply(&mut self, rules: &Rules) -> bool {
        self.may_have_rules = true;
        self.bridged = rules.bridged();
        let moment = rules.moment();
        match self.helper().aside(move |it| it.apply(moment)).await {
            Ok(applied) => {
                applied.notes.iter().for_each(|note| tracing::warn!("interception: {note}"));
                for name in missing_interfaces(&rules.all_interfaces()) {
                    tracing::warn!(
                        "there is no interface {name}: its clients are intercepted once it appears (see `ip link`)"
                    );
                }
                self.observer.intercepts(true, applied.notes.first().cloned());
                true
            }
            Err(error) => {
                self.is_late = matches!(error, HelperError::Silent);
                self.fail(&error.to_string());
                false
            }
        }
    }

    /// Reports that the rules could not be changed; the previous ones still apply.
    fn fail(&self, error: &str) {
        let works = matches!(self.state, State::On { .. });
        let effect = if works {
            "the interception rules stay as they were"
        } else {
            "nothing is intercepted: traffic bypasses the daemon"
        };
        tracing::warn!(%error, "{effect}");
        self.observer.intercepts(works, Some(error.to_owned()));
    }

    /// Turns interception off for new connections, then closes the listener.
    async fn release(&mut self) {
        let State::On { accepting, .. } = std::mem::replace(&mut self.state, State::Released)
        else {
            return;
        };
        if let Err(error) = self.helper().aside(Helper::release).await {
            // Without a listener the rules have no effect on new connections anyway.
            tracing::warn!(%error, "cannot release the interception rules: they stay until the daemon ends");
        }
        accepting.abort();
        self.observer.intercepts(false, None);
    }
}
