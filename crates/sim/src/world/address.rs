//! The addresses of machines, by their index in the world. All are in one network.
//!
//! Stations come first, in their order, so routers have the same addresses as in the lab. A router has one
//! address on all its interfaces.

use std::net::Ipv4Addr;

/// The network of all machines: 10.77.0.0/16.
const NET: u32 = 10 << 24 | 77 << 16;
/// Number of addresses in the network.
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

/// The machine with this address.
pub fn machine(address: Ipv4Addr) -> Option<usize> {
    let number = address.to_bits().checked_sub(NET + 1)? as usize;
    (number < MACHINES_MAX).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lead_back_to_machines() {
        for index in [0, 1, 253, 254, 255, 1000, MACHINES_MAX - 1] {
            assert_eq!(machine(address(index)), Some(index));
        }
        assert_eq!(address(0), Ipv4Addr::new(10, 77, 0, 1));
        assert_eq!(address(999), Ipv4Addr::new(10, 77, 3, 232));
        for stranger in [[10, 77, 0, 0], [10, 76, 255, 255], [10, 78, 0, 0], [192, 0, 2, 1]] {
            assert_eq!(machine(Ipv4Addr::from(stranger)), None);
        }
    }
}
