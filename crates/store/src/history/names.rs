//! The files of a history by their names: creating them, and removing those that are void.
//!
//! *What this is:* the only code that changes the directory. *What survives a crash:* a file is
//! created only after all earlier changes to the directory are durable. So a name that was removed
//! cannot come back in place of a new file, and a block exists only if the one before it does.

use std::io::{self, IoSlice};
use std::sync::Arc;

use super::cipher::Cipher;
use super::format::{BlockId, emit_header};
use crate::error::{Doing, Error};
use crate::files::{File, Files};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Names {
    files: Arc<dyn Files>,
    /// Files that are void but not removed yet. A later start might take them for valid ones, so
    /// nothing is confirmed before they are gone.
    stale: Vec<String>,
    /// Whether the directory has changed since it was last made durable.
    are_unsynced: bool,
}

impl Names {
    /// The names in a directory, in which these files are to be removed.
    pub fn new(files: Arc<dyn Files>, stale: Vec<String>) -> Self {
        // An earlier process may have changed the directory.
        Self { files, stale, are_unsynced: true }
    }

    /// Creates a block's file and writes its header, which is not durable yet.
    pub fn create(
        &mut self,
        id: &BlockId,
        first: u32,
        cipher: &Cipher,
    ) -> Result<Arc<dyn File>, Error> {
        self.settle()?;
        let file = self.files.create(&id.file_name()).doing("create a block of a history")?;
        self.are_unsynced = true;
        let header = emit_header(id, first, cipher);
        let written = file.write_at(0, &mut [IoSlice::new(&header)]);
        if written.is_err() {
            self.discard(id.file_name());
        }
        written.doing("write the header of a block of a history")?;
        Ok(file)
    }

    pub fn open(&self, id: &BlockId) -> Result<Arc<dyn File>, Error> {
        self.files.open(&id.file_name()).doing("open a block of a history")
    }

    /// A file that is to be removed.
    pub fn discard(&mut self, name: String) {
        self.stale.push(name);
    }

    /// Removes the void files.
    pub fn remove(&mut self) -> Result<(), Error> {
        while let Some(name) = self.stale.last() {
            match self.files.remove(name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed.doing("remove a block of a history")?,
            }
            self.stale.pop();
            self.are_unsynced = true;
        }
        Ok(())
    }

    /// Removes the void files, and makes the directory durable.
    pub fn settle(&mut self) -> Result<(), Error> {
        self.remove()?;
        if self.are_unsynced {
            self.files.sync_names().doing("make the names of a history durable")?;
            self.are_unsynced = false;
        }
        Ok(())
    }
}
