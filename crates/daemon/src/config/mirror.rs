//! `[mirror]`: package archives by URLs of this router.

use super::Reader;
use super::file;
use classes::{HostPattern, Reach};
use std::net::SocketAddr;
use std::sync::Arc;
use toml::Spanned;

/// The mirror's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mirror {
    /// Where it listens; nowhere by default.
    pub listen: Vec<SocketAddr>,
    /// Hosts that it may dial, besides those of the content classes.
    pub allow: Vec<HostPattern>,
}

impl Reader<'_> {
    pub(super) fn mirror(&mut self, file: &file::Mirror) -> Mirror {
        let listen = file.listen.iter().filter_map(|text| self.address(text)).collect();
        let allow = file.allow.iter().filter_map(|text| self.host(text)).collect();
        Mirror { listen, allow }
    }

    fn host(&mut self, text: &Spanned<String>) -> Option<HostPattern> {
        let host = text.get_ref().parse().ok();
        if host.is_none() {
            let why = format!(
                "{:?} is no host: expected something like \"pypi.example\", \"*.example.org\" or \
                 \"registry.example:5000\"",
                text.get_ref()
            );
            self.complain(text, &why);
        }
        host
    }
}

impl super::Config {
    /// What the paths of archives promise, and which hosts a mirror may dial.
    pub fn reach(&self) -> Reach {
        let allow = self.mirror.allow.clone().into();
        Reach { classes: Arc::new(self.classes.classes()), allow }
    }
}
