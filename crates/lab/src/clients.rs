//! Clients: curl, behind their access routers, one request after the other or staggered.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use sim::result::Transfer;
use sim::scenario::{Request, Scenario};

use crate::address;
use crate::namespace::within;
use crate::network::WORKSPACE;
use crate::origin::{Files, url};

/// A transfer is given up after so long, and as much more as its bytes need at a rate that no one
/// would bear.
const PATIENCE: Duration = Duration::from_secs(60);
const UNBEARABLE_BYTES_PER_SECOND: u64 = 1000;

/// Sends all requests, and gives their transfers in the order in which they began. `ended` is told
/// each as it ends.
pub fn run(
    scenario: &Scenario,
    requests: &[Request],
    files: &Files,
    curl: &Path,
    ended: impl Fn(&Transfer) + Sync,
) -> io::Result<Vec<Transfer>> {
    let transfers = Mutex::new(BTreeMap::new());
    let fetch = |number: usize| {
        let transfer = fetch(scenario, &requests[number], number, files, curl);
        if let Ok(transfer) = &transfer {
            ended(transfer);
        }
        transfers.lock().expect("nobody panics").insert(number, transfer);
    };
    let began = Instant::now();
    std::thread::scope(|scope| {
        for number in 0..requests.len() {
            match scenario.workload.stagger {
                None => fetch(number),
                Some(stagger) => {
                    let due = began + stagger * number as u32;
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    let fetch = &fetch;
                    scope.spawn(move || fetch(number));
                }
            }
        }
    });
    transfers.into_inner().expect("nobody panicked").into_values().collect()
}

fn fetch(
    scenario: &Scenario,
    request: &Request,
    number: usize,
    files: &Files,
    curl: &Path,
) -> io::Result<Transfer> {
    let url = url(request.file);
    let head = PathBuf::from(WORKSPACE).join(format!("head-{number}"));
    let patience = PATIENCE.as_secs() + scenario.workload.bytes / UNBEARABLE_BYTES_PER_SECOND;
    let mut command = Command::new(curl);
    command
        .args(["--disable", "--silent", "--show-error", "--noproxy", "*"])
        .args(["--max-time", &patience.to_string(), "--dump-header"])
        .arg(&head)
        .args(["--write-out", "%{stderr}%{http_code} %{time_starttransfer} %{time_total}\n", &url])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = within(&address::client(scenario, request.receiver), || command.spawn())??;
    let (bytes, hash) = digest(child.stdout.take().expect("it is piped"))?;
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let (status, ttfb_s, seconds) = times(&said);
    let headers = fs::read_to_string(&head).unwrap_or_default();
    fs::remove_file(&head).ok();
    let complete = output.status.success() && status == 200;
    Ok(Transfer {
        client: scenario.routers[request.receiver].name.clone(),
        url,
        bytes,
        ttfb_s,
        seconds,
        kbps: if seconds > 0.0 { bytes as f64 * 8.0 / seconds / 1000.0 } else { 0.0 },
        bytes_by_source: BTreeMap::from([(source(&headers).to_owned(), bytes)]),
        sha256_ok: complete && hash == files.hash(request.file),
    })
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

/// What curl's last line says: status, seconds to the first byte and to the last.
fn times(said: &str) -> (u16, f64, f64) {
    let mut words = said.lines().last().unwrap_or_default().split(' ');
    let status = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let mut seconds = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    (status, seconds(), seconds())
}

/// Where the bytes came from, as `Cache-Status` has it (RFC 9211): from the gateway's store or,
/// without one on the way or with nothing in it, from the origin.
fn source(headers: &str) -> &'static str {
    let is_hit = headers.lines().any(|line| {
        let (name, value) = line.split_once(':').unwrap_or_default();
        name.eq_ignore_ascii_case("cache-status")
            && value.split(';').any(|parameter| parameter.trim() == "hit")
    });
    if is_hit { "gateway" } else { "origin" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_is_read_from_the_headers() {
        for (headers, expected) in [
            ("HTTP/1.1 200 OK\r\nCache-Status: router-8; hit; ttl=3\r\n", "gateway"),
            ("HTTP/1.1 200 OK\r\ncache-status: router-8; fwd=uri-miss; stored\r\n", "origin"),
            ("HTTP/1.1 200 OK\r\n", "origin"),
            ("", "origin"),
        ] {
            assert_eq!(source(headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn the_times_are_on_the_last_line() {
        assert_eq!(times("200 0.25 1.5\n"), (200, 0.25, 1.5));
        assert_eq!(times("curl: (28) too slow\n000 0.0 60.1\n"), (0, 0.0, 60.1));
        assert_eq!(times("curl: not started"), (0, 0.0, 0.0));
    }
}
