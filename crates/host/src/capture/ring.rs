//! A packet socket and the memory that the kernel fills with frames (packet(7); the kernel's
//! Documentation/networking/packet_mmap.rst): blocks in a ring, each the kernel's or ours.
//!
//! Nearly all `unsafe` of ours in the router's binary: options and addresses of packet sockets and
//! the mapping, which no library of a fitting licence offers safely (docs/decisions/0011). What blocks
//! hold is read in `frames.rs`, without.

#![allow(unsafe_code, reason = "options of packet sockets, and memory shared with the kernel")]

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::size_of;
use std::ops::Deref;
use std::os::fd::AsRawFd as _;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use socket2::{Domain, SockFilter, Socket, Type};

/// A block has room for the longest frame that a driver hands up in one piece (64 KiB), and headers.
const BLOCK_BYTES: usize = 128 << 10;
/// Together 4 MiB: 320 ms of 100 Mbit/s while nobody looks.
pub const BLOCKS: usize = 32;
/// A block that is not full is handed over after so long: what the node may wait for a chunk that it
/// could cancel, against how often we are woken.
const RETIRE_MS: u32 = 8;
/// Of a block: whose it is (`struct tpacket_hdr_v1`, behind a version and an offset).
const STATUS_AT: usize = 8;
/// What of a block is shown: what is behind its status.
pub const SHOWN_FROM: usize = 12;

/// All protocols, in the byte order of the network.
const EVERYTHING: u16 = (libc::ETH_P_ALL as u16).to_be();
const NOTHING: u16 = 0;

/// A packet socket with its ring. Nothing comes before [`Ring::listen`].
#[derive(Debug)]
pub struct Ring {
    socket: Socket,
    memory: NonNull<u8>,
    /// The block that is filled next.
    next: usize,
}

// SAFETY: the mapping belongs to this value alone, is not bound to a thread, and goes with it.
unsafe impl Send for Ring {}

impl Ring {
    /// Opens the socket, which is all that needs `CAP_NET_RAW`, and sets the memory aside.
    pub fn open() -> io::Result<Self> {
        let socket = Socket::new(Domain::PACKET, Type::RAW, None)?;
        socket.set_nonblocking(true)?;
        set(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V3 as c_int))?;
        // Kernels before 4.20 cannot; the filter does it for them.
        let _ = set(&socket, libc::PACKET_IGNORE_OUTGOING, &1);
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: BLOCK_BYTES as u32,
            tp_frame_nr: BLOCKS as u32,
            tp_retire_blk_tov: RETIRE_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set(&socket, libc::PACKET_RX_RING, &request)?;
        let (length, access) = (BLOCK_BYTES * BLOCKS, ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: a new mapping where the kernel likes, of the length that it was just told.
        let memory =
            unsafe { mmap(ptr::null_mut(), length, access, MapFlags::SHARED, &socket, 0)? };
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { socket, memory, next: 0 })
    }

    /// Listens on an interface, by its number, and on no other; answers what kind of interface it is
    /// (`ARPHRD_...`). Nothing passes before [`Ring::filter`] lets it.
    pub fn listen(&self, interface: u32) -> io::Result<u16> {
        // From one interface to the next nothing may slip through.
        self.filter(&[SockFilter::new((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, 0)])?;
        // To where it is bound already nothing would be done, and a change not be seen.
        self.bind(0, NOTHING)?;
        let _ = self.socket.take_error();
        self.bind(interface, EVERYTHING)?;
        self.kind()
    }

    /// What passes from now on.
    pub fn filter(&self, program: &[SockFilter]) -> io::Result<()> {
        self.socket.attach_filter(program)
    }

    /// Frames for others are taken in too, for as long as the interface and this are there.
    pub fn be_promiscuous(&self, interface: u32) -> io::Result<()> {
        let request = libc::packet_mreq {
            mr_ifindex: interface as c_int,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set(&self.socket, libc::PACKET_ADD_MEMBERSHIP, &request)
    }

    /// Waits for a block, at most so long; an error is what became of the interface.
    pub fn wait(&self, patience: Duration) -> io::Result<()> {
        let patience =
            Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&patience)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.trouble()
    }

    /// What became of the interface, since this was last asked.
    pub fn trouble(&self) -> io::Result<()> {
        self.socket.take_error()?.map_or(Ok(()), Err)
    }

    /// The next block that the kernel has handed over.
    pub fn block(&mut self) -> Option<Block<'_>> {
        // SAFETY: `next` is below `BLOCKS`, so this lies within the mapping.
        let start = unsafe { self.memory.add(self.next * BLOCK_BYTES) };
        // SAFETY: within the block, aligned as blocks are; we and the kernel only ever read and write
        // it as one word.
        let status = unsafe { AtomicU32::from_ptr(start.add(STATUS_AT).cast().as_ptr()) };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        self.next = (self.next + 1) % BLOCKS;
        // SAFETY: the block is ours until its status says otherwise, which only dropping it does, and
        // the status is not among these bytes: nobody writes to them meanwhile. They cannot outlive the
        // mapping, nor be had twice, because this is borrowed.
        let bytes = unsafe {
            let start = start.add(SHOWN_FROM);
            std::slice::from_raw_parts(start.as_ptr(), BLOCK_BYTES - SHOWN_FROM)
        };
        Some(Block { bytes, status })
    }

    /// How many frames passed the filter and found no room, since this was last asked.
    pub fn dropped(&self) -> io::Result<u32> {
        let mut told = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
        let mut length = size_of::<libc::tpacket_stats_v3>() as libc::socklen_t;
        let (level, option) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
        let (fd, value) = (self.socket.as_raw_fd(), ptr::from_mut(&mut told).cast::<c_void>());
        // SAFETY: the kernel writes at most `length` bytes to `told`.
        checked(unsafe { libc::getsockopt(fd, level, option, value, &raw mut length) })?;
        Ok(told.tp_drops)
    }

    fn bind(&self, interface: u32, protocol: u16) -> io::Result<()> {
        let address = address(interface, protocol);
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        let fd = self.socket.as_raw_fd();
        // SAFETY: the kernel reads `length` bytes of `address`.
        checked(unsafe { libc::bind(fd, ptr::from_ref(&address).cast(), length) })
    }

    /// Of which kind the interface is.
    fn kind(&self) -> io::Result<u16> {
        let mut address = address(0, NOTHING);
        let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        let (fd, into) = (self.socket.as_raw_fd(), ptr::from_mut(&mut address).cast());
        // SAFETY: the kernel writes at most `length` bytes to `address`.
        checked(unsafe { libc::getsockname(fd, into, &raw mut length) })?;
        Ok(address.sll_hatype)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: no block is borrowed any more, and nobody else knows the mapping.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), BLOCK_BYTES * BLOCKS) };
    }
}

/// A block with frames, from [`SHOWN_FROM`] on; the kernel has it back when this is dropped.
#[derive(Debug)]
pub struct Block<'a> {
    bytes: &'a [u8],
    status: &'a AtomicU32,
}

impl Deref for Block<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl Drop for Block<'_> {
    fn drop(&mut self) {
        self.status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }
}

fn address(interface: u32, protocol: u16) -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol,
        sll_ifindex: interface as c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}

/// Sets an option of a packet socket.
fn set<T: Copy>(socket: &Socket, option: c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    let (fd, value) = (socket.as_raw_fd(), ptr::from_ref(value).cast::<c_void>());
    // SAFETY: the kernel reads at most `length` bytes of `value`.
    checked(unsafe { libc::setsockopt(fd, libc::SOL_PACKET, option, value, length) })
}

fn checked(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
