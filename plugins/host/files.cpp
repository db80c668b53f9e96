#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/plugins/host/files.h>
#include <tenon/plugins/host/manifest.h>

namespace tenon::plugins {

namespace {

constexpr unsigned char kNativeClass = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
#if defined(__x86_64__)
constexpr int kNativeMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int kNativeMachine = EM_AARCH64;
#else
constexpr int kNativeMachine = EM_NONE;  // unknown here; the dynamic linker checks it
#endif

// A regular file. It is opened without blocking, because a manifest could be a pipe.
class File {
 public:
  File(const std::string& path, const char* what)
      : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) require_descriptors(errno, path);
    if (fd_ < 0)
      throw Refused(fmt::format("{} cannot be read: {}: {}", what, std::strerror(errno), path));
    struct stat s {};
    if (fstat(fd_, &s) != 0 || !S_ISREG(s.st_mode)) {
      close(fd_);
      throw Refused(fmt::format("{} is not a regular file: {}", what, path));
    }
    size_ = static_cast<uint64_t>(s.st_size);
  }
  ~File() { close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  uint64_t size() const { return size_; }
  bool holds(uint64_t offset, uint64_t bytes) const {
    return offset <= size_ && bytes <= size_ - offset;
  }
  bool read(void* to, uint64_t bytes, uint64_t offset) const {
    auto* out = static_cast<char*>(to);
    while (bytes > 0) {
      ssize_t got = pread(fd_, out, bytes, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      out += got, offset += static_cast<uint64_t>(got), bytes -= static_cast<uint64_t>(got);
    }
    return true;
  }

 private:
  int fd_;
  uint64_t size_ = 0;
};

}  // namespace

void require_descriptors(int error, const std::string& what) {
  if (error != EMFILE && error != ENFILE) return;
  throw PluginError(
      fmt::format("{} cannot be opened now: {}. Close files, or raise the limit (ulimit -n); the "
                  "next use tries again",
                  printable(what), std::generic_category().message(error)));
}

std::string canonical_path(const std::string& path) {
  if (path.empty())
    throw Refused("an empty entry would mean the working directory, which is never searched");
  if (path[0] != '/')
    throw Refused(
        "a relative path depends on the working directory, which is never searched; write an "
        "absolute one");
  std::error_code error;
  auto canonical = std::filesystem::canonical(path, error);
  if (error == std::errc::not_enough_memory) throw std::bad_alloc();
  if (error) throw Refused(error.message());
  return canonical.string();
}

std::string parent_folder(const std::string& canonical) {
  auto slash = canonical.rfind('/');
  return slash == 0 ? "/" : canonical.substr(0, slash);
}

namespace {

// With `sticky`, a folder that is writable by everybody is trusted if its sticky bit prevents users
// from replacing files of others.
void require_unwritable(const std::string& path, const std::string& what, bool sticky) {
  struct stat s {};
  if (stat(path.c_str(), &s) != 0)
    throw Refused(fmt::format("{} cannot be read: {}: {}", what, std::strerror(errno), path));
  if ((s.st_mode & S_IWOTH) && !(sticky && (s.st_mode & S_ISVTX)))
    throw Refused(fmt::format(
        "{} is world-writable (mode {:04o}), so anybody could have put code there; chmod o-w {}",
        what, s.st_mode & 07777, path));
  if (s.st_uid != 0 && s.st_uid != geteuid())
    throw Refused(
        fmt::format("{} belongs to user id {}, which is neither root nor this process's {}: {}",
                    what, s.st_uid, geteuid(), path));
}

}  // namespace

void require_trusted(const std::string& path, const char* what) {
  require_unwritable(path, what, false);
}

void require_trusted_folder(const std::string& canonical) {
  require_trusted(canonical, "folder");
  for (std::string at = canonical; at != "/";) {
    at = parent_folder(at);
    require_unwritable(at, "a folder above it", true);
  }
}

std::string trusted_library(const std::string& folder, const std::string& name, const char* what) {
  auto path = folder + "/" + name;
  std::string resolved;
  try {
    resolved = canonical_path(path);
  } catch (const Refused& e) {
    throw Refused(fmt::format("{} cannot be found: {}: {}", what, e.what(), path));
  }
  if (parent_folder(resolved) != folder)
    throw Refused(fmt::format("{} is a link out of its folder, to {}: {}", what, resolved, path));
  require_trusted(resolved, what);
  require_shared_library(resolved);
  return resolved;
}

std::string read_trusted_file(const std::string& path, size_t limit, const char* what) {
  require_trusted(path, what);
  File file(path, what);
  if (file.size() > limit)
    throw Refused(
        fmt::format("{} has {} bytes, more than the {} allowed", what, file.size(), limit));
  std::string text(file.size(), '\0');
  if (!file.read(text.data(), text.size(), 0))
    throw Refused(fmt::format("{} cannot be read to its end", what));
  return text;
}

void require_shared_library(const std::string& path) {
  File file(path, "library");
  auto refuse = [&](const std::string& why) {
    throw Refused(fmt::format("library {}: {}", why, path));
  };
  ElfW(Ehdr) head{};
  if (file.size() < SELFMAG || !file.read(&head, std::min<uint64_t>(sizeof head, file.size()), 0))
    refuse("is not an ELF file");
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) refuse("is not an ELF file");
  if (file.size() < sizeof head) refuse("is truncated: it ends within its ELF header");
  if (head.e_ident[EI_CLASS] != kNativeClass ||
      (kNativeMachine != EM_NONE && head.e_machine != kNativeMachine))
    refuse(fmt::format("is built for another machine (ELF machine {})", head.e_machine));
  if (head.e_type != ET_DYN) refuse("is an ELF file but not a shared library");

  if (head.e_phentsize != sizeof(ElfW(Phdr)) || head.e_phnum == 0)
    refuse("has no ELF program headers");
  if (!file.holds(head.e_phoff, uint64_t{head.e_phnum} * head.e_phentsize))
    refuse("is truncated: it ends before its program headers");
  for (unsigned i = 0; i < head.e_phnum; ++i) {
    ElfW(Phdr) segment{};
    if (!file.read(&segment, sizeof segment, head.e_phoff + uint64_t{i} * sizeof segment))
      refuse("cannot be read");
    if (segment.p_type == PT_LOAD && !file.holds(segment.p_offset, segment.p_filesz))
      refuse(fmt::format("is truncated: it has {} bytes and a segment that ends after them",
                         file.size()));
  }
  if (head.e_shoff != 0 && !file.holds(head.e_shoff, uint64_t{head.e_shnum} * head.e_shentsize))
    refuse(fmt::format("is truncated: it has {} bytes and its section table ends after them",
                       file.size()));
}

}  // namespace tenon::plugins
