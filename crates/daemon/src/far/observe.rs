//! What a far end's control socket and its port of metrics show.
//!
//! | path | answer |
//! |---|---|
//! | `GET /far` | [`FarStatus`] as JSON |
//! | `GET /metrics` | the same as Prometheus' text |

use super::door::Door;
use super::gateways::Gateways;
use super::room::Room;
use crate::config::FarSettings;
use crate::control::{self, Answers, Scope};
use crate::status::{FAR_SCHEMA, FarCounts, FarStatus, Process};
use crate::{doors, metrics};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, spawn_local};

/// Reads a far end's state.
pub struct Observer {
    pub started: Instant,
    /// Where gateways connect.
    pub listen: SocketAddr,
    /// The key that gateways expect.
    pub key: String,
    pub gateways: Gateways,
    pub door: Rc<Door>,
    pub room: Room,
    /// The settings that hold.
    pub held: RefCell<FarSettings>,
}

impl Observer {
    fn status(&self) -> FarStatus {
        let held = self.held.borrow();
        let (server_connections, no_room) = self.room.figures();
        FarStatus {
            schema: FAR_SCHEMA.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            process: Process::here(self.started),
            listen: Some(self.listen),
            metrics: held.metrics,
            key: self.key.clone(),
            counts: FarCounts {
                memory_limit_bytes: held.memory_bytes(),
                server_connections,
                no_room,
            },
            door: self.door.report(),
            gateways: self.gateways.lines(),
        }
    }
}

impl Answers for Observer {
    async fn answer(&self, scope: Scope, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if request.method() != Method::GET {
            return control::refuse(StatusCode::METHOD_NOT_ALLOWED, "only GET");
        }
        match (request.uri().path(), scope) {
            ("/metrics", _) => {
                control::page(metrics::CONTENT_TYPE, metrics::render_far(&self.status()))
            }
            ("/far", Scope::All) => control::json(&self.status()),
            _ => control::refuse(StatusCode::NOT_FOUND, "no such page"),
        }
    }
}

/// The port of metrics, if there is one: the setting, and the task that accepts there.
#[derive(Default)]
pub struct MetricsPort(Option<(SocketAddr, JoinHandle<()>)>);

impl MetricsPort {
    /// Accepts on a listener that is open. `address` is the setting.
    pub fn open(&mut self, address: SocketAddr, listener: TcpListener, observer: &Rc<Observer>) {
        let accepting = spawn_local(control::serve_metrics(listener, Rc::clone(observer)));
        self.0 = Some((address, accepting));
    }

    /// Opens and closes the port as the settings say. If it cannot be opened, that is said, and the setting left out of
    /// those that hold, so that the next reload tries again.
    pub async fn change(&mut self, held: &mut FarSettings, observer: &Rc<Observer>) {
        if self.0.as_ref().map(|(address, _)| *address) == held.metrics {
            return;
        }
        if let Some((_, accepting)) = self.0.take() {
            doors::end(accepting).await;
        }
        let Some(address) = held.metrics else { return };
        match doors::listen("[metrics] listen", address) {
            Some(listener) => self.open(address, listener, observer),
            None => held.metrics = None,
        }
    }
}
