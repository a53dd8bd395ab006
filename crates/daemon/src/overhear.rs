//! What the daemon does because it overhears: a capture whose segments go to the engine.

use host::capture::Capture;
use node::{Input, Overheard};
use tokio::sync::mpsc::Receiver;
use tokio::task::spawn_local;

use crate::config::Config;
use crate::driver::Driver;

/// A capture under way, or why there is none.
pub type Heard = Result<Capture, String>;

/// What was opened at the start, while there is the right to.
pub enum CaptureState {
    /// Nothing was asked for.
    Off,
    /// It cannot be had, and this is why.
    Deaf(String),
    /// It hears; memory for what is half heard, in bytes.
    Open(Capture, Receiver<Vec<Overheard>>, usize),
}

impl CaptureState {
    /// Opens what the configuration asks for. Traffic goes on without.
    pub fn open(config: &Config) -> Self {
        let overhear = &config.overhear;
        let budget = overhear.budget_bytes().and_then(|bytes| usize::try_from(bytes).ok());
        let (Some(settings), Some(budget)) = (overhear.capture(config.mesh.port), budget) else {
            return Self::Off;
        };
        match Capture::open(settings) {
            Ok((capture, batches)) => Self::Open(capture, batches, budget),
            Err(error) => {
                tracing::warn!(%error, "nothing is overheard: traffic goes on without");
                Self::Deaf(error.to_string())
            }
        }
    }

    /// The engine's memory for it, in bytes, if something is heard.
    pub fn budget(&self) -> Option<usize> {
        match self {
            Self::Off | Self::Deaf(_) => None,
            Self::Open(_, _, budget) => Some(*budget),
        }
    }

    /// Tells the engine what is heard, from now on; `None` if nothing was asked for.
    pub fn listen(self, driver: &Driver) -> Option<Heard> {
        match self {
            Self::Off => None,
            Self::Deaf(why) => Some(Err(why)),
            Self::Open(capture, mut batches, _) => {
                let driver = driver.clone();
                spawn_local(async move {
                    while let Some(batch) = batches.recv().await {
                        driver.feed(Input::Overheard(batch));
                    }
                });
                Some(Ok(capture))
            }
        }
    }
}
