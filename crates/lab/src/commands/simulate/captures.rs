//! Capture files of simulated stations, one each. They are written in large pieces, so that a thousand
//! stations do not need a thousand open files.

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use rustix::fs::Access;
use sim::scenario::Scenario;
use sim::world::Tap;
use wire::Instant;
use wire::capture::pcap;

use crate::cli::Sim;
use crate::console::output;
use crate::failure::Failure;

/// Bytes of a file that are collected before they are written.
const KEPT_BYTES: usize = 1 << 16;
/// Virtual time begins at 1970-01-01, so that the same seed gives the same bytes.
const EPOCH: Duration = Duration::ZERO;

/// The capture files of a run.
#[derive(Clone, Debug)]
pub struct Captures(Rc<RefCell<Files>>);

#[derive(Debug, Default)]
struct Files {
    /// The file of each station.
    files: Vec<Capture>,
    /// The first error.
    failed: Option<io::Error>,
}

#[derive(Debug)]
struct Capture {
    path: PathBuf,
    /// A pipe or a device, which stays open: its reader would take the first end for the last.
    open: Option<File>,
    /// Bytes that are not yet written.
    kept: Vec<u8>,
}

/// Makes the folder for captures, if they were requested.
pub fn folder(args: &Sim) -> Result<(), Failure> {
    let refuse = |folder: &Path, error: io::Error| {
        Failure::refused(format!("cannot write to {}: {error}", folder.display()))
    };
    let Some(folder) = args.pcap.as_deref() else { return Ok(()) };
    fs::create_dir_all(folder).map_err(|error| refuse(folder, error))?;
    let access = Access::WRITE_OK | Access::EXEC_OK;
    rustix::fs::access(folder, access).map_err(|error| refuse(folder, error.into()))
}

/// The tap and files of a run; no tap if captures were not requested.
pub fn tap(
    args: &Sim,
    scenario: &Scenario,
    seed: u64,
) -> Result<(Option<Box<dyn Tap>>, Captures), Failure> {
    let captures = Captures(Rc::default());
    let Some(folder) = &args.pcap else { return Ok((None, captures)) };
    let several = args.seeds > 1;
    let folder = if several { folder.join(format!("seed-{seed}")) } else { folder.clone() };
    let create = || {
        fs::create_dir_all(&folder)?;
        let mut files = Vec::new();
        for router in &scenario.routers {
            let path = folder.join(format!("{}.pcap", router.name));
            let mut file = output::create(&path)?;
            file.write_all(&pcap::file_header(pcap::LINKTYPE_IEEE802_11_RADIOTAP))?;
            let open = (!file.metadata()?.is_file()).then_some(file);
            files.push(Capture { path, open, kept: Vec::with_capacity(KEPT_BYTES) });
        }
        io::Result::Ok(files)
    };
    let refuse = |error| Failure::refused(format!("cannot write to {}: {error}", folder.display()));
    captures.0.borrow_mut().files = create().map_err(refuse)?;
    Ok((Some(Box::new(captures.clone())), captures))
}

impl Captures {
    /// Writes everything that is not yet written.
    pub fn finish(&self) -> Result<(), Failure> {
        let mut all = self.0.borrow_mut();
        (0..all.files.len()).for_each(|station| all.write(station));
        let written = all.failed.take().map_or(Ok(()), Err);
        written.map_err(|error| Failure::writing("the captures are not complete", &error))
    }
}

impl Tap for Captures {
    fn frame(&mut self, station: usize, at: Instant, frame: &[u8]) {
        let mut all = self.0.borrow_mut();
        let kept = &mut all.files[station].kept;
        kept.extend_from_slice(&pcap::record_header(EPOCH, at, frame.len() as u32));
        kept.extend_from_slice(frame);
        if kept.len() >= KEPT_BYTES - (1 << 12) {
            all.write(station);
        }
    }
}

impl Files {
    fn write(&mut self, station: usize) {
        let Capture { path, open, kept } = &mut self.files[station];
        if self.failed.is_none() && !kept.is_empty() {
            let written = match open {
                Some(file) => file.write_all(kept),
                None => {
                    OpenOptions::new().append(true).open(path).and_then(|mut it| it.write_all(kept))
                }
            };
            self.failed = written.err();
        }
        kept.clear();
    }
}
