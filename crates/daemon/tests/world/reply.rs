//! A response, as a client got it.

use std::fmt;

/// A response; of a broken one, as much as came.
#[derive(Clone, Default)]
pub struct Reply {
    /// 0 if none came.
    pub status: u16,
    /// Field lines in order, of the last head.
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// How curl ended: 0 is well, 18 a transfer that broke off, 52 no answer, 56 a reset.
    pub exit: i32,
    /// What curl said.
    pub said: String,
}

impl Reply {
    /// Reads a head: the status line and the field lines, of the last response in it.
    pub fn of_head(head: &str) -> Self {
        let mut reply = Self::default();
        for line in head.lines() {
            if let Some(rest) = line.strip_prefix("HTTP/1.") {
                let status = rest.get(2..5).and_then(|code| code.parse().ok()).unwrap_or(0);
                reply = Self { status, ..Self::default() };
            } else if let Some((name, value)) = line.split_once(':') {
                reply.fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
        }
        reply
    }

    /// A field's value, or nothing.
    pub fn field(&self, name: &str) -> &str {
        let name = name.to_ascii_lowercase();
        let found = self.fields.iter().rev().find(|(there, _)| *there == name);
        found.map_or("", |(_, value)| value)
    }

    /// What caches said of it.
    pub fn cache_status(&self) -> &str {
        self.field("cache-status")
    }

    pub fn is_hit(&self) -> bool {
        self.cache_status().contains("; hit")
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The transfer ended as it should, with this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert!(self.exit == 0 && self.status == status, "not a sound {status}: {self:?}");
        self
    }

    /// It came out of the cache, whole.
    #[track_caller]
    pub fn expect_hit(self) -> Self {
        assert!(self.exit == 0 && self.is_hit(), "no hit: {self:?}");
        self
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "curl {} ({}), status {}", self.exit, self.said.trim(), self.status)?;
        self.fields.iter().try_for_each(|(name, value)| write!(f, "\n  {name}: {value}"))?;
        let begin = &self.body[..self.body.len().min(200)];
        write!(f, "\n  {} bytes: {:?}", self.body.len(), String::from_utf8_lossy(begin))
    }
}
