//! The origin: nginx, and files generated from the seed.

use std::fs;
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use sim::hosts::content::{self, Source};
use sim::scenario::Scenario;

use super::address;
use super::child::{Background, wait_for};
use super::namespace::within;
use super::network::WORKSPACE;

/// How long nginx may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The SHA-256 of each of the origin's files, by its number.
#[derive(Debug)]
pub struct Files(Vec<[u8; 32]>);

impl Files {
    /// Writes `count` files of `bytes` bytes each.
    pub fn make(count: usize, bytes: u64, source: Source) -> io::Result<Self> {
        fs::create_dir_all(folder())?;
        (0..count).map(|number| make(number, bytes, source)).collect::<Result<_, _>>().map(Self)
    }

    /// SHA-256 of a file.
    pub fn hash(&self, number: usize) -> [u8; 32] {
        self.0[number]
    }
}

/// The URL of a file.
pub fn url(scenario: &Scenario, number: usize) -> String {
    format!("http://{}{}", scenario.far.origin_name(), content::path(number))
}

/// Starts nginx.
pub fn start(scenario: &Scenario, nginx: &Path) -> io::Result<Background> {
    let config = PathBuf::from(WORKSPACE).join("nginx.conf");
    fs::write(&config, configuration())?;
    let mut command = Command::new(nginx);
    // Inside a user namespace there is no other user to switch to.
    command.args(["-e", "stderr", "-g", "user root root; daemon off;", "-c"]).arg(&config);
    let background = Background::start(address::ORIGIN, "nginx", &mut command)?;
    let server = SocketAddr::from((address::origin(scenario), 80));
    let mut programs = [background];
    wait_for("nginx answers", TIMEOUT, &mut programs, || {
        within(address::ORIGIN, || TcpStream::connect_timeout(&server, TIMEOUT).is_ok())
    })?;
    let [background] = programs;
    Ok(background)
}

fn configuration() -> String {
    let work = WORKSPACE;
    let www = folder();
    let www = www.display();
    format!(
        "worker_processes 1;
pid {work}/nginx.pid;
events {{ worker_connections 1024; }}
http {{
    default_type application/octet-stream;
    access_log off;
    client_body_temp_path {work}/nginx-body;
    proxy_temp_path {work}/nginx-proxy;
    fastcgi_temp_path {work}/nginx-fastcgi;
    uwsgi_temp_path {work}/nginx-uwsgi;
    scgi_temp_path {work}/nginx-scgi;
    sendfile on;
    server {{
        listen 80;
        root {www};
        add_header Cache-Control 'public, max-age=86400';
    }}
}}
"
    )
}

fn folder() -> PathBuf {
    PathBuf::from(WORKSPACE).join("www")
}

fn name(number: usize) -> String {
    content::path(number).split_off(1)
}

/// Writes a file, with the same bytes as in the simulator, and returns its SHA-256.
fn make(number: usize, bytes: u64, source: Source) -> io::Result<[u8; 32]> {
    let mut file = io::BufWriter::new(fs::File::create(folder().join(name(number)))?);
    let mut stream = content::stream(source, number);
    let mut sha256 = Sha256::new();
    let mut left = bytes;
    let mut block = [0; 8192];
    while left > 0 {
        let length = left.min(block.len() as u64) as usize;
        stream.fill(&mut block[..length]);
        sha256.update(&block[..length]);
        file.write_all(&block[..length])?;
        left -= length as u64;
    }
    file.flush()?;
    Ok(sha256.finalize().into())
}
