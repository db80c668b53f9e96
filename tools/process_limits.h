// What the programs that give up privileges before they read a file have in common.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include <linux/audit.h>
#include <sys/resource.h>
#include <unistd.h>

namespace tenon::tools {

using Resource = decltype(RLIMIT_AS);

// Lowers a limit to `value`, unless it is lower already. With `keeps_hard` it may be raised again,
// up to the hard limit of before. Returns false where the system refuses.
inline bool lower_limit(Resource what, uint64_t value, bool keeps_hard = false) {
  rlimit now{};
  if (getrlimit(what, &now) != 0) return false;
  const rlim_t least = std::min<rlim_t>(now.rlim_max, value);
  const rlimit lowered{least, keeps_hard ? now.rlim_max : least};
  return setrlimit(what, &lowered) == 0;
}

// Returns how many bytes of addresses this process uses; 0 where /proc is absent.
inline uint64_t used_addresses() {
  unsigned long long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%llu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// The processor in the filters of system calls; 0 where it is one whose system calls have not been
// looked at.
#if defined(__x86_64__)
inline constexpr uint32_t kAuditProcessor = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
inline constexpr uint32_t kAuditProcessor = AUDIT_ARCH_AARCH64;
#else
inline constexpr uint32_t kAuditProcessor = 0;
#endif

}  // namespace tenon::tools
