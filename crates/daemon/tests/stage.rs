//! The mesh of the operator's guide:
//!
//! ```text
//!   client ── br-lan router wl0 ── wl0 gateway wan0 ── origin
//!   10.1.0.2            10.77.0.1  10.77.0.2           198.51.100.2
//! ```
//!
//! Each machine has its own `/etc/hearsay`, `/var/cache`, `/run`, home, host name and process ids, in namespaces
//! that end with the test. All host names in the guide lead to the origin.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::guide::{Step, Way, missing};
use crate::world::network::ORIGIN;
use crate::world::{Nginx, Place, Process, TIMEOUT, World, noise, sh, wait_until};

/// The machines whose commands the guide shows, and the namespaces of their interfaces.
pub const MACHINES: [(&str, Place); 3] =
    [("client", Place::In("client")), ("router", Place::Here), ("gateway", Place::In("gateway"))];

/// The origin's files, and their lengths in bytes.
const FILES: [(&str, usize); 2] =
    [("debian/dists/stable/Release", 150_000), ("debian-cd/netinst.iso", 5_000_000)];

/// The exit code of timeout(1) when it ended its command.
const TIMED_OUT: i32 = 124;

/// Makes a machine's own folders in `$1`, a directory of the test. The rest of /etc is unchanged. There is no ssh:
/// `scp -p FILE root@MACHINE:/PATH` only copies the file.
const OWN_FOLDERS: &str = "
    mkdir -p $1/home $1/bin $1/was $1/etc/hearsay
    mount --rbind /etc $1/was
    for it in $1/was/*; do ln -s $it $1/etc/; done
    mount --bind $1/etc /etc
    mount -t tmpfs none /run
    mount -t tmpfs none /var/cache
    hostname $2
    printf '%s\n' '#!/bin/sh' \
        'to=${3#root@}; exec cp $1 $2 ${0%/*}/../../${to%%:*}${to#*:}' >$1/bin/scp
    chmod +x $1/bin/scp
    touch $1/ready
    exec sleep infinity";

pub struct Stage {
    machines: Vec<Machine>,
    _nginx: Nginx,
    /// A file with the variables that steps have set, for later steps.
    variables: PathBuf,
}

struct Machine {
    name: &'static str,
    folder: PathBuf,
    /// The process that keeps the machine's namespaces.
    holder: Process,
    /// The daemon in the machine's second terminal.
    daemon: Option<Process>,
}

impl Stage {
    /// Sets up the machines, in a private network.
    pub fn new(world: &World) -> Self {
        interfaces();
        let nginx = Nginx::start_in(world, ORIGIN, "");
        for (at, (name, length)) in FILES.into_iter().enumerate() {
            nginx.put(name, &noise(at as u64, length));
        }
        let machines = MACHINES.map(|(name, place)| Machine::new(world, name, place));
        let variables = world.write("variables", b"");
        Self { machines: machines.into(), _nginx: nginx, variables }
    }

    /// Runs a step, and compares its output with the expected one.
    pub fn perform(&mut self, step: &Step) {
        let place = &step.place;
        let name = step.machine.as_deref().unwrap_or_else(|| panic!("{place}: on which machine?"));
        let machine = self.machines.iter_mut().find(|it| it.name == name);
        let machine = machine.unwrap_or_else(|| panic!("{place}: there is no machine {name}"));
        let expected = step.expected.as_deref().unwrap_or_default();
        if step.way == Way::Background {
            return machine.start(step, expected);
        }
        let script = with_variables(&self.variables.display().to_string(), &step.script);
        wait_until(&format!("{place}: {expected}"), || {
            let (is_success, printed) = machine.run(&script);
            let missing = missing(expected, &printed);
            let is_done = is_success != (step.way == Way::Fails) && missing.is_none();
            let may_wait = step.way == Way::Until;
            let script = &step.script;
            let ended = format!("success: {is_success}, missing: {missing:?}\n{printed}");
            assert!(is_done || may_wait, "{place}: {script}\n{ended}");
            is_done
        });
    }
}

/// A script that reads the variables of earlier steps from the file, runs this one, and adds its variables.
fn with_variables(file: &str, script: &str) -> String {
    let is_name =
        |it: &&str| !it.is_empty() && it.chars().all(|it| it.is_ascii_lowercase() || it == '_');
    let names = script.lines().filter_map(|line| line.split_once('=').map(|it| it.0));
    let names: Vec<_> = names.filter(is_name).collect();
    let keep = if names.is_empty() {
        String::new()
    } else {
        format!("declare -p {} >> {file}", names.join(" "))
    };
    format!("set -eu; . {file}; cd\n{script}\n{keep}")
}

impl Machine {
    fn new(world: &World, name: &'static str, place: Place) -> Self {
        let folder = world.path(name);
        fs::create_dir(&folder).expect("mkdir");
        let mut command = place.command("unshare");
        command
            .args(["--mount", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child"])
            .args(["sh", "-ec", OWN_FOLDERS, "sh"])
            .arg(&folder)
            .arg(name);
        let mut holder = Process(command.stdin(Stdio::null()).spawn().expect("unshare starts"));
        wait_until("a machine of the guide", || {
            assert!(!holder.has_ended(), "{name} has no folders of its own");
            folder.join("ready").exists()
        });
        Self { name, folder, holder, daemon: None }
    }

    /// A command inside the machine's namespaces.
    fn command(&self, words: &[&str]) -> Command {
        let built = PathBuf::from(env!("CARGO_BIN_EXE_hearsay"));
        let built = built.parent().expect("a folder").display();
        let own = self.folder.join("bin");
        let own = own.display();
        let holder = self.holder.id();
        let mut command = Command::new("nsenter");
        command
            .args(["--mount", "--net", "--uts", "--target", &holder.to_string()])
            // The holder's children are in the PID namespace that it made; the holder itself is not.
            .arg(format!("--pid=/proc/{holder}/ns/pid_for_children"))
            .args(words)
            .env("PATH", format!("{own}:{built}:/usr/sbin:/usr/bin:/sbin:/bin"))
            .env("HOME", self.folder.join("home"))
            .env("NO_COLOR", "1")
            .env_remove("HEARSAY_LOG")
            .stdin(Stdio::null());
        command
    }

    /// Runs a script to its end: whether it succeeded, and what it printed.
    fn run(&self, script: &str) -> (bool, String) {
        let limit = TIMEOUT.as_secs().to_string();
        let script = format!("exec 2>&1\n{script}");
        let output = self.command(&["timeout", &limit, "bash", "-c", &script]).output();
        let output = output.expect("nsenter starts");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_ne!(output.status.code(), Some(TIMED_OUT), "it did not end: {script}\n{printed}");
        (output.status.success(), printed)
    }

    /// Starts a daemon in the second terminal, after Ctrl-C for the daemon that ran there.
    fn start(&mut self, step: &Step, expected: &str) {
        let id = self.folder.join("id").display().to_string();
        if let Some(mut before) = self.daemon.take() {
            // The guide may have killed the daemon already.
            self.run(&format!("kill -INT $(cat {id})"));
            wait_until("Ctrl-C to end the daemon", || before.has_ended());
        }
        let log = self.folder.join("log");
        let file = fs::File::create(&log).expect("a log");
        let script = format!("set -eu; cd; echo $$ > {id}; exec {}", step.script);
        let mut command = self.command(&["bash", "-c", &script]);
        command.stdout(file.try_clone().expect("a second handle")).stderr(file);
        let mut daemon = Process(command.spawn().expect("nsenter starts"));
        let printed = || fs::read_to_string(&log).unwrap_or_default();
        wait_until(&format!("{} on {}", step.place, self.name), || {
            assert!(!daemon.has_ended(), "{}: {}", step.place, printed());
            self.run("hearsay status").0 && missing(expected, &printed()).is_none()
        });
        self.daemon = Some(daemon);
    }
}

/// Turns the private network into the guide's row of machines, and gives the origin the guide's host names.
fn interfaces() {
    sh("ip link del wan0
        ip link set lan0 down; ip link set lan0 name br-lan; ip link set br-lan up
        ip addr replace 10.1.0.1/24 dev br-lan
        ip netns add gateway
        ip link add wl0 type veth peer name wl0 netns gateway
        ip -n gateway link add wan0 type veth peer name eth0 netns origin
        for machine in gateway origin; do ip -n $machine link set lo up; done
        ip netns exec gateway sysctl -qw net.ipv4.ip_forward=1
        ip addr add 10.77.0.1/24 dev wl0; ip link set wl0 up
        ip -n gateway addr add 10.77.0.2/24 dev wl0; ip -n gateway link set wl0 up
        ip -n gateway addr add 198.51.100.1/24 dev wan0; ip -n gateway link set wan0 up
        ip -n origin addr add 198.51.100.2/24 dev eth0; ip -n origin link set eth0 up
        ip route add default via 10.77.0.2 dev wl0
        # In place of a monitor interface, which takes a radio.
        ip link add mon0 type veth peer name air0; ip link set mon0 up; ip link set air0 up
        ip -n gateway route add 10.1.0.0/24 via 10.77.0.1
        ip -n gateway route add default via 198.51.100.2
        ip -n origin route add default via 198.51.100.1
        printf '%s\\n' '198.51.100.2 deb.debian.org cdimage.debian.org' >>/etc/hosts");
}
