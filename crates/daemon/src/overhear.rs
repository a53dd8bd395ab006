//! Overhearing: a capture whose TCP segments go to the engine.

use host::capture::{Capture, CaptureError};
use host::helper::{Helper, HelperError};
use node::{Input, Overheard};
use tokio::sync::mpsc::Receiver;
use tokio::task::spawn_local;

use crate::config::Config;
use crate::driver::Driver;

/// The running capture, or why it could not be opened.
pub type Heard = Result<Capture, String>;

/// The capture as it was opened at the start.
pub enum CaptureState {
    /// Overhearing is off.
    Off,
    /// The capture could not be opened; the reason.
    Failed(String),
    /// The capture, its batches of segments, and the budget of partly overheard chunks in bytes.
    Open(Capture, Receiver<Vec<Overheard>>, usize),
}

impl CaptureState {
    /// Opens the capture that the configuration asks for. If that fails, the daemon runs without
    /// it.
    pub fn open(config: &Config, helper: &Helper) -> Self {
        let overhear = &config.overhear;
        let budget = overhear.budget_bytes().and_then(|bytes| usize::try_from(bytes).ok());
        let (Some(settings), Some(budget)) = (overhear.capture(config.mesh.port), budget) else {
            return Self::Off;
        };
        let opened = match helper.packet_socket(&settings.interface) {
            Ok(socket) => Capture::on(socket, settings).map_err(|error| error.to_string()),
            // Without a helper there are no rights to open it here either, and that error says which.
            Err(HelperError::None(_)) => Capture::open(settings).map_err(|error| error.to_string()),
            Err(HelperError::Kernel(error)) => Err(CaptureError::from(error).to_string()),
            Err(error) => Err(error.to_string()),
        };
        match opened {
            Ok((capture, batches)) => Self::Open(capture, batches, budget),
            Err(error) => {
                tracing::warn!(%error, "cannot capture: nothing is overheard");
                Self::Failed(error)
            }
        }
    }

    /// The engine's budget of partly overheard chunks, in bytes; `None` without a capture.
    pub fn budget(&self) -> Option<usize> {
        match self {
            Self::Off | Self::Failed(_) => None,
            Self::Open(_, _, budget) => Some(*budget),
        }
    }

    /// Starts to feed the engine the captured segments; `None` if overhearing is off.
    pub fn listen(self, driver: &Driver) -> Option<Heard> {
        match self {
            Self::Off => None,
            Self::Failed(why) => Some(Err(why)),
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
