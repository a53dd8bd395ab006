//! Clients: curl behind the access routers, one request after the other or staggered.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::sync_channel;
use std::time::Instant;

use sha2::{Digest as _, Sha256};
use sim::result::Transfer;
use sim::result::source::{self, BytesBySource, ServedBy};
use sim::scenario::{Request, Scenario};
use wire::Scheme;

use super::address;
use super::namespace::within;
use super::network::WORKSPACE;
use super::origin::{Files, url};
use super::overheard;
use super::require::Programs;
use super::routers;

/// A transfer fails if the origin cannot be reached for this long, or data is slower than `SLOWEST` for this
/// long; in seconds.
const TIMEOUT_S: &str = "60";

/// The slowest transfer that does not fail, in bytes per second.
const SLOWEST: &str = "100";

/// Largest number of transfers at one time; a further one begins when one has ended.
const AT_ONCE_MAX: usize = 200;

/// The transfers of a run.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The requests, in order.
    pub requests: &'a [Request],
    /// The origin's files.
    pub files: &'a Files,
    /// The scheme.
    pub scheme: Scheme,
    /// The programs to use.
    pub programs: &'a Programs,
}

/// Sends all requests, and gives their transfers in the order in which they began. Calls `ended` with each
/// transfer as it ends.
pub fn run(plan: Plan<'_>, ended: impl Fn(&Transfer) + Sync) -> Vec<Transfer> {
    let Plan { scenario, requests, .. } = plan;
    let transfers = Mutex::new(BTreeMap::new());
    let fetch = |number: usize| {
        let transfer = fetch(plan, number);
        ended(&transfer);
        transfers.lock().expect("no thread panics").insert(number, transfer);
    };
    let began = Instant::now();
    let (places, place) = sync_channel(AT_ONCE_MAX);
    let place = Mutex::new(place);
    std::thread::scope(|scope| {
        for number in 0..requests.len() {
            let Some(stagger) = scenario.workload.stagger else {
                fetch(number);
                continue;
            };
            let due = began + stagger * number as u32;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            // The channel is a semaphore: it blocks while the largest number of transfers is running.
            places.send(()).expect("the receiver lives as long");
            let (fetch, place) = (&fetch, &place);
            scope.spawn(move || {
                fetch(number);
                place.lock().expect("no thread panics").recv().expect("a permit was sent");
            });
        }
    });
    transfers.into_inner().expect("no thread panicked").into_values().collect()
}

/// Makes one request. Errors are part of the transfer.
fn fetch(plan: Plan<'_>, number: usize) -> Transfer {
    let Plan { scenario, requests, files, scheme, programs } = plan;
    let request = &requests[number];
    let url = url(scenario, request.file);
    // While other clients fetch too, the gateway's bytes cannot be told apart.
    let is_countable = scheme.overhears() && scenario.workload.stagger.is_none();
    let given =
        || is_countable.then(|| routers::given_by_gateway(scenario, &programs.hearsay)).flatten();
    let before = given();
    let answer = ask(&address::client(scenario, request.receiver), &url, number, &programs.curl);
    let got = answer
        .unwrap_or_else(|error| Got { failure: Some(format!("curl: {error}")), ..Got::default() });
    let router =
        |name| (0..scenario.routers.len()).find(|it| address::router(scenario, *it) == name);
    let giver = cache_status(&got.headers).as_deref().and_then(source::giver).and_then(router);
    let asked_before = requests[..number].contains(request);
    let source = ServedBy::of(giver, request.receiver, scenario.gateway, asked_before);
    let counted = (scheme.overhears() && got.failure.is_none())
        .then(|| overheard::bytes(scenario, &programs.hearsay, request.receiver, &url))
        .flatten();
    // The difference is what the gateway gave during this transfer.
    let from_gateway = before.and_then(|before| given()?.checked_sub(before));
    let bytes_by_source = match counted {
        Some(counted) => {
            let here = ServedBy::access(request.receiver, scenario.gateway, asked_before);
            BytesBySource { from_gateway, ..counted }.by_source(source, here, got.bytes)
        }
        None => BTreeMap::from([(source.name().to_owned(), got.bytes)]),
    };
    Transfer {
        client: scenario.routers[request.receiver].name.clone(),
        // Without readable routes the number of hops is 0.
        hops: routers::hops(scenario, request.receiver).unwrap_or(0),
        url,
        bytes: got.bytes,
        ttfb_s: got.ttfb_s,
        seconds: got.seconds,
        kbps: if got.seconds > 0.0 { got.bytes as f64 * 8.0 / got.seconds / 1000.0 } else { 0.0 },
        source: got.failure.is_none().then_some(source),
        bytes_by_source,
        sha256_ok: got.failure.is_none() && got.hash == files.hash(request.file),
        error: got.failure,
    }
}

