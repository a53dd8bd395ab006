//! A well-behaved origin: nginx, with a prefix directory of its own.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::{Curl, Place, Process, World, free_port, tool, wait_until};

/// A running nginx. It serves the files in its `www` with `Cache-Control: max-age=3600`, unless the test's own
/// locations differ.
pub struct Nginx {
    process: Process,
    place: Place,
    dir: PathBuf,
    port: u16,
}

impl Nginx {
    /// Starts nginx on loopback. `locations` precede the location for files.
    pub fn start(world: &World, locations: &str) -> Self {
        // Another process may take the port before nginx binds it.
        (0..5)
            .find_map(|_| Self::try_start(world, Place::Here, free_port(), locations).ok())
            .expect("nginx starts: is nginx-light installed?")
    }

    /// Starts nginx on ports 80 and 8080 of a namespace.
    pub fn start_in(world: &World, place: Place, locations: &str) -> Self {
        Self::try_start(world, place, 80, locations).unwrap_or_else(|said| panic!("nginx: {said}"))
    }

    fn try_start(world: &World, place: Place, port: u16, locations: &str) -> Result<Self, String> {
        let dir = world.path("nginx");
        fs::create_dir_all(dir.join("www")).expect("mkdir");
        fs::write(dir.join("conf"), configuration(&dir, port, locations)).expect("write");
        let log = fs::File::create(dir.join("said")).expect("a file");
        let child = place
            .command(tool("nginx"))
            .arg("-p")
            .arg(&dir)
            .arg("-c")
            .arg(dir.join("conf"))
            .arg("-e")
            .arg(dir.join("errors"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("nginx starts: is nginx-light installed?");
        let mut nginx = Self { process: Process(child), place, dir, port };
        let mut ended = false;
        wait_until("nginx to answer", || {
            ended = nginx.process.has_ended();
            ended || nginx.waiting_writers().is_some()
        });
        if ended {
            Err(fs::read_to_string(nginx.dir.join("said")).unwrap_or_default())
        } else {
            Ok(nginx)
        }
    }

    /// Writes a file to serve, and the folders above it.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.dir.join("www").join(name);
        fs::create_dir_all(path.parent().expect("it is below www")).expect("mkdir");
        fs::write(path, bytes).expect("write");
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// The requests so far: method, path, status, bytes of content, `Accept-Encoding`. nginx logs a request when its
    /// response ends, so this waits until no response is under way.
    pub fn asked(&self) -> Vec<String> {
        wait_until("nginx to answer nobody", || self.waiting_writers() == Some(1));
        let log = fs::read_to_string(self.dir.join("asked")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// The number of requests for a path.
    pub fn count(&self, path: &str) -> usize {
        self.asked().iter().filter(|line| line.split(' ').nth(1) == Some(path)).count()
    }

    /// The number of responses under way, including the one to this query.
    fn waiting_writers(&self) -> Option<u32> {
        let url = format!("http://127.0.0.1:{}{}", self.port, idle(&self.dir));
        let reply = Curl::new(self.place, &url).run();
        let text = reply.text();
        text.split("Writing: ").nth(1)?.split(' ').next()?.parse().ok()
    }
}

/// The path of nginx's own counts. Another nginx that took the port does not know it.
fn idle(dir: &Path) -> String {
    let world = dir.parent().and_then(Path::file_name).expect("it is in a world's directory");
    format!("/idle/{}", world.display())
}

/// nginx's configuration. There is no master process, so that one signal ends nginx. `user root` is for user
/// namespaces, which have no other user; outside them nginx only warns an ordinary user.
fn configuration(dir: &Path, port: u16, locations: &str) -> String {
    let (idle, dir) = (idle(dir), dir.display());
    let mut text = format!(
        "user root root; daemon off; master_process off; pid {dir}/pid; error_log {dir}/errors;
        events {{ worker_connections 512; }}
        http {{
            default_type application/octet-stream;
            tcp_nodelay on; sendfile on; client_max_body_size 64m;
            log_format asked '$request_method $uri $status $body_bytes_sent $http_accept_encoding';
            access_log {dir}/asked asked;
        "
    );
    for part in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        let _ = writeln!(text, "{part}_temp_path {dir}/{part};");
    }
    let listen = if port == 80 { "listen 80; listen [::]:80; listen 8080;" } else { "" };
    let listen =
        if listen.is_empty() { format!("listen 127.0.0.1:{port};") } else { listen.into() };
    let _ = write!(
        text,
        "server {{
            {listen}
            root {dir}/www;
            location = {idle} {{ stub_status; access_log off; }}
            {locations}
            location / {{ add_header Cache-Control max-age=3600; }}
        }} }}"
    );
    text
}
