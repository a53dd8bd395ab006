//! Opens a store whose one segment file has arbitrary bytes, and uses every unit that it claims to
//! hold.

use std::sync::Arc;

use store::{Files, Index, Log, LogOptions, Memory, Policy, SegmentId};

/// A panic here is an error of the store.
pub fn open_segment(bytes: &[u8]) {
    let memory = Memory::new();
    memory.put("hearsay-store", b"hearsay-store 1\n".to_vec());
    memory.put("00000001.segment", bytes.to_vec());
    let files: Arc<dyn Files> = Arc::new(memory);
    let mut index = Index::new(4 << 20, Policy::Lru);
    let (mut log, recovery) = Log::open(files.clone(), LogOptions::default(), &mut index).unwrap();
    assert_eq!(recovery.units, index.report().units);
    let segment = SegmentId(1);
    let entries = log.entries(segment).unwrap_or_default();
    for entry in &entries {
        for at in index.locate(&entry.id) {
            let _ = log.reader().read(at, &[entry.length]);
        }
    }
    let keep = index.judge(segment, &entries);
    if let Ok(moved) = log.rewrite(segment, &keep) {
        index.moved(segment, &moved);
    }
    drop(log);
    let mut again = Index::new(4 << 20, Policy::S3Fifo);
    Log::open(files, LogOptions::default(), &mut again).unwrap();
}
