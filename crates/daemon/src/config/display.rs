//! The settings as a page.

use super::{Config, Experiment, Size, Span, Uplink};
use std::fmt;

/// The settings as a page for people; `packaging/hearsay.toml` shows the file's syntax.
impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listen: Vec<_> = self.listen.iter().map(ToString::to_string).collect();
        let store = &self.store;
        writeln!(f, "listens    {}", listen.join(", "))?;
        writeln!(f, "name       {}", self.name)?;
        writeln!(f, "memory     {}", Size(self.memory_bytes))?;
        writeln!(f, "drain      {}", Span(self.drain))?;
        writeln!(f, "store      {}, {}", store.place, Size(store.size_bytes))?;
        let rules = self.rules_of_any();
        match rules.interfaces.is_empty() || rules.ports.is_empty() {
            true => writeln!(f, "intercept  off")?,
            false => writeln!(
                f,
                "intercept  {}: port {:?} to {}",
                rules.interfaces.join(" "),
                rules.ports,
                rules.listen_port
            )?,
        }
        if let Some(flows) = rules.flows {
            let interfaces = flows.interfaces.join(" ");
            writeln!(f, "far end    {interfaces}: port {}", flows.ports)?;
        }
        writeln!(f, "mesh       {}", self.mesh)?;
        writeln!(f, "overhear   {}", self.overhear)?;
        if self.uplink != Uplink::default() {
            writeln!(f, "uplink     {}", self.uplink)?;
        }
        if self.ledger.hosts {
            writeln!(f, "ledger     with hosts")?;
        }
        if !self.mirror.listen.is_empty() {
            let listen: Vec<_> = self.mirror.listen.iter().map(ToString::to_string).collect();
            writeln!(f, "mirror     {}", listen.join(", "))?;
        }
        if let Some(metrics) = self.metrics {
            writeln!(f, "metrics    {metrics}")?;
        }
        if let Some(file) = &self.requests.file {
            writeln!(f, "requests   logged to {}", file.display())?;
        }
        if self.experiment != Experiment::default() {
            writeln!(f, "experiment {}", self.experiment)?;
        }
        writeln!(f, "control    {}", self.control.display())
    }
}
