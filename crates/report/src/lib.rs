//! Pages and plots: series and tables in, HTML and SVG out.
//!
//! *What this is:* pictures, each a file of its own and part of a page as it is: [`Chart`], [`Distribution`] and
//! [`Bars`] as papers draw them, [`map`], [`cdf`], [`bars`]; [`page`], the frame of all pages; [`text`],
//! numbers as people read them; [`stats`], what many values say together; [`provenance`], where figures come from. *Who calls it:* those who have something to show; what it means is theirs.
//! *What it never does:* know what ran. A page refers to nothing outside itself and runs no scripts, so it can
//! be mailed, printed and kept; texts of others are escaped (maud), and the same values give the same bytes.
//! *Where to start:* [`page::document`].

mod axis;
pub mod bars;
pub mod cdf;
mod coincide;
mod curves;
mod distribution;
mod figures;
mod ground;
mod groups;
mod labels;
mod legend;
pub mod map;
mod mean;
pub mod page;
pub mod pair;
mod picture;
pub mod provenance;
mod shares;
pub mod stats;
pub mod testing;
pub mod text;
mod ticks;

pub use curves::{Chart, Curve};
pub use distribution::{Distribution, Series};
pub use figures::{Figures, figures};
pub use ground::{Ground, Line, Place};
pub use groups::{Bars, Group};
pub use mean::Mean;
pub use picture::chip;
pub use shares::{Row, Shares};
