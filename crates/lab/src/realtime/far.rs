//! The far end of the uplink's pair: `hearsay far`, just outside the uplink.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::address;
use super::child::{Background, wait_for};
use super::namespace::within;
use super::network::WORKSPACE;

/// How long it may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Starts the far end of the gateway whose store this is, and waits until it takes connections.
pub fn start(hearsay: &Path, gateway: &Path) -> io::Result<Background> {
    let near = key(hearsay, gateway)?;
    let place = SocketAddr::from((address::OUTER_ADDRESS, address::FAR_PORT));
    let mut command = Command::new(hearsay);
    command.args(["far", "--near", &near, "--listen", &place.to_string(), "--store"]).arg(store());
    command.arg("--control").arg(PathBuf::from(WORKSPACE).join("far.control"));
    let mut programs = [Background::start(address::FAR, address::FAR, &mut command)?];
    wait_for("the far end answers", TIMEOUT, &mut programs, || {
        within(address::FAR, || TcpStream::connect_timeout(&place, TIMEOUT).is_ok())
    })?;
    let [background] = programs;
    Ok(background)
}

/// What the gateway's configuration says of it.
pub fn for_gateway(hearsay: &Path) -> io::Result<String> {
    let (name, port, key) = (address::FAR, address::FAR_PORT, key(hearsay, &store())?);
    Ok(format!("[uplink]\nfar = \"{name}:{port}\"\nfar-key = \"{key}\"\n"))
}

/// The public key of the daemon that has this store. It is made if there is none yet.
fn key(hearsay: &Path, store: &Path) -> io::Result<String> {
    let output = Command::new(hearsay).args(["uplink", "--key", "--store"]).arg(store).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("hearsay uplink --key: {}", said.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn store() -> PathBuf {
    PathBuf::from(WORKSPACE).join("far.store")
}
