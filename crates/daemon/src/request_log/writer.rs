//! The thread that writes the log of requests: a disk that is full or slow holds up nothing else.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use super::file::LogFile;
use super::format::Request;
use crate::config::Format;

/// The memory that lines may take which are not written yet, in bytes. A disk that takes 1 MB/s keeps up with 8,000
/// requests a second.
const WAITING_MAX: usize = 1 << 20;
/// How many bytes of lines are written at once.
const BATCH: usize = 64 << 10;

/// What the loop tells the thread.
pub enum Message {
    /// Write a line.
    Line(Box<Request>),
    /// Write by these settings from now on, to a file that is open already if there is one; `None`: write nothing.
    Use(Option<Settings>, Option<io::Result<LogFile>>),
    /// Answer when all that was sent before is written.
    Finish(Sender<()>),
}

/// How lines are written.
pub struct Settings {
    /// The file.
    pub path: PathBuf,
    /// How a line is written.
    pub format: Format,
    /// The key with which clients' addresses are hashed; `None`: they are written as they are.
    pub key: Option<[u8; 32]>,
    /// How many bytes the file may have.
    pub size_max: u64,
    /// How many old files are kept.
    pub keep: u32,
}

/// What the loop and the thread both see.
#[derive(Clone, Default)]
pub struct Shared(Arc<State>);

#[derive(Default)]
struct State {
    /// Memory of lines that are not written yet.
    waiting: AtomicUsize,
    /// Lines were dropped since the last time that none waited.
    is_full: AtomicBool,
    written: AtomicU64,
    dropped: AtomicU64,
    /// Why nothing can be written.
    error: Mutex<Option<String>>,
}

impl Shared {
    /// Makes room for a line; `false`: there is none, and the line is counted as dropped.
    pub fn admit(&self, weight: usize) -> bool {
        let state = &*self.0;
        if state.waiting.load(Ordering::Relaxed) + weight <= WAITING_MAX {
            state.waiting.fetch_add(weight, Ordering::Relaxed);
            return true;
        }
        state.dropped.fetch_add(1, Ordering::Relaxed);
        if !state.is_full.swap(true, Ordering::Relaxed) {
            tracing::warn!("the disk is too slow for the log of requests: lines are dropped");
        }
        false
    }

    /// Lines written, lines dropped, and why nothing can be written, if nothing can.
    pub fn counts(&self) -> (u64, u64, Option<String>) {
        let State { written, dropped, error, .. } = &*self.0;
        let error = error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (written.load(Ordering::Relaxed), dropped.load(Ordering::Relaxed), error)
    }

    /// Notes that lines are out of memory, and what became of them.
    fn settle(&self, batch: &Batch, is_written: bool) {
        let state = &*self.0;
        let counter = if is_written { &state.written } else { &state.dropped };
        counter.fetch_add(batch.lines, Ordering::Relaxed);
        let before = state.waiting.fetch_sub(batch.weight, Ordering::Relaxed);
        if before == batch.weight && state.is_full.swap(false, Ordering::Relaxed) {
            let dropped = state.dropped.load(Ordering::Relaxed);
            tracing::info!(dropped, "the disk keeps up with the log of requests again");
        }
    }

    /// Notes whether lines can be written. A change is logged.
    fn works(&self, outcome: Result<(), String>) {
        let mut error = self.0.error.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*error, &outcome) {
            (None, Err(why)) => tracing::warn!("requests are not logged: {why}"),
            (Some(_), Ok(())) => tracing::info!("requests are logged again"),
            _ => {}
        }
        *error = outcome.err();
    }
}

/// Starts the thread. It ends when the loop does.
pub fn start(messages: Receiver<Message>, shared: Shared) {
    let writer = Writer { shared, settings: None, file: None, batch: Batch::default() };
    let thread = std::thread::Builder::new().name("requests".into());
    if let Err(error) = thread.spawn(move || writer.run(&messages)) {
        tracing::warn!(%error, "requests are not logged: the thread that writes cannot be started");
    }
}

/// Lines that are written together.
#[derive(Default)]
struct Batch {
    text: Vec<u8>,
    lines: u64,
    /// The memory that they took as requests.
    weight: usize,
}

struct Writer {
    shared: Shared,
    settings: Option<Settings>,
    file: Option<LogFile>,
    batch: Batch,
}

