// Careful use of the HDF5 C library: one thread at a time, no printed errors, every object closed.
// Include it only from serialization/*.cpp.
#pragma once

#include <cstdint>
#include <mutex>

#include <hdf5.h>

#include <tenon/core/base/fork.h>
#include <tenon/core/dtype.h>
#include <tenon/core/error.h>
#include <tenon/serialization/hdf5_calls.h>

namespace tenon::h5 {

// Locks the library during its lifetime, because Debian's HDF5 is not thread-safe, and prevents
// HDF5 from printing its errors.
class Session {
 public:
  Session();  // throws std::bad_alloc if there is not enough memory to start the library
  ~Session();
  Session(const Session&) = delete;

 private:
  std::unique_lock<ForkMutex> lock_;
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
};

// Throws std::bad_alloc if the memory that HDF5 may need for a file of so many tensors, whose names
// have so many bytes, is not available. HDF5 does not survive an allocation that fails: its
// lists are left half changed, every later call fails, and its exit handler frees memory twice
// (1.10.8). So this function allocates and frees as much memory before HDF5 is called.
void require_memory(uint64_t tensors, uint64_t name_bytes);

using Handle = hdf5::Handle<CheckpointError>;

template <class T>
T check(T status, const char* what) {
  return hdf5::check<CheckpointError>(status, what);
}

// Returns the type that a dtype has in a checkpoint. It is little-endian; bool is h5py's
// enumeration, and bf16 is stored as unsigned 16-bit words.
Handle stored_type(DType dtype);

// Returns the type of texts of a fixed length, in UTF-8 and padded with zeros.
Handle text_type(size_t bytes);

}  // namespace tenon::h5
