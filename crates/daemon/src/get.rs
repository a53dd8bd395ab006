//! `hearsay get`: downloads a file through the running daemon, resumes after failures, and verifies
//! it. *What this is:* the steps of one download. `get/sink.rs` takes what arrives, and `get/part.rs` stores it,
//! `get/answer.rs` decides what to do with a response, `get/fetch.rs` talks to the proxy,
//! `get/verify.rs` verifies the content. *What it never does:* join two versions of a file; give a
//! file its name before it has been verified; speak TLS, which is the proxy's part. *Where to start:*
//! [`Job::run`].

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use content::Root;
use http::Uri;
use hyper::body::Incoming;
use node::named;
use serde::Serialize;
use wire::Oid;

use crate::ask;
use crate::cli::Get;
use crate::control::ManifestPage;
use crate::exit::{Exit, Failure};
use crate::out;
use crate::progress::{ProgressBar, progress};
use crate::target::{self, Target};
use crate::term;

mod answer;
mod digest;
mod fetch;
mod part;
mod sink;
mod verify;

use answer::Answer;
use digest::Sha256;
use part::Meta;
use sink::Sink;
use verify::{Promises, Sums, Unit};

/// How long to wait before each further try without progress.
const PAUSES: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(16),
];

/// More redirects than this are a loop.
const REDIRECTS_MAX: usize = 10;

/// How often to start over when the origin refuses ranges that it offered.
const RESTARTS_MAX: usize = 3;

/// The daemon stores the manifest shortly after it has sent the last byte, so `get` asks again
/// after these pauses.
const MANIFEST_PAUSES: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_millis(300), Duration::ZERO];

/// A manifest with more pages than this is not read to its end.
const MANIFEST_PAGES_MAX: usize = 1 << 20;

/// Why a download cannot be resumed.
const ANEW: &str =
    "the origin sends no strong validator (an ETag), so the same command starts over";

/// Runs the download, and prints its report.
pub async fn run(args: &Get, control: &[PathBuf]) -> Result<(), Failure> {
    let job = Job::new(args, control).await?;
    let outcome = match &job.target {
        Target::File(file) => tokio::select! {
            outcome = job.run() => outcome,
            _ = tokio::signal::ctrl_c() => Err(interrupted(file)),
        },
        // Here Ctrl-C ends the process at once, also while it waits for the reader of a pipe. Nothing is kept anyway.
        Target::Through(_) => job.run().await,
    };
    job.bar.finish_and_clear();
    let report = outcome?;
    let text = match (args.json, args.quiet) {
        (true, _) => serde_json::to_string(&report).map_err(Failure::failed)? + "\n",
        (false, true) => String::new(),
        (false, false) => report.page(),
    };
    match job.is_read_from_stdout() {
        true => text.lines().for_each(out::remark),
        false => out::print(text)?,
    }
    Ok(())
}

/// One download.
struct Job<'a> {
    url: Uri,
    /// The OID, if the command was given one.
    oid: Option<Oid>,
    /// The path to write to, as the user gave it.
    output: PathBuf,
    /// The kind of file that this path leads to.
    target: Target,
    proxy: SocketAddr,
    control: &'a [PathBuf],
    sha256: Option<Sha256>,
    pauses: &'a [Duration],
    bar: ProgressBar,
}

/// The outcome of a download.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Report {
    url: String,
    file: PathBuf,
    bytes: u64,
    /// Bytes from an earlier download.
    resumed_bytes: u64,
    seconds: f64,
    /// The cache that answered; `None`: the origin.
    answered_by: Option<String>,
    cache_status: Option<String>,
    verified: Vec<String>,
    notes: Vec<String>,
}

/// A response whose body arrived completely.
#[derive(Default)]
struct Arrived {
    /// The URL after redirects.
    url: Uri,
    /// Whether the file has no bytes of an earlier download.
    is_from_the_start: bool,
    cache_status: Option<String>,
    /// Only if one response carried the whole file.
    content_digest: Option<Sha256>,
}

/// Why a try did not complete the file.
enum Broken {
    /// Another try would fail too.
    For(Failure),
    /// Another try may succeed, from where this one ended.
    Lost(Failure),
    /// Another try may succeed, from the beginning.
    StartOver,
}

