//! The content of an index on its way to a client: unpacked if need be, and its links rewritten, in small steps.

use bytes::{Buf, Bytes};
use classes::Rewriter;
use flate2::write::MultiGzDecoder;
use std::io::Write;

/// A piece that is given out has about this many bytes, or those of one more step.
const PIECE_BYTES: usize = 8 << 10;
/// Packed bytes that are unpacked in one step: deflate makes at most a thousand times as many of them.
const STEP_BYTES: usize = 32;
/// No index unpacks to more bytes than this.
const UNPACKED_MAX: u64 = 1 << 30;

/// The content cannot be read: it is not what its head says, or never ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

/// Rewrites one response's content.
pub struct Rewriting {
    rewriter: Rewriter,
    /// Unpacks it first.
    gzip: Option<MultiGzDecoder<Vec<u8>>>,
    unpacked: u64,
    /// What has arrived and was not taken yet.
    arrived: Bytes,
    is_finished: bool,
}

impl Rewriting {
    /// Nothing has arrived.
    pub fn new(rewriter: Rewriter, is_gzip: bool) -> Self {
        Self {
            rewriter,
            gzip: is_gzip.then(|| MultiGzDecoder::new(Vec::new())),
            unpacked: 0,
            arrived: Bytes::new(),
            is_finished: false,
        }
    }

    /// The next piece has arrived; the one before was taken.
    pub fn arrive(&mut self, bytes: Bytes) {
        self.arrived = bytes;
    }

    /// Takes what has arrived until there is something to send; `None` if more must arrive first.
    pub fn step(&mut self) -> Result<Option<Bytes>, Unreadable> {
        let mut out = Vec::new();
        while out.len() < PIECE_BYTES && !self.arrived.is_empty() {
            match &mut self.gzip {
                None => {
                    let count = self.arrived.len().min(PIECE_BYTES);
                    self.rewriter.feed(&self.arrived.split_to(count), &mut out);
                }
                Some(gzip) => {
                    let count = self.arrived.len().min(STEP_BYTES);
                    gzip.write_all(&self.arrived[..count]).map_err(|_| Unreadable)?;
                    self.arrived.advance(count);
                    let clear = std::mem::take(gzip.get_mut());
                    self.unpacked += clear.len() as u64;
                    if self.unpacked > UNPACKED_MAX {
                        return Err(Unreadable);
                    }
                    self.rewriter.feed(&clear, &mut out);
                }
            }
        }
        Ok((!out.is_empty()).then(|| out.into()))
    }

    /// All has arrived: what is left to send. Nothing the second time.
    pub fn finish(&mut self) -> Result<Option<Bytes>, Unreadable> {
        if std::mem::replace(&mut self.is_finished, true) {
            return Ok(None);
        }
        let mut out = Vec::new();
        if let Some(gzip) = self.gzip.take() {
            self.rewriter.feed(&gzip.finish().map_err(|_| Unreadable)?, &mut out);
        }
        self.rewriter.finish(&mut out);
        Ok((!out.is_empty()).then(|| out.into()))
    }

    /// Whether everything was given out.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use classes::{Classes, Reach, Rewrite};
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::sync::Arc;

    const PAGE: &[u8] =
        b"<html><a href=\"https://files.pythonhosted.org/packages/a.whl\">a.whl</a></html>";

    fn rewriting(is_gzip: bool) -> Rewriting {
        let reach = Reach { classes: Arc::new(Classes::builtin()), ..Reach::default() };
        let url = "https://pypi.org/simple/a/";
        Rewriting::new(Rewriter::new(Rewrite::Pypi, "http://m:3142", url, reach), is_gzip)
    }

    fn pack(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    /// All that comes out, and the longest piece.
    fn run(mut it: Rewriting, pieces: &[&[u8]]) -> Result<(Vec<u8>, usize), Unreadable> {
        let (mut out, mut longest) = (Vec::new(), 0);
        for piece in pieces {
            it.arrive(Bytes::copy_from_slice(piece));
            while let Some(bytes) = it.step()? {
                longest = longest.max(bytes.len());
                out.extend_from_slice(&bytes);
            }
        }
        out.extend(it.finish()?.into_iter().flatten());
        assert_eq!(it.finish(), Ok(None));
        Ok((out, longest))
    }

    #[test]
    fn packed_or_not_the_client_gets_the_same() {
        let (clear, _) = run(rewriting(false), &[PAGE]).expect("a page");
        let text = String::from_utf8(clear.clone()).expect("text");
        assert!(
            text.contains("http://m:3142/files/files.pythonhosted.org/packages/a.whl"),
            "{text}"
        );
        let packed = pack(PAGE);
        let (one, other) = packed.split_at(packed.len() / 2);
        assert_eq!(run(rewriting(true), &[one, other]).map(|it| it.0), Ok(clear));
    }

    #[test]
    fn what_is_not_packed_or_cut_short_is_unreadable() {
        assert_eq!(run(rewriting(true), &[PAGE]), Err(Unreadable));
        let packed = pack(PAGE);
        assert_eq!(run(rewriting(true), &[&packed[..packed.len() - 9]]), Err(Unreadable));
    }

    #[test]
    fn a_bomb_comes_in_small_pieces() {
        let bomb = pack(&vec![b' '; 64 << 20]);
        let (out, longest) = run(rewriting(true), &[&bomb]).expect("blanks");
        assert_eq!(out.len(), 64 << 20);
        // What a step makes, and the decoder's own buffer.
        assert!(longest <= PIECE_BYTES + 1032 * STEP_BYTES + (32 << 10), "{longest}");
    }
}
