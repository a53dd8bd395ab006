//! The requests that the helper takes, and its answers: each a packet of a fixed size, numbers in native byte order, on a
//! socket between two processes of one program. A request or an answer may pass one descriptor (unix(7), SCM_RIGHTS).

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use node::uplink::Reach;

use crate::intercept::{
    Family, FamilyReport, Forwarded, ForwardedBytes, Kind, Moment, is_interface_name,
};

/// The most names of interfaces in a request.
pub const NAMES_MAX: usize = 32;
/// A name, and NULs behind it.
const NAME_BYTES: usize = 16;
/// Number, kind, count of names, the far end's families, names.
pub const REQUEST_BYTES: usize = NAMES_AT + NAMES_MAX * NAME_BYTES;
const NAMES_AT: usize = 4 + 1 + 1 + 1;

const COUNTS: usize = 2 * Kind::ALL.len();
const LINES_AT: usize = 4 + 1 + 4 + 2 + 1 + 8 * COUNTS + 2;
/// Number, outcome, errno, the two families, whether counters follow, counters, the length of the lines, lines.
pub const ANSWER_BYTES: usize = 2048;

/// What the helper does. The list is closed: anything else is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Set the rules as they are to be at this moment.
    Apply(Moment),
    /// Check them.
    Check(Moment),
    /// Intercept no new connections.
    Release,
    /// Remove the rules.
    Remove,
    /// Read the counters of our table.
    Counters,
    /// List the machine's flow tables.
    FlowTables,
    /// Open a packet socket for the interface, the only name.
    Capture(Vec<String>),
    /// Open the transparent port.
    Transparent,
    /// Set BBR on the passed connection.
    SetBbr,
    /// Unbind the passed connection from its interface.
    Unbind,
    /// Read the configuration again.
    Reload,
}

impl Request {
    fn kind(&self) -> (u8, &[String]) {
        match self {
            Self::Apply(moment) => (1, &moment.out),
            Self::Check(moment) => (2, &moment.out),
            Self::Release => (3, &[]),
            Self::Remove => (4, &[]),
            Self::Counters => (5, &[]),
            Self::FlowTables => (6, &[]),
            Self::Capture(names) => (7, names),
            Self::Transparent => (8, &[]),
            Self::SetBbr => (9, &[]),
            Self::Unbind => (10, &[]),
            Self::Reload => (11, &[]),
        }
    }

    /// The request as a packet. Names beyond [`NAMES_MAX`], and ends of longer names, are cut off.
    pub fn encode(&self, number: u32) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        let (kind, names) = self.kind();
        bytes[..4].copy_from_slice(&number.to_ne_bytes());
        bytes[4] = kind;
        bytes[5] = names.len().min(NAMES_MAX) as u8;
        if let Self::Apply(Moment { reach, .. }) | Self::Check(Moment { reach, .. }) = self {
            bytes[6] = reach.bits();
        }
        for (place, name) in bytes[NAMES_AT..].chunks_exact_mut(NAME_BYTES).zip(names) {
            let length = name.len().min(NAME_BYTES - 1);
            place[..length].copy_from_slice(&name.as_bytes()[..length]);
        }
        bytes
    }

    /// Reads a packet: the number, and the request, which is `None` if it is not on the list.
    pub fn decode(bytes: &[u8; REQUEST_BYTES]) -> (u32, Option<Self>) {
        let number = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let places = bytes[NAMES_AT..].chunks_exact(NAME_BYTES).take(bytes[5].into());
        let names: Option<Vec<String>> = places.map(name).collect();
        let count = usize::from(bytes[5]);
        let Some(names) = names.filter(|_| count <= NAMES_MAX) else { return (number, None) };
        let reach = Reach::from_bits(bytes[6]);
        if reach.bits() != bytes[6] || bytes[6] != 0 && !matches!(bytes[4], 1 | 2) {
            return (number, None);
        }
        let request = match (bytes[4], count) {
            (1, _) => Self::Apply(Moment { out: names, reach }),
            (2, _) => Self::Check(Moment { out: names, reach }),
            (3, 0) => Self::Release,
            (4, 0) => Self::Remove,
            (5, 0) => Self::Counters,
            (6, 0) => Self::FlowTables,
            (7, 1) => Self::Capture(names),
            (8, 0) => Self::Transparent,
            (9, 0) => Self::SetBbr,
            (10, 0) => Self::Unbind,
            (11, 0) => Self::Reload,
            _ => return (number, None),
        };
        (number, Some(request))
    }
}

