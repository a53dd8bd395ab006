//! Reading a capture: its TCP streams are the content.

use std::fmt::Display;
use std::io::{ErrorKind, Read};
use std::path::Path;

use wire::capture::records::{Feeder, Record};
use wire::capture::{Heard, Refusal};

use super::super::refused::Refused;
use super::super::source;
use crate::console::progress::Progress;
use crate::failure::Failure;
use crate::redundancy::{Analysis, Full, StreamCounts, Streams};

/// Bytes read at a time.
const PIECE: usize = 64 << 10;

/// What became of a capture's frames.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    /// Captured frames.
    pub frames: u64,
    /// Packets without a TCP segment.
    pub refused: Refused,
    /// TCP segments.
    pub segments: u64,
    /// What the segments joined to.
    pub streams: StreamCounts,
}

/// Gives the analysis the streams of a capture. Beside the counts: why the capture could not be read, or not to its end.
pub fn read(
    path: &Path,
    analysis: &mut Analysis,
    progress: &Progress,
    full: impl Fn(Full) -> Failure,
) -> Result<(Captured, Option<String>), Failure> {
    let named = |error: String| format!("{}: {error}", path.display());
    let mut capture =
        source::open(path, progress).map_err(|it| Failure::refused(named(text(it))))?;
    let (mut captured, mut streams) = (Captured::default(), Streams::default());
    let end = captured.read(&mut capture, &mut streams, analysis).map_err(&full)?;
    captured.streams = streams.finish(analysis).map_err(full)?;
    let error = end.or_else(|| captured.nothing());
    Ok((captured, error.map(named)))
}

impl Captured {
    /// Reads to the end, or to the first error, which it returns.
    fn read(
        &mut self,
        capture: &mut impl Read,
        streams: &mut Streams,
        analysis: &mut Analysis,
    ) -> Result<Option<String>, Full> {
        let (mut feeder, mut piece, mut bytes) = (Feeder::default(), vec![0; PIECE], 0);
        loop {
            match capture.read(&mut piece) {
                Ok(0) => return Ok(feeder.finish().err().map(text)),
                Ok(length) => {
                    feeder.feed(&piece[..length]);
                    bytes += length;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Ok(Some(format!("at byte {bytes}: {error}"))),
            }
            loop {
                match feeder.take() {
                    Ok(Some(record)) => self.take(&record, streams, analysis)?,
                    Ok(None) => break,
                    Err(error) => return Ok(Some(text(error))),
                }
            }
        }
    }

    fn take(
        &mut self,
        record: &Record<'_>,
        streams: &mut Streams,
        analysis: &mut Analysis,
    ) -> Result<(), Full> {
        self.frames += 1;
        for segment in Heard::new(record.frame) {
            match segment {
                Ok(segment) => {
                    self.segments += 1;
                    streams.handle_segment(analysis, &segment)?;
                }
                Err(why) => self.refused.add(why, record.frame.link_type),
            }
        }
        Ok(())
    }

    /// Why not a byte of a stream was captured, and what to do; nothing if one was.
    fn nothing(&self) -> Option<String> {
        let Self { frames, refused, segments, streams } = self;
        if streams.streams > 0 {
            return None;
        }
        Some(match refused.most() {
            _ if *frames == 0 => {
                "it holds no frames: capture while content crosses, with a filter that lets TCP pass"
                    .to_owned()
            }
            Some((why, link_type)) if *segments == 0 => {
                let frames = format!("none of its {frames} frames brings a TCP segment");
                format!("{frames} ({}): {}", refused.words(), next_step(why, link_type))
            }
            _ => format!(
                "its {segments} TCP segments carry no captured bytes: capture whole frames (tcpdump -s 0), while \
                 content crosses"
            ),
        })
    }
}

/// How to capture instead, if most packets were refused for this reason.
fn next_step(why: Refusal, link_type: Option<u32>) -> String {
    let step = match why {
        Refusal::LinkType => {
            let link_type = link_type.unwrap_or_default();
            return format!(
                "capture at an Ethernet, Wi-Fi or tunnel interface, or at all (tcpdump -i any); link type {link_type} \
                 is not read (https://www.tcpdump.org/linktypes.html names it)"
            );
        }
        Refusal::Protected => {
            "capture where frames are not encrypted: at the access point's or the client's own interface"
        }
        Refusal::Short => "capture whole frames (tcpdump -s 0)",
        Refusal::Ip => {
            "capture at a router between client and server, or turn off large segments at the machine that captures \
             (ethtool -K INTERFACE tso off gso off gro off)"
        }
        Refusal::IpFragment => {
            "capture where packets are whole, on the near side of the tunnel that divides them"
        }
        Refusal::NotIp => {
            "capture while content crosses, and inside the tunnel or the labels (MPLS) that carry it, if there are any"
        }
        _ => "capture while content crosses by TCP (HTTP/3 is not TCP)",
    };
    step.to_owned()
}

fn text(error: impl Display) -> String {
    error.to_string()
}
