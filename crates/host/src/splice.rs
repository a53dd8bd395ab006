//! Joins two connections, byte for byte, until both have ended.

use std::io;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy_bidirectional_with_sizes};

/// Buffer size per direction. There are many tunnels, mostly idle, and each one holds both buffers.
const BUFFER_BYTES: usize = 8 * 1024;

/// Sends `first` to `far`, then copies in both directions. Returns the number of bytes from near to
/// far, and back.
pub async fn splice<A, B>(near: &mut A, far: &mut B, first: &[u8]) -> io::Result<(u64, u64)>
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    far.write_all(first).await?;
    let (there, back) =
        copy_bidirectional_with_sizes(near, far, BUFFER_BYTES, BUFFER_BYTES).await?;
    Ok((there + first.len() as u64, back))
}
