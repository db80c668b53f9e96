#include "rtc/disk_cache.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tenon::cuda {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[] = "tenon kernel 1\n";
constexpr std::string_view kEnding = ".kernel", kUnfinished = ".part";
constexpr uint64_t kMaxEntry = uint64_t{16} << 20;
constexpr time_t kUnfinishedFor = 3600;  // seconds after which its writer is taken for dead

struct CacheHeader {
  char magic[sizeof kMagic];
  uint64_t key_bytes, value_bytes, checksum;
};

// FNV-1a, which finds damage; an entry is known by its whole key.
uint64_t hash_of(std::string_view text, uint64_t hash = 0xcbf29ce484222325) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::string file_of(std::string_view key) {
  std::string name;
  for (const uint64_t start : {uint64_t{0xcbf29ce484222325}, uint64_t{0x9e3779b97f4a7c15}}) {
    const uint64_t hash = hash_of(key, start);
    for (int shift = 60; shift >= 0; shift -= 4) name += "0123456789abcdef"[hash >> shift & 15];
  }
  return name.append(kEnding);
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

bool is_mine(int fd, mode_t kind, struct stat& s) {
  return fstat(fd, &s) == 0 && (s.st_mode & S_IFMT) == kind && s.st_uid == geteuid() &&
         (s.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// The folder, -1 where it cannot be used. All that follows names files relative to it, so that it
// does not matter who may move folders above it.
int open_folder(const std::string& path, bool make) {
  if (path.empty()) return -1;
  if (make) {
    const fs::path folder(path);
    fs::path part;
    for (auto& name : folder) {
      part /= name;
      if (part != part.root_path()) mkdir(part.c_str(), 0700);
    }
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat s;
  if (fd < 0 || is_mine(fd, S_IFDIR, s)) return fd;
  ::close(fd);
  return -1;
}

bool read_all(int fd, char* to, size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = read(fd, to, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}
bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

struct CacheFile {
  std::string name;
  uint64_t bytes;
  timespec used;
};

// Removes what writers that died have left, and the oldest entries beyond the limit.
void trim(int folder, uint64_t most_bytes) {
  const int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const dir = copy < 0 ? nullptr : fdopendir(copy);
  if (!dir) {
    if (copy >= 0) ::close(copy);
    return;
  }
  std::vector<CacheFile> entries;
  uint64_t total = 0;
  while (const dirent* found = readdir(dir)) {
    const std::string_view name = found->d_name;
    struct stat s;
    if (!name.ends_with(kEnding) && !name.ends_with(kUnfinished)) continue;
    if (fstatat(folder, found->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(s.st_mode))
      continue;
    if (name.ends_with(kUnfinished)) {
      if (time(nullptr) - s.st_mtime > kUnfinishedFor) unlinkat(folder, found->d_name, 0);
      continue;
    }
    const auto bytes = static_cast<uint64_t>(s.st_size);
    entries.push_back({std::string(name), bytes, s.st_mtim});
    total += bytes;
  }
  closedir(dir);
  if (total <= most_bytes) return;
  std::sort(entries.begin(), entries.end(), [](const CacheFile& a, const CacheFile& b) {
    return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec
                                          : a.used.tv_nsec < b.used.tv_nsec;
  });
  for (auto& entry : entries) {
    if (total <= most_bytes / 4 * 3) return;
    if (unlinkat(folder, entry.name.c_str(), 0) == 0) total -= entry.bytes;
  }
}

std::string setting(const char* name) {
  const char* value = secure_getenv(name);  // not in programs with raised privileges
  return value ? value : "";
}

}  // namespace

DiskCache::DiskCache(std::string folder, uint64_t most_bytes)
    : folder_(std::move(folder)), most_bytes_(most_bytes) {}

std::string DiskCache::default_folder() {
  if (const std::string own = setting("TENON_CUDA_KERNEL_CACHE"); !own.empty())
    return own.starts_with('/') ? own : "";
  if (const std::string cache = setting("XDG_CACHE_HOME"); cache.starts_with('/'))
    return cache + "/tenon/cuda";
  const std::string home = setting("HOME");
  return home.starts_with('/') ? home + "/.cache/tenon/cuda" : "";
}

std::optional<std::string> DiskCache::find(std::string_view key) const {
  const FileDescriptor folder(open_folder(folder_, false));
  if (!folder) return std::nullopt;
  const FileDescriptor file(
      openat(folder.get(), file_of(key).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat s;
  CacheHeader header;
  if (!file || !is_mine(file.get(), S_IFREG, s) ||
      !read_all(file.get(), reinterpret_cast<char*>(&header), sizeof header))
    return std::nullopt;
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.key_bytes != key.size() ||
      header.value_bytes > kMaxEntry ||
      static_cast<uint64_t>(s.st_size) != sizeof header + header.key_bytes + header.value_bytes)
    return std::nullopt;
  std::string bytes(header.key_bytes + header.value_bytes, '\0');
  if (!read_all(file.get(), bytes.data(), bytes.size()) || hash_of(bytes) != header.checksum ||
      !bytes.starts_with(key))
    return std::nullopt;
  futimens(file.get(), nullptr);  // it was used: others go first
  return bytes.substr(key.size());
}

void DiskCache::store(std::string_view key, std::string_view value) const {
  if (value.size() > kMaxEntry || key.size() + value.size() > most_bytes_ / 4) return;
  const FileDescriptor folder(open_folder(folder_, true));
  if (!folder) return;
  CacheHeader header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.key_bytes = key.size();
  header.value_bytes = value.size();
  const std::string name = file_of(key);
  static std::atomic<uint64_t> counter{0};
  const std::string part = name + "." + std::to_string(getpid()) + "." + std::to_string(counter++) +
                           std::string(kUnfinished);
  {
    const FileDescriptor file(openat(folder.get(), part.c_str(),
                                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return;
    std::string bytes(key);
    bytes += value;
    header.checksum = hash_of(bytes);
    const std::string_view head(reinterpret_cast<const char*>(&header), sizeof header);
    if (!write_all(file.get(), head) || !write_all(file.get(), bytes)) {
      unlinkat(folder.get(), part.c_str(), 0);
      return;
    }
  }
  if (renameat(folder.get(), part.c_str(), folder.get(), name.c_str()) != 0)
    unlinkat(folder.get(), part.c_str(), 0);
  trim(folder.get(), most_bytes_);
}

}  // namespace tenon::cuda
