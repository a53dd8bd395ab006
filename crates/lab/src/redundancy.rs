//! What schemes of chunking save when content crosses a link again: Wanax's simulator (§4), without files and clocks.
//!
//! *What this is:* bytes of inputs in, counts out. `division` cuts a stream into nested chunks, `names` remembers the
//! chunks that have crossed, `streams` joins segments of a capture, `scheme` lists the schemes, `analysis` counts for each
//! of them, and `effective` turns counts into times. *Who calls it:* `commands::analyze`. *What it never does:* open or
//! print anything, or hold more than the tables of names, and for each stream one largest chunk of each division and what
//! a capture has beyond a gap. *Where to start:* [`Analysis`]. *Source:* Wanax §3.2, §3.4 and §4.
//!
//! *Assumptions, those of the paper:* one sender and one receiver whose tables agree, as hints of names make them; names
//! of 20 bytes; nothing is evicted, and nothing is compressed. What crosses is the name of a chunk that the receiver
//! has, or the bytes of the largest chunk that has no part which it has.

mod analysis;
#[cfg(test)]
mod checks;
mod counts;
mod division;
mod effective;
mod names;
mod scheme;
mod streams;
#[cfg(test)]
mod tests;

pub use analysis::Analysis;
pub use counts::Counts;
pub use effective::{Disk, Shedding, improvement};
pub use names::Full;
pub use scheme::{Kind, SMALLEST, Scheme, length};
pub use streams::{StreamCounts, Streams};
