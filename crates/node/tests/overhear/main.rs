//! Overhearing, from segments to chunks.

mod ear;
mod hostile;
mod listed;
mod needs;
mod oracle;
mod several;
mod streams;
