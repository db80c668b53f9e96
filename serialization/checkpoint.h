// Checkpoints: a model's tensors in one HDF5 file that is whole or is not there.
// docs/checkpoints.md describes the file.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <tenon/modules/fields.h>
#include <tenon/modules/state_dict.h>
#include <tenon/serialization/key_map.h>
#include <tenon/serialization/load_report.h>

namespace tenon {

// Writes a model's parameters and persistent buffers, on whatever devices they are. The file is
// written beside `path`, synced, read back and renamed: whatever happens, `path` holds the old file
// or the new one. Waits for queued work on the tensors. CheckpointError where the system refuses
// (no such folder, no permission, disk full, no memory, …) or a name cannot be stored.
TENON_API void save(const std::filesystem::path& path, nn::ModuleRef model);
// The same for tensors that need no model. Names such as "module.weight" are stored as they are.
TENON_API void save(const std::filesystem::path& path, const nn::StateDict& tensors);

// Throws the CheckpointError that save(path, …) would throw if it could not write there now; writes
// nothing. Before a long training.
TENON_API void require_can_save(const std::filesystem::path& path);

// Reads a checkpoint and gives its values to a model, wrapped or not: see map_keys for how names
// are brought together. A load is complete or it throws and leaves the model exactly as it was:
// CheckpointError where the file is missing, damaged or none of ours, or the host has too little
// memory to read it; OutOfMemoryError where a device has too little for the values; StateDictError,
// in PyTorch's words, where names or shapes do not fit, or where the model holds one tensor (or
// views of one memory) under two names and the checkpoint different values for them. Values are
// converted to the model's dtypes and devices.
TENON_API LoadReport load(const std::filesystem::path& path, nn::ModuleRef model,
                          const LoadOptions& options = {});
// The tensors of a checkpoint, on cpu:0, in the order in which they were saved. CheckpointError as
// above.
TENON_API nn::StateDict load(const std::filesystem::path& path);
// Gives values that are in memory to a model; otherwise as load(path, model).
TENON_API LoadReport load_state_dict(nn::ModuleRef model, const nn::StateDict& tensors,
                                     const LoadOptions& options = {});

// What a checkpoint holds, without making tensors of it.
struct CheckpointInfo {
  uint64_t file_bytes = 0;
  uint32_t format_version = 0;
  std::vector<NamedShape> tensors;  // in the order in which they were saved
  std::optional<std::vector<std::string>>
      wrappers;  // paths of wrapped models, such as "module"; absent where not recorded
};
// Verifies every byte of the file and describes it. CheckpointError where it is missing or damaged.
TENON_API CheckpointInfo inspect(const std::filesystem::path& path);

}  // namespace tenon
