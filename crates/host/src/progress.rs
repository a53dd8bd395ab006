//! The progress of a request's content on its way to an origin.

use hyper::body::{Body, Frame, SizeHint};
use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::oneshot::{Receiver, Sender, channel};
use tokio::time::{Instant, Sleep, sleep};

/// An origin that does not say whether it wants content gets it after this long (RFC 9110 §10.1.1): some never say.
const PATIENCE: Duration = Duration::from_secs(2);

/// Content that records when its last piece was taken, and when the content ended.
#[derive(Debug)]
pub struct Watched<B> {
    content: B,
    /// It waits until the origin wants it.
    wait: Option<Wait>,
    progress: Progress,
}

#[derive(Debug)]
struct Wait {
    wanted: Receiver<()>,
    is_refused: bool,
    patience: Pin<Box<Sleep>>,
}

impl Wait {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_refused {
            return Poll::Pending;
        }
        match Pin::new(&mut self.wanted).poll(cx) {
            Poll::Ready(Ok(())) => Poll::Ready(()),
            // The origin has answered without it.
            Poll::Ready(Err(_)) => {
                self.is_refused = true;
                Poll::Pending
            }
            Poll::Pending => self.patience.as_mut().poll(cx),
        }
    }
}

/// The record of a [`Watched`] content.
#[derive(Clone, Debug)]
pub struct Progress(Rc<Cell<(Instant, Stage)>>);

/// The state of the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// More content will be taken.
    Moving,
    /// All content was taken, or no more is needed.
    Done,
    /// The content ended early: the client's connection broke, or the framing was invalid.
    Broken,
}

impl<B: Body> Watched<B> {
    /// Watches content before anything was taken.
    pub fn new(content: B) -> (Self, Progress) {
        let stage = if content.is_end_stream() { Stage::Done } else { Stage::Moving };
        let progress = Progress(Rc::new(Cell::new((Instant::now(), stage))));
        (Self { content, wait: None, progress: progress.clone() }, progress)
    }

    /// Holds the content back until the sender says that it is wanted, or for two seconds. If the sender is dropped, it is
    /// not wanted any more.
    pub fn hold(&mut self) -> Sender<()> {
        let (sender, wanted) = channel();
        self.wait = Some(Wait { wanted, is_refused: false, patience: Box::pin(sleep(PATIENCE)) });
        sender
    }
}

impl Progress {
    /// When something was last taken.
    pub fn last(&self) -> Instant {
        self.0.get().0
    }

    /// Whether nothing more will be taken.
    pub fn is_done(&self) -> bool {
        self.0.get().1 != Stage::Moving
    }

    /// Whether the content ended before it was complete.
    pub fn is_broken(&self) -> bool {
        self.0.get().1 == Stage::Broken
    }

    fn note(&self, stage: Stage) {
        self.0.set((Instant::now(), stage));
    }
}

impl<B: Body + Unpin> Body for Watched<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        if let Some(wait) = &mut self.wait {
            ready!(wait.poll(cx));
            self.wait = None;
            self.progress.note(Stage::Moving);
        }
        let frame = Pin::new(&mut self.content).poll_frame(cx);
        if let Poll::Ready(frame) = &frame {
            self.progress.note(match frame {
                Some(Err(_)) => Stage::Broken,
                Some(Ok(_)) if !self.content.is_end_stream() => Stage::Moving,
                _ => Stage::Done,
            });
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.content.size_hint()
    }
}

/// The sender drops the content when all of it was sent, or when no more is needed.
impl<B> Drop for Watched<B> {
    fn drop(&mut self) {
        if !self.progress.is_done() {
            self.progress.note(Stage::Done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http_body_util::{BodyExt, Empty, Full};

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn content_waits_until_it_is_wanted_or_for_two_seconds() {
        let waits = |wanted: Option<u64>| async move {
            let (mut content, progress) = Watched::new(Full::new(Bytes::from("abc")));
            let (sender, begun) = (content.hold(), Instant::now());
            tokio::spawn(async move {
                sleep(Duration::from_secs(wanted.unwrap_or(99))).await;
                let _ = sender.send(());
            });
            content.frame().await.unwrap().unwrap();
            assert!(progress.is_done());
            begun.elapsed().as_secs()
        };
        assert_eq!(waits(Some(0)).await, 0);
        assert_eq!(waits(Some(1)).await, 1);
        assert_eq!(waits(None).await, 2);
        let (mut content, _) = Watched::new(Full::new(Bytes::from("abc")));
        drop(content.hold());
        let frame = tokio::time::timeout(Duration::from_secs(99), content.frame());
        assert!(frame.await.is_err(), "the origin has answered without it");
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn content_is_done_when_all_of_it_was_taken_or_it_is_dropped() {
        assert!(Watched::new(Empty::<Bytes>::new()).1.is_done());
        let (mut content, progress) = Watched::new(Full::new(Bytes::from("abc")));
        let begun = progress.last();
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(!progress.is_done() && progress.last() == begun);
        content.frame().await.unwrap().unwrap();
        assert!(progress.is_done() && progress.last() > begun);
        let (content, progress) = Watched::new(Full::new(Bytes::from("abc")));
        drop(content);
        assert!(progress.is_done());
    }
}