impl<'a> Job<'a> {
    async fn new(args: &Get, control: &'a [PathBuf]) -> Result<Self, Failure> {
        let (url, oid) = parse_target(&args.url)?;
        let sha256 = args.sha256.as_deref().map(|text| {
            let wrong = || Failure::usage("--sha256: expected 64 hexadecimal digits");
            digest::of_hex(text).ok_or_else(wrong)
        });
        let output = output(args.output.as_deref(), &url)?;
        let target = Target::of(&output).map_err(|error| {
            Failure::usage(format!("cannot write {}: {error}", output.display()))
        })?;
        Ok(Self {
            output,
            target,
            sha256: sha256.transpose()?,
            proxy: match args.proxy {
                Some(proxy) => proxy,
                None => proxy_of(&ask::status(control).await?.listeners)?,
            },
            url,
            oid,
            control,
            pauses: &PAUSES,
            bar: progress(args.quiet || args.json),
        })
    }

    async fn run(&self) -> Result<Report, Failure> {
        let begun = Instant::now();
        let sums = Sums::new(self.oid.is_none() || self.sha256.is_some(), self.oid.is_some());
        let mut sink = Sink::open(&self.target, &self.url.to_string(), sums)
            .map_err(|error| self.cannot_write(&error))?;
        let resumed_bytes = sink.bytes();
        let arrived = self.download(&mut sink).await?;
        let cache_status = arrived.cache_status.clone();
        let mut report = Report {
            url: self.url.to_string(),
            file: self.output.clone(),
            bytes: sink.bytes(),
            resumed_bytes: if arrived.is_from_the_start { 0 } else { resumed_bytes },
            seconds: begun.elapsed().as_secs_f64(),
            answered_by: cache_status.as_deref().and_then(answer::answered_by).map(str::to_owned),
            cache_status,
            ..Report::default()
        };
        match self.verify(&mut sink, &arrived, &mut report).await {
            Ok(()) => sink.finish().map_err(|error| self.cannot_write(&error))?,
            Err(failure) if failure.exit == Exit::Unverified => {
                return Err(Failure::unverified(format!("{failure}; {}", sink.condemn())));
            }
            Err(failure) => return Err(failure),
        }
        Ok(report)
    }

    /// Tries until the file is complete. Each try requests only the missing rest, where the origin
    /// allows that.
    async fn download(&self, sink: &mut Sink) -> Result<Arrived, Failure> {
        let (mut pauses, mut restarts) = (self.pauses.iter(), 0);
        let mut is_from_the_start = false;
        while !sink.is_whole() {
            let before = sink.bytes();
            match self.attempt(sink).await {
                Ok(arrived) => {
                    is_from_the_start |= arrived.is_from_the_start;
                    return Ok(Arrived { is_from_the_start, ..arrived });
                }
                Err(Broken::For(failure)) => return Err(failure),
                Err(Broken::StartOver) => {
                    restarts += 1;
                    if restarts > RESTARTS_MAX {
                        return Err(Failure::failed(
                            "the origin offers ranges and then refuses them",
                        ));
                    }
                    self.begin(sink, Meta { url: self.url.to_string(), ..Meta::default() })?;
                    is_from_the_start = true;
                }
                Err(Broken::Lost(failure)) => {
                    if sink.bytes() > before {
                        pauses = self.pauses.iter();
                    }
                    // Only a download that can be resumed is retried; otherwise the user decides.
                    let pause = sink.resumable().and_then(|_| pauses.next());
                    let Some(pause) = pause else { return Err(self.unfinished(sink, &failure)) };
                    self.bar.set_message("waiting");
                    tokio::time::sleep(*pause).await;
                }
            }
        }
        Ok(Arrived { is_from_the_start, ..Arrived::default() })
    }

