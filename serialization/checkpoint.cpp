#include <optional>

#include <tenon/core/base/input_file.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/modules/module.h>
#include <tenon/serialization/atomic_file.h>
#include <tenon/serialization/checkpoint.h>
#include <tenon/serialization/checkpoint_file.h>
#include <tenon/serialization/header.h>
#include <tenon/serialization/part_state.h>
#include <tenon/serialization/staged_load.h>
#include <tenon/serialization/ties.h>
#include <tenon/serialization/verified_file.h>

namespace tenon {
namespace {

using nn::ModuleRef;
using nn::StateDict;

KeySide side_of(const StateDict& tensors, std::optional<std::vector<std::string>> wrappers) {
  KeySide side{{}, std::move(wrappers)};
  for (const auto& [key, tensor] : tensors)
    side.tensors.push_back({key, tensor.shape(), tensor.dtype()});
  return side;
}

// Both run body(); if the host has too little memory, the error names the file.
template <class Body>
auto to_save(const std::filesystem::path& path, Body&& body) {
  return naming_lack_of_memory<CheckpointError>("cannot save checkpoint", path, body);
}
template <class Body>
auto to_load(const std::filesystem::path& path, Body&& body) {
  return naming_lack_of_memory<CheckpointError>("cannot load checkpoint", path, body);
}

std::vector<FileEntry> entries_of(const StateDict& tensors) {
  std::vector<FileEntry> entries;
  for (const auto& [key, tensor] : tensors) entries.push_back({"", key, tensor});
  return entries;
}

LoadReport load_model(const std::filesystem::path& path, ModuleRef model,
                      const LoadOptions& options) {
  std::optional<VerifiedFile> file(path);
  PreparedModel prepared(path, *file, file->contents().tensors, file->contents().wrappers, model,
                         options);
  file.reset();  // its memory is not needed any more
  prepared.check(path);
  prepared.commit(path);
  return std::move(prepared.map.report);  // a copy could fail, and the model is changed by now
}

StateDict load_tensors(const std::filesystem::path& path) {
  const VerifiedFile file(path);
  StateDict tensors;
  for (const StoredTensor& tensor : file.contents().tensors)
    tensors.set(tensor.key, read_stored(path, file, tensor));
  return tensors;
}

CheckpointInfo look_into(const std::filesystem::path& path) {
  VerifiedFile file(path);
  KeySide side = side_of(file.contents().tensors, file.contents().wrappers);
  return {.file_bytes = file.image().size(),
          .format_version = kCheckpointFormatVersion,
          .tensors = std::move(side.tensors),
          .wrappers = std::move(side.wrappers),
          .parts = describe_parts(path, file)};
}

}  // namespace

void save(const std::filesystem::path& path, ModuleRef model) {
  to_save(path,
          [&] { write_checkpoint(path, entries_of(nn::state_dict(model)), wrappers_of(model)); });
}
void save(const std::filesystem::path& path, const StateDict& tensors) {
  to_save(path, [&] { write_checkpoint(path, entries_of(tensors), std::nullopt); });
}
void require_can_save(const std::filesystem::path& path) {
  to_save(path, [&] { AtomicFile never_committed(path); });
}

LoadReport load(const std::filesystem::path& path, ModuleRef model, const LoadOptions& options) {
  return to_load(path, [&] { return load_model(path, model, options); });
}
StateDict load(const std::filesystem::path& path) {
  return to_load(path, [&] { return load_tensors(path); });
}
CheckpointInfo inspect(const std::filesystem::path& path) {
  return to_load(path, [&] { return look_into(path); });
}

LoadReport load_state_dict(ModuleRef model, const StateDict& tensors, const LoadOptions& options) {
  for (const auto& [key, tensor] : tensors)
    if (!tensor.defined())
      throw StateDictError(
          fmt::format("load_state_dict: tensor '{}' is undefined", printable(key)));
  StagedLoad staged(model);
  KeyMap map = map_keys(side_of(tensors, std::nullopt), side_of_model(staged.targets(), model),
                        options, std::string(model.type->name));
  for (auto [from, to] : map.pairs) staged.add(to, tensors[from].second);
  check_ties(map, staged, std::string(model.type->name));
  staged.commit();
  return std::move(map.report);  // a copy could fail, and the model is changed by now
}

}  // namespace tenon
