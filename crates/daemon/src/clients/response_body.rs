//! A response's content as hyper reads it, and its place in the connection's pipeline.

use crate::connections::Permit;
use crate::driver::{Driver, End, Held, Outbox};
use crate::mirror::{Rewriting, Unreadable};
use crate::request_log::Line;
use bytes::Bytes;
use host::screened::Signs;
use http::{HeaderMap, StatusCode};
use hyper::body::{Body, Frame, SizeHint};
use node::driver::ClientWindow;
use node::{ClientInput, ExchangeId, Fetch, Head, Input};
use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

/// One request of a connection's pipeline (RFC 9112 §9.3.2). While this exists, the next request is
/// not read.
pub struct Pipelined {
    signs: Arc<Signs>,
    permit: Rc<Permit>,
    window: Option<u64>,
    /// The request's line, if requests are logged.
    line: Option<Rc<Line>>,
}

impl Pipelined {
    pub fn begin(signs: &Arc<Signs>, permit: &Rc<Permit>, line: Option<Rc<Line>>) -> Self {
        signs.busy.store(true, Ordering::Relaxed);
        Self { signs: Arc::clone(signs), permit: Rc::clone(permit), window: permit.begin(), line }
    }

    /// What a connection holds that leaves HTTP by this request.
    pub fn held(&self) -> Held {
        Held { permit: Rc::clone(&self.permit), line: self.line.clone() }
    }

    /// The request's line, if requests are logged.
    pub fn line(&self) -> Option<&Line> {
        self.line.as_deref()
    }

    /// The signs of the request's connection.
    pub fn signs(&self) -> Arc<Signs> {
        Arc::clone(&self.signs)
    }

    /// How many bytes of the response may be in flight; `None`: there is no room for one.
    pub fn window(&self) -> Option<u64> {
        self.window
    }
}

impl Drop for Pipelined {
    fn drop(&mut self) {
        self.permit.end();
        self.signs.end_turn();
    }
}

/// A response's content, taken from the outbox where the engine puts it.
pub struct ResponseBody {
    pub driver: Driver,
    pub id: ExchangeId,
    pub outbox: Rc<RefCell<Outbox>>,
    /// Bytes still to be sent, if the length is known.
    pub left: Option<u64>,
    /// Rewrites the links in it, if it is an index of a mirror.
    pub rewriting: Option<Box<Rewriting>>,
    /// The flow-control window, and how much of it was used.
    pub window: ClientWindow,
    /// Held until the response has ended.
    pub pipelined: Pipelined,
}

/// The response cannot be completed. hyper then closes the connection, which tells the client.
#[derive(Debug, thiserror::Error)]
#[error("the response was broken off")]
pub struct Broken;

impl ResponseBody {
    /// The head; or, as the error, the request with which the client is to be joined to its origin.
    pub fn poll_head(&self, cx: &mut Context<'_>) -> Poll<Result<Head, Box<Fetch>>> {
        let mut outbox = self.outbox.borrow_mut();
        if let Some(past) = outbox.past.take() {
            return Poll::Ready(Err(past));
        }
        match outbox.head.take() {
            Some(head) => Poll::Ready(Ok(head)),
            None if outbox.end.is_some() => Poll::Ready(Ok(nothing())),
            None => {
                outbox.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Whether nothing is left to be rewritten, once all has come.
    fn is_rewritten(&self) -> bool {
        self.rewriting.as_ref().is_none_or(|it| it.is_finished())
    }

    fn poll_next(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        loop {
            if let Some(rewriting) = &mut self.rewriting
                && let Some(bytes) = rewriting.step().map_err(|Unreadable| Broken)?
            {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            let (bytes, end) = {
                let mut outbox = self.outbox.borrow_mut();
                (outbox.queue.pop_front(), outbox.end)
            };
            if let Some(bytes) = bytes {
                self.window.took(bytes.len() as u64);
                self.left = self.left.map(|left| left.saturating_sub(bytes.len() as u64));
                self.settle(false);
                let Some(rewriting) = &mut self.rewriting else {
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                };
                rewriting.arrive(bytes);
                continue;
            }
            match end {
                Some(End::Complete) if !self.is_rewritten() => {
                    let rest = self.rewriting.as_mut().map_or(Ok(None), |it| it.finish());
                    if let Some(bytes) = rest.map_err(|Unreadable| Broken)? {
                        return Poll::Ready(Some(Ok(Frame::data(bytes))));
                    }
                }
                Some(End::Complete) => return Poll::Ready(None),
                Some(End::Broken) => return Poll::Ready(Some(Err(Broken))),
                None if self.settle(true) => {}
                None => {
                    self.outbox.borrow_mut().waker = Some(cx.waker().clone());
                    return Poll::Pending;
                }
            }
        }
    }

    /// Grants the engine credit for the bytes that were sent; returns whether any was due.
    fn settle(&mut self, nothing_waits: bool) -> bool {
        let credit = self.window.give_back(nothing_waits);
        if let Some(bytes) = credit {
            self.driver.feed(Input::Client(ClientInput::Credit(self.id, bytes)));
        }
        credit.is_some()
    }
}

/// The head if the engine ends an exchange without one, which it never should.
fn nothing() -> Head {
    Head { status: StatusCode::BAD_GATEWAY, headers: HeaderMap::new(), length: Some(0) }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = self.get_mut();
        let polled = this.poll_next(cx);
        if let (Some(line), Poll::Ready(Some(Ok(frame)))) = (this.pipelined.line(), &polled) {
            line.gave(frame.data_ref().map_or(0, |bytes| bytes.len() as u64));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        let outbox = self.outbox.borrow();
        outbox.queue.is_empty() && outbox.end == Some(End::Complete) && self.is_rewritten()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        // hyper does not ask for the end if it knows the length.
        if let Some(line) = self.pipelined.line()
            && (self.left == Some(0) || self.is_end_stream())
        {
            line.finish();
        }
        self.driver.close(self.id);
    }
}
