//! A link interference matrix as text: a line for each link, then a line for each two that disturb each other.
//!
//! ```text
//! # The links: two routers' names.
//! a>b
//! b>c
//! # With what probability frames of the first link pass while the second contends. Pairs without a line: 1.
//! a>b b>c 0.5
//! b>c a>b 0.4
//! ```
//!
//! `a>b` and `b>a` name the same link. Where lines tell its directions apart, the mean of the given values counts.

use std::collections::BTreeMap;
use std::fmt;

use crate::{LINKS_MAX, Matrix, Mesh};

/// Longest name of a router, as in scenarios.
const NAME_CHARS_MAX: usize = 16;

/// Why a text is no matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1; 0 for the text as a whole.
    pub line: usize,
    /// What is wrong, and what should be there.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.text),
            line => write!(f, "line {line}: {}", self.text),
        }
    }
}

/// A direction of a link: the names of its routers.
type Way<'a> = (&'a str, &'a str);

/// Reads a mesh and its matrix. Traffic can enter and leave at routers with one link only.
pub fn read(text: &str) -> Result<(Mesh, Matrix), Problem> {
    let mut links = Links::default();
    let mut values = BTreeMap::<(Way<'_>, Way<'_>), (f64, usize)>::new();
    for (at, line) in text.lines().enumerate() {
        let refuse = |text| Problem { line: at + 1, text };
        let words: Vec<_> = line.split('#').next().unwrap_or("").split_whitespace().collect();
        match words[..] {
            [] => {}
            [link] => links.add(way(link).map_err(refuse)?, at + 1)?,
            [link, with, value] => {
                let (link, with) = (way(link).map_err(refuse)?, way(with).map_err(refuse)?);
                let (a, b) = (links.find(link).map_err(refuse)?, links.find(with).map_err(refuse)?);
                let value = probability(value).map_err(refuse)?;
                if a == b {
                    let text = format!("{} and {} are the same link", shown(link), shown(with));
                    return Err(refuse(text));
                }
                let (known, line) = *values.entry((link, with)).or_insert((value, at + 1));
                if known != value {
                    let (link, with) = (shown(link), shown(with));
                    let text = format!(
                        "{link} {with} is {value} here, and {known} in line {line}: one is wrong"
                    );
                    return Err(refuse(text));
                }
            }
            _ => {
                let text = "this is neither a link (a>b) nor a pair of links with a probability (a>b b>c 0.5)";
                return Err(refuse(text.to_owned()));
            }
        }
    }
    if links.ends.is_empty() {
        let text = "there is no link: a line a>b names one";
        return Err(Problem { line: 0, text: text.to_owned() });
    }
    Ok(links.matrix(values))
}

/// The links read so far.
#[derive(Default)]
struct Links<'a> {
    /// The routers in the order in which they are named.
    routers: Vec<&'a str>,
    numbers: BTreeMap<&'a str, usize>,
    /// The line of each link, by its ends, the lesser number first.
    ends: BTreeMap<(usize, usize), usize>,
}

impl<'a> Links<'a> {
    fn add(&mut self, (a, b): Way<'a>, line: usize) -> Result<(), Problem> {
        let (a, b) = (self.number(a), self.number(b));
        self.ends.entry((a.min(b), a.max(b))).or_insert(line);
        if self.ends.len() > LINKS_MAX {
            return Err(Problem { line, text: format!("more than {LINKS_MAX} links") });
        }
        Ok(())
    }

    fn number(&mut self, name: &'a str) -> usize {
        let next = self.routers.len();
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.routers.push(name);
        }
        number
    }

    /// The ends of a link, the lesser number first.
    fn find(&self, way: Way<'a>) -> Result<(usize, usize), String> {
        let numbers = self.numbers.get(way.0).zip(self.numbers.get(way.1));
        let ends = numbers.map(|(a, b)| (*a.min(b), *a.max(b)));
        ends.filter(|it| self.ends.contains_key(it)).ok_or_else(|| {
            let link = shown(way);
            format!("there is no link {link}: a line of its own, before this one, names a link")
        })
    }

    fn matrix(self, values: BTreeMap<(Way<'a>, Way<'a>), (f64, usize)>) -> (Mesh, Matrix) {
        let mut links_of = vec![0; self.routers.len()];
        for (a, b) in self.ends.keys() {
            links_of[*a] += 1;
            links_of[*b] += 1;
        }
        let ends = (0..links_of.len()).filter(|router| links_of[*router] == 1);
        let names = self.routers.iter().map(|it| (*it).to_owned()).collect();
        let mesh = Mesh::new(names, self.ends.keys().copied(), ends);
        let link = |(a, b): Way<'_>| mesh.link(self.numbers[a], self.numbers[b]).expect("known");
        let mut sums = BTreeMap::<(usize, usize), (f64, f64)>::new();
        for ((one, with), (value, _)) in values {
            let (sum, count) = sums.entry((link(one), link(with))).or_default();
            *sum += value;
            *count += 1.0;
        }
        let mut matrix = Matrix::new(mesh.links().len());
        for ((one, with), (sum, count)) in sums {
            matrix.set(one, with, sum / count);
        }
        (mesh, matrix)
    }
}

