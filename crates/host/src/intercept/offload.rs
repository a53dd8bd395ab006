//! Flow tables: a kernel that has one forwards packets of known connections past its firewall, and past us.
//!
//! The text of `nft list flowtables` is read, which nft prints on every system; OpenWrt also ships an nft without JSON.

use super::{Error, query, words};

/// A flow table of another program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flowtable {
    /// The family, the table and the name: `inet fw4 ft`.
    pub name: String,
    /// Interfaces whose packets it takes, where `lan*` is every one whose name begins so; empty if it takes none, or if
    /// the list does not say.
    pub devices: Vec<String>,
    /// Whether a switch's hardware may forward too.
    pub in_hardware: bool,
}

impl Flowtable {
    /// Whether it takes packets that come in by an interface.
    #[must_use]
    pub fn takes_from(&self, interface: &str) -> bool {
        self.devices.iter().any(|device| match device.strip_suffix('*') {
            Some(start) => interface.starts_with(start),
            None => device == interface,
        })
    }

    /// The table as one line.
    pub(crate) fn line(&self) -> String {
        let flags = if self.in_hardware { "offload" } else { "" };
        format!("{}\t{}\t{flags}", self.name, self.devices.join(" "))
    }

    /// The table of such a line.
    pub(crate) fn of_line(line: &str) -> Self {
        let mut parts = line.split('\t');
        let name = parts.next().unwrap_or_default().to_owned();
        let devices = parts.next().unwrap_or_default().split_whitespace();
        let devices = devices.map(str::to_owned).collect();
        Self { name, devices, in_hardware: parts.next() == Some("offload") }
    }
}

/// The flow tables of this network namespace; none on a kernel that knows none.
///
/// # Errors
/// If nft is missing or not permitted.
pub fn flowtables() -> Result<Vec<Flowtable>, Error> {
    Ok(read(&query("nft", &words("list flowtables"))?.unwrap_or_default()))
}

/// Reads nft's list.
#[must_use]
pub fn read(listing: &str) -> Vec<Flowtable> {
    let (mut table, mut found) = ("", Vec::<Flowtable>::new());
    for line in listing.lines().map(|line| line.trim().trim_end_matches(" {")) {
        if let Some(rest) = line.strip_prefix("table ") {
            table = rest;
        } else if let Some(name) = line.strip_prefix("flowtable ") {
            found.push(Flowtable { name: format!("{table} {name}"), ..Flowtable::default() });
        } else if let Some(last) = found.last_mut() {
            // Versions of nft differ in quotes and semicolons.
            let names = |it: char| !(it.is_ascii_alphanumeric() || "._-@*".contains(it));
            if let Some(rest) = line.strip_prefix("devices") {
                let devices = rest.split(names).filter(|it| !it.is_empty());
                last.devices.extend(devices.map(str::to_owned));
            } else if let Some(rest) = line.strip_prefix("flags") {
                last.in_hardware |= rest.split(names).any(|flag| flag == "offload");
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The form in which nft prints firewall4's table with hardware offload on OpenWrt; newer versions quote the names.
    const OPENWRT: &str = "table inet fw4 {\n\tflowtable ft {\n\t\thook ingress priority filter\n\t\t\
         devices = { lan1, lan2, \"wan\" }\n\t\tflags offload\n\t\tcounter\n\t}\n}\n\
         table inet hearsay {\n}\n";

    #[test]
    fn a_recorded_list_is_read() {
        let [table] = &read(OPENWRT)[..] else { panic!("not one") };
        assert_eq!((table.name.as_str(), table.in_hardware), ("inet fw4 ft", true));
        assert_eq!(table.devices, ["lan1", "lan2", "wan"]);
        assert_eq!(&Flowtable::of_line(&table.line()), table);
    }

    #[test]
    fn a_table_takes_from_its_interfaces_alone() {
        let [table] =
            &read("table ip a {\n flowtable f {\n devices = { \"lan*\", wan };\n }\n}\n")[..]
        else {
            panic!("not one")
        };
        for (interface, takes) in [("lan1", true), ("wan", true), ("wan2", false), ("eth0", false)]
        {
            assert_eq!(table.takes_from(interface), takes, "{interface}");
        }
    }

    #[test]
    fn several_tables_are_told_apart_and_none_is_none() {
        let listing = "table ip a {\n flowtable f {\n devices = { eth0 };\n }\n flowtable g {\n flags offload;\n }\n}\n";
        let shown: Vec<_> = read(listing)
            .into_iter()
            .map(|it| (it.name, it.devices.len(), it.in_hardware))
            .collect();
        assert_eq!(shown, [("ip a f".to_owned(), 1, false), ("ip a g".to_owned(), 0, true)]);
        assert_eq!(read("table inet hearsay {\n}\n"), []);
        assert_eq!(read("devices = { x }\nflags offload\n"), [], "of no table");
    }
}
