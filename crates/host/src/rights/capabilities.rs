//! Capabilities: all but the wanted ones are dropped from every set of the thread.

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    clear_ambient_capability_set, configure_capability_in_ambient_set,
    remove_capability_from_bounding_set, set_capabilities,
};

use socket2::{Domain, Socket, Type};
use std::io::ErrorKind;

use super::InForce;

/// The capabilities that the daemon's network needs: rules, options of sockets, and packet sockets.
pub const NETWORK: CapabilitySet = CapabilitySet::NET_ADMIN.union(CapabilitySet::NET_RAW);

/// Whether this thread has at least one of these capabilities in force.
#[must_use]
pub fn has_any(wanted: CapabilitySet) -> bool {
    capabilities(None).is_ok_and(|held| held.effective.intersects(wanted))
}

/// Whether this kernel lets a process without capabilities bind a socket to an interface, as Linux does since 5.7. Tried
/// on a thread that gives all of them up, and ends.
#[must_use]
pub fn may_bind_without() -> bool {
    let try_it = || {
        let none = CapabilitySet::empty();
        let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
        set_capabilities(None, sets)?;
        Socket::new(Domain::IPV4, Type::DGRAM, None)?.bind_device(Some(b"lo"))
    };
    let denied = ErrorKind::PermissionDenied;
    let tried = std::thread::spawn(try_it).join();
    !matches!(tried, Ok(Err(error)) if error.kind() == denied)
}

/// Keeps the wanted capabilities among those that the thread has, and leaves them to programs that it executes.
pub(super) fn keep(wanted: CapabilitySet, in_force: &mut InForce) {
    // The bounding set comes first: changing it takes CAP_SETPCAP.
    in_force.bounding = bound(wanted);
    if !in_force.bounding {
        let held =
            "the bounding set keeps more capabilities, because changing it takes CAP_SETPCAP";
        // Without new privileges nothing is gained from that set: this is no gap, and not said as one.
        tracing::debug!("{held}");
    }
    let _ = clear_ambient_capability_set();
    let held = capabilities(None).map(|sets| sets.permitted & wanted);
    let dropped = held.and_then(|kept| {
        let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: kept };
        set_capabilities(None, sets)
    });
    if let Err(error) = dropped {
        in_force.skip(format!("capabilities cannot be dropped: {error}"));
    }
    let left = capabilities(None).map_or(CapabilitySet::all(), |sets| sets.permitted);
    // A program that another user than root executes has only ambient ones. Kernels before 4.3 have none.
    for one in left.iter() {
        let _ = configure_capability_in_ambient_set(one, true);
    }
    in_force.capabilities = left.iter_names().map(|(name, _)| format!("CAP_{name}")).collect();
}

/// Shrinks the bounding set to these; whether it is as small now.
fn bound(wanted: CapabilitySet) -> bool {
    let is_there = |one| capability_is_in_bounding_set(one).unwrap_or(false);
    let surplus = wanted.complement();
    for one in surplus.iter().filter(|one| is_there(*one)) {
        let _ = remove_capability_from_bounding_set(one);
    }
    !surplus.iter().any(is_there)
}
