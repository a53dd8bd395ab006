//! Capture files of monitor interfaces. A thread of its own writes them, so that the air never waits for a
//! disk.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use wire::Instant;
use wire::capture::pcap;

use crate::console::{self, output};

/// Frames of all stations that may wait to be written; further ones are lost and counted.
const WAITING_MAX: usize = 16_384;

/// Takes the frames of all monitor interfaces, and keeps those that were requested.
#[derive(Debug)]
pub struct Captures {
    /// For each station the number of its file.
    files: Vec<Option<usize>>,
    queue: Option<SyncSender<Record>>,
    writer: Option<JoinHandle<io::Result<()>>>,
    lost: u64,
}

#[derive(Debug)]
struct Record {
    file: usize,
    time: Instant,
    frame: Vec<u8>,
}

impl Captures {
    /// Creates the files, and a thread that writes them. `wanted` are stations and their files; `epoch` is
    /// the date at which virtual time is zero.
    pub fn start(
        stations: usize,
        wanted: &[(usize, &Path)],
        epoch: SystemTime,
    ) -> io::Result<Self> {
        if wanted.is_empty() {
            return Ok(Self { files: vec![None; stations], queue: None, writer: None, lost: 0 });
        }
        let mut files = vec![None; stations];
        let mut writers = Vec::new();
        for (number, (station, path)) in wanted.iter().enumerate() {
            files[*station] = Some(number);
            let mut writer = BufWriter::new(output::create(path)?);
            writer.write_all(&pcap::file_header(pcap::LINKTYPE_IEEE802_11_RADIOTAP))?;
            writers.push(writer);
        }
        let (queue, records) = sync_channel(WAITING_MAX);
        let epoch = epoch.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let writer = std::thread::Builder::new()
            .name("captures".into())
            .spawn(move || write(&records, writers, epoch))?;
        Ok(Self { files, queue: Some(queue), writer: Some(writer), lost: 0 })
    }

    /// Keeps a frame if its station was requested.
    pub fn add(&mut self, station: usize, time: Instant, frame: &[u8]) {
        let (Some(file), Some(queue)) = (self.files[station], &self.queue) else { return };
        // If the writer has failed, it reports the error at the end.
        if queue.try_send(Record { file, time, frame: frame.to_vec() }).is_err() {
            self.lost += 1;
        }
    }

    /// Number of frames lost.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

impl Drop for Captures {
    /// Waits until everything is written.
    fn drop(&mut self) {
        drop(self.queue.take());
        let written = self.writer.take().map(JoinHandle::join);
        if let Some(Ok(Err(error))) = written {
            console::note(&format!("a capture file is not complete: {error}"));
        }
        if self.lost > 0 {
            console::note(&format!(
                "{} frames were not captured: the disk was slow, or full",
                self.lost
            ));
        }
    }
}

/// Writes until all senders are gone. It flushes before it waits, so that a killed run leaves readable files.
fn write(
    records: &Receiver<Record>,
    mut files: Vec<BufWriter<File>>,
    epoch: Duration,
) -> io::Result<()> {
    loop {
        let record = match records.try_recv() {
            Ok(record) => record,
            Err(_) => {
                files.iter_mut().try_for_each(BufWriter::flush)?;
                let Ok(record) = records.recv() else { return Ok(()) };
                record
            }
        };
        let Record { file, time, frame } = record;
        files[file].write_all(&pcap::record_header(epoch, time, frame.len() as u32))?;
        files[file].write_all(&frame)?;
    }
}