    /// Makes one request, and follows redirects.
    async fn attempt(&self, sink: &mut Sink) -> Result<Arrived, Broken> {
        let mut url = self.url.clone();
        for _ in 0..=REDIRECTS_MAX {
            let resume = sink.resumable();
            let asked_bytes = resume.map_or(0, |(bytes, _)| bytes);
            let response = fetch::ask(self.proxy, &url, resume).await.map_err(Broken::Lost)?;
            let (head, body) = response.into_parts();
            let headers = &head.headers;
            let mut arrived = Arrived {
                url: url.clone(),
                cache_status: answer::cache_status(headers),
                ..Arrived::default()
            };
            match answer::judge(head.status, headers, sink.meta(), asked_bytes) {
                Answer::Continue => {
                    sink.learn(answer::whole_length(headers), answer::repr_digest(headers));
                }
                Answer::Anew(meta) => {
                    // The part keeps the URL before redirects, by which the same command finds it.
                    self.begin(sink, Meta { url: self.url.to_string(), ..*meta })
                        .map_err(Broken::For)?;
                    arrived.is_from_the_start = true;
                    arrived.content_digest = answer::content_digest(headers);
                }
                Answer::StartOver => return Err(Broken::StartOver),
                Answer::Redirect(to) => {
                    url = follow(&url, &to).map_err(Broken::For)?;
                    continue;
                }
                Answer::Refused(_) if self.has_no_holder(head.status) => {
                    let why = "no reachable node had the object of this name when asked";
                    return Err(Broken::For(Failure::failed(format!("{}: {why}", self.target()))));
                }
                Answer::Refused(why) => {
                    let text = match answer::is_of_proxy(headers) {
                        true => fetch::first_line(body).await,
                        false => None,
                    };
                    let why = match text {
                        Some(text) => format!("{why}: {text}"),
                        None => why,
                    };
                    return Err(Broken::For(refused(&url, &why, &arrived)));
                }
            }
            self.receive(sink, body).await?;
            return Ok(arrived);
        }
        Err(Broken::For(Failure::failed(format!("{} redirects in a circle", self.url))))
    }

    async fn receive(&self, sink: &mut Sink, mut body: Incoming) -> Result<(), Broken> {
        self.show(sink);
        while let Some(bytes) = fetch::next(&mut body).await.map_err(Broken::Lost)? {
            sink.append(&bytes).map_err(|error| Broken::For(self.cannot_write(&error)))?;
            self.bar.set_position(sink.bytes());
        }
        match sink.meta().length {
            Some(length) if sink.bytes() < length => {
                Err(Broken::Lost(Failure::failed("the body ended too early")))
            }
            _ => Ok(()),
        }
    }

    fn show(&self, sink: &Sink) {
        self.bar.set_message("");
        if let Some(length) = sink.meta().length {
            self.bar.set_length(length);
        }
        // Bytes of an earlier download do not count towards the rate.
        self.bar.set_position(sink.bytes());
        self.bar.reset_eta();
    }

    fn begin(&self, sink: &mut Sink, meta: Meta) -> Result<(), Failure> {
        sink.begin(meta).map_err(|error| self.cannot_write(&error))
    }

    /// Checks the file against every digest, length and manifest there is, and lists them in the
    /// report.
    async fn verify(
        &self,
        sink: &mut Sink,
        arrived: &Arrived,
        report: &mut Report,
    ) -> Result<(), Failure> {
        self.bar.set_message("verifying");
        if let Some(name) = &self.oid {
            return self.verify_named(name, sink, report).await;
        }
        let said = sink.meta().repr_digest.as_deref().and_then(digest::of_header);
        let sha256 = [
            said.map(|digest| ("Repr-Digest", digest)),
            arrived.content_digest.map(|digest| ("Content-Digest", digest)),
            self.sha256.map(|digest| ("--sha256", digest)),
        ];
        let units = self.manifest(&arrived.url, sink).await;
        let promises = Promises {
            length: sink.meta().length,
            sha256: sha256.into_iter().flatten().collect(),
            units: units.map_err(|note| report.notes.push(note)).ok(),
            ..Promises::default()
        };
        if promises.sha256.is_empty() {
            report.notes.push("the origin promised no SHA-256".to_owned());
        }
        report.verified = sink.verify(&promises).await?;
        Ok(())
    }

    /// Checks the file against the OID: the OID certifies the root, and the root the content. Only what the user asks
    /// for counts beside it.
    async fn verify_named(
        &self,
        name: &Oid,
        sink: &mut Sink,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let text = sink.meta().root.clone().unwrap_or_default();
        let root = Root::decode(&text).filter(|_| Root::name_of(&text) == *name);
        let Some(root) = root else {
            let why =
                "the content failed its verification: the response's root does not match the OID";
            return Err(Failure::unverified(why));
        };
        let promises = Promises {
            length: Some(root.length),
            sha256: self.sha256.map(|digest| ("--sha256", digest)).into_iter().collect(),
            blake3: Some(root.content),
            ..Promises::default()
        };
        report.verified = sink.verify(&promises).await?;
        Ok(())
    }