/// What curl received and reported.
#[derive(Default)]
struct Got {
    headers: String,
    bytes: u64,
    hash: [u8; 32],
    ttfb_s: f64,
    seconds: f64,
    /// Why the response is incomplete, if it is.
    failure: Option<String>,
}

fn ask(namespace: &str, url: &str, number: usize, curl: &Path) -> io::Result<Got> {
    let head = PathBuf::from(WORKSPACE).join(format!("head-{number}"));
    let mut command = Command::new(curl);
    command
        .args(["--disable", "--silent", "--show-error", "--noproxy", "*"])
        .args(["--connect-timeout", TIMEOUT_S])
        .args(["--speed-time", TIMEOUT_S, "--speed-limit", SLOWEST, "--dump-header"])
        .arg(&head)
        .args(["--write-out", "%{stderr}%{http_code} %{time_starttransfer} %{time_total}\n", url])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = within(namespace, || command.spawn())??;
    let (bytes, hash) = digest(child.stdout.take().expect("it is piped"))?;
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let (status, ttfb_s, seconds) = times(&said);
    let failure = match (output.status.success(), status) {
        (true, 200) => None,
        (true, status) => Some(format!("status {status}")),
        (false, _) => Some(said.lines().next().unwrap_or("curl failed").to_owned()),
    };
    let headers = fs::read_to_string(&head).unwrap_or_default();
    fs::remove_file(&head).ok();
    Ok(Got { headers, bytes, hash, ttfb_s, seconds, failure })
}

fn digest(mut body: impl Read) -> io::Result<(u64, [u8; 32])> {
    let mut sha256 = Sha256::new();
    let mut bytes = 0;
    let mut block = [0; 16 * 1024];
    loop {
        match body.read(&mut block)? {
            0 => return Ok((bytes, sha256.finalize().into())),
            length => {
                sha256.update(&block[..length]);
                bytes += length as u64;
            }
        }
    }
}

/// Curl's last line: status, seconds to the first byte and to the last.
fn times(said: &str) -> (u16, f64, f64) {
    let mut words = said.lines().last().unwrap_or_default().split(' ');
    let status = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let mut seconds = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    (status, seconds(), seconds())
}

/// All `Cache-Status` fields, in one line.
fn cache_status(headers: &str) -> Option<String> {
    let fields = headers.lines().filter_map(|line| line.split_once(':'));
    let lines: Vec<_> = fields
        .filter(|(name, _)| name.eq_ignore_ascii_case("cache-status"))
        .map(|(_, value)| value.trim())
        .collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_one_name_are_one_list() {
        for (headers, expected) in [
            ("HTTP/1.1 200 OK\r\nCache-Status: a; hit; ttl=3\r\nVia: b\r\n", Some("a; hit; ttl=3")),
            ("HTTP/1.1 200 OK\r\ncache-status: a\r\nCache-Status:b, c \r\n", Some("a, b, c")),
            ("HTTP/1.1 200 OK\r\nVia: b\r\n", None),
            ("", None),
        ] {
            assert_eq!(cache_status(headers).as_deref(), expected, "{headers:?}");
        }
    }

    #[test]
    fn the_times_are_on_the_last_line() {
        assert_eq!(times("200 0.25 1.5\n"), (200, 0.25, 1.5));
        assert_eq!(times("curl: (28) too slow\n000 0.0 60.1\n"), (0, 0.0, 60.1));
        assert_eq!(times("curl: not started"), (0, 0.0, 0.0));
    }
}
