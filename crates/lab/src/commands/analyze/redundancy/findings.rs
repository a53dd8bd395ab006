//! The result as JSON; `docs/schema/redundancy-1.json` documents each field.

use serde::Serialize;

use super::super::refused::Refused;
use super::capture::Captured;
use crate::redundancy::{Counts, Disk, Kind, Scheme, Shedding, improvement};

/// Name of the schema of [`Findings`] with its provenance.
pub const SCHEMA: &str = "hearsay/redundancy/1";

/// The speeds of figure 10, in Mbit/s.
const LINKS_MBPS: [f64; 12] = [1., 2., 5., 10., 20., 50., 100., 200., 500., 1000., 2000., 5000.];

/// The result of all schemes.
#[derive(Debug, Serialize)]
pub struct Findings {
    /// Inputs that only filled the stores.
    pub warmed_by: Vec<Input>,
    /// Inputs that were counted.
    pub counted: Vec<Input>,
    /// Time of a disk operation before its first byte, in seconds: a parameter of effective bandwidth.
    pub seek_seconds: f64,
    /// Rate of the disk from there, in bytes a second.
    pub disk_bytes_a_second: f64,
    /// Memory of the tables of this analysis, in bytes.
    pub table_bytes: u64,
    /// The schemes: SRC, MRC, MRC-Small, MRC-Large, ours.
    pub schemes: Vec<Found>,
}

/// An input.
#[derive(Clone, Debug, Serialize)]
pub struct Input {
    /// Its path as on the command line.
    pub file: String,
    /// Its bytes of content; of a capture, those of its streams.
    pub bytes: u64,
    /// What only a capture has.
    #[serde(flatten)]
    pub capture: Option<Capture>,
    /// Why the capture could not be read, or not to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What became of a capture's frames.
#[derive(Clone, Debug, Serialize)]
pub struct Capture {
    /// Captured frames.
    pub frames: u64,
    /// Packets without a TCP segment, by reason.
    pub refused: Refused,
    /// TCP segments.
    pub segments: u64,
    /// TCP streams.
    pub streams: u64,
    /// Bytes in gaps of these streams, which were not captured.
    pub missing_bytes: u64,
}

impl Input {
    /// An input whose bytes are not known yet.
    pub fn new(file: String, captured: Option<Captured>, error: Option<String>) -> Self {
        let capture = captured.map(|it| Capture {
            frames: it.frames,
            refused: it.refused,
            segments: it.segments,
            streams: it.streams.streams,
            missing_bytes: it.streams.missing_bytes,
        });
        Self { file, bytes: 0, capture, error }
    }
}

/// The result of a scheme.
#[derive(Debug, Serialize)]
pub struct Found {
    /// src, mrc, mrc-small, mrc-large or ours.
    pub kind: Kind,
    /// Children of a chunk, on average; only of trees.
    pub degree: Option<u32>,
    /// The average lengths of its chunks, the largest first.
    pub average_bytes: Vec<u32>,
    /// Share of the counted bytes that the receiver had.
    pub ideal_savings: Option<f64>,
    /// The ideal savings less the names of hits and misses.
    pub real_savings: Option<f64>,
    /// The ideal savings less the names of hits only.
    pub savings_without_names_of_misses: Option<f64>,
    /// Real savings of each counted input.
    pub real_savings_by_input: Vec<Option<f64>>,
    /// Chunks that crossed as names.
    pub hits: u64,
    /// Chunks that crossed as bytes.
    pub misses: u64,
    /// Disk operations for the hits.
    pub disk_operations: u64,
    /// Entries of the index that hits used.
    pub index_entries: u64,
    /// Memory of these entries, in bytes.
    pub index_bytes: u64,
    /// Chunks stored from all inputs.
    pub stored_chunks: u64,
    /// Their bytes on the disk.
    pub stored_bytes: u64,
    /// Share of the counted bytes that hits of each level are, in the order of `average_bytes`.
    pub savings_by_level: Vec<f64>,
    /// Effective bandwidth by the link's speed.
    pub effective: Vec<Effective>,
    /// The name of its row.
    #[serde(skip)]
    pub family: String,
}

/// Effective bandwidth over a link, as a multiple of the link's.
#[derive(Debug, Serialize)]
pub struct Effective {
    /// The link's speed.
    pub link_mbps: f64,
    /// With load shedding.
    pub shedding: Option<f64>,
    /// Without: all hits are read from the disk.
    pub not_shedding: Option<f64>,
    /// With load shedding, if neither misses nor what is shed cost a name.
    pub shedding_without_names: Option<f64>,
}

impl Findings {
    /// The result for inputs, each with the counts of all schemes.
    pub fn new(
        schemes: &[Scheme],
        inputs: Vec<(Input, Vec<Counts>)>,
        disk: Disk,
        table_bytes: u64,
    ) -> Self {
        let warm = usize::from(inputs.len() > 1);
        let (mut inputs, counts): (Vec<_>, Vec<_>) = inputs.into_iter().unzip();
        for (input, counts) in inputs.iter_mut().zip(&counts) {
            input.bytes = counts.first().map_or(0, |it| it.bytes);
        }
        let found = |(at, scheme): (usize, &Scheme)| {
            let of: Vec<Counts> = counts.iter().map(|it| it[at].clone()).collect();
            Found::new(scheme, &of[..warm], &of[warm..], disk)
        };
        Self {
            counted: inputs.split_off(warm),
            warmed_by: inputs,
            seek_seconds: disk.seek_seconds,
            disk_bytes_a_second: disk.bytes_a_second,
            table_bytes,
            schemes: schemes.iter().enumerate().map(found).collect(),
        }
    }

