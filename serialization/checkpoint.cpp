#include <optional>

#include <tenon/core/base/input_file.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/modules/module.h>
#include <tenon/serialization/atomic_file.h>
#include <tenon/serialization/checkpoint.h>
#include <tenon/serialization/checkpoint_file.h>
#include <tenon/serialization/conversion.h>
#include <tenon/serialization/header.h>
#include <tenon/serialization/part_state.h>
#include <tenon/serialization/staged_load.h>
#include <tenon/serialization/tensor_file.h>
#include <tenon/serialization/ties.h>

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

// Reads tensor i of a file, if it is one that Tenon can make.
Tensor read_file_tensor(const TensorFile& file, size_t i) {
  if (!file.tensors[i].fault.empty()) throw CheckpointError(file.tensors[i].fault);
  return file.read(i);
}

KeySide side_of(const TensorFile& file) {
  KeySide side{{}, file.wrappers};
  for (const FileTensor& tensor : file.tensors)
    side.tensors.push_back({tensor.key, tensor.shape, tensor.dtype});
  return side;
}

PreparedModel prepare(const std::filesystem::path& path, const TensorFile& file, ModuleRef model,
                      const LoadOptions& options) {
  if (file.native)
    return {path, *file.native, file.native->contents().tensors, file.wrappers, model, options};
  return {path, side_of(file), [&](size_t i) { return read_file_tensor(file, i); }, model, options};
}

LoadReport load_model(const std::filesystem::path& path, ModuleRef model,
                      const LoadOptions& options) {
  TensorFile file = open_tensor_file(path, options.section, options.verify,
                                     options.low_memory ? Reads::any : Reads::once);
  PreparedModel prepared = prepare(path, file, model, options);
  file.verify_rest();
  if (!options.low_memory) file.close();  // its memory is not needed any more
  prepared.check(path);
  for (const LeftOut& other : file.left_out)
    prepared.map.report.not_tensors.push_back(other.key + ": " + other.why);
  prepared.map.report.format = file.format;
  prepared.map.report.unverified = file.format != FileFormat::tenon;
  prepared.commit(path);
  return std::move(prepared.map.report);  // a copy could fail, and the model is changed by now
}

StateDict load_tensors(const std::filesystem::path& path, const LoadOptions& options) {
  const TensorFile file = open_tensor_file(path, options.section, options.verify);
  const Conversion conversion(side_of(file), options);
  StateDict tensors;
  for (size_t i = 0; i < conversion.side().tensors.size(); ++i) {
    const size_t at = conversion.position(i);
    tensors.set(conversion.side().tensors[i].key, naming_tensor(path, file.tensors[at].key, [&] {
                  return conversion.apply(i, read_file_tensor(file, at));
                }));
  }
  file.verify_rest();
  return tensors;
}

CheckpointInfo look_into(const std::filesystem::path& path, const std::string& section,
                         bool verify) {
  const TensorFile file = open_tensor_file(path, section, verify);
  file.verify_rest();
  CheckpointInfo info;
  info.file_bytes = file.bytes;
  info.format = file.format;
  info.unverified = file.format != FileFormat::tenon;
  info.wrappers = file.wrappers;
  if (file.native) {
    info.format_version = kCheckpointFormatVersion;
    info.parts = describe_parts(path, *file.native);
    for (const Shard& shard : file.native->shards()) info.shards.push_back(shard.name);
  }
  for (const FileTensor& tensor : file.tensors)
    if (tensor.fault.empty())
      info.tensors.push_back({tensor.key, tensor.shape, tensor.dtype});
    else
      info.unreadable.push_back({tensor.key, tensor.fault});
  for (const LeftOut& other : file.left_out) info.unreadable.push_back({other.key, other.why});
  return info;
}

}  // namespace

void save(const std::filesystem::path& path, ModuleRef model, const SaveOptions& options) {
  to_save(path, [&] {
    write_checkpoint(path, entries_of(nn::state_dict(model)), wrappers_of(model), options);
  });
}
void save(const std::filesystem::path& path, const StateDict& tensors, const SaveOptions& options) {
  to_save(path, [&] { write_checkpoint(path, entries_of(tensors), std::nullopt, options); });
}
void require_can_save(const std::filesystem::path& path) {
  to_save(path, [&] { AtomicFile never_committed(path); });
}

LoadReport load(const std::filesystem::path& path, ModuleRef model, const LoadOptions& options) {
  return to_load(path, [&] { return load_model(path, model, options); });
}
StateDict load(const std::filesystem::path& path) { return load(path, LoadOptions{}); }
StateDict load(const std::filesystem::path& path, const LoadOptions& options) {
  return to_load(path, [&] { return load_tensors(path, options); });
}
CheckpointInfo inspect(const std::filesystem::path& path, const std::string& section, bool verify) {
  return to_load(path, [&] { return look_into(path, section, verify); });
}

LoadReport load_state_dict(ModuleRef model, const StateDict& tensors, const LoadOptions& options) {
  for (const auto& [key, tensor] : tensors)
    if (!tensor.defined())
      throw StateDictError(
          fmt::format("load_state_dict: tensor '{}' is undefined", printable(key)));
  const KeySide source = side_of(tensors, std::nullopt);
  const Conversion conversion(source, options);
  StagedLoad staged(model);
  KeyMap map = map_converted(conversion, source, side_of_model(staged.targets(), model), options,
                             std::string(model.type->name));
  for (auto [from, to] : map.pairs)
    staged.add(to, conversion.apply(from, tensors[conversion.position(from)].second.detach()));
  check_ties(map, staged, std::string(model.type->name));
  staged.commit();
  return std::move(map.report);  // a copy could fail, and the model is changed by now
}

}  // namespace tenon
