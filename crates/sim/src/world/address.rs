//! The addresses of machines, by their index in the world. All are in one network; a machine that is outside
//! the site has an address in another network instead.
//!
//! Stations come first, in their order, so routers have the same addresses as in the lab. A router has one
//! address on all its interfaces.

use std::net::Ipv4Addr;

/// The network of all machines: 10.77.0.0/16.
const NET: u32 = 10 << 24 | 77 << 16;
/// The network of machines outside the site, which is for tests (RFC 2544): 198.18.0.0/16.
const OUTSIDE: u32 = 198 << 24 | 18 << 16;
/// Number of addresses in each network.
pub const MACHINES_MAX: usize = 65_534;

/// The address of a machine.
///
/// # Panics
///
/// If there are more machines than [`MACHINES_MAX`].
pub fn address(machine: usize) -> Ipv4Addr {
    assert!(machine < MACHINES_MAX, "a world has at most {MACHINES_MAX} machines");
    Ipv4Addr::from_bits(NET + machine as u32 + 1)
}

/// The address of a machine that is outside the site: a public one, which a far end may dial.
///
/// # Panics
///
/// If there are more machines than [`MACHINES_MAX`].
pub fn outside(machine: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(address(machine).to_bits() - NET + OUTSIDE)
}

/// The machine with this address.
pub fn machine(address: Ipv4Addr) -> Option<usize> {
    let number = |net| address.to_bits().checked_sub(net + 1).map(|it| it as usize);
    [NET, OUTSIDE].into_iter().filter_map(number).find(|it| *it < MACHINES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lead_back_to_machines() {
        for index in [0, 1, 253, 254, 255, 1000, MACHINES_MAX - 1] {
            assert_eq!(machine(address(index)), Some(index));
            assert_eq!(machine(outside(index)), Some(index));
        }
        assert_eq!(address(0), Ipv4Addr::new(10, 77, 0, 1));
        assert_eq!(address(999), Ipv4Addr::new(10, 77, 3, 232));
        assert_eq!(outside(1), Ipv4Addr::new(198, 18, 0, 2));
        let strangers = [[10, 77, 0, 0], [10, 76, 255, 255], [10, 78, 0, 0], [192, 0, 2, 1]];
        for stranger in strangers.into_iter().chain([[198, 18, 0, 0], [198, 19, 0, 0]]) {
            assert_eq!(machine(Ipv4Addr::from(stranger)), None);
        }
    }
}
