//! Rewrites the links of an index, so that clients ask the mirror for its files. The content passes in pieces of any
//! size; at most one object, or one tag, is held back. What is not of the expected form passes as it is.

mod html;
mod json;
mod target;

use crate::Reach;
use target::Target;

/// The form of an index, and where its links are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// A page of PEP 503 (HTML: `href` of `a`) or of PEP 691 (JSON: `url` of `files`). Digests are in the links'
    /// fragments, or in `hashes`.
    Pypi,
    /// A packument of npm's registry: `tarball` of `dist`. Digests are in `integrity`.
    Npm,
    /// `config.json` of a sparse index of Cargo: `dl`.
    Cargo,
}

impl Rewrite {
    /// The mirror's path for files.
    fn kind(self) -> &'static str {
        match self {
            Self::Pypi => "pypi",
            Self::Npm => "npm",
            Self::Cargo => "cargo",
        }
    }
}

/// Rewrites one content.
#[derive(Debug)]
pub struct Rewriter {
    target: Target,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// Only blanks were read.
    Unknown,
    Json(json::Scanner),
    Html(html::Scanner),
    Other,
}

impl Rewriter {
    /// The most bytes that are held back.
    pub const HELD_MAX: usize = 64 << 10;

    /// Rewrites links to hosts within reach. `base` is the mirror's address as its client writes it, such as
    /// `http://192.0.2.1:3142`; `url` is the content's own address.
    pub fn new(rewrite: Rewrite, base: &str, url: &str, reach: Reach) -> Self {
        Self { target: Target::new(rewrite, base, url, reach), form: Form::Unknown }
    }

    /// Takes a piece of the content, and adds what is ready to `out`.
    pub fn feed(&mut self, mut input: &[u8], out: &mut Vec<u8>) {
        if let Form::Unknown = self.form {
            let is_blank = |it: &u8| matches!(it, b' ' | b'\t' | b'\r' | b'\n');
            let Some(begin) = input.iter().position(|it| !is_blank(it)) else {
                out.extend_from_slice(input);
                return;
            };
            out.extend_from_slice(&input[..begin]);
            input = &input[begin..];
            self.form = match (input[0], self.target.rewrite) {
                (b'{', rewrite) => Form::Json(json::Scanner::new(rewrite)),
                (b'<', Rewrite::Pypi) => Form::Html(html::Scanner::default()),
                _ => Form::Other,
            };
        }
        match &mut self.form {
            Form::Json(scanner) => scanner.feed(&mut self.target, input, out),
            Form::Html(scanner) => scanner.feed(&mut self.target, input, out),
            Form::Unknown | Form::Other => out.extend_from_slice(input),
        }
    }

    /// Adds what was held back: the content has ended.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        out.append(match &mut self.form {
            Form::Json(scanner) => scanner.held(),
            Form::Html(scanner) => scanner.held(),
            Form::Unknown | Form::Other => return,
        });
    }

    /// The capacity of its buffers, in bytes.
    pub fn capacity(&mut self) -> usize {
        match &mut self.form {
            Form::Json(scanner) => scanner.held().capacity(),
            Form::Html(scanner) => scanner.held().capacity(),
            Form::Unknown | Form::Other => 0,
        }
    }
}

#[cfg(test)]
mod tests;