impl Writer {
    fn run(mut self, messages: &Receiver<Message>) {
        while let Ok(first) = messages.recv() {
            self.take(first);
            while self.batch.text.len() < BATCH
                && let Ok(next) = messages.try_recv()
            {
                self.take(next);
            }
            self.write();
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Line(request) => {
                self.batch.lines += 1;
                self.batch.weight += request.weight();
                if let Some(settings) = &self.settings {
                    request.render(settings.format, settings.key.as_ref(), &mut self.batch.text);
                }
            }
            Message::Use(settings, opened) => {
                self.write();
                self.set(settings, opened);
            }
            Message::Finish(done) => {
                self.write();
                // Nobody waits any more if it took too long.
                let _ = done.send(());
            }
        }
    }

    fn set(&mut self, settings: Option<Settings>, opened: Option<io::Result<LogFile>>) {
        let opened = settings.as_ref().map(|it| opened.unwrap_or_else(|| LogFile::open(&it.path)));
        self.settings = settings;
        self.file = self.judge(opened);
    }

    /// The file, if it could be opened. If not, the log says why.
    fn judge(&self, opened: Option<io::Result<LogFile>>) -> Option<LogFile> {
        let (file, outcome) = match opened {
            None => (None, Ok(())),
            Some(Ok(file)) => (Some(file), Ok(())),
            Some(Err(error)) => (None, Err(self.complaint(&error))),
        };
        self.shared.works(outcome);
        file
    }

    fn complaint(&self, error: &io::Error) -> String {
        let path = self.settings.as_ref().map(|it| it.path.display().to_string());
        let advice = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                ". Its directory must be the daemon's own, and one that it knew when it started: restart it"
            }
            _ => "",
        };
        format!("{}: {error}{advice}", path.unwrap_or_default())
    }

    /// Writes the batch, or drops it.
    fn write(&mut self) {
        if self.batch.lines == 0 {
            return;
        }
        // After a failure, it may go again by now.
        if self.file.is_none()
            && let Some(settings) = &self.settings
            && let Ok(file) = LogFile::open(&settings.path)
        {
            self.file = Some(file);
        }
        let is_written = match (&mut self.file, &self.settings) {
            (Some(file), Some(settings)) => {
                let added = file.add(&self.batch.text, settings.size_max, settings.keep);
                let is_written = added.is_ok();
                self.shared.works(added.map_err(|error| self.complaint(&error)));
                is_written
            }
            _ => false,
        };
        self.shared.settle(&self.batch, is_written);
        self.batch = Batch::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;
    use std::path::Path;
    use std::sync::mpsc::channel;

    fn settings(path: &Path) -> Settings {
        Settings {
            path: path.to_owned(),
            format: Format::Squid,
            key: None,
            size_max: 1 << 20,
            keep: 1,
        }
    }

    fn request(url: &str) -> Box<Request> {
        Box::new(Request::new([192, 0, 2, 1].into(), Method::GET, url.into()))
    }

    fn finish(to: &Sender<Message>) {
        let (done, told) = channel();
        to.send(Message::Finish(done)).unwrap();
        told.recv().unwrap();
    }

    #[test]
    fn a_full_queue_drops_lines_until_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r");
        let (to, from) = channel();
        let shared = Shared::default();
        to.send(Message::Use(Some(settings(&path)), None)).unwrap();
        let long = "x".repeat(WAITING_MAX / 4);
        // The thread does not run yet: its disk is as slow as a disk can be.
        let admitted = (0..9).filter(|_| shared.admit(request(&long).weight())).count();
        assert_eq!((admitted, shared.counts().1), (3, 6));
        for _ in 0..admitted {
            to.send(Message::Line(request(&long))).unwrap();
        }
        start(from, shared.clone());
        finish(&to);
        assert_eq!(shared.counts(), (3, 6, None));
        assert!(shared.admit(request(&long).weight()) && !shared.0.is_full.load(Ordering::Relaxed));
    }

    #[test]
    fn what_cannot_be_written_is_counted_and_the_log_goes_on_when_it_can() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("later").join("r");
        let (to, from) = channel();
        let shared = Shared::default();
        start(from, shared.clone());
        let write = |url: &str| {
            assert!(shared.admit(request(url).weight()));
            to.send(Message::Line(request(url))).unwrap();
            finish(&to);
        };
        to.send(Message::Use(Some(settings(&path)), None)).unwrap();
        write("http://a.test/lost");
        let (written, dropped, error) = shared.counts();
        assert_eq!((written, dropped), (0, 1));
        assert!(error.is_some_and(|it| it.contains("later/r: No such file")));
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        write("http://a.test/kept");
        assert_eq!(shared.counts(), (1, 1, None));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("/kept ") && !text.contains("/lost "), "{text}");
        to.send(Message::Use(None, None)).unwrap();
        write("http://a.test/off");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        assert_eq!(shared.counts().2, None);
    }
}