    fn has_no_holder(&self, status: http::StatusCode) -> bool {
        self.oid.is_some() && status == http::StatusCode::GATEWAY_TIMEOUT
    }

    /// The target as the user gave it.
    fn target(&self) -> String {
        self.oid.map_or_else(|| self.url.to_string(), |name| name.to_string())
    }

    /// The chunks that the daemon has listed for this version; or why there is no manifest to
    /// compare with.
    async fn manifest(&self, url: &Uri, sink: &Sink) -> Result<Vec<Unit>, String> {
        if let Sink::Through(_) = sink {
            return Err("not compared with the daemon's manifest: what is written through cannot be read again".into());
        }
        let url = url.to_string();
        let nothing = || "the daemon has stored no manifest of it".to_owned();
        let first = self.first_page(&url).await?.ok_or_else(nothing)?;
        let meta = sink.meta();
        let is_same = first.length == sink.bytes()
            && first.etag == meta.etag
            && first.last_modified == meta.last_modified;
        if !is_same {
            return Err("the daemon has stored another version of it".to_owned());
        }
        let (mut units, record) = (Vec::new(), first.record.clone());
        let mut page = first;
        for _ in 0..MANIFEST_PAGES_MAX {
            for unit in &page.units {
                units.push(Unit::of(unit).ok_or("the daemon's manifest cannot be read")?);
            }
            let Some(next) = page.next_page else { break };
            let asked = ask::manifest_page(self.control, &url, next).await;
            page = asked.map_err(|failure| failure.message)?.ok_or_else(nothing)?;
            if page.record != record {
                return Err("the daemon has just stored another version of it".to_owned());
            }
        }
        let sum: u64 = units.iter().map(|unit| u64::from(unit.length)).sum();
        if sum == sink.bytes() {
            Ok(units)
        } else {
            Err("the daemon's manifest is incomplete".into())
        }
    }

    async fn first_page(&self, url: &str) -> Result<Option<ManifestPage>, String> {
        for pause in MANIFEST_PAUSES {
            match ask::manifest_page(self.control, url, 0).await {
                Ok(None) => tokio::time::sleep(pause).await,
                Ok(found) => return Ok(found),
                Err(failure) => return Err(format!("no manifest to compare with: {failure}")),
            }
        }
        Ok(None)
    }

    /// The failure after the last retry, with the advice whether the download can be resumed.
    fn unfinished(&self, sink: &Sink, failure: &Failure) -> Failure {
        match sink.left() {
            Some(left) => Failure { exit: failure.exit, message: format!("{failure}; {left}") },
            None => failure.clone(),
        }
    }

    /// Whether a program reads standard output that must not take the report for content.
    fn is_read_from_stdout(&self) -> bool {
        let Target::Through(path) = &self.target else { return false };
        let is_device = std::fs::metadata(path).is_ok_and(|it| it.file_type().is_char_device());
        target::is_stdout(path) && !is_device
    }

    fn cannot_write(&self, error: &io::Error) -> Failure {
        Failure::writing(self.output.display(), error)
    }
}

impl Report {
    fn page(&self) -> String {
        let rate = (self.bytes - self.resumed_bytes) as f64 / self.seconds.max(0.001);
        let resumed = match self.resumed_bytes {
            0 => String::new(),
            bytes => format!(", {} of them resumed", term::bytes(bytes)),
        };
        let source = match (&self.answered_by, &self.cache_status) {
            (Some(cache), _) => format!("from the cache of {}", term::tame(cache, 64)),
            (None, Some(said)) => format!("from the origin ({})", term::tame(said, 120)),
            (None, None) => "without a cache".to_owned(),
        };
        let mut page = format!(
            "{}: {}{resumed}, in {:.1} s ({}/s), {source}\n",
            self.file.display(),
            term::bytes(self.bytes),
            self.seconds,
            term::bytes(rate as u64)
        );
        let verified =
            if self.verified.is_empty() { "nothing".into() } else { self.verified.join(", ") };
        page.push_str(&format!("verified: {verified}\n"));
        self.notes.iter().for_each(|note| page.push_str(&format!("note: {note}\n")));
        page
    }
}

