// Arrays that numpy.save, numpy.savez and numpy.savez_compressed wrote.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/serialization/tensor_file.h>
#include <tenon/serialization/zip.h>

namespace tenon {

// Whether a file that begins with these bytes is an .npy file.
bool begins_as_npy(std::string_view first_bytes);

// Returns the array in an .npy file, under `name`. Throws a CheckpointError if its header is not
// one of version 1, 2 or 3, or if the file has fewer or more bytes than the array.
TensorFile open_npy(std::shared_ptr<const InputFile> file, const std::string& name);

// Whether each member of an archive is an array, by its name; there may be none.
bool is_npz_archive(const std::vector<ZipMember>& members);

// Returns the arrays of an .npz archive, under the names of its members without ".npy". Errors are
// those of open_npy.
TensorFile open_npz(std::shared_ptr<const InputFile> file, std::vector<ZipMember> members);

}  // namespace tenon
