//! Reading a capture: its TCP streams are the content.

use std::fmt::Display;

use wire::capture::Heard;
use wire::capture::records::Feeder;

use super::input::{self, Input};
use crate::failure::Failure;
use crate::redundancy::{Analysis, Full, StreamCounts, Streams};

/// Gives the analysis the streams of a capture. Beside the counts: why the capture could not be read to its end.
pub fn read(
    files: &[Input],
    analysis: &mut Analysis,
    progress: impl Fn(usize),
    full: impl Fn(Full) -> Failure,
) -> Result<(StreamCounts, Option<String>), Failure> {
    let (mut feeder, mut streams, mut error) = (Feeder::default(), Streams::default(), None);
    input::read(files, |piece| {
        progress(piece.len());
        if error.is_none() {
            feeder.feed(piece);
            error = take(&mut feeder, &mut streams, analysis).map_err(&full)?;
        }
        Ok(())
    })?;
    let error = error.or_else(|| feeder.finish().err().map(text));
    Ok((streams.finish(analysis).map_err(full)?, error))
}

/// Takes the records that are complete; returns what is wrong with the next one.
fn take(
    feeder: &mut Feeder,
    streams: &mut Streams,
    analysis: &mut Analysis,
) -> Result<Option<String>, Full> {
    loop {
        match feeder.take() {
            Ok(Some(record)) => {
                for segment in Heard::new(record.frame).flatten() {
                    streams.handle_segment(analysis, &segment)?;
                }
            }
            Ok(None) => return Ok(None),
            Err(error) => return Ok(Some(text(error))),
        }
    }
}

fn text(error: impl Display) -> String {
    error.to_string()
}
