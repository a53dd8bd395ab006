//! The Debian package, in a root of its own that debootstrap made: installed as docs/install.md says, upgraded while a
//! transfer is under way, removed and purged. lintian and systemd-analyze judge it. `scripts/setup --long` fetches the
//! root, `scripts/package` makes the package, `scripts/test --long` runs both and these tests, which others ignore.
//!
//! There is no systemd in the root: `package/systemctl` starts and stops the service as its unit says.

#[allow(dead_code, unused_imports, reason = "this file uses only apt's")]
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::registries::{Registries, missing, run};
use crate::world::network::{self, CLIENT, ORIGIN};
use crate::world::{Curl, Nginx, Place, World, assert_same, noise, sh, skipped, wait_until};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// The first version of the package that `scripts/package` has made, for release or else for development.
fn package() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_BIN_EXE_hearsay")).parent()?.parent()?;
    let folders = ["release", "debug"].map(|profile| target.join(profile).join("package"));
    let name = format!("hearsay_{}-1_amd64.deb", env!("CARGO_PKG_VERSION"));
    folders.into_iter().map(|it| it.join(&name)).find(|it| it.exists())
}

/// Where `scripts/setup --long` puts the root.
fn root_archive() -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|it| PathBuf::from(it).join(".cache"));
    let caches = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)?;
    Some(caches.join("hearsay/debian-12.tar")).filter(|it| it.exists())
}

