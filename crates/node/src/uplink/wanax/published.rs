//! Which of the published schemes a pair uses, and with which sizes of chunks.

use super::ROOT_AVERAGE;
use std::fmt;
use std::str::FromStr;

/// How chunks are stored and found (Wanax §3.2, table 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Single-resolution chunking: chunks of one size.
    Src,
    /// Multi-resolution chunking: chunks of all levels, each stored by itself.
    Mrc,
    /// As MRC, but only roots are stored: a smaller chunk is a part of one, and its entry says where.
    MrcLarge,
}

impl Kind {
    /// All, and their names.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Src, "src"), (Self::Mrc, "mrc"), (Self::MrcLarge, "mrc-large")];

    /// Its name in configuration files and reports.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

/// A published scheme. As text: `src-1024`, `mrc-8-128`, `mrc-large-2-32`, with the degree of trees and the average
/// length of the smallest chunks in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    kind: Kind,
    /// 1 for SRC.
    degree: u32,
    smallest: u32,
}

/// Why there is no such scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unpublished {
    /// The degree is none of the paper's.
    #[error("trees have degree 2, 4 or 8, and not {0}")]
    Degree(u32),
    /// Chunks of one size have no degree.
    #[error("chunks of one size form no trees: leave the degree out")]
    NoTree,
    /// The smallest chunks have a length that is none of the paper's.
    #[error("the smallest chunks have a power of two of bytes, from 32 to 65536, and not {0}")]
    Smallest(u32),
    /// A tree of this degree has no such level.
    #[error("a tree of degree {degree} from 65536 bytes down has no chunks of {smallest} bytes")]
    NoLevel {
        /// The degree.
        degree: u32,
        /// What the smallest chunks are to have.
        smallest: u32,
    },
    /// The text is not of this form.
    #[error("no published scheme: try `mrc-8-128`, `mrc-large-2-32` or `src-1024`")]
    Form,
}

impl Published {
    /// The least average length of chunks in bytes (§4.1).
    pub const SMALLEST: u32 = 32;

    /// A scheme. Without a degree trees have 8, and without a smallest length they go down as far as the paper's do;
    /// chunks of one size then have 1 KiB. These are the settings of §6.
    ///
    /// # Errors
    /// If the paper has no such scheme.
    pub fn new(
        kind: Kind,
        degree: Option<u32>,
        smallest: Option<u32>,
    ) -> Result<Self, Unpublished> {
        let degree = match (kind, degree) {
            (Kind::Src, Some(_)) => return Err(Unpublished::NoTree),
            (Kind::Src, None) => 1,
            (_, None) => 8,
            (_, Some(degree @ (2 | 4 | 8))) => degree,
            (_, Some(degree)) => return Err(Unpublished::Degree(degree)),
        };
        let usual = || match degree {
            1 => 1024,
            _ => levels(degree).last().unwrap_or(ROOT_AVERAGE),
        };
        let smallest = smallest.unwrap_or_else(usual);
        let is_in = (Self::SMALLEST..=ROOT_AVERAGE).contains(&smallest);
        if !is_in || !smallest.is_power_of_two() {
            return Err(Unpublished::Smallest(smallest));
        }
        if degree > 1 && !levels(degree).any(|level| level == smallest) {
            return Err(Unpublished::NoLevel { degree, smallest });
        }
        Ok(Self { kind, degree, smallest })
    }

    /// How chunks are stored.
    pub fn kind(self) -> Kind {
        self.kind
    }

    /// The degree of its trees, if it has any.
    pub fn degree(self) -> Option<u32> {
        (self.degree > 1).then_some(self.degree)
    }

    /// The average length of its smallest chunks, in bytes.
    pub fn smallest(self) -> u32 {
        self.smallest
    }

    /// The average lengths of the levels that content is cut by, the largest first. Chunks of one size cross in groups
    /// of 64 KiB, too.
    pub(super) fn averages(self) -> Vec<u32> {
        match self.degree {
            1 if self.smallest == ROOT_AVERAGE => vec![ROOT_AVERAGE],
            1 => vec![ROOT_AVERAGE, self.smallest],
            degree => levels(degree).take_while(|level| *level >= self.smallest).collect(),
        }
    }

