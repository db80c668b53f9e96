// The index of a checkpoint that has none, or one of a later release: another process reads its
// HDF5 data, because somebody who writes right checksums for wrong data can make HDF5 crash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include <tenon/serialization/checkpoint_index.h>

namespace tenon {

// Returns what the HDF5 data of an image of so many bytes hold. read_page(number, to) gives the
// bytes of the pages that the process asks for (hdf5_wire::kPageBytes each, the last one fewer).
// Throws what that throws, and a CheckpointError if the data are no checkpoint or the process
// fails.
CheckpointIndex index_by_process(
    uint64_t image_bytes, const std::function<void(uint64_t page, std::byte* to)>& read_page);

}  // namespace tenon