    /// SRC and ours, and of each family of trees the one with the smallest chunks.
    pub fn deepest(&self) -> impl Iterator<Item = &Found> {
        let depth = |it: &Found| it.average_bytes.len();
        let is_deepest = move |it: &&Found| {
            self.schemes.iter().all(|other| other.family != it.family || depth(other) <= depth(it))
        };
        self.schemes.iter().filter(is_deepest)
    }
}

impl Found {
    fn new(scheme: &Scheme, warm: &[Counts], counted: &[Counts], disk: Disk) -> Self {
        let mut sum = Counts::default();
        counted.iter().for_each(|it| sum += it);
        let share = |level: usize| {
            let saved = sum.saved_by_level.get(level).copied().unwrap_or(0);
            saved as f64 / sum.bytes.max(1) as f64
        };
        let effective = |link_mbps: f64| {
            let at = |shedding| improvement(&sum, link_mbps * 1e6, disk, shedding);
            Effective {
                link_mbps,
                shedding: at(Shedding::Chunks),
                not_shedding: at(Shedding::None),
                shedding_without_names: at(Shedding::ChunksAndNames),
            }
        };
        let all = || warm.iter().chain(counted);
        Self {
            kind: scheme.kind,
            degree: scheme.degree,
            average_bytes: scheme.averages.clone(),
            ideal_savings: sum.ideal_savings(),
            real_savings: sum.real_savings(),
            savings_without_names_of_misses: sum.savings_without_names_of_misses(),
            real_savings_by_input: counted.iter().map(Counts::real_savings).collect(),
            hits: sum.hits,
            misses: sum.misses,
            disk_operations: sum.disk_operations(),
            index_entries: sum.entries,
            index_bytes: sum.index_bytes(scheme.kind),
            stored_chunks: all().map(|it| it.stored_chunks).sum(),
            stored_bytes: all().map(|it| it.stored_bytes).sum(),
            savings_by_level: (0..scheme.averages.len()).map(share).collect(),
            effective: LINKS_MBPS.map(effective).into(),
            family: scheme.family(),
        }
    }

    /// The average length of its smallest chunks, in bytes.
    pub fn smallest(&self) -> u32 {
        self.average_bytes.last().copied().unwrap_or(0)
    }

    /// Whether it has chunks of one level.
    pub fn is_src(&self) -> bool {
        self.kind == Kind::Src
    }

    /// Whether it is a tree with hits of its own: MRC-Small and MRC-Large have those of MRC.
    pub fn has_own_hits(&self) -> bool {
        matches!(self.kind, Kind::Mrc | Kind::Ours)
    }
}