    /// Three bytes that say which it is.
    pub(in super::super) fn code(self) -> [u8; 3] {
        let kind = Kind::ALL.iter().position(|(kind, _)| *kind == self.kind).unwrap_or(0);
        [kind as u8 + 1, self.degree as u8, self.smallest.ilog2() as u8]
    }

    /// The scheme that these bytes say.
    pub(in super::super) fn of_code([kind, degree, smallest]: [u8; 3]) -> Option<Self> {
        let (kind, _) = *Kind::ALL.get(usize::from(kind).checked_sub(1)?)?;
        let degree = (degree != 1).then_some(degree.into());
        Self::new(kind, degree, Some(1u32.checked_shl(smallest.into())?)).ok()
    }
}

/// The average lengths of the levels of a tree, down to the least.
fn levels(degree: u32) -> impl Iterator<Item = u32> {
    let next = move |level: &u32| (level / degree >= Published::SMALLEST).then(|| level / degree);
    std::iter::successors(Some(ROOT_AVERAGE), next)
}

impl fmt::Display for Published {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.degree() {
            Some(degree) => write!(f, "{}-{degree}-{}", self.kind.name(), self.smallest),
            None => write!(f, "{}-{}", self.kind.name(), self.smallest),
        }
    }
}

impl FromStr for Published {
    type Err = Unpublished;

    fn from_str(text: &str) -> Result<Self, Unpublished> {
        let number = |text: &str| text.parse().map_err(|_| Unpublished::Form);
        let (rest, smallest) = text.rsplit_once('-').ok_or(Unpublished::Form)?;
        let smallest = number(smallest)?;
        let kind = |name: &str| Kind::ALL.into_iter().find(|(_, it)| *it == name);
        if let Some((kind @ Kind::Src, _)) = kind(rest) {
            return Self::new(kind, None, Some(smallest));
        }
        let (name, degree) = rest.rsplit_once('-').ok_or(Unpublished::Form)?;
        match kind(name) {
            Some((kind @ (Kind::Mrc | Kind::MrcLarge), _)) => {
                Self::new(kind, Some(number(degree)?), Some(smallest))
            }
            Some((Kind::Src, _)) | None => Err(Unpublished::Form),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_reads_back_from_its_text_and_its_code() {
        for text in ["src-1024", "src-32", "src-65536", "mrc-8-128", "mrc-2-32", "mrc-large-4-256"]
        {
            let scheme: Published = text.parse().unwrap();
            assert_eq!(scheme.to_string(), text);
            assert_eq!(Published::of_code(scheme.code()), Some(scheme));
        }
    }

    #[test]
    fn what_the_paper_has_not_is_refused_with_a_reason() {
        let of = |text: &str| text.parse::<Published>().unwrap_err();
        assert_eq!(of("mrc-3-64"), Unpublished::Degree(3));
        assert_eq!(of("mrc-8-32"), Unpublished::NoLevel { degree: 8, smallest: 32 });
        for smallest in [0, 16, 48, 1 << 17] {
            assert_eq!(of(&format!("src-{smallest}")), Unpublished::Smallest(smallest));
        }
        for text in ["", "mrc", "mrc-8", "src", "src-2-32", "wan-8-128", "mrc-8-x", "mrc--8-128"] {
            assert_eq!(of(text), Unpublished::Form, "{text}");
        }
        assert_eq!(Published::new(Kind::Src, Some(2), None), Err(Unpublished::NoTree));
        for code in [[0, 1, 5], [4, 1, 5], [1, 1, 4], [1, 1, 200], [2, 8, 5], [2, 0, 5]] {
            assert_eq!(Published::of_code(code), None, "{code:?}");
        }
    }

    #[test]
    fn trees_are_as_deep_as_the_papers() {
        let of = |kind, degree| Published::new(kind, degree, None).unwrap();
        let smallest = [2, 4, 8].map(|degree| of(Kind::Mrc, Some(degree)).smallest());
        assert_eq!(smallest, [32, 64, 128]);
        assert_eq!(of(Kind::MrcLarge, None).averages(), [65536, 8192, 1024, 128]);
        assert_eq!(of(Kind::Src, None).averages(), [65536, 1024]);
    }
}
