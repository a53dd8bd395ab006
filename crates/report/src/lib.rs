//! Pages and plots: series and tables in, HTML and SVG out.
//!
//! *What this is:* pictures, each an SVG that is a file of its own or a part of a page: [`Chart`],
//! [`Distribution`], [`Bars`] and [`Shares`] as papers draw them, [`map`], [`areas`], [`pair`], [`cdf`], [`bars`].
//! Beside them [`page`], the frame of all pages; [`text`], numbers for people; [`stats`], medians; [`provenance`], the origin of
//! figures. *Who calls it:* crates that have results to show. They know what the results mean.
//! *What it never does:* know what ran. A page refers to nothing outside itself and runs no scripts, so it can
//! be mailed, printed and kept. Texts are escaped (maud), and the same values give the same bytes.
//! *Where to start:* [`page::document`].

pub mod areas;
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
pub use figures::{Figures, Rows, figures};
pub use ground::{Ground, Line, Place};
pub use groups::{Bars, Group};
pub use mean::Mean;
pub use picture::chip;
pub use shares::{Row, Shares};
