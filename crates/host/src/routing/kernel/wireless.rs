//! Whether a wireless interface is a mesh of 802.11s that forwards, asked by generic netlink
//! (linux/nl80211.h).

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::net::{RecvFlags, SendFlags};

use super::message::{self, attributes, u16_at, u32_at};
use super::socket;

/// The family that knows the others (`GENL_ID_CTRL`), its request for a family, and the attributes of
/// the family's number and name.
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// Requests of nl80211, the type of mesh points, and attributes.
const GET_INTERFACE: u8 = 5;
const GET_MESH_CONFIG: u8 = 28;
const MESH_POINT: u32 = 7;
const INTERFACE: u16 = 3;
const INTERFACE_TYPE: u16 = 5;
const MESH_CONFIG: u16 = 35;
const FORWARDING: u16 = 19;

/// The greatest length of an answer that is read.
const ANSWER_MAX: usize = 8 * 1024;

/// Whether an interface is a mesh point that forwards frames for others. Such interfaces are often
/// used without that, under another routing protocol.
pub fn is_forwarding_mesh_point(name: &str, index: u32) -> bool {
    // Without a wireless interface the question would make the kernel load a module.
    let is_wireless = Path::new("/sys/class/net").join(name).join("phy80211").exists();
    is_wireless && ask(index).unwrap_or(false)
}

fn ask(interface: u32) -> io::Result<bool> {
    let socket = socket::open(socket::GENERIC)?;
    let Some(nl80211) = family(&socket, "nl80211")? else { return Ok(false) };
    let about = interface.to_ne_bytes();
    let about = (INTERFACE, &about[..]);
    let told = exchange(&socket, &message::generic_request(nl80211, GET_INTERFACE, about))?;
    if !is_mesh_point(&told) {
        return Ok(false);
    }
    Ok(forwards(&exchange(&socket, &message::generic_request(nl80211, GET_MESH_CONFIG, about))?))
}

/// The number of a family.
fn family(socket: &OwnedFd, name: &str) -> io::Result<Option<u16>> {
    let name = [name.as_bytes(), &[0]].concat();
    let request = message::generic_request(CONTROL, GET_FAMILY, (FAMILY_NAME, &name));
    Ok(value(&exchange(socket, &request)?, FAMILY_ID).and_then(|it| u16_at(&it, 0)))
}

/// Sends a request; the kernel answers before this is done.
fn exchange(socket: &OwnedFd, request: &[u8]) -> io::Result<Vec<u8>> {
    rustix::net::send(socket, request, SendFlags::empty())?;
    let mut buffer = vec![0; ANSWER_MAX];
    let (length, _) = rustix::net::recv(socket, &mut buffer[..], RecvFlags::DONTWAIT)?;
    buffer.truncate(length);
    Ok(buffer)
}

/// An attribute's value in an answer; `None` if it is an error.
fn value(answer: &[u8], wanted: u16) -> Option<Vec<u8>> {
    let message = message::messages(answer).next().filter(|it| it.kind != message::ERROR)?;
    let mut values = message.generic();
    values.find(|(kind, _)| *kind == wanted).map(|(_, value)| value.to_vec())
}

fn is_mesh_point(answer: &[u8]) -> bool {
    value(answer, INTERFACE_TYPE).and_then(|it| u32_at(&it, 0)) == Some(MESH_POINT)
}

/// Forwarding is on unless it was switched off. An interface that is down has no settings yet.
fn forwards(answer: &[u8]) -> bool {
    let Some(config) = value(answer, MESH_CONFIG) else { return false };
    let setting = attributes(&config).find(|(kind, _)| *kind == FORWARDING);
    setting.is_none_or(|(_, value)| value != [0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::kernel::message::attribute;
    use crate::routing::kernel::message::tests::message;
    use proptest::prelude::*;

    /// An answer of nl80211, as that header describes it.
    fn answer(values: &[(u16, &[u8])]) -> Vec<u8> {
        let values = values.iter().flat_map(|(kind, value)| attribute(*kind, value));
        message(28, &[7, 1, 0, 0].into_iter().chain(values).collect::<Vec<_>>())
    }

    #[test]
    fn only_a_mesh_point_counts() {
        let of_type = |number: u32| {
            let name = (4, &b"wl0\0"[..]);
            is_mesh_point(&answer(&[name, (INTERFACE_TYPE, &number.to_ne_bytes())]))
        };
        // A mesh point, an ad-hoc station, a station, an access point.
        assert_eq!([7, 1, 2, 3].map(of_type), [true, false, false, false]);
        assert!(!is_mesh_point(&answer(&[])));
        let error = message(message::ERROR, &[0xff; 20]);
        assert!(!is_mesh_point(&error) && !is_mesh_point(&[]));
    }

    #[test]
    fn forwarding_can_be_switched_off() {
        let with = |values: &[Vec<u8>]| forwards(&answer(&[(MESH_CONFIG, &values.concat())]));
        let other = attribute(6, &[31]);
        assert!(with(&[other.clone(), attribute(FORWARDING, &[1])]));
        assert!(!with(&[other.clone(), attribute(FORWARDING, &[0])]));
        assert!(with(&[other]));
        assert!(!forwards(&message(message::ERROR, &[0xff; 20])) && !forwards(&[]));
    }

    #[test]
    fn the_kernel_knows_the_family_of_families() {
        let socket = socket::open(socket::GENERIC).unwrap();
        assert_eq!(family(&socket, "nlctrl").unwrap(), Some(CONTROL));
        // Loopback is not wireless.
        assert!(!is_forwarding_mesh_point("lo", 1));
    }

    proptest! {
        #[test]
        fn no_bytes_can_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for answer in [message(28, &bytes), bytes] {
                let _ = (is_mesh_point(&answer), forwards(&answer));
            }
        }
    }
}
