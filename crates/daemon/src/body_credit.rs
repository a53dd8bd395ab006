//! Flow-control credit: reads an origin's content as far as an engine grants.

use bytes::Bytes;
use host::clock::Clock;
use host::origin::broken;
use hyper::body::{Body as _, Incoming};
use node::FetchError;
use node::driver::Grants;
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use tokio::sync::Notify;
use wire::Instant;

/// How much of an origin's content may be read.
#[derive(Default)]
pub struct BodyCredit {
    grants: Cell<Grants>,
    /// Notified when the engine grants more.
    opened: Notify,
}

impl BodyCredit {
    /// The engine grants this many more bytes.
    pub fn grant(&self, now: Instant, bytes: u64) {
        let mut grants = self.grants.get();
        grants.grant(now, bytes);
        self.grants.set(grants);
        self.opened.notify_one();
    }

    /// Reads content to its end, as fast as grants and `each` allow, which gets each piece.
    pub async fn read(
        &self,
        clock: Clock,
        content: &mut Incoming,
        each: impl AsyncFn(Bytes),
    ) -> Result<(), FetchError> {
        loop {
            while !self.grants.get().is_open() && !content.is_end_stream() {
                self.opened.notified().await;
            }
            let frame = poll_fn(|cx| Pin::new(&mut *content).poll_frame(cx));
            let frame = tokio::select! {
                biased;
                frame = frame => frame,
                () = clock.wait_until(self.grants.get().poll_timeout()) => {
                    return Err(FetchError::TimedOut);
                }
            };
            match frame {
                None => return Ok(()),
                Some(Err(error)) => return Err(broken(&error)),
                // Trailers are dropped.
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        let mut grants = self.grants.get();
                        grants.took(clock.now(), bytes.len());
                        self.grants.set(grants);
                        each(bytes).await;
                    }
                }
            }
        }
    }
}
