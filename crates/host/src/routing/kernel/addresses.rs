//! This machine's addresses.

use std::io;
use std::net::IpAddr;

use super::{listing, message};

/// The current addresses of an interface, given by its index.
pub fn addresses(interface: u32) -> io::Result<Vec<IpAddr>> {
    let of_it = |(at, address)| (at == interface).then_some(address);
    Ok(list()?.into_iter().filter_map(of_it).collect())
}

/// The current addresses of this machine.
pub fn all_addresses() -> io::Result<Vec<IpAddr>> {
    Ok(list()?.into_iter().map(|(_, address)| address).collect())
}

/// All addresses, each with the index of its interface.
fn list() -> io::Result<Vec<(u32, IpAddr)>> {
    listing::list(message::GETADDR, |message| {
        (message.kind == message::NEWADDR).then(|| message.address()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_its_address() {
        // Linux gives loopback the index 1 in every namespace.
        let found = addresses(1).unwrap();
        assert!(found.contains(&IpAddr::from([127, 0, 0, 1])), "{found:?}");
        assert!(found.iter().all(|it| all_addresses().unwrap().contains(it)));
        assert_eq!(addresses(u32::MAX).unwrap(), [] as [IpAddr; 0]);
    }
}
