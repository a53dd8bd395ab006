//! TAP devices: network interfaces whose other end is a file descriptor.
//!
//! This file has the only `unsafe` code of the lab: two ioctls that no library offers safely.

#![allow(unsafe_code, reason = "ioctls of /dev/net/tun")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::fs::OFlags;
use rustix::ioctl::{IntegerSetter, Opcode, Setter, ioctl};

/// The file that makes TAP devices.
pub const DEVICE: &str = "/dev/net/tun";

/// The kind of frames of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ethernet.
    Ethernet,
    /// 802.11 with radiotap headers, as a monitor interface: the kernel's IP ignores them.
    Monitor,
}

/// One device, in the network namespace of the thread that made it. It vanishes when this is dropped.
#[derive(Debug)]
pub struct Tap(File);

/// `linux/if_tun.h`: `TUNSETIFF` and `TUNSETLINK`. Both are declared with type `int`, though their arguments differ.
const TUNSETIFF: Opcode = rustix::ioctl::opcode::write::<i32>(b'T', 202);
const TUNSETLINK: Opcode = rustix::ioctl::opcode::write::<i32>(b'T', 205);

/// `IFF_TAP | IFF_NO_PI`: plain Ethernet frames.
const IFF_TAP_NO_PI: u16 = 0x1002;

/// `linux/if_arp.h`: `ARPHRD_IEEE80211_RADIOTAP`.
const RADIOTAP: usize = 803;

/// `struct ifreq`: a name of at most 15 bytes, then the flags.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

impl Tap {
    /// Makes the device `name` (at most 15 bytes), which is down and has no address.
    pub fn new(name: &str, kind: Kind) -> io::Result<Self> {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(DEVICE)?;
        let mut request = InterfaceRequest { name: [0; 16], flags: IFF_TAP_NO_PI, rest: [0; 22] };
        let bytes = name.as_bytes();
        assert!(bytes.len() < request.name.len(), "{name} is no interface's name");
        request.name[..bytes.len()].copy_from_slice(bytes);
        // SAFETY: TUNSETIFF reads one `struct ifreq` (and writes its name back), which this is.
        unsafe { ioctl(&file, Setter::<TUNSETIFF, _>::new(request))? };
        if kind == Kind::Monitor {
            // SAFETY: TUNSETLINK takes its argument as a number and touches no memory of ours.
            unsafe { ioctl(&file, IntegerSetter::<TUNSETLINK>::new_usize(RADIOTAP))? };
        }
        Ok(Self(file))
    }

    /// Reads the next frame that the kernel sent; `None` if there is none now.
    pub fn receive(&self, frame: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.0, frame) {
            Ok(length) => Ok(Some(length)),
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the kernel a frame. As on a cable, a frame that it cannot take is lost (the device is down, no
    /// memory).
    pub fn send(&self, frame: &[u8]) {
        let _ = rustix::io::write(&self.0, frame);
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
