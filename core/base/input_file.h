// Opens and reads files. Opening never blocks, and every failure names the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <new>
#include <string>

#include <tenon/core/base/printable.h>

namespace tenon {

// Returns what body() returns. If the host runs out of memory, throws an E that names the file:
// "<purpose> '<path>': the host …".
template <class E, class Body>
auto naming_lack_of_memory(const char* purpose, const std::filesystem::path& path, Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    throw E(std::string(purpose) + " '" + printable(path.native()) +
            "': the host has no memory left for it");
  }
}

// A regular file that is open for reading. Anything else (a FIFO, a socket, a device, a folder) is
// refused at once, because opening a FIFO would wait forever for a writer. Errors read "<purpose>
// '<path>': <reason>" and are thrown by the function that is passed to the constructor.
class InputFile {
 public:
  using Throw = void (*)(const std::string& message);
  template <class E>
  static void throw_as(const std::string& message) {
    throw E(message);
  }

  // `refused`, if given, throws where the system does not open or read the file (no permission, no
  // descriptor left, a faulty disk): what the file is like is not known then.
  InputFile(const std::filesystem::path& path, const char* purpose, Throw raise,
            Throw refused = nullptr);
  ~InputFile();
  InputFile(const InputFile&) = delete;

  // Open as long as this object, unless `close_between_reads` was called.
  int descriptor() const { return file_; }
  // From now on, the file is open only while somebody reads it, because it is one of many. `read`
  // fails if it is another file by then, or has been written to.
  void close_between_reads();
  uint64_t size() const { return size_; }  // the size when the file was opened
  // Reads up to `count` bytes from `offset`. Returns fewer only at the end of the file.
  size_t read(void* to, size_t count, uint64_t offset) const;
  [[noreturn]] void fail(const std::string& why) const;
  [[noreturn]] void refuse(const std::string& why) const;  // with the other function

 private:
  std::filesystem::path path_;
  const char* purpose_;
  Throw raise_, refused_;
  struct Identity {
    uint64_t device, number, size;
    int64_t seconds, nanoseconds;  // when it was last written to
    bool operator==(const Identity&) const = default;
  };
  class Reading;

  Identity open_it() const;

  mutable int file_ = -1;
  uint64_t size_ = 0;
  Identity identity_{};
  // While it is closed between reads: how many threads read.
  bool closes_ = false;
  mutable std::mutex mutex_;
  mutable size_t readers_ = 0;
};

}  // namespace tenon
