//! The content of a request to an origin, from where it comes.

use bytes::Bytes;
use http_body_util::channel::Channel;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Content that the driver supplies piece by piece.
pub type Supplied = Channel<Bytes, Unsent>;

/// The supplier of a request's content has broken it off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request's content broke off")]
pub struct Unsent;

/// The content of a request.
#[derive(Debug)]
pub enum Content {
    /// There is none.
    None,
    /// That of a client's request.
    Client(Incoming),
    /// That of a request which came by the uplink's pair.
    Supplied(Supplied),
}

impl Content {
    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

impl From<Option<Incoming>> for Content {
    fn from(content: Option<Incoming>) -> Self {
        content.map_or(Self::None, Self::Client)
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::None => Poll::Ready(None),
            Self::Client(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Self::Supplied(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::None => true,
            Self::Client(body) => body.is_end_stream(),
            Self::Supplied(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::None => SizeHint::with_exact(0),
            Self::Client(body) => body.size_hint(),
            Self::Supplied(body) => body.size_hint(),
        }
    }
}