/// Parses what to download: a URL, or an OID.
fn parse_target(text: &str) -> Result<(Uri, Option<Oid>), Failure> {
    if text.starts_with("oid:") || !text.contains([':', '/', '.']) {
        let name = parse_oid(text)?;
        let uri = named::uri(&name).parse().map_err(Failure::usage)?;
        return Ok((uri, Some(name)));
    }
    Ok((parse_url(text)?, None))
}

/// Parses an OID as it is printed, with or without `oid:`.
pub fn parse_oid(text: &str) -> Result<Oid, Failure> {
    let digits = text.strip_prefix("oid:").unwrap_or(text);
    digits.parse().map_err(|_| {
        let strange = digits.chars().find(|digit| !digit.is_ascii_hexdigit());
        let why = match strange {
            Some(strange) => format!("{strange:?} is not one"),
            None => format!("it has {} digits", digits.len()),
        };
        Failure::usage(format!(
            "{}: neither an absolute URL, like http://host/file, nor an OID, which has 64 hexadecimal digits: {why}",
            term::tame(text, 100)
        ))
    })
}

fn parse_url(text: &str) -> Result<Uri, Failure> {
    let url: Uri = text.parse().map_err(|error| Failure::usage(format!("{text}: {error}")))?;
    match (url.scheme_str(), url.authority()) {
        (Some("http" | "https"), Some(host)) if host.as_str().contains('@') => {
            Err(Failure::usage("this URL contains a user name or password: give it without"))
        }
        (Some("http" | "https"), Some(_)) => Ok(url),
        _ => {
            Err(Failure::usage(format!("{text}: expected an absolute URL, like http://host/file")))
        }
    }
}

/// The target of a redirect; refused if the user could not have given it either.
fn follow(from: &Uri, location: &str) -> Result<Uri, Failure> {
    let to = answer::resolve(from, location).ok_or_else(|| {
        Failure::failed(format!("{from} redirects to {location:?}, which is not a URL"))
    })?;
    if from.scheme_str() == Some("https") && to.scheme_str() == Some("http") {
        let why = "an answer in clear proves nothing. If it will do, give that URL";
        return Err(Failure::failed(format!("{from} redirects to {to}: {why}")));
    }
    parse_url(&to.to_string())
        .map_err(|failure| Failure::failed(format!("{from} redirects elsewhere. {failure}")))
}

fn refused(url: &Uri, why: &str, arrived: &Arrived) -> Failure {
    let by = arrived.cache_status.as_deref().map(|said| format!(" (Cache-Status: {said})"));
    Failure::failed(term::tame(&format!("{url}: {why}{}", by.unwrap_or_default()), 500))
}

/// The file to write: the one given by `-o`, or the last part of the URL.
fn output(asked: Option<&Path>, url: &Uri) -> Result<PathBuf, Failure> {
    if asked == Some(Path::new("-")) {
        return Err(Failure::usage(
            "-o -: content in a pipe cannot be verified before it is used; give a file, or /dev/stdout if that will do",
        ));
    }
    let name = url.path().rsplit('/').next().filter(|name| !["", ".", ".."].contains(name));
    let no_name = || Failure::usage(format!("{url} ends in no file name: give one by -o FILE"));
    match asked {
        Some(path) if path.is_dir() => Ok(path.join(name.ok_or_else(no_name)?)),
        Some(path) => Ok(path.to_owned()),
        None => Ok(PathBuf::from(name.ok_or_else(no_name)?)),
    }
}

/// The address of the first listener, as this machine can dial it.
fn proxy_of(listeners: &[SocketAddr]) -> Result<SocketAddr, Failure> {
    let first = listeners.first().ok_or_else(|| {
        Failure::usage("the running daemon has no explicit proxy: give it a `listen` address")
    })?;
    let ip = match first.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    Ok(SocketAddr::new(ip, first.port()))
}

fn interrupted(output: &Path) -> Failure {
    let (bytes, is_resumable) = part::left(output);
    let (path, amount) = (part::part_path(output), term::bytes(bytes));
    Failure::failed(match (bytes, is_resumable) {
        (0, _) => "interrupted; nothing had arrived".to_owned(),
        (_, true) => {
            format!("interrupted; {amount} are in {}; the same command resumes", path.display())
        }
        (_, false) => format!("interrupted after {amount}; {ANEW}"),
    })
}

#[cfg(test)]
mod tests;
