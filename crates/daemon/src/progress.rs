//! Progress bars of `hearsay get` and `hearsay put`, on standard error. A program that was built without them shows
//! none.

#[cfg(not(feature = "progress"))]
pub use hidden::ProgressBar;
#[cfg(feature = "progress")]
pub use indicatif::ProgressBar;

/// A progress bar; `indicatif` shows it only on a terminal.
#[cfg(feature = "progress")]
pub fn progress(is_quiet: bool) -> ProgressBar {
    use indicatif::{ProgressDrawTarget, ProgressStyle};
    if is_quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(8));
    let template = "{bar:24} {bytes}/{total_bytes} {bytes_per_sec} eta {eta} {msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

/// A bar that is never shown.
#[cfg(not(feature = "progress"))]
pub fn progress(_is_quiet: bool) -> ProgressBar {
    ProgressBar
}

#[cfg(not(feature = "progress"))]
mod hidden {
    /// Takes what `indicatif`'s bar takes, and shows nothing.
    #[derive(Clone)]
    pub struct ProgressBar;

    impl ProgressBar {
        /// More bytes have arrived.
        pub fn inc(&self, _bytes: u64) {}
        /// All bytes that are expected.
        pub fn set_length(&self, _bytes: u64) {}
        /// The bytes that have arrived.
        pub fn set_position(&self, _bytes: u64) {}
        /// What is being waited for.
        pub fn set_message(&self, _text: &'static str) {}
        /// The rate is measured anew.
        pub fn reset_eta(&self) {}
        /// The end.
        pub fn finish_and_clear(&self) {}
    }
}
