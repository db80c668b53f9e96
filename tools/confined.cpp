#include "confined.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <link.h>
#include <linux/capability.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process_limits.h"
#include "system_call_filter.h"

namespace tenon::tools {
namespace {

namespace fs = std::filesystem;

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
constexpr bool kAddressSanitizer = true;  // it reserves more addresses than any limit
#else
constexpr bool kAddressSanitizer = false;
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

bool memory_is_limited = false;

void limit_memory_and_time(const Confinement& confinement) {
  constexpr uint64_t kMemory = uint64_t{1} << 30, kMemoryPerByte = 8;
  uint64_t bytes = 0;
  // Each thread would reserve 64 MiB of addresses for memory of its own.
  mallopt(M_ARENA_MAX, 1);
  const uint64_t used = used_addresses();
  if (used > 0 && !__builtin_mul_overflow(confinement.bytes, kMemoryPerByte, &bytes) &&
      !__builtin_add_overflow(bytes, used + kMemory, &bytes))
    memory_is_limited = lower_limit(RLIMIT_AS, bytes);
}

// The capabilities of root, except to read files of others, which it may be told to do.
void drop_capabilities() {
  if (geteuid() != 0) return;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return;
  constexpr uint32_t kKept = 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH;
  for (size_t i = 0; i < 2; ++i) {
    const uint32_t kept = i == 0 ? kKept : 0;
    data[i].effective &= kept, data[i].permitted &= kept, data[i].inheritable &= kept;
  }
  syscall(SYS_capset, &header, data);
}

// Landlock (https://docs.kernel.org/userspace-api/landlock.html), whose header may be older than
// the system that this runs on.
namespace landlock {

constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;  // on every processor
constexpr uint32_t kVersion = 1, kPathBeneath = 1;
constexpr uint64_t kExecute = 1, kReadFile = 4, kReadFolder = 8;
constexpr uint64_t kTcp = 3, kAbstractSocketsAndSignals = 3;

struct Ruleset {
  uint64_t files = 0, network = 0, scopes = 0;
};
struct __attribute__((packed)) PathBeneath {
  uint64_t allowed;
  int32_t folder;
};

// What a version knows about files: 13 kinds of access at first, then links to other folders,
// truncation, and commands to devices.
uint64_t accesses(long version) {
  const int known = version >= 5 ? 16 : version >= 3 ? 15 : version == 2 ? 14 : 13;
  return (uint64_t{1} << known) - 1;
}

void allow(int rules, const fs::path& path, uint64_t access) {
  const int file = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (file < 0) return;
  struct stat status {};
  // What concerns folders is refused for anything else.
  if (fstat(file, &status) == 0 && !S_ISDIR(status.st_mode)) access &= kExecute | kReadFile;
  const PathBeneath rule{access, file};
  syscall(kAddRule, rules, kPathBeneath, &rule, 0);
  close(file);
}

}  // namespace landlock

void add_list(std::set<fs::path>& folders, const char* list) {
  for (std::string_view rest = list ? list : ""; !rest.empty();) {
    const size_t colon = rest.find(':');
    if (const auto folder = rest.substr(0, colon); folder.starts_with('/')) folders.emplace(folder);
    rest = colon == rest.npos ? "" : rest.substr(colon + 1);
  }
}

// The folders of this program's libraries, of its plugins, and of what another program needs to
// start, which reads HDF5 data.
std::set<fs::path> program_folders() {
  std::set<fs::path> folders = {"/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache"};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        const fs::path library = info->dlpi_name;
        if (library.is_absolute())
          static_cast<std::set<fs::path>*>(to)->insert(library.parent_path());
        return 0;
      },
      &folders);
  add_list(folders, std::getenv("LD_LIBRARY_PATH"));
  add_list(folders, std::getenv("TENON_PLUGIN_PATH"));
  if (const char* reader = secure_getenv("TENON_HDF5_READER"); reader && *reader == '/')
    folders.insert(fs::path(reader).parent_path());
  folders.erase("");
  folders.erase("/");  // a library there would open all
  return folders;
}

// Lets this process read what it needs, and nothing else. Returns whether it can send signals to
// itself and its children alone.
bool forbid_other_files(const fs::path& file) {
  const long version = syscall(landlock::kCreateRuleset, nullptr, size_t{0}, landlock::kVersion);
  if (version < 1) return false;
  landlock::Ruleset all;
  all.files = landlock::accesses(version);
  if (version >= 4) all.network = landlock::kTcp;
  if (version >= 6) all.scopes = landlock::kAbstractSocketsAndSignals;
  const size_t known = version >= 6 ? 24 : version >= 4 ? 16 : 8;
  const auto rules = static_cast<int>(syscall(landlock::kCreateRuleset, &all, known, 0));
  if (rules < 0) return false;
  constexpr uint64_t kRead = landlock::kReadFile | landlock::kReadFolder;
  for (const fs::path& folder : program_folders())
    landlock::allow(rules, folder, kRead | landlock::kExecute);
  for (const char* about :
       {"/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system", "/sys/fs/cgroup"})
    landlock::allow(rules, about, kRead);
  std::error_code error;
  for (const fs::path& path : {fs::absolute(file, error), fs::canonical(file, error)}) {
    if (path.empty()) continue;
    landlock::allow(rules, path.parent_path(), kRead);
    landlock::allow(rules, path, kRead);  // a folder, of which is said that it is one
  }
  for (const fs::path& shard : shards_beside(file))
    if (fs::is_symlink(shard, error)) landlock::allow(rules, shard, landlock::kReadFile);
  const bool done = syscall(landlock::kRestrictSelf, rules, 0) == 0;
  close(rules);
  return done && version >= 6;
}

}  // namespace

std::vector<fs::path> shards_beside(const fs::path& file) {
  std::vector<fs::path> shards;
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return shards;
  // An index of safetensors files is JSON; the shards of Tenon's are named after it.
  char first = 0;
  std::ifstream(file) >> first;
  const std::string begin = file.filename().string() + ".";
  const fs::path folder = file.has_parent_path() ? file.parent_path() : ".";
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (first == '{' ? name.ends_with(".safetensors")
                     : name.starts_with(begin) && name.find("-of-") != name.npos)
      shards.push_back(entry->path());
  }
  return shards;
}

void confine(const Confinement& confinement) {
  if (kThreadSanitizer) return;  // its own threads and memory need all of that
  std::signal(SIGXFSZ, SIG_IGN);
  if (!kAddressSanitizer) limit_memory_and_time(confinement);
  lower_limit(RLIMIT_CPU, confinement.seconds);
  lower_limit(RLIMIT_FSIZE, 0);
  lower_limit(RLIMIT_CORE, 0);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return;
  const bool signals_stay_inside = forbid_other_files(confinement.file);
  drop_capabilities();
  // The address sanitizer looks for leaks as a debugger does.
  forbid_system_calls({.signals = signals_stay_inside, .debugging = kAddressSanitizer});
}

bool has_limited_memory() { return memory_is_limited; }

}  // namespace tenon::tools
