// The values of a data set, piece by piece.
#pragma once

#include <functional>

#include "contents.h"

namespace tenon::reader {

// Calls `send` with pieces of at most 64 MiB of the values, in row-major order. Throws a Fault if
// HDF5 cannot read them.
void read_values(hid_t file, const Item& item,
                 const std::function<void(const void* bytes, size_t count)>& send);

}  // namespace tenon::reader
