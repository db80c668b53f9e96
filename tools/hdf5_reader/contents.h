// What an HDF5 file contains, as far as it can be tensors. Nothing in the file is believed: sizes
// are compared with the file, and what is not understood is described and not read.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <hdf5.h>

#include <tenon/serialization/hdf5_calls.h>
#include <tenon/serialization/hdf5_wire.h>

namespace tenon::reader {

// Why a file or a data set cannot be read.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Handle = hdf5::Handle<Fault>;

template <class T>
T check(T status, const char* what) {
  return hdf5::check<Fault>(status, what);
}

struct Item {
  std::string path;  // "layer/kernel:0"
  hdf5_wire::EntryKind kind = hdf5_wire::EntryKind::tensor;
  hdf5_wire::Type type = hdf5_wire::Type::f32;
  std::vector<hsize_t> dims;
  std::string why;  // it is no tensor
};

struct FileContents {
  bool looks_like_checkpoint = false;  // hdf5_wire::Contents
  std::vector<Item> items;
};
// Throws a Fault if the file has too many objects, is nested too deeply, or is damaged such that it
// cannot be listed.
FileContents list_contents(hid_t file, uint64_t file_bytes);

// Sets the type of an item, or its kind and why.
void describe_type(hid_t dataset, Item& item);
// Returns the type in memory of elements that are sent as `type`.
Handle memory_type(hdf5_wire::Type type);
size_t size_of(hdf5_wire::Type type);

}  // namespace tenon::reader