fn way(word: &str) -> Result<Way<'_>, String> {
    let is_name = |it: &str| {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        (1..=NAME_CHARS_MAX).contains(&it.len()) && it.chars().all(is_letter)
    };
    match word.split_once('>') {
        Some((a, b)) if a == b && is_name(a) => Err(format!("{a}>{b} leads to its own router")),
        Some((a, b)) if is_name(a) && is_name(b) => Ok((a, b)),
        _ => Err(format!(
            "{:?} is no link: two names of at most {NAME_CHARS_MAX} letters, digits, - and _, with > between",
            word.chars().take(40).collect::<String>()
        )),
    }
}

fn probability(word: &str) -> Result<f64, String> {
    let value = word.parse().ok().filter(|it| (0.0..=1.0).contains(it));
    value.ok_or_else(|| {
        let word: String = word.chars().take(40).collect();
        format!("{word:?} is no probability: it must be a number from 0 to 1")
    })
}

fn shown((a, b): Way<'_>) -> String {
    format!("{a}>{b}")
}

/// A mesh and its matrix as such a text.
pub fn written(mesh: &Mesh, matrix: &Matrix) -> String {
    let links = 0..mesh.links().len();
    let mut text: String = links.clone().map(|link| mesh.shown(link) + "\n").collect();
    for (link, with) in links.clone().flat_map(|link| links.clone().map(move |with| (link, with))) {
        let value = matrix.get(link, with);
        if value < 1.0 {
            text += &format!("{} {} {value}\n", mesh.shown(link), mesh.shown(with));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::matrix_text;

    #[test]
    fn a_matrix_is_read() {
        let text = "# mine\n a>b # the first\nb>c\n\nc>d\na>b b>c 0.5\nb>c a>b 0\nb>a c>b 1\n";
        let (mesh, matrix) = read(text).unwrap();
        assert_eq!(mesh.names(), ["a", "b", "c", "d"]);
        assert_eq!(mesh.ends().iter().collect::<Vec<_>>(), [&0, &3]);
        // 0.5 in one direction, and 1 in the other.
        assert_eq!((matrix.get(0, 1), matrix.get(1, 0), matrix.get(1, 2)), (0.75, 0.0, 1.0));
        assert!(matrix_text(text.as_bytes()));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, line, part) in [
            ("", 0, "no link"),
            ("# nothing\n\n", 0, "no link"),
            ("a>b\na>b b>c 0.5\n", 2, "no link b>c"),
            ("a>b b>c 0.5\na>b\nb>c\n", 1, "no link a>b"),
            ("a>b\nb>c\na>b b>c 1.5\n", 3, "\"1.5\""),
            ("a>b\nb>c\na>b b>c NaN\n", 3, "\"NaN\""),
            ("a>b\nb>c\na>b b>c -0.1\n", 3, "\"-0.1\""),
            ("a>b\nb>c\na>b b>c half\n", 3, "\"half\""),
            ("a>b\nb>c\na>b b>c 0.5\na>b b>c 0.6\n", 4, "0.5 in line 3"),
            ("a>b\na>b b>a 0.5\n", 2, "the same link"),
            ("a>a\n", 1, "own router"),
            ("a-b\n", 1, "\"a-b\" is no link"),
            ("a>b>c\n", 1, "no link"),
            ("abcdefghijklmnopq>b\n", 1, "no link"),
            ("a>b\na>b 0.5\n", 2, "neither"),
            ("{\"a\": [1, 2, 3]}\n", 1, "neither"),
        ] {
            let problem = read(text).unwrap_err();
            assert_eq!(problem.line, line, "{text:?}: {problem}");
            assert!(problem.to_string().contains(part), "{text:?}: {problem}");
        }
        let twice = "a>b\nb>a\nb>c\na>b b>c 0.5\na>b b>c 0.5\n";
        assert_eq!(read(twice).unwrap().0.links().len(), 2);
        let many: String = (0..=LINKS_MAX).map(|it| format!("a>b{it}\n")).collect();
        assert_eq!(read(&many).unwrap_err().line, LINKS_MAX + 1);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "([a-c]>[a-d]( [a-c]>[a-d] [0-9.]{1,3})?\n){0,9}|\\PC*") {
            matrix_text(text.as_bytes());
        }
    }
}