/// The name of an interface; `None` if it cannot be one.
fn name(place: &[u8]) -> Option<String> {
    let length = place.iter().position(|it| *it == 0)?;
    let (name, rest) = place.split_at(length);
    let name = std::str::from_utf8(name).ok()?;
    (rest.iter().all(|it| *it == 0) && is_interface_name(name)).then(|| name.to_owned())
}

/// How a request ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    #[default]
    Done,
    /// It was refused, or a program failed; the lines say why.
    Refused,
    /// The kernel refused, by this error number.
    Errno(i32),
}

/// An answer. What a request does not ask for is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The request's number.
    pub number: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// The state of the rules, for IPv4 and IPv6.
    pub families: [FamilyState; 2],
    /// The counters.
    pub forwarded: Option<Forwarded>,
    /// Notes, names or reasons.
    pub lines: Vec<String>,
}

/// A family's [`FamilyReport`] in one byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FamilyState(u8);

impl From<&FamilyReport> for FamilyState {
    fn from(it: &FamilyReport) -> Self {
        let bits = [it.available, it.redirect, it.rule, it.route, it.family == Family::V6];
        Self(bits.iter().enumerate().map(|(at, bit)| u8::from(*bit) << at).sum())
    }
}

impl From<FamilyState> for FamilyReport {
    fn from(FamilyState(bits): FamilyState) -> Self {
        let is_set = |at: u8| bits & (1 << at) != 0;
        Self {
            family: if is_set(4) { Family::V6 } else { Family::V4 },
            available: is_set(0),
            redirect: is_set(1),
            rule: is_set(2),
            route: is_set(3),
        }
    }
}

impl Answer {
    /// The answer as a packet. Lines for which there is no room are cut off.
    pub fn encode(&self) -> [u8; ANSWER_BYTES] {
        let mut bytes = [0; ANSWER_BYTES];
        let (outcome, errno) = match self.outcome {
            Outcome::Done => (0, 0),
            Outcome::Refused => (1, 0),
            Outcome::Errno(errno) => (2, errno),
        };
        bytes[..4].copy_from_slice(&self.number.to_ne_bytes());
        bytes[4] = outcome;
        bytes[5..9].copy_from_slice(&errno.to_ne_bytes());
        (bytes[9], bytes[10]) = (self.families[0].0, self.families[1].0);
        bytes[11] = self.forwarded.is_some().into();
        let counts = self.forwarded.iter().flatten().flat_map(|it| [it.up_bytes, it.down_bytes]);
        for (place, count) in bytes[12..].chunks_exact_mut(8).zip(counts) {
            place.copy_from_slice(&count.to_ne_bytes());
        }
        let text = self.lines.iter().map(|line| line.replace('\n', " ")).collect::<Vec<_>>();
        let mut text = text.join("\n");
        while text.len() > ANSWER_BYTES - LINES_AT {
            text.pop();
        }
        bytes[LINES_AT - 2..LINES_AT].copy_from_slice(&(text.len() as u16).to_ne_bytes());
        bytes[LINES_AT..LINES_AT + text.len()].copy_from_slice(text.as_bytes());
        bytes
    }

    /// Reads a packet; `None` if it is no answer.
    pub fn decode(bytes: &[u8; ANSWER_BYTES]) -> Option<Self> {
        let errno = i32::from_ne_bytes([bytes[5], bytes[6], bytes[7], bytes[8]]);
        let outcome = match bytes[4] {
            0 => Outcome::Done,
            1 => Outcome::Refused,
            2 => Outcome::Errno(errno),
            _ => return None,
        };
        let mut counts =
            bytes[12..].chunks_exact(8).map(|it| it.try_into().map_or(0, u64::from_ne_bytes));
        let mut count = || counts.next().unwrap_or_default();
        let forwarded = (bytes[11] != 0).then(|| {
            std::array::from_fn(|_| ForwardedBytes { up_bytes: count(), down_bytes: count() })
        });
        let length = u16::from_ne_bytes([bytes[LINES_AT - 2], bytes[LINES_AT - 1]]);
        let text = bytes.get(LINES_AT..LINES_AT + usize::from(length))?;
        let text = std::str::from_utf8(text).ok()?;
        Some(Self {
            number: u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            outcome,
            families: [FamilyState(bytes[9]), FamilyState(bytes[10])],
            forwarded,
            lines: text.lines().map(ToOwned::to_owned).collect(),
        })
    }
}

