//! A packet socket, and the ring of blocks that the kernel fills with frames (packet(7); the
//! kernel's Documentation/networking/packet_mmap.rst). At any time a block belongs either to the
//! kernel or to this thread.
//!
//! Nearly all `unsafe` code of the router's binary is here: options and addresses of packet
//! sockets, and the mapping, which no library with a suitable licence offers safely
//! (docs/decisions/0011). `frames.rs` parses the blocks without `unsafe`.

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

/// A block holds the longest frame that a driver delivers (64 KiB), and its headers.
const BLOCK_BYTES: usize = 128 << 10;
/// 4 MiB in total: 320 ms at 100 Mbit/s while the thread does not run.
pub const BLOCKS: usize = 32;
/// The time after which the kernel hands over a block that is not full. A longer time delays the
/// cancelling of overheard chunks; a shorter one wakes the thread more often.
const RETIRE_MS: u32 = 8;
/// The offset of the block's status, which says who owns it (`struct tpacket_hdr_v1`, after a
/// version and an offset).
const STATUS_AT: usize = 8;
/// The visible part of a block begins after its status.
pub const SHOWN_FROM: usize = 12;

/// All protocols, in network byte order.
const EVERYTHING: u16 = (libc::ETH_P_ALL as u16).to_be();
const NOTHING: u16 = 0;

/// Opens a packet socket, the only step that needs `CAP_NET_RAW`. It receives nothing yet.
pub fn open() -> io::Result<Socket> {
    Socket::new(Domain::PACKET, Type::RAW, None)
}

/// A packet socket with its ring. It receives nothing before [`Ring::listen`].
#[derive(Debug)]
pub struct Ring {
    socket: Socket,
    memory: NonNull<u8>,
    /// The block that the kernel fills next.
    next: usize,
}

// SAFETY: the mapping belongs to this value alone, is not bound to a thread, and is unmapped with
// it.
unsafe impl Send for Ring {}

impl Ring {
    /// Allocates the ring of a packet socket.
    pub fn of(socket: Socket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        set(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V3 as c_int))?;
        // Kernels before 4.20 lack this option; the filter has the same effect.
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
        // SAFETY: a new mapping, placed by the kernel, with the length of the ring requested above.
        let memory =
            unsafe { mmap(ptr::null_mut(), length, access, MapFlags::SHARED, &socket, 0)? };
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { socket, memory, next: 0 })
    }

    /// Listens on one interface only, given by its index; returns the kind of interface
    /// (`ARPHRD_...`). No frame is accepted before [`Ring::filter`].
    pub fn listen(&self, interface: u32) -> io::Result<u16> {
        // Reject all frames while the interface changes.
        self.filter(&[SockFilter::new((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, 0)])?;
        // Unbind first: binding to the same interface again would have no effect, and a change
        // would be missed.
        self.bind(0, NOTHING)?;
        let _ = self.socket.take_error();
        self.bind(interface, EVERYTHING)?;
        self.kind()
    }

    /// Replaces the filter.
    pub fn filter(&self, program: &[SockFilter]) -> io::Result<()> {
        self.socket.attach_filter(program)
    }

    /// Also receives frames for other machines, while the interface and this socket exist.
    pub fn be_promiscuous(&self, interface: u32) -> io::Result<()> {
        let request = libc::packet_mreq {
            mr_ifindex: interface as c_int,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set(&self.socket, libc::PACKET_ADD_MEMBERSHIP, &request)
    }

    /// Waits for a block, for a limited time; an error describes what happened to the interface.
    pub fn wait(&self, timeout: Duration) -> io::Result<()> {
        let timeout =
            Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.trouble()
    }

    /// What happened to the interface since the last call.
    pub fn trouble(&self) -> io::Result<()> {
        self.socket.take_error()?.map_or(Ok(()), Err)
    }

    /// The next block that the kernel has handed over.
    pub fn block(&mut self) -> Option<Block<'_>> {
        // SAFETY: `next` is below `BLOCKS`, so the result is within the mapping.
        let start = unsafe { self.memory.add(self.next * BLOCK_BYTES) };
        // SAFETY: it is within the block and aligned like the block; this code and the kernel
        // access it only as one word.
        let status = unsafe { AtomicU32::from_ptr(start.add(STATUS_AT).cast().as_ptr()) };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        self.next = (self.next + 1) % BLOCKS;
        // SAFETY: the block belongs to this thread until its status changes, which happens only
        // when the `Block` is dropped; and the status is not among these bytes. So no one writes to
        // them meanwhile. The borrow of `self` ensures that they do not outlive the mapping, and
        // that there is one reference to them at most.
        let bytes = unsafe {
            let start = start.add(SHOWN_FROM);
            std::slice::from_raw_parts(start.as_ptr(), BLOCK_BYTES - SHOWN_FROM)
        };
        Some(Block { bytes, status })
    }

    /// The number of frames since the last call that passed the filter but found the ring full.
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

    /// The kind of the interface.
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
        // SAFETY: no block is borrowed any more, and nothing else refers to the mapping.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), BLOCK_BYTES * BLOCKS) };
    }
}

/// The visible part of a block, from [`SHOWN_FROM`] on; dropping it returns the block to the
/// kernel.
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
