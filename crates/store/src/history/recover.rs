//! Recovery: finds out at start which blocks a history has.
//!
//! *What this is:* it reads the header of each file and the footer of each block but the newest,
//! and the newest block whole. *Who calls it:* `History::open`. *What it never does:* panic or stop
//! because of a file's content; write.
//!
//! *What survives a crash:* a block is durable, name included, before the next one is created. So
//! only the newest can have lost something, and it ends before its first damaged record. Every
//! other block that does not have all its records is damaged; it is dropped, and all before it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::cipher::Cipher;
use super::format::{
    BLOCK_UNITS, BlockId, HEADER, RECORD_HEADER, RecordHeader, footer_bytes, parse_footer,
    parse_header, parse_name,
};
use super::held::Block;
use crate::error::{Doing, Error};
use crate::files::{File, Files, read_exact};
use crate::recover::Window;

/// What the files of a history hold.
pub(super) struct Found {
    /// Adjacent blocks, oldest first; each but the newest has all its records. None if there is no
    /// history that can be read with this key.
    pub blocks: VecDeque<Block>,
    /// The newest block, and its file.
    pub newest: Option<(BlockId, Arc<dyn File>)>,
    /// The length that the newest block's file should have.
    pub newest_bytes: u64,
    /// Files to be removed.
    pub stale: Vec<String>,
    /// The highest generation of any file.
    pub generation: u32,
}

/// A file with a sound header.
struct Headed {
    id: BlockId,
    /// The slot of the first record.
    first: u32,
    file: Arc<dyn File>,
}

/// Looks through the files.
///
/// # Errors
/// [`Error::Io`] if the directory cannot be listed or a file cannot be opened. A file that cannot
/// be read counts as damaged.
pub(super) fn recover(files: &dyn Files, cipher: &Cipher) -> Result<Found, Error> {
    let names = files.names().doing("list the directory of a history")?;
    let mut numbers: Vec<(u32, u64)> = names.iter().filter_map(|name| parse_name(name)).collect();
    // The blocks of the highest generation come last, and the newest of them at the end.
    numbers.sort_unstable();
    let mut found = Found {
        blocks: VecDeque::new(),
        newest: None,
        newest_bytes: 0,
        stale: Vec::new(),
        generation: numbers.last().map_or(0, |(generation, _)| *generation),
    };
    let mut is_complete = false;
    for number in numbers.into_iter().rev() {
        let id = BlockId { generation: number.0, epoch: [0; 16], number: number.1 };
        let block = match is_complete {
            true => None,
            false => join(files, id, cipher, &found)?,
        };
        // The first block with a sound header determines the generation. What does not join on to
        // it, and all that is older, is stale.
        is_complete |= block.is_none() && found.newest.is_some();
        let Some((block, headed)) = block else {
            found.stale.push(id.file_name());
            continue;
        };
        if found.newest.is_none() {
            found.newest_bytes = block.file_bytes();
            found.newest = Some((headed.id, headed.file));
        }
        found.blocks.push_front(block);
    }
    Ok(found)
}

/// The block in a file, if it is the newest one or joins on to the oldest found so far.
fn join(
    files: &dyn Files,
    id: BlockId,
    cipher: &Cipher,
    found: &Found,
) -> Result<Option<(Block, Headed)>, Error> {
    let file = files.open(&id.file_name()).doing("open a block of a history")?;
    let header = read(&*file, 0, HEADER);
    let header = header.and_then(|it| parse_header(&it, (id.generation, id.number), cipher));
    let Some((id, first)) = header else { return Ok(None) };
    let headed = Headed { id, first, file };
    let Some((newest, _)) = &found.newest else {
        return Ok(Some((newest_block(&headed), headed)));
    };
    let oldest = found.blocks.front().map_or(0, Block::first_position);
    if (id.generation, id.epoch) != (newest.generation, newest.epoch) {
        return Ok(None);
    }
    let block = full_block(&headed).filter(|block| block.end_position() == oldest);
    Ok(block.map(|block| (block, headed)))
}

/// The newest block, up to its first damaged record.
fn newest_block(headed: &Headed) -> Block {
    let mut block = Block::empty(headed.id.number, headed.first);
    let mut window = Window::new(&*headed.file);
    while block.room() > 0 {
        let (position, offset) = (block.end_position(), block.end_offset());
        let header = window.at(offset, RECORD_HEADER).ok().flatten();
        let header = header.and_then(|it| RecordHeader::parse(it, &headed.id, position));
        let Some(header) = header else { break };
        let body = window.at(offset + RECORD_HEADER, header.length).ok().flatten();
        if body.is_none_or(|body| !header.matches(body)) {
            break;
        }
        block.push(header.length);
    }
    block.has_footer = block.room() == 0 && has_footer(headed, &block);
    block
}

/// Whether the file ends with a sound footer directly after the records.
fn has_footer(headed: &Headed, block: &Block) -> bool {
    let footer = read(&*headed.file, block.end_offset(), footer_bytes(block.records()));
    footer.is_some_and(|it| parse_footer(&it, &headed.id, block.records()).is_some())
}

/// A block that has all its records, by its footer, or else by the headers of its records. The
/// records' bytes are checked when they are read.
fn full_block(headed: &Headed) -> Option<Block> {
    by_footer(headed).or_else(|| by_headers(headed))
}

fn by_footer(headed: &Headed) -> Option<Block> {
    let mut block = Block::empty(headed.id.number, headed.first);
    let length = footer_bytes(block.room());
    let offset = u32::try_from(headed.file.len().ok()?).ok()?.checked_sub(length)?;
    let footer = read(&*headed.file, offset, length)?;
    for bytes in parse_footer(&footer, &headed.id, block.room())?.chunks(RECORD_HEADER as usize) {
        block.push(RecordHeader::parse(bytes, &headed.id, block.end_position())?.length);
    }
    block.has_footer = true;
    (block.end_offset() == offset).then_some(block)
}

fn by_headers(headed: &Headed) -> Option<Block> {
    let mut block = Block::empty(headed.id.number, headed.first);
    for _ in headed.first..BLOCK_UNITS {
        let bytes = read(&*headed.file, block.end_offset(), RECORD_HEADER)?;
        block.push(RecordHeader::parse(&bytes, &headed.id, block.end_position())?.length);
    }
    Some(block)
}

/// The bytes at an offset; `None` if the file ends before, or if they cannot be read.
fn read(file: &dyn File, offset: u32, length: u32) -> Option<Vec<u8>> {
    read_exact(file, u64::from(offset), length as usize).ok().flatten()
}
