// What the HDF5 data of a checkpoint hold, for one that has no index.
#pragma once

#include <cstdint>
#include <string>

#include "contents.h"

namespace tenon::reader {

// Returns an index (tenon/serialization/index_wire.h), whose numbers and names libtenon compares
// with the file. Throws a Fault if the file is not one that Tenon has written; what is wrong with a
// group "@…" is in the index.
std::string index_of_checkpoint(hid_t file, uint64_t image_bytes);

}  // namespace tenon::reader
