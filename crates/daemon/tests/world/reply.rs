//! A response, as a client received it.

use std::fmt;

/// A response; if the transfer broke off, the part that arrived.
#[derive(Clone, Default)]
pub struct Reply {
    /// 0 if no response arrived.
    pub status: u16,
    /// The last head's field lines, in order.
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// curl's exit code: 0 is success, 18 a transfer that broke off, 52 no response, 56 a reset.
    pub exit: i32,
    /// curl's messages.
    pub said: String,
}

impl Reply {
    /// Reads the status line and the field lines of the last head in a text.
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

    /// A field's value, or an empty text.
    pub fn field(&self, name: &str) -> &str {
        let name = name.to_ascii_lowercase();
        let found = self.fields.iter().rev().find(|(there, _)| *there == name);
        found.map_or("", |(_, value)| value)
    }

    /// The response's `Cache-Status`.
    pub fn cache_status(&self) -> &str {
        self.field("cache-status")
    }

    pub fn is_hit(&self) -> bool {
        self.cache_status().contains("; hit")
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Checks that the transfer is complete, with this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert!(self.exit == 0 && self.status == status, "not a sound {status}: {self:?}");
        self
    }

    /// Checks that the whole response was served from the store.
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
