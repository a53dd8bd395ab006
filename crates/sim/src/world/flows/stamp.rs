//! The first bytes of numbered datagrams: the number, and when it was sent.

use bytes::{BufMut as _, Bytes, BytesMut};
use wire::Instant;

/// Length of a stamp, and of the shortest datagram with one.
pub const STAMP_BYTES: usize = 16;

/// A datagram of `bytes` bytes, at least [`STAMP_BYTES`], that is sent now.
pub(super) fn stamped(number: u64, now: Instant, bytes: usize) -> Bytes {
    let bytes = bytes.max(STAMP_BYTES);
    let mut datagram = BytesMut::with_capacity(bytes);
    datagram.put_u64(number);
    datagram.put_u64(now.as_nanos());
    datagram.resize(bytes, 0);
    datagram.freeze()
}

/// When a datagram was sent; `None` if it has no stamp.
pub(super) fn sent(datagram: &[u8]) -> Option<Instant> {
    let nanos = datagram.get(8..STAMP_BYTES)?.try_into().ok()?;
    Some(Instant::from_nanos(u64::from_be_bytes(nanos)))
}
