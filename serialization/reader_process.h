// The process that reads HDF5 files of other programs, and checkpoints without an index. What it is
// not allowed to do and how it is found docs/checkpoints.md describes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include <sys/types.h>

#include <tenon/core/base/fork.h>

namespace tenon {

// A running tenon-hdf5-reader. It is killed, whatever it does, when this object goes.
class ReaderProcess {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Starts it with the open file `file`, and lets it use a processor for so many seconds. Errors
  // say `because`, why another process reads it. Throws an UnreadError if there is no such
  // program or process.
  ReaderProcess(const char* because, int file, uint64_t seconds);
  // The same without a file, for an image of so many bytes.
  struct Image {
    uint64_t bytes;
  };
  ReaderProcess(const char* because, Image image, uint64_t seconds);
  ~ReaderProcess();
  ReaderProcess(const ReaderProcess&) = delete;

  // Lets it use a processor for so many seconds more.
  void extend(uint64_t seconds);
  // Both throw a CheckpointError that says how the process has ended, if it has, and receive() also
  // if what it asks for does not come until `end`. After the first error each call throws it.
  void send(const void* bytes, size_t count);
  void receive(void* bytes, size_t count, Time end);

  // Both kill the process and say what is wrong with it: an UnreadError where that may have nothing
  // to do with the file, a CheckpointError where the file made it do this.
  [[noreturn]] void fail(const std::string& why);
  [[noreturn]] void fail_as_damaged(const std::string& why);

 private:
  [[noreturn]] void fail_as_ended();
  template <class E>
  [[noreturn]] void end_with(const std::string& why);
  void start(const std::string& program, int file, const std::vector<std::string>& arguments,
             int socket);
  void connect(int file, const std::vector<std::string>& arguments);
  void stop();

  const char* const because_;
  int socket_ = -1, handle_ = -1;  // of the process: a pidfd where the system has them
  pid_t process_ = -1;
  const uint32_t generation_ = fork_generation();  // the process is a child of the one that made it
  std::exception_ptr failure_;
};

// How long an answer of the process may take that does not depend on the size of the file:
// TENON_HDF5_TIMEOUT, 60 seconds by default. Throws a ValueError if that is not a number.
uint64_t reader_seconds();

}  // namespace tenon