/// Sends a packet, and a copy of a descriptor with it.
pub fn send(socket: &OwnedFd, bytes: &[u8], passed: Option<&OwnedFd>) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let passed = passed.map(|it| [it.as_fd()]);
    if let Some(passed) = &passed {
        ancillary.push(SendAncillaryMessage::ScmRights(passed));
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL).map(drop)
}

/// Receives a packet, and the descriptor that came with it. A length of 0: the other end is closed.
pub fn receive(socket: &OwnedFd, bytes: &mut [u8]) -> Result<(usize, Option<OwnedFd>), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let flags = RecvFlags::CMSG_CLOEXEC;
        match recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut ancillary, flags) {
            Err(Errno::INTR) => {}
            outcome => break outcome?,
        }
    };
    let mut passed = None;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            passed = descriptors.last().or(passed);
        }
    }
    Ok((received.bytes, passed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_arrives_as_it_was_sent() {
        let out = |count| (0..count).map(|it| format!("wan{it}")).collect::<Vec<_>>();
        for request in [
            Request::Apply(Moment::default()),
            Request::Apply(Moment { out: out(NAMES_MAX), reach: Reach { v4: true, v6: false } }),
            Request::Check(Moment {
                out: vec!["a-name.of_15-ch".into()],
                reach: Reach { v4: false, v6: true },
            }),
            Request::Release,
            Request::Remove,
            Request::Counters,
            Request::FlowTables,
            Request::Capture(vec!["mon0".into()]),
            Request::Transparent,
            Request::SetBbr,
            Request::Unbind,
            Request::Reload,
        ] {
            assert_eq!(Request::decode(&request.encode(7)), (7, Some(request)));
        }
    }

    #[test]
    fn what_is_not_on_the_list_is_no_request() {
        let moment = Moment { out: vec!["wan0".into()], reach: Reach::default() };
        let mut bytes = Request::Apply(moment).encode(9);
        let with = |at: usize, value: u8| {
            let mut bytes = bytes;
            bytes[at] = value;
            Request::decode(&bytes)
        };
        for (at, value, what) in [
            (4, 0, "no kind"),
            (4, 12, "beyond the list"),
            (4, 3, "names where none belong"),
            (5, 2, "an empty name"),
            (5, 33, "too many names"),
            (5, 255, "too many names"),
            (6, 4, "no family"),
            (7, b' ', "no interface's name"),
            (7, b'"', "the end of a quotation"),
            (7, 0xff, "no text"),
            (7 + 9, b'x', "bytes behind the name"),
        ] {
            assert_eq!(with(at, value), (9, None), "{what}");
        }
        bytes[7..23].fill(b'a');
        assert_eq!(Request::decode(&bytes), (9, None), "no end");
    }

    #[test]
    fn an_answer_arrives_as_it_was_sent() {
        let mut counters = Forwarded::default();
        counters[Kind::Quic as usize] = ForwardedBytes { up_bytes: u64::MAX, down_bytes: 5 };
        let report = FamilyReport {
            family: Family::V6,
            available: true,
            redirect: false,
            rule: true,
            route: false,
        };
        let answer = Answer {
            number: u32::MAX,
            outcome: Outcome::Errno(98),
            families: [FamilyState::default(), FamilyState::from(&report)],
            forwarded: Some(counters),
            lines: vec!["lan0".into(), "flow offload".into()],
        };
        let read = Answer::decode(&answer.encode()).expect("an answer");
        assert_eq!(read, answer);
        assert_eq!(FamilyReport::from(read.families[1]), report);
        assert_eq!(read.lines, ["lan0", "flow offload"]);

        let long = Answer { lines: vec!["ü".repeat(ANSWER_BYTES)], ..Answer::default() };
        let read = Answer::decode(&long.encode()).expect("an answer");
        assert!(
            read.lines[0].len() > ANSWER_BYTES / 2 && read.lines[0].chars().all(|it| it == 'ü')
        );
        let mut wrong = answer.encode();
        wrong[4] = 3;
        assert_eq!(Answer::decode(&wrong), None);
        let mut wrong = answer.encode();
        wrong[LINES_AT - 2..LINES_AT].fill(0xff);
        assert_eq!(Answer::decode(&wrong), None);
    }
}
