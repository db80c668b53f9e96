// How a checkpoint is written, and brought to a model: what save and load of a model have in common
// with those of a whole training run.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/core/base/printable.h>
#include <tenon/modules/module.h>
#include <tenon/serialization/key_map.h>
#include <tenon/serialization/save_options.h>
#include <tenon/serialization/staged_load.h>
#include <tenon/serialization/tensor_file.h>
#include <tenon/serialization/verified_file.h>
#include <tenon/serialization/write_checkpoint.h>

namespace tenon {

struct FileEntry {
  std::string group;  // "@optimizer"; empty for a tensor of the model
  std::string key;
  Tensor tensor;
};

// Returns the paths of the models that the model wraps.
std::vector<std::string> wrappers_of(nn::ModuleRef model);

// Writes a file, or an index and shards, with these tensors. Throws a CheckpointError as save does.
void write_checkpoint(const std::filesystem::path& path, const std::vector<FileEntry>& entries,
                      std::optional<std::vector<std::string>> wrappers, const SaveOptions& options);

KeySide side_of(const std::vector<StoredTensor>& tensors,
                std::optional<std::vector<std::string>> wrappers);
KeySide side_of_model(const std::vector<nn::StateEntry>& entries, nn::ModuleRef model);

// Returns a tensor of the file, on cpu:0. Errors name neither.
Tensor read_values(const VerifiedFile& file, const StoredTensor& tensor);
// The same. Errors name the file and the tensor.
Tensor read_stored(const std::filesystem::path& path, const VerifiedFile& file,
                   const StoredTensor& tensor);

// Runs body(), which makes tensor `key` of a file. Errors are rethrown with the names of both.
template <class Body>
auto naming_tensor(const std::filesystem::path& path, const std::string& key, Body&& body) {
  const auto text = [&](const std::exception& error) {
    return "cannot load checkpoint '" + printable(path.native()) + "': tensor '" + printable(key) +
           "': " + error.what();
  };
  try {
    return body();
  } catch (const UnreadFileError&) {
    throw;
  } catch (const NamedFileError& error) {
    throw CheckpointError(error);
  } catch (const OutOfMemoryError& error) {
    throw OutOfMemoryError(text(error));
  } catch (const DeviceError& error) {  // that of the model, which says nothing of the file
    throw DeviceError(text(error));
  } catch (const Error& error) {
    throw CheckpointError(text(error));
  }
}

// The values of a file for a model, before they are copied to it.
struct PreparedModel {
 public:
  // Matches the names and reads the values: read(i) makes tensor i of `source`, which commit() asks
  // for again with options.low_memory. Throws as load does.
  PreparedModel(const std::filesystem::path& path, const KeySide& source,
                const std::function<Tensor(size_t)>& read, nn::ModuleRef model,
                const LoadOptions& options);
  // The same for tensors of a checkpoint, which commit() may read, too. Many are read at a time, so
  // that all threads have enough to do.
  PreparedModel(const std::filesystem::path& path, const VerifiedFile& file,
                const std::vector<StoredTensor>& tensors,
                std::optional<std::vector<std::string>> wrappers, nn::ModuleRef model,
                const LoadOptions& options);
  // Refuses different values for one tensor.
  void check(const std::filesystem::path& path);
  // Changes the model.
  void commit(const std::filesystem::path& path);

  StagedLoad staged;
  KeyMap map;

 private:
  // expect(order) is told beforehand which tensors will be read, in this order, unless with
  // low_memory.
  using Expect = std::function<void(std::vector<size_t> order)>;
  PreparedModel(const std::filesystem::path& path, const KeySide& source,
                const std::function<Tensor(size_t)>& read, const Expect& expect,
                nn::ModuleRef model, const LoadOptions& options);
  class ReadAhead;
  PreparedModel(const std::filesystem::path& path, const std::shared_ptr<ReadAhead>& ahead,
                std::optional<std::vector<std::string>> wrappers, nn::ModuleRef model,
                const LoadOptions& options);
  template <class Body>
  static void to_load(const std::filesystem::path& path, Body&& body);
  std::string name_;
  std::function<Tensor(size_t target)> again_;  // with low_memory
};

}  // namespace tenon
