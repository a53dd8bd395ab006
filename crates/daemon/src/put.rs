//! `hearsay put`: sends a file to the running daemon, which publishes it and returns its OID. All nodes of
//! the mesh can get the file by its OID. The command also lists and withdraws published files.
//!
//! *What it never does:* read a whole file into memory; cut or name units itself.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use serde::Serialize;
use wire::Oid;

use crate::ask;
use crate::cli::Put;
use crate::exit::Failure;
use crate::get::parse_oid;
use crate::out;
use crate::progress::{ProgressBar, progress};
use crate::publish::PublishedLine;
use crate::term::{self, Style};

/// Bytes per read.
const PIECE_BYTES: usize = 64 << 10;

/// Performs the command, and prints the outcome.
pub async fn run(args: &Put, control: &[PathBuf]) -> Result<(), Failure> {
    match (&args.file, &args.remove) {
        (Some(file), _) => put(args, file, control).await,
        (None, Some(name)) => remove(args, parse_oid(name)?, control).await,
        (None, None) => list(args, control).await,
    }
}

/// The outcome of publishing, as JSON.
#[derive(Serialize)]
struct Report<'a> {
    oid: String,
    file: &'a Path,
    bytes: u64,
    seconds: f64,
}

async fn put(args: &Put, file: &Path, control: &[PathBuf]) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::failed(format!("{}: {error}", file.display()));
    // Opening a pipe would wait for a writer, and some devices do something when they are opened.
    if !std::fs::metadata(file).map_err(failed)?.is_file() {
        let why = format!("{}: not a plain file, and only those are published", file.display());
        return Err(Failure::usage(why));
    }
    let open = File::open(file).map_err(failed)?;
    let meta = open.metadata().map_err(failed)?;
    let bar = progress(args.quiet || args.json);
    bar.set_length(meta.len());
    let (begun, bytes) = (Instant::now(), meta.len());
    let body = FileBody { file: open, left: bytes, bar: bar.clone() };
    let outcome = tokio::select! {
        outcome = ask::put(control, body, bytes) => outcome,
        _ = tokio::signal::ctrl_c() => Err(Failure::failed("interrupted; nothing is published")),
    };
    bar.finish_and_clear();
    // If the file's length changed meanwhile, that is the likely cause.
    let line = outcome.map_err(|failure| match std::fs::metadata(file) {
        Ok(now) if now.len() != bytes => {
            Failure::failed(format!("{} changed while it was read", file.display()))
        }
        _ => failure,
    })?;
    if args.json {
        let seconds = begun.elapsed().as_secs_f64();
        let report = Report { oid: line.oid, file, bytes, seconds };
        out::json(&report)
    } else {
        out::line(line.oid)
    }
}

async fn remove(args: &Put, name: Oid, control: &[PathBuf]) -> Result<(), Failure> {
    ask::withdraw(control, &name).await?;
    if args.json {
        out::json(&serde_json::json!({ "oid": name.to_string(), "removed": true }))
    } else if !args.quiet {
        out::line(format_args!(
            "{name} is not published here any more; copies that others have stay where they are"
        ))
    } else {
        Ok(())
    }
}

async fn list(args: &Put, control: &[PathBuf]) -> Result<(), Failure> {
    let lines = ask::published(control).await?;
    if args.json { out::json(&lines) } else { out::print(page(&lines, Style::of_stdout())) }
}

fn page(lines: &[PublishedLine], style: Style) -> String {
    if lines.is_empty() {
        return "nothing is published here\n".to_owned();
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut page = style.strong(&format!("{:>9} {:>12} OID", "SIZE", "SINCE")) + "\n";
    for line in lines {
        let since = now.saturating_sub(Duration::from_secs(line.since));
        let (size, since) = (term::bytes(line.bytes), term::duration(since));
        let lacks = match line {
            PublishedLine { foreign: true, .. } => {
                " (sealed under another mesh key: take it back, and put it again)"
            }
            PublishedLine { whole: false, .. } => " (not whole: put it again)",
            _ => "",
        };
        page.push_str(&format!("{size:>9} {since:>12} {}{lacks}\n", term::tame(&line.oid, 64)));
    }
    page
}

/// The body of the request: reads the file as it is sent.
pub struct FileBody {
    file: File,
    left: u64,
    bar: ProgressBar,
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = self.get_mut();
        if this.left == 0 {
            return Poll::Ready(None);
        }
        let wanted = usize::try_from(this.left).unwrap_or(usize::MAX).min(PIECE_BYTES);
        let mut piece = vec![0; wanted];
        let read = this.file.read(&mut piece).and_then(|count| match count {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => Ok(count),
        });
        Poll::Ready(Some(read.map(|count| {
            piece.truncate(count);
            this.left -= count as u64;
            this.bar.inc(count as u64);
            Frame::data(Bytes::from(piece))
        })))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use crate::target::tests::Pipe;
    use std::sync::mpsc::channel;

    #[test]
    fn a_pipe_is_refused_without_waiting_for_its_writer() {
        const WAIT_MAX: Duration = Duration::from_secs(20);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        drop(Pipe::make(&path));
        let args = Put { file: Some(path), remove: None, list: false, json: false, quiet: true };
        let (ended, end) = channel();
        std::thread::spawn(move || {
            let _ = ended.send(crate::control::tests::run(run(&args, &[])));
        });
        let failure = end.recv_timeout(WAIT_MAX).expect("it does not wait").unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
    }

    #[test]
    fn what_is_published_is_a_line_each() {
        let line = |whole, foreign| {
            let oid = "ab".repeat(32);
            PublishedLine { oid, bytes: 3 << 20, since: 0, whole, foreign }
        };
        let style = Style { width: 80, colour: false };
        let page = page(&[line(true, false), line(false, false), line(true, true)], style);
        let lines: Vec<_> = page.lines().collect();
        assert!(
            lines[1].starts_with("  3.0 MiB ") && lines[1].ends_with(&"ab".repeat(32)),
            "{page}"
        );
        assert!(lines[2].ends_with("(not whole: put it again)"), "{page}");
        assert!(lines[3].contains("another mesh key: take it back"), "{page}");
        assert!(super::page(&[], style).contains("nothing"));
    }
}
