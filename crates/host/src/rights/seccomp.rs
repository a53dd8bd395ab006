//! Seccomp: system calls that this program never makes, and that an intruder would want. A denied call fails with an
//! error; the process goes on.

use super::InForce;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) fn deny(may_execute: bool, in_force: &mut InForce) {
    use seccompiler::{BackendError, Error};

    match filters::apply(may_execute) {
        Ok(()) => in_force.seccomp = true,
        Err(Error::Backend(BackendError::InvalidTargetArch(_))) => unknown(in_force),
        Err(error) => in_force
            .skip(format!("this kernel filters no system calls (CONFIG_SECCOMP_FILTER): {error}")),
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn deny(_may_execute: bool, in_force: &mut InForce) {
    unknown(in_force);
}

fn unknown(in_force: &mut InForce) {
    let arch = std::env::consts::ARCH;
    in_force.skip(format!("system calls are not filtered: there is no filter for {arch}"));
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod filters {
    use std::collections::BTreeMap;

    use libc::c_long;
    use seccompiler::{
        BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
        SeccompFilter, SeccompRule, TargetArch, apply_filter,
    };

    /// Starting programs.
    const EXECUTE: [c_long; 2] = [libc::SYS_execve, libc::SYS_execveat];

    /// Reaching into other processes, the kernel and its tables: ptrace and its kin, mounts, other roots, modules, bpf,
    /// keys, namespaces, and io_uring, which makes calls past these filters.
    const DENIED: [c_long; 35] = [
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_pidfd_getfd,
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_move_mount,
        libc::SYS_open_tree,
        libc::SYS_fsopen,
        libc::SYS_fsconfig,
        libc::SYS_fsmount,
        libc::SYS_fspick,
        libc::SYS_mount_setattr,
        libc::SYS_pivot_root,
        libc::SYS_chroot,
        libc::SYS_setns,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_delete_module,
        libc::SYS_kexec_load,
        libc::SYS_kexec_file_load,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
        libc::SYS_open_by_handle_at,
        libc::SYS_swapon,
        libc::SYS_swapoff,
        libc::SYS_reboot,
        libc::SYS_quotactl,
    ];

    /// The bit of a system call's number under the x32 ABI, which an x86_64 kernel may have as well.
    #[cfg(target_arch = "x86_64")]
    const X32: c_long = 0x4000_0000;

    /// The calls above whose numbers the x32 ABI changes: execve, execveat, ptrace, process_vm_readv, process_vm_writev
    /// and kexec_load (arch/x86/entry/syscalls/syscall_64.tbl).
    #[cfg(target_arch = "x86_64")]
    const OF_X32: [(c_long, c_long); 6] = [
        (libc::SYS_execve, 520),
        (libc::SYS_execveat, 545),
        (libc::SYS_ptrace, 521),
        (libc::SYS_process_vm_readv, 539),
        (libc::SYS_process_vm_writev, 540),
        (libc::SYS_kexec_load, 528),
    ];

    type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

    /// Filters the calling thread's system calls from here on.
    pub fn apply(may_execute: bool) -> Result<(), Error> {
        let executes = EXECUTE.iter().filter(|_| !may_execute);
        let mut rules: Rules = DENIED.iter().chain(executes).map(|it| (*it, Vec::new())).collect();
        // New user namespaces, in which a process has all capabilities again. The flags are the first argument.
        for call in [libc::SYS_unshare, libc::SYS_clone] {
            rules.insert(call, vec![SeccompRule::new(vec![has_flag(libc::CLONE_NEWUSER)?])?]);
        }
        install(rules, libc::EPERM)?;
        // The flags of clone3 are in memory, where no filter looks. Libraries that find it missing use clone.
        install(Rules::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)
    }

    fn has_flag(flag: libc::c_int) -> Result<SeccompCondition, Error> {
        let flag = u64::from(flag.cast_unsigned());
        let masked = SeccompCmpOp::MaskedEq(flag);
        Ok(SeccompCondition::new(0, SeccompCmpArgLen::Qword, masked, flag)?)
    }

    fn install(mut rules: Rules, errno: libc::c_int) -> Result<(), Error> {
        with_x32(&mut rules);
        let arch = TargetArch::try_from(std::env::consts::ARCH)?;
        let denied = SeccompAction::Errno(errno.cast_unsigned());
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, arch)?;
        let program: BpfProgram = filter.try_into()?;
        apply_filter(&program)
    }

    #[cfg(target_arch = "x86_64")]
    fn with_x32(rules: &mut Rules) {
        let number = |call: c_long| {
            X32 | OF_X32.iter().find(|(it, _)| *it == call).map_or(call, |(_, number)| *number)
        };
        let more: Vec<_> = rules.iter().map(|(call, it)| (number(*call), it.clone())).collect();
        rules.extend(more);
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn with_x32(_rules: &mut Rules) {}
}
