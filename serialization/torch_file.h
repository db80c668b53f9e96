// Files of torch.save since PyTorch 1.6: a zip archive with a pickle, which is not executed, and a
// member for each storage.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tenon/serialization/tensor_file.h>
#include <tenon/serialization/zip.h>

namespace tenon {

// Whether an archive has a member "<name>/data.pkl".
bool is_torch_archive(const std::vector<ZipMember>& members);

// Returns the tensors of the state dict in `file` or, if `section` is not empty, of that part of
// it. Tensors that share a storage share their memory if each is read once. Throws a
// CheckpointError if it holds anything else than a state dict, and says what is inside; if its
// pickle has instructions or globals that a state dict does not need; and if a tensor does not lie
// in its storage.
TensorFile open_torch(std::shared_ptr<const InputFile> file, std::vector<ZipMember> members,
                      const std::string& section, Reads reads);

}  // namespace tenon
