#include "sandbox.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../process_limits.h"

namespace tenon::reader {
namespace {

using tools::kAuditProcessor, tools::lower_limit;

// Allowed whatever their arguments are. Files are given by number, and only the socket is open.
constexpr long kAllowed[] = {__NR_read,         __NR_write,           __NR_munmap,
                             __NR_mremap,       __NR_madvise,         __NR_brk,
                             __NR_futex,        __NR_exit_group,      __NR_exit,
                             __NR_rt_sigreturn, __NR_rt_sigprocmask,  __NR_clock_gettime,
                             __NR_gettimeofday, __NR_restart_syscall, __NR_getpid};
// Allowed unless they ask for memory that can be executed: the third argument is the protection.
constexpr long kAllowedWithoutExec[] = {__NR_mmap, __NR_mprotect};

}  // namespace

void close_other_files(int first) {
  close(1), close(2);
#ifdef SYS_close_range
  if (syscall(SYS_close_range, static_cast<unsigned>(first), ~0u, 0u) == 0) return;
#endif
  for (long number = first, end = std::min(sysconf(_SC_OPEN_MAX), 1L << 16); number < end; ++number)
    close(static_cast<int>(number));
}

void limit_resources(uint64_t more, uint64_t seconds) {
  constexpr uint64_t kOwn = uint64_t{512} << 20;  // the libraries and the program, at the most
  const uint64_t used = tools::used_addresses();
  uint64_t bytes = 0;
  if (!__builtin_add_overflow(used ? used : kOwn, more, &bytes)) lower_limit(RLIMIT_AS, bytes);
  // Who asks for more values gives it more time for them (ReaderProcess::extend).
  lower_limit(RLIMIT_CPU, seconds, /*keeps_hard=*/true);
  lower_limit(RLIMIT_NOFILE, 0);
  lower_limit(RLIMIT_FSIZE, 0);
  lower_limit(RLIMIT_CORE, 0);
  prctl(PR_SET_DUMPABLE, 0);
}

bool forbid_system_calls() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  if (kAuditProcessor == 0) return false;
  constexpr size_t kPlain = std::size(kAllowed), kGuarded = std::size(kAllowedWithoutExec);
  sock_filter program[5 + 2 * kPlain + 5 * kGuarded];
  size_t n = 0;
  auto load = [&](size_t offset) {
    program[n++] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
  };
  auto answer = [&](uint32_t value) { program[n++] = BPF_STMT(BPF_RET | BPF_K, value); };
  // Goes on with the next instruction if the value is `value`, and otherwise leaves out `skipped`.
  auto unless_equal_skip = [&](uint32_t value, uint8_t skipped) {
    program[n++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skipped);
  };
  load(offsetof(seccomp_data, arch));
  program[n++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kAuditProcessor, 1, 0);
  answer(SECCOMP_RET_ERRNO | EPERM);
  load(offsetof(seccomp_data, nr));
  for (const long number : kAllowed) {
    unless_equal_skip(static_cast<uint32_t>(number), 1);
    answer(SECCOMP_RET_ALLOW);
  }
  for (const long number : kAllowedWithoutExec) {
    unless_equal_skip(static_cast<uint32_t>(number), 4);
    load(offsetof(seccomp_data, args[2]));  // the low half, on these little-endian machines
    program[n++] = BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0);
    answer(SECCOMP_RET_ALLOW);
    answer(SECCOMP_RET_ERRNO | EPERM);
  }
  answer(SECCOMP_RET_ERRNO | EPERM);
  const sock_fprog filter{static_cast<unsigned short>(n), program};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

}  // namespace tenon::reader
