// HDF5 files that other programs wrote. The HDF5 library does not survive everything that may be in
// one, so another process reads them.
#pragma once

#include <memory>

#include <tenon/serialization/tensor_file.h>

namespace tenon {

// Whether a file is an HDF5 file, with a block of another program in front or without.
bool is_hdf5(const InputFile& file);

// Returns the tensors, under their paths with dots: "layer/kernel:0" is "layer.kernel". Throws a
// CheckpointError if the file is damaged, if the process that reads it fails, if two data sets get
// one name, or if it is a checkpoint of Tenon's whose first bytes are damaged, unless
// `checkpoints_too`.
TensorFile open_hdf5(std::shared_ptr<const InputFile> file, bool checkpoints_too);

}  // namespace tenon
