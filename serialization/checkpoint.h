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
// one whatever happens. Waits for queued work on the tensors. With options.max_shard_size, a large
// model becomes several files, which appear together, by the last of them; the files of the save
// before are removed then. Throws a CheckpointError if the system refuses (no such folder, no
// permission, disk full, no memory, …) or if a name cannot be stored.
TENON_API void save(const std::filesystem::path& path, nn::ModuleRef model,
                    const SaveOptions& options = {});
// Writes tensors that need not belong to a model. Names such as "module.weight" are stored
// unchanged. Errors are as for a model.
TENON_API void save(const std::filesystem::path& path, const nn::StateDict& tensors,
                    const SaveOptions& options = {});

// Write a safetensors file, which other programs read, of a model or of tensors. It appears as
// completely as a checkpoint, but has no checksums, so that a load cannot detect damage. Errors are
// as for save.
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
// Returns the same with options.section, options.only and options.rules; the others concern a
// model.
TENON_API nn::StateDict load(const std::filesystem::path& path, const LoadOptions& options);
// Copies values that are in memory to a model, as load(path, model) does with the values of a file.
// options.section has no meaning here.
TENON_API LoadReport load_state_dict(nn::ModuleRef model, const nn::StateDict& tensors,
                                     const LoadOptions& options = {});

// Describes a part of a training run in a checkpoint.
struct CheckpointPartInfo {
  // The name of the part, "optimizer", or "optimizer.critic" for one with a name.
  std::string name;
  // False for a part of a later release, of which the rest is empty.
  bool known = true;
  // The numbers and texts of the part.
  CheckpointValues values;
  // The tensors of the part, in the order in which they were saved.
  std::vector<NamedShape> tensors;
};
// Describes the contents of a checkpoint, or of a file of another program.
struct CheckpointInfo {
  // A tensor that Tenon cannot make, or what else an HDF5 file holds, and the reason.
  struct Unreadable {
    std::string key;
    std::string why;
  };
  // The size of the file; of an index, with all of its shards.
  uint64_t file_bytes = 0;
  // The format of the file.
  FileFormat format = FileFormat::tenon;
  // True if the file has no checksums of Tenon's.
  bool unverified = false;
  // The version of Tenon's format.
  uint32_t format_version = 0;
  // The names of the files that an index lists; empty for other files.
  std::vector<std::string> shards;
  // The tensors of the model, in the order in which they were saved.
  std::vector<NamedShape> tensors;
  // The paths of wrapped models, such as "module"; nullopt if the writer did not record them.
  std::optional<std::vector<std::string>> wrappers;
  // The parts of a training run (training_checkpoint.h); empty for a model alone.
  std::vector<CheckpointPartInfo> parts;
  // The tensors that Tenon cannot make, such as those of type int8, and what else an HDF5 file
  // holds.
  std::vector<Unreadable> unreadable;
};
// Verifies every byte of a checkpoint and describes it, without making tensors. Of a file of
// another program everything but the values is checked. `section` and `verify` are those of
// LoadOptions. Throws a CheckpointError if the file is missing, damaged or of no known format.
TENON_API CheckpointInfo inspect(const std::filesystem::path& path, const std::string& section = {},
                                 bool verify = true);

}  // namespace tenon
