// System calls that go wrong where a test says so: libtenon reaches them through these. For the one
// file of a program of its own.
#pragma once

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdarg>
#include <string>
#include <system_error>

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

namespace {

// What happens to one call.
struct Fault {
  enum Kind { fails, is_short, ends } kind = fails;
  int error = 0;           // of one that fails
  bool from_then = false;  // all later calls for the file's contents fail, too
  std::string str() const {
    return (kind == fails      ? std::system_category().message(error)
            : kind == is_short ? "a short transfer"
                               : "an early end") +
           (from_then ? ", from then on" : "");
  }
};

// Counts the calls of this thread while it is armed, and lets the one numbered `at` go wrong.
struct Injector {
  bool armed = false;
  int at = 0, count = 0;
  Fault fault;
  std::string hit = {};  // the call that went wrong; empty where none did
  int lowest_written = INT_MAX;
};
thread_local Injector injector;
// As long as one lives, the calls of threads that this one waits for count as its own.
std::atomic<Injector*> lent{nullptr};
struct Lending {
  Lending() { lent = &injector; }
  ~Lending() { lent = nullptr; }
};
Injector& active_injector() {
  Injector* const other = injector.armed ? nullptr : lent.load();
  return other ? *other : injector;
}

enum class Moves { nothing, bytes };

// Whether this call is to go wrong. `essential`: it moves the contents or makes them last.
bool goes_wrong(const char* call, Moves moves, bool essential) {
  Injector& i = active_injector();
  if (!i.armed) return false;
  const bool now = ++i.count == i.at || (i.fault.from_then && i.count > i.at && essential);
  if (!now || (i.fault.kind != Fault::fails && moves == Moves::nothing)) return false;
  if (i.hit.empty()) i.hit = call;
  errno = i.fault.error;
  return true;
}

template <class F>
F* real(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

// A transfer that goes wrong; `less` makes a shorter one.
template <class Less>
ssize_t wrong_transfer(size_t count, Less&& less) {
  switch (active_injector().fault.kind) {
    case Fault::is_short:
      return less((count + 1) / 2);
    case Fault::ends:
      return 0;
    default:
      errno = active_injector().fault.error;
      return -1;
  }
}

}  // namespace

#define WRAPPED extern "C" __attribute__((visibility("default")))

WRAPPED int open(const char* path, int flags, ...) {
  static const auto next = real<int(const char*, int, ...)>("open");
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return goes_wrong("open", Moves::nothing, true) ? -1 : next(path, flags, mode);
}
WRAPPED int close(int file) {
  static const auto next = real<int(int)>("close");
  const bool wrong = goes_wrong("close", Moves::nothing, false);
  const int error = errno, result = next(file);  // it is closed all the same, as Linux does
  if (wrong) errno = error;
  return wrong ? -1 : result;
}
WRAPPED ssize_t pread(int file, void* to, size_t count, off_t offset) {
  static const auto next = real<ssize_t(int, void*, size_t, off_t)>("pread");
  if (!goes_wrong("pread", Moves::bytes, true)) return next(file, to, count, offset);
  return wrong_transfer(count, [&](size_t less) { return next(file, to, less, offset); });
}
WRAPPED ssize_t pwrite(int file, const void* from, size_t count, off_t offset) {
  static const auto next = real<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  injector.lowest_written = std::min(injector.lowest_written, file);
  if (!goes_wrong("pwrite", Moves::bytes, true)) return next(file, from, count, offset);
  return wrong_transfer(count, [&](size_t less) { return next(file, from, less, offset); });
}
WRAPPED int fsync(int file) {
  static const auto next = real<int(int)>("fsync");
  return goes_wrong("fsync", Moves::nothing, true) ? -1 : next(file);
}
WRAPPED int rename(const char* from, const char* to) noexcept {
  static const auto next = real<int(const char*, const char*)>("rename");
  return goes_wrong("rename", Moves::nothing, true) ? -1 : next(from, to);
}
WRAPPED int fstat(int file, struct stat* status) noexcept {
  static const auto next = real<int(int, struct stat*)>("fstat");
  return goes_wrong("fstat", Moves::nothing, false) ? -1 : next(file, status);
}
WRAPPED int stat(const char* path, struct stat* status) noexcept {
  static const auto next = real<int(const char*, struct stat*)>("stat");
  return goes_wrong("stat", Moves::nothing, false) ? -1 : next(path, status);
}
WRAPPED int flock(int file, int operation) noexcept {
  static const auto next = real<int(int, int)>("flock");
  return goes_wrong("flock", Moves::nothing, false) ? -1 : next(file, operation);
}
WRAPPED int fchmod(int file, mode_t mode) noexcept {
  static const auto next = real<int(int, mode_t)>("fchmod");
  return goes_wrong("fchmod", Moves::nothing, false) ? -1 : next(file, mode);
}
WRAPPED int unlink(const char* path) noexcept {
  static const auto next = real<int(const char*)>("unlink");
  return goes_wrong("unlink", Moves::nothing, false) ? -1 : next(path);
}
WRAPPED ssize_t readlink(const char* path, char* to, size_t count) noexcept {
  static const auto next = real<ssize_t(const char*, char*, size_t)>("readlink");
  return goes_wrong("readlink", Moves::nothing, false) ? -1 : next(path, to, count);
}
WRAPPED int fcntl(int file, int command, ...) {
  static const auto next = real<int(int, int, ...)>("fcntl");
  va_list rest;
  va_start(rest, command);
  const long argument = va_arg(rest, long);  // of no more than this size
  va_end(rest);
  return goes_wrong("fcntl", Moves::nothing, false) ? -1 : next(file, command, argument);
}
WRAPPED int socketpair(int domain, int type, int protocol, int* ends) noexcept {
  static const auto next = real<int(int, int, int, int*)>("socketpair");
  return goes_wrong("socketpair", Moves::nothing, false) ? -1 : next(domain, type, protocol, ends);
}
WRAPPED int poll(pollfd* files, nfds_t count, int milliseconds) {
  static const auto next = real<int(pollfd*, nfds_t, int)>("poll");
  return goes_wrong("poll", Moves::nothing, false) ? -1 : next(files, count, milliseconds);
}
WRAPPED ssize_t recv(int file, void* to, size_t count, int flags) {
  static const auto next = real<ssize_t(int, void*, size_t, int)>("recv");
  if (!goes_wrong("recv", Moves::bytes, true)) return next(file, to, count, flags);
  return wrong_transfer(count, [&](size_t less) { return next(file, to, less, flags); });
}
WRAPPED ssize_t send(int file, const void* from, size_t count, int flags) {
  static const auto next = real<ssize_t(int, const void*, size_t, int)>("send");
  if (!goes_wrong("send", Moves::bytes, true)) return next(file, from, count, flags);
  return wrong_transfer(count, [&](size_t less) { return next(file, from, less, flags); });
}
WRAPPED DIR* opendir(const char* path) {
  static const auto next = real<DIR*(const char*)>("opendir");
  return goes_wrong("opendir", Moves::nothing, false) ? nullptr : next(path);
}
WRAPPED dirent* readdir(DIR* folder) {
  static const auto next = real<dirent*(DIR*)>("readdir");
  return goes_wrong("readdir", Moves::nothing, false) ? nullptr : next(folder);
}
