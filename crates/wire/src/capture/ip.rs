//! From an IP packet to its TCP segment (RFC 791, 8200, 9293). `etherparse` parses the headers; it
//! neither copies nor allocates.
#![deny(clippy::indexing_slicing, clippy::unwrap_used)]

use std::net::{IpAddr, SocketAddr};

use etherparse::err::tcp::HeaderSliceError;
use etherparse::{
    IpNumber, Ipv6Header, LaxIpPayloadSlice, LaxIpv4Slice, LaxIpv6Slice, LenSource, TcpSlice,
};

use super::Refusal;

/// The version of IP that the layer below announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V4,
    V6,
}

/// A TCP segment as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The sender.
    pub from: SocketAddr,
    /// The receiver.
    pub to: SocketAddr,
    /// The sequence number of the payload's first byte; with `syn`, one less.
    pub seq: u32,
    /// The acknowledgement number, if the ACK flag is set: the next byte that the sender expects.
    pub ack: Option<u32>,
    /// The SYN flag: the sender opens the connection.
    pub syn: bool,
    /// The FIN flag: the sender sends nothing after this payload.
    pub fin: bool,
    /// The RST flag: the connection is reset.
    pub rst: bool,
    /// Bytes of the stream; of a truncated frame, the captured ones.
    pub payload: &'a [u8],
    /// The number of bytes of the payload that were sent after these but not captured.
    pub missing: usize,
}

/// The segment in a packet, which padding may follow. `cut`: part of the frame was not captured.
pub(super) fn segment(version: Version, packet: &[u8], cut: bool) -> Result<Segment<'_>, Refusal> {
    let (from, to, payload, missing) = match version {
        Version::V4 => v4(packet)?,
        Version::V6 => v6(packet)?,
    };
    if missing > 0 && !cut {
        return Err(Refusal::Short);
    }
    if payload.ip_number != IpNumber::TCP {
        return Err(Refusal::NotTcp);
    }
    let tcp = TcpSlice::from_slice(payload.payload).map_err(|error| match error {
        // The packet was captured whole, but its header claims to be longer.
        HeaderSliceError::Len(_) if !cut => Refusal::Tcp,
        HeaderSliceError::Len(_) => Refusal::Short,
        HeaderSliceError::Content(_) => Refusal::Tcp,
    })?;
    Ok(Segment {
        from: SocketAddr::new(from, tcp.source_port()),
        to: SocketAddr::new(to, tcp.destination_port()),
        seq: tcp.sequence_number(),
        ack: tcp.ack().then(|| tcp.acknowledgment_number()),
        syn: tcp.syn(),
        fin: tcp.fin(),
        rst: tcp.rst(),
        payload: tcp.payload(),
        missing,
    })
}

/// Source, destination, payload, and the number of payload bytes that were not captured.
type Opened<'a> = (IpAddr, IpAddr, LaxIpPayloadSlice<'a>, usize);

fn v4(packet: &[u8]) -> Result<Opened<'_>, Refusal> {
    use etherparse::err::ipv4::HeaderSliceError;
    let (ip, trouble) = LaxIpv4Slice::from_slice(packet).map_err(|error| match error {
        HeaderSliceError::Len(_) => Refusal::Short,
        HeaderSliceError::Content(_) => Refusal::Ip,
    })?;
    let missing = usize::from(ip.header().total_len()).saturating_sub(packet.len());
    let ends = (ip.header().source_addr().into(), ip.header().destination_addr().into());
    opened(ends, ip.payload(), ip.is_payload_fragmented(), missing, trouble.is_some())
}

fn v6(packet: &[u8]) -> Result<Opened<'_>, Refusal> {
    use etherparse::err::ipv6::HeaderSliceError;
    let (ip, trouble) = LaxIpv6Slice::from_slice(packet).map_err(|error| match error {
        HeaderSliceError::Len(_) => Refusal::Short,
        HeaderSliceError::Content(_) => Refusal::Ip,
    })?;
    let announced = Ipv6Header::LEN + usize::from(ip.header().payload_length());
    let missing = announced.saturating_sub(packet.len());
    let ends = (ip.header().source_addr().into(), ip.header().destination_addr().into());
    opened(ends, ip.payload(), ip.is_payload_fragmented(), missing, trouble.is_some())
}

/// `trouble`: an extension header could not be parsed.
fn opened<'a>(
    (from, to): (IpAddr, IpAddr),
    payload: &LaxIpPayloadSlice<'a>,
    fragmented: bool,
    missing: usize,
    trouble: bool,
) -> Result<Opened<'a>, Refusal> {
    // A length of zero, or one below the header's own, does not show where padding begins.
    let unmeasured = payload.len_source == LenSource::Slice && !payload.incomplete;
    match () {
        () if unmeasured => Err(Refusal::Ip),
        () if fragmented => Err(Refusal::IpFragment),
        () if trouble && payload.incomplete => Err(Refusal::Short),
        () if trouble => Err(Refusal::Ip),
        () => Ok((from, to, payload.clone(), missing)),
    }
}