/// The package, if all that a test needs is there; else says what is missing.
fn package_for(test: &str, programs: &[&'static str]) -> Option<PathBuf> {
    if let Some(program) = missing(programs) {
        skipped(test, &format!("{program} is not installed: run scripts/setup --long"));
        return None;
    }
    let package = package();
    if package.is_none() {
        skipped(test, "there is no package: run scripts/package");
    }
    package
}

#[test]
#[ignore = "needs the package, and lintian; scripts/test --long runs it"]
fn lintian_finds_no_error() {
    let Some(package) = package_for("lintian_finds_no_error", &["lintian"]) else { return };
    let output =
        Command::new("lintian").arg("--allow-root").arg(package).output().expect("lintian");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors: Vec<_> = said.lines().filter(|line| line.starts_with("E: ")).collect();
    assert!(output.status.success() && errors.is_empty(), "{said}");
}

#[test]
#[ignore = "needs systemd-analyze; scripts/test --long runs it"]
fn systemd_finds_the_units_right_and_safe() {
    let test = "systemd_finds_the_units_right_and_safe";
    if missing(&["systemd-analyze"]).is_some() {
        return skipped(test, "systemd-analyze is not installed: run scripts/setup --long");
    }
    let world = World::new();
    // `cargo deb` wants the package's name before that of another unit.
    for (file, name) in [
        ("hearsay.service", "hearsay.service"),
        ("hearsay.hearsay-far.service", "hearsay-far.service"),
    ] {
        let text = Path::new(CRATE).join("../../packaging/debian").join(file);
        let text = std::fs::read_to_string(text).expect("the unit");
        // The program is not installed here, nor are its manual pages.
        let text = text.replace("/usr/bin/hearsay", env!("CARGO_BIN_EXE_hearsay"));
        let unit = world.write(name, text.as_bytes()).display().to_string();
        let analyze = |args: &[&str]| {
            let output = Command::new("systemd-analyze").args(args).arg(&unit).output();
            let output = output.expect("systemd-analyze starts");
            let said = [output.stdout, output.stderr].concat();
            (output.status.success(), String::from_utf8_lossy(&said).into_owned())
        };
        let (is_right, said) = analyze(&["verify", "--man=no"]);
        assert!(is_right && !said.contains(name), "{said}");
        // The threshold is ten times the highest level that is allowed: 2.5.
        let (is_safe, said) = analyze(&["security", "--offline=yes", "--threshold=25"]);
        assert!(is_safe && said.contains("Overall exposure level"), "{said}");
    }
}

/// The root with the package's parts, and what runs in it. Processes end with the namespace.
struct Root(PathBuf);

impl Root {
    /// Unpacks the root; the service manager is a stand-in.
    fn unpack(world: &World, archive: &Path) -> Self {
        let root = Self(world.path("root"));
        let (dir, archive) = (root.0.display(), archive.display());
        sh(&format!(
            "mkdir {dir}; tar -xpf {archive} -C {dir}
             mount -t proc proc {dir}/proc; mount -t tmpfs none {dir}/run
             mkdir -p {dir}/run/systemd/system
             cp {CRATE}/tests/package/systemctl {dir}/usr/bin/systemctl
             rm -f {dir}/usr/sbin/policy-rc.d
             cp /etc/hosts /etc/resolv.conf {dir}/etc/"
        ));
        root
    }

    /// Runs a script in the root, as root would type it in its home directory. Returns its output.
    #[track_caller]
    fn sh(&self, script: &str) -> String {
        let output = Command::new("chroot")
            .arg(&self.0)
            .args(["sh", "-ec", &format!("cd /root\n{script}")])
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .output()
            .expect("chroot starts");
        let said = String::from_utf8_lossy(&output.stderr);
        let log = std::fs::read_to_string(self.0.join("var/log/stand-in")).unwrap_or_default();
        assert!(output.status.success(), "failed: {script}\n{said}\n{log}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn status(&self) -> serde_json::Value {
        serde_json::from_str(&self.sh("hearsay status --json")).expect("JSON")
    }

    fn number(&self, pointer: &str) -> u64 {
        let status = self.status();
        status.pointer(pointer).and_then(serde_json::Value::as_u64).expect(pointer)
    }

    fn wait_until_durable(&self) {
        wait_until("the store to be synced", || {
            self.number("/report/fetches") == 0 && self.status()["report"]["unsynced"] == false
        });
    }
}

impl Drop for Root {
    /// Ends what still runs in the root, which the kernel would otherwise end with the namespace, and takes its mounts
    /// away, so that the directory can be removed.
    fn drop(&mut self) {
        let dir = self.0.display();
        let stop = "test ! -x /usr/bin/hearsay || for unit in hearsay hearsay-far; do
                    /usr/bin/systemctl stop $unit; done";
        let _ = Command::new("chroot").arg(&self.0).args(["sh", "-c", stop]).status();
        let _ = Command::new("umount").arg(format!("{dir}/run")).status();
        let _ = Command::new("umount").arg(format!("{dir}/proc")).status();
    }
}

/// The commands of docs/install.md that a new user types first.
fn three_commands() -> Vec<String> {
    commands("install.md", "```console\n")
}

/// The commands of the first block of a page that begins like this.
fn commands(page: &str, begin: &str) -> Vec<String> {
    let page = std::fs::read_to_string(Path::new(CRATE).join("../../docs").join(page));
    let page = page.expect("the page");
    let (_, block) = page.split_once(begin).expect("a block of commands");
    let begin = begin.trim_start_matches("```console\n");
    let block = begin.to_owned() + block.split("```").next().unwrap_or_default();
    block.lines().map(str::to_owned).collect()
}

/// The same package with another revision: only its number differs.
fn next_revision(world: &World, package: &Path) -> PathBuf {
    let (dir, next) = (world.path("unpacked"), world.path("next.deb"));
    let (from, dir, to) = (package.display(), dir.display(), next.display());
    sh(&format!(
        "dpkg-deb -R {from} {dir}; sed -i 's/^\\(Version: .*\\)-1$/\\1-2/' {dir}/DEBIAN/control
         dpkg-deb -Zgzip -b {dir} {to} >/dev/null"
    ));
    next
}

#[test]
#[ignore = "needs a root of Debian and the package; scripts/test --long runs it"]
fn it_is_installed_upgraded_removed_and_purged() {
    let test = "it_is_installed_upgraded_removed_and_purged";
    if package_for(test, &["dpkg-deb", "chroot", "apt-get"]).is_none() {
        return;
    }
    if root_archive().is_none() {
        return skipped(test, "there is no root of Debian: run scripts/setup --long");
    }
    network::inside(test, || {
        let world = World::new();
        // The interface that the page names, and a second client, behind the first.
        sh("ip link set lan0 down; ip link set lan0 name br-lan; ip link set br-lan up
            ip addr replace 10.1.0.1/24 dev br-lan
            ip netns add client2
            ip link add eth1 netns client type veth peer name eth0 netns client2
            ip -n client addr add 10.4.0.1/24 dev eth1; ip -n client link set eth1 up
            ip netns exec client sysctl -qw net.ipv4.ip_forward=1
            ip -n client2 addr add 10.4.0.2/24 dev eth0
            ip -n client2 link set eth0 up; ip -n client2 link set lo up
            ip -n client2 route add default via 10.4.0.1
            ip route add 10.4.0.0/24 via 10.1.0.2");
        let registries = Registries::start(&world, &[]);
        let package = package().expect("it was there");
        let root = Root::unpack(&world, &root_archive().expect("it was there"));
        std::fs::copy(&package, root.0.join("root").join(package.file_name().expect("a name")))
            .expect("the package is copied");
        let before = everything_named(&root);

        install(&root, registries);
        let far_key = start_far_end(&root);
        upgrade(&world, &root, &package);
        assert_eq!(far_end(&root)["key"].as_str(), Some(&*far_key), "its store is kept");
        root.sh("apt-get -qq remove hearsay");
        assert!(!root.0.join("run/hearsay-far").exists(), "the far end was not stopped");
        assert!(!root.0.join("run/hearsay").exists() && !root.0.join("usr/bin/hearsay").exists());
        assert!(root.0.join("etc/hearsay/hearsay.toml").exists(), "a removal keeps the settings");
        assert_eq!(sh("nft list tables").trim(), "", "rules are left");
        root.sh("echo secret >/etc/hearsay/mesh.key; apt-get -qq purge hearsay");
        assert_eq!(everything_named(&root), before);
    });
}

/// All files and users in the root that have the package's name, but what dpkg and apt keep of each package.
fn everything_named(root: &Root) -> String {
    root.sh("find / -xdev -name '*hearsay*' -not -name '*.deb' | grep -v ^/proc | sort
         grep -h hearsay /etc/passwd /etc/group /etc/shadow /etc/gshadow || true
         dpkg -l hearsay 2>/dev/null | grep hearsay || true")
}

/// Types the three commands, and has two clients install a package.
fn install(root: &Root, registries: Registries) {
    let commands = three_commands();
    assert_eq!(commands.len(), 3, "{commands:?}");
    for command in commands {
        // apt would ask whether to install; there is nobody to say yes.
        root.sh(&command.replace("apt install", "apt-get -q -y install"));
    }
    wait_until("the interface to be intercepted", || sh("nft list ruleset").contains("br-lan"));
    let id = root.sh("cat /run/stand-in.hearsay");
    let status = std::fs::read_to_string(format!("/proc/{}/status", id.trim())).expect("it runs");
    let uid = root.sh("id -u hearsay");
    assert!(status.contains(&format!("Uid:\t{}\t", uid.trim())), "it is not hearsay's: {status}");
    for (client, files) in [(CLIENT, true), (Place::In("client2"), false)] {
        let begin = registries.sent().len();
        let got = run("apt", client, &[("PLAIN", "1"), ("CA", "/dev/null")]);
        assert_eq!(got.unwrap_or_else(|said| panic!("{said}")), registries.wanted("apt"));
        root.wait_until_durable();
        assert_eq!(registries.file_bytes_since(begin) > 0, files, "{client:?}");
    }
    assert!(root.number("/report/requests/hit") > 0);
}

/// Starts the far end as docs/uplink.md says, which the package has not done, and reloads it. Returns its key.
fn start_far_end(root: &Root) -> String {
    assert_eq!(root.sh("systemctl is-enabled hearsay-far || echo no").trim(), "no");
    assert!(!root.0.join("run/stand-in.hearsay-far").exists(), "it was started");
    let add = |key: &str| {
        root.sh(&format!(
            "sed -i 's/^#\\?gateways = .*/gateways = [\"{key}\"]/' /etc/hearsay/far.toml"
        ));
    };
    add(&"5f".repeat(32));
    let commands = commands("uplink.md", "```console\nhearsay check-config --far\n");
    assert_eq!(commands.len(), 4, "{commands:?}");
    // The daemon, which a server does not need, is still to be tested here.
    let typed = commands.iter().filter(|it| !it.starts_with("systemctl disable --now hearsay "));
    let printed: Vec<_> = typed.map(|command| root.sh(command)).collect();
    assert!(printed.last().is_some_and(|it| it.contains("gateways     0 of 1 connected")));
    add(root.sh("hearsay uplink --key").trim());
    root.sh("systemctl reload hearsay-far");
    let key = root.sh("hearsay uplink --key").trim().to_owned();
    wait_until("the reload", || far_end(root)["gateways"][0]["key"] == key.as_str());
    let id = root.sh("cat /run/stand-in.hearsay-far");
    let status = std::fs::read_to_string(format!("/proc/{}/status", id.trim())).expect("it runs");
    assert!(status.contains("CapBnd:\t0000000000000000\n"), "it has rights: {status}");
    far_end(root)["key"].as_str().expect("a key").to_owned()
}

fn far_end(root: &Root) -> serde_json::Value {
    serde_json::from_str(&root.sh("hearsay far status --json")).expect("JSON")
}

/// Upgrades while the store is full and a client's transfer is under way: the transfer ends whole, the store is kept.
fn upgrade(world: &World, root: &Root, package: &Path) {
    root.sh("sed -i 's/^#size = .*/size = \"16MiB\"/' /etc/hearsay/hearsay.toml; systemctl restart hearsay");
    let nginx = Nginx::start_in(world, ORIGIN, "location /slow { limit_rate 300k; }");
    let (slow, last) = (noise(1, 1_500_000), noise(2, 2_000_000));
    nginx.put("slow", &slow);
    nginx.put("last", &last);
    for number in 0..10 {
        nginx.put(&format!("fill{number}"), &noise(10 + number, 2_000_000));
        Curl::new(CLIENT, &format!("http://origin.test/fill{number}")).run().expect(200);
    }
    Curl::new(CLIENT, "http://origin.test/last").run().expect(200);
    root.wait_until_durable();
    let transfer = Curl::new(CLIENT, "http://origin.test/slow").start();
    wait_until("some of it to arrive", || transfer.received() > 100_000);
    let next = next_revision(world, package);
    std::fs::copy(next, root.0.join("root/next.deb")).expect("the package is copied");
    root.sh("dpkg -i next.deb >/dev/null");
    assert_same(&transfer.wait().expect(200).body, &slow);
    let version = root.sh("dpkg-query -W -f '${Version} ${Status}' hearsay");
    assert!(version.ends_with("-2 install ok installed"), "{version}");
    assert!(
        root.sh("cat /etc/hearsay/hearsay.toml").contains("\nsize = \"16MiB\"\n"),
        "settings lost"
    );
    Curl::new(CLIENT, "http://origin.test/last").run().expect_hit();
}
