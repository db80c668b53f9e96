#include "system_call_filter.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process_limits.h"

namespace tenon::tools {
namespace {

constexpr uint32_t kRefusal = SECCOMP_RET_ERRNO | EPERM;

// Those that came after Linux 5.3 have one number on every processor, and older headers lack them.
constexpr uint32_t kForbidden[] = {
    // The network: what is left is a pair of connected sockets.
    __NR_socket, __NR_connect, __NR_bind, __NR_listen, __NR_accept, __NR_accept4,
    // Changes of files, beside those that are opened for that.
    __NR_truncate, __NR_ftruncate, __NR_fallocate, __NR_mkdirat, __NR_mknodat, __NR_unlinkat,
    __NR_linkat, __NR_symlinkat, __NR_renameat2, __NR_fchmod, __NR_fchmodat, __NR_fchown,
    __NR_fchownat, __NR_utimensat, __NR_setxattr, __NR_lsetxattr, __NR_fsetxattr, __NR_removexattr,
    __NR_lremovexattr, __NR_fremovexattr, __NR_open_by_handle_at, 437 /* openat2 */,
    452 /* fchmodat2 */, 463 /* setxattrat */, 466 /* removexattrat */,
#ifdef __NR_renameat
    __NR_renameat,
#endif
#ifdef __x86_64__
    __NR_creat, __NR_mkdir, __NR_rmdir, __NR_mknod, __NR_unlink, __NR_link, __NR_symlink,
    __NR_rename, __NR_chmod, __NR_chown, __NR_lchown, __NR_utime, __NR_utimes, __NR_futimesat,
#endif
    // Other processes.
    __NR_process_vm_readv, __NR_process_vm_writev, __NR_kcmp, __NR_setpriority,
    __NR_sched_setscheduler, __NR_sched_setparam, __NR_sched_setattr, __NR_migrate_pages,
    __NR_move_pages, 438 /* pidfd_getfd */, 440 /* process_madvise */, 448 /* process_mrelease */,
    // Calls that a filter does not see, and parts of the kernel with many faults.
    425 /* io_uring_setup */, 426 /* io_uring_enter */, 427 /* io_uring_register */, __NR_bpf,
    __NR_perf_event_open, __NR_userfaultfd, __NR_keyctl, __NR_add_key, __NR_request_key,
    // Namespaces and mounts.
    __NR_unshare, __NR_setns, __NR_mount, __NR_umount2, __NR_pivot_root, __NR_chroot,
    428 /* open_tree */, 429 /* move_mount */, 430 /* fsopen */, 431 /* fsconfig */,
    432 /* fsmount */, 433 /* fspick */, 442 /* mount_setattr */, 467 /* open_tree_attr */,
    // What an administrator does.
    __NR_init_module, __NR_finit_module, __NR_delete_module, __NR_kexec_load, __NR_reboot,
    __NR_swapon, __NR_swapoff, __NR_acct, __NR_quotactl, __NR_sethostname, __NR_setdomainname,
    __NR_settimeofday, __NR_clock_settime, __NR_clock_adjtime, __NR_adjtimex, __NR_syslog,
    __NR_vhangup};

constexpr uint32_t kSignals[] = {__NR_kill, __NR_tkill, __NR_rt_sigqueueinfo,
                                 __NR_rt_tgsigqueueinfo, 424 /* pidfd_send_signal */};

class Filter {
 public:
  Filter() {
    load(offsetof(seccomp_data, arch));
    jump(BPF_JEQ, kAuditProcessor, 1, 0);
    answer(kRefusal);
    load(offsetof(seccomp_data, nr));
#ifdef __x86_64__
    jump(BPF_JGE, 0x40000000, 0, 1);  // the calls of x32
    answer(kRefusal);
#endif
  }
  void forbid(uint32_t call, uint32_t error = kRefusal) {
    jump(BPF_JEQ, call, 0, 1);
    answer(error);
  }
  // Forbids it unless an argument, of which the bits of `mask` count, is `value`.
  void forbid_unless(uint32_t call, int argument, uint32_t mask, uint32_t value) {
    jump(BPF_JEQ, call, 0, 5);
    load_argument(argument);
    push(BPF_ALU | BPF_AND | BPF_K, mask);
    jump(BPF_JEQ, value, 1, 0);
    answer(kRefusal);
    load(offsetof(seccomp_data, nr));
  }
  // … and if it is `value`.
  void forbid_if(uint32_t call, int argument, uint32_t value) {
    jump(BPF_JEQ, call, 0, 4);
    load_argument(argument);
    jump(BPF_JEQ, value, 0, 1);
    answer(kRefusal);
    load(offsetof(seccomp_data, nr));
  }
  void install() {
    answer(SECCOMP_RET_ALLOW);
    const sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
  }

 private:
  void push(int code, uint32_t operand) {
    code_.push_back(BPF_STMT(static_cast<uint16_t>(code), operand));
  }
  void load(size_t offset) { push(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }
  // The low half, on these little-endian machines.
  void load_argument(int i) {
    load(offsetof(seccomp_data, args) + static_cast<size_t>(i) * sizeof(uint64_t));
  }
  // Leaves out so many instructions if the comparison holds, and if not.
  void jump(int comparison, uint32_t operand, uint8_t if_true, uint8_t if_false) {
    code_.push_back(
        BPF_JUMP(static_cast<uint16_t>(BPF_JMP | comparison | BPF_K), operand, if_true, if_false));
  }
  void answer(uint32_t value) { push(BPF_RET | BPF_K, value); }

  std::vector<sock_filter> code_;
};

}  // namespace

void forbid_system_calls(const Exceptions& exceptions) {
  if (kAuditProcessor == 0) return;
  Filter filter;
  for (const uint32_t call : kForbidden) filter.forbid(call);
  if (!exceptions.debugging) filter.forbid(__NR_ptrace);
  if (!exceptions.signals)
    for (const uint32_t call : kSignals) filter.forbid(call);
  // abort() sends itself a signal.
  filter.forbid_unless(__NR_tgkill, 0, ~0u, static_cast<uint32_t>(getpid()));
  // One of datagrams could send to any other.
  filter.forbid_unless(__NR_socketpair, 0, ~0u, AF_UNIX);
  filter.forbid_unless(__NR_socketpair, 1, 0xf, SOCK_STREAM);
  constexpr uint32_t kWriting = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;
  filter.forbid_unless(__NR_openat, 2, kWriting, 0);
#ifdef __NR_open
  filter.forbid_unless(__NR_open, 1, kWriting, 0);
#endif
  // Words that would be typed into the terminal.
  filter.forbid_if(__NR_ioctl, 1, TIOCSTI);
  filter.forbid_if(__NR_ioctl, 1, TIOCLINUX);
  constexpr uint32_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                   CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
  filter.forbid_unless(__NR_clone, 0, kNamespaces, 0);
  // Its arguments are in memory, which a filter does not see. The C library takes the older one.
  filter.forbid(435 /* clone3 */, SECCOMP_RET_ERRNO | ENOSYS);
  filter.install();
}

}  // namespace tenon::tools
