//! Three routers in a row.

use super::{Hearsay, World, sh, tool};

/// Three routers in a row, the third with an uplink. The test runs on the first.
///
/// ```text
///   client ── lan0 r1 wl0 ── wl0 r2 wl1 ── wl0 r3 wan0 ── origin
///               10.77.0.1     10.77.0.2     10.77.0.3
/// ```
pub fn build() {
    sh("ip link del wan0
        for router in r2 r3; do
            ip netns add $router
            ip -n $router link set lo up
            ip netns exec $router sysctl -qw net.ipv4.ip_forward=1
        done
        ip link add wl0 type veth peer name wl0 netns r2
        ip -n r2 link add wl1 type veth peer name wl0 netns r3
        ip -n r3 link add wan0 type veth peer name eth0 netns origin
        ip addr add 10.77.0.1/32 dev wl0; ip link set wl0 up
        for end in 'r2 wl0 10.77.0.2/32' 'r2 wl1 10.77.0.2/32' 'r3 wl0 10.77.0.3/32' \\
                'r3 wan0 10.2.0.1/24' 'origin eth0 10.2.0.2/24'; do
            set -- $end
            ip -n $1 addr add $3 dev $2
            ip -n $1 link set $2 up
        done
        ip route add 10.77.0.2 dev wl0
        ip route add default via 10.77.0.2 dev wl0
        ip -n r2 route add 10.77.0.1 dev wl0
        ip -n r2 route add 10.77.0.3 dev wl1
        ip -n r2 route add 10.1.0.0/24 via 10.77.0.1
        ip -n r2 route add default via 10.77.0.3 dev wl1
        ip -n r3 route add 10.77.0.2 dev wl0
        ip -n r3 route add 10.77.0.1 via 10.77.0.2
        ip -n r3 route add 10.1.0.0/24 via 10.77.0.2
        ip -n r3 route add default via 10.2.0.2 dev wan0
        ip -n origin route add default via 10.2.0.1");
}

/// Starts a router's daemon; `mesh` is appended to its table `[mesh]`.
pub fn router(world: &World, name: &str, mesh: &str) -> Hearsay {
    proxy(world, name, "127.0.0.1:0", mesh)
}

/// As [`router`], with the explicit proxy at this address.
pub fn proxy(world: &World, name: &str, listen: &str, mesh: &str) -> Hearsay {
    let text = format!(
        "name = \"{name}\"\nlisten = [\"{listen}\"]\n\
         [mesh]\ninterfaces = [\"wl0\", \"wl1\"]\n{mesh}"
    );
    let config = world.write("hearsay.toml", text.as_bytes()).display().to_string();
    let args = ["--config", &config, "--log", "debug"];
    if name == "r1" {
        return Hearsay::start_with(world, &[&args[..], &["--intercept", "lan0"]].concat());
    }
    let ip = tool("ip").display().to_string();
    Hearsay::start_under(world, &[&ip, "netns", "exec", name], &args)
}
