// Manners for the HDF5 C library: one thread at a time, no error prints, nothing left open. Include
// only from serialization/*.cpp.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include <hdf5.h>

#include <tenon/core/base/fork.h>
#include <tenon/core/dtype.h>

namespace tenon::h5 {

// Holds the library while it lives: Debian's HDF5 is not thread-safe. Its error stack is kept from
// being printed meanwhile.
class Session {
 public:
  Session();  // CheckpointError where there is not enough memory to begin with
  ~Session();
  Session(const Session&) = delete;

 private:
  std::unique_lock<ForkMutex> lock_;
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
};

// CheckpointError where the memory that HDF5 may take for a file of so many tensors, whose names
// have so many bytes, is not to be had. HDF5 does not survive an allocation that fails: its lists
// are left half changed, every later call fails and its exit handler frees memory twice (1.10.8).
// So it is only called when there is enough, which is asked for and given back beforehand.
void require_memory(uint64_t tensors, uint64_t name_bytes);

// What HDF5 says about its latest failure, from its error stack.
std::string last_error();

// An identifier and the function that closes it. Making one from a failed call throws
// CheckpointError "HDF5 cannot <what>: <why>".
class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle(hid_t id, Close close, const char* what);
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }
  // Closes now, and throws where that fails.
  void close(const char* what);

 private:
  hid_t id_;
  Close close_;
};

// Throws as Handle does where `status` is negative; returns it otherwise.
template <class T>
T check(T status, const char* what);

// The type that a dtype has in a checkpoint: little-endian; bool as h5py's enumeration, bf16 as
// unsigned 16-bit words.
Handle stored_type(DType dtype);

Handle text_type(size_t bytes);  // fixed length, UTF-8, padded with zeros

[[noreturn]] void fail(const char* what);

template <class T>
T check(T status, const char* what) {
  if (status < 0) fail(what);
  return status;
}

}  // namespace tenon::h5
