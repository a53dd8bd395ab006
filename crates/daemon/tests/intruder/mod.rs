//! Makes a running process call the kernel, as code that an intruder runs in it would: by ptrace(2), with the process's
//! own registers and stack. Only the x86_64 calling convention is known.

use nix::libc::{self, c_long, user_regs_struct};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use super::world::wait_for;

/// The instruction `syscall`.
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// Below the part of the stack that the calling convention lets functions use without asking.
const RED_ZONE: u64 = 4096;

/// A process that stands still while calls are made in its name; it goes on when this is dropped.
pub struct Intruder {
    process: Pid,
    registers: user_regs_struct,
    /// The lowest byte of the stack that is in use.
    stack: u64,
}

impl Intruder {
    /// Stops the process in a call of the kernel, in which an idle process always is.
    pub fn into(process: u32) -> Self {
        let process = Pid::from_raw(process.cast_signed());
        wait_for("the process to be in a call of the kernel", || {
            // Unlike attaching, this leaves no signal behind that would stop the process later.
            ptrace::seize(process, ptrace::Options::empty()).expect("the right to trace it");
            ptrace::interrupt(process).expect("it can be stopped");
            let stopped = waitpid(process, None).expect("it stops");
            assert!(matches!(stopped, WaitStatus::PtraceEvent(..)), "{stopped:?}");
            let registers = ptrace::getregs(process).expect("its registers");
            let before = registers.rip.wrapping_sub(2);
            let code = ptrace::read(process, before as *mut _).unwrap_or(0);
            if code.to_le_bytes()[..2] == SYSCALL {
                return Some(Self { process, registers, stack: registers.rsp - RED_ZONE });
            }
            ptrace::detach(process, None).expect("it goes on");
            None
        })
    }

    /// Puts bytes on the process's stack, and returns their address.
    pub fn put(&mut self, bytes: &[u8]) -> u64 {
        let mut words = bytes.to_vec();
        words.resize(bytes.len().next_multiple_of(8), 0);
        self.stack = (self.stack - words.len() as u64) & !15;
        for (at, word) in words.chunks_exact(8).enumerate() {
            let word = c_long::from_ne_bytes(word.try_into().expect("8 bytes"));
            let address = self.stack + 8 * at as u64;
            ptrace::write(self.process, address as *mut _, word).expect("its stack can be written");
        }
        self.stack
    }

    /// Puts a text on its stack.
    pub fn text(&mut self, text: &str) -> u64 {
        self.put(format!("{text}\0").as_bytes())
    }

    /// Makes a call, and returns what the kernel returned: a negative number is an error's.
    pub fn call(&mut self, number: c_long, args: &[u64]) -> i64 {
        let arg = |at: usize| args.get(at).copied().unwrap_or(0);
        let registers = user_regs_struct {
            rip: self.registers.rip - 2,
            rax: number as u64,
            // No call was interrupted that the kernel would have to begin again.
            orig_rax: u64::MAX,
            rdi: arg(0),
            rsi: arg(1),
            rdx: arg(2),
            r10: arg(3),
            r8: arg(4),
            r9: arg(5),
            ..self.registers
        };
        ptrace::setregs(self.process, registers).expect("its registers can be written");
        loop {
            ptrace::step(self.process, None).expect("a step");
            match waitpid(self.process, None).expect("it stops") {
                WaitStatus::Stopped(_, Signal::SIGTRAP) => break,
                // Signals that came meanwhile are dropped.
                WaitStatus::Stopped(..) => {}
                other => panic!("it did not survive: {other:?}"),
            }
        }
        ptrace::getregs(self.process).expect("its registers").rax.cast_signed()
    }

    /// Executes a program, which ends what the process was, unless it fails.
    pub fn execute(&mut self, program: &str) -> i64 {
        let path = self.text(program);
        let none = self.put(&[0; 8]);
        self.call(libc::SYS_execve, &[path, none, none])
    }

    /// Opens a file with these flags.
    pub fn open(&mut self, path: &std::path::Path, flags: libc::c_int) -> i64 {
        let path = self.text(path.to_str().expect("UTF-8"));
        let here = i64::from(libc::AT_FDCWD).cast_unsigned();
        self.call(libc::SYS_openat, &[here, path, u64::from(flags.cast_unsigned()), 0o600])
    }

    /// Asks for the capabilities of the helper (capset(2), version 3).
    pub fn take_capabilities(&mut self) -> i64 {
        let header = self.put(&[0x2008_0522_u32.to_ne_bytes(), [0; 4]].concat());
        // CAP_NET_ADMIN is 12, CAP_NET_RAW 13. Effective, permitted and inheritable ones, in two halves.
        let both = (1_u32 << 12 | 1 << 13).to_ne_bytes();
        let sets = self.put(&[both, both, [0; 4], [0; 4], [0; 4], [0; 4]].concat());
        self.call(libc::SYS_capset, &[header, sets])
    }
}

impl Drop for Intruder {
    fn drop(&mut self) {
        // It may be gone, or another program by now.
        let _ = ptrace::setregs(self.process, self.registers);
        let _ = ptrace::detach(self.process, None);
    }
}
