// Checkpoints: the tensors of a model in one HDF5 file, which is complete or does not exist.
// Weights that other programs wrote are loaded from their files. docs/checkpoints.md describes all
// formats.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <tenon/modules/fields.h>
#include <tenon/modules/state_dict.h>
#include <tenon/serialization/checkpoint_value.h>
#include <tenon/serialization/key_map.h>
#include <tenon/serialization/load_report.h>
#include <tenon/serialization/save_options.h>

namespace tenon {

// Writes the parameters and persistent buffers of a model, on whatever devices they are. The file
// is written next to `path`, read back, synced and renamed, so `path` is the old file or the new
// one whatever happens. Waits for queued work on the tensors. Throws a CheckpointError if the
// system refuses (no such folder, no permission, disk full, no memory, …) or if a name cannot be
// stored.
// With options.max_shard_size, a large model becomes several files, which appear together, by the
// last of them; the files of the save before are removed then.
TENON_API void save(const std::filesystem::path& path, nn::ModuleRef model,
                    const SaveOptions& options = {});
// Writes tensors that need not belong to a model. Names such as "module.weight" are stored
// unchanged. Errors are as for a model.
TENON_API void save(const std::filesystem::path& path, const nn::StateDict& tensors,
                    const SaveOptions& options = {});

// Writes a safetensors file, which other programs read. It appears as completely as a checkpoint,
// but has no checksums, so that a load cannot detect damage. Errors are as for save.
TENON_API void save_safetensors(const std::filesystem::path& path, nn::ModuleRef model);
TENON_API void save_safetensors(const std::filesystem::path& path, const nn::StateDict& tensors);

// Throws the CheckpointError that save(path, …) would throw now if it could not write there, and
// writes nothing. Call it before a long training.
TENON_API void require_can_save(const std::filesystem::path& path);

// Reads a checkpoint, or a file of another program: safetensors, a state dict of torch.save,
// NumPy's .npz and .npy, or HDF5. Its contents tell the format, not its name. Copies the values to
// a model, wrapped or not; map_keys describes how names are matched. Nothing in a file is executed.
// Values are converted to the dtypes and devices of the model. A load that fails throws and leaves
// the model exactly as it was:
//
//   - a CheckpointError if the file is missing, damaged or not a checkpoint, if the host has too
//     little memory to read it, or if the process that reads HDF5 of other programs fails;
//   - an OutOfMemoryError if a device has too little memory for the values;
//   - a ValueError if a pattern in the options is not a regular expression;
//   - a StateDictError, in PyTorch's words, if names or shapes do not fit, or if the model has one
//     tensor (or views of one memory) under two names for which the checkpoint has different
//     values.
TENON_API LoadReport load(const std::filesystem::path& path, nn::ModuleRef model,
                          const LoadOptions& options = {});
// Returns the tensors of a checkpoint, on cpu:0, in the order in which they were saved. Throws a
// CheckpointError as above.
TENON_API nn::StateDict load(const std::filesystem::path& path);
// The same with options.section, options.only and options.rules; the others concern a model.
TENON_API nn::StateDict load(const std::filesystem::path& path, const LoadOptions& options);
// Copies values that are in memory to a model, as load(path, model) does with the values of a file.
// options.section has no meaning here.
TENON_API LoadReport load_state_dict(nn::ModuleRef model, const nn::StateDict& tensors,
                                     const LoadOptions& options = {});

// Describes a part of a training run in a checkpoint.
struct CheckpointPartInfo {
  std::string name;                 // "optimizer", or "optimizer.critic" for one with a name
  bool known = true;                // false for a part of a later release: the rest is empty
  CheckpointValues values;          // numbers and texts
  std::vector<NamedShape> tensors;  // in the order in which they were saved
};
// Describes the contents of a checkpoint, or of a file of another program.
struct CheckpointInfo {
  struct Unreadable {
    std::string key;
    std::string why;
  };
  uint64_t file_bytes = 0;  // of an index, with all of its shards
  FileFormat format = FileFormat::tenon;
  bool unverified = false;          // the file has no checksums of Tenon's
  uint32_t format_version = 0;      // of Tenon's format
  std::vector<std::string> shards;  // the names of the files that an index lists; else empty
  std::vector<NamedShape> tensors;  // in the order in which they were saved
  // The paths of wrapped models, such as "module"; nullopt if the writer did not record them.
  std::optional<std::vector<std::string>> wrappers;
  std::vector<CheckpointPartInfo> parts;  // training_checkpoint.h; empty for a model alone
  // Tensors that Tenon cannot make, such as those of type int8, and what else an HDF5 file holds.
  std::vector<Unreadable> unreadable;
};
// Verifies every byte of a checkpoint and describes it, without making tensors. Of a file of
// another program everything but the values is checked. `section` and `verify` are those of
// LoadOptions. Throws a CheckpointError if the file is missing, damaged or of no known format.
TENON_API CheckpointInfo inspect(const std::filesystem::path& path, const std::string& section = {},
                                 bool verify = true);

}  // namespace tenon
