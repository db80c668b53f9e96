#include <algorithm>
#include <numeric>

#include <tenon/core/base/input_file.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/tensor_impl.h>
#include <tenon/modules/module.h>
#include <tenon/serialization/atomic_file.h>
#include <tenon/serialization/checkpoint.h>
#include <tenon/serialization/header.h>
#include <tenon/serialization/image.h>
#include <tenon/serialization/staged_load.h>
#include <tenon/serialization/ties.h>
#include <tenon/serialization/verified_file.h>

namespace tenon {
namespace {

using nn::ModuleRef;
using nn::StateDict;

void collect_wrappers(ModuleRef module, const std::string& prefix,
                      std::vector<std::string>& wrappers) {
  for (const nn::NamedModule& child : nn::named_children(module)) {
    if (module.type->wrapper) wrappers.push_back(prefix + child.name);
    collect_wrappers(child.module, prefix + child.name + ".", wrappers);
  }
}

std::vector<std::string> wrappers_of(ModuleRef model) {
  std::vector<std::string> wrappers;
  collect_wrappers(model, "", wrappers);
  return wrappers;
}

KeySide side_of(const StateDict& tensors, std::optional<std::vector<std::string>> wrappers) {
  KeySide side{{}, std::move(wrappers)};
  for (const auto& [key, tensor] : tensors)
    side.tensors.push_back({key, tensor.shape(), tensor.dtype()});
  return side;
}

// Writes the elements of a tensor, without a copy if they are contiguous in the memory of the host.
void append_values(AtomicFile& file, const Tensor& tensor, uint64_t bytes) {
  if (tensor.is_contiguous() && tensor.device().type() == "cpu") {
    tensor.wait();
    file.append(impl_of(tensor).data(), bytes);
  } else {
    std::vector<std::byte> values(bytes);
    tensor.copy_to_host(values.data(), tensor.dtype());
    file.append(values.data(), bytes);
  }
}

// Writes HDF5's own bytes between the tensors, up to the position `until`.
void append_metadata(AtomicFile& file, const MemoryFile& memory, uint64_t until) {
  std::vector<std::byte> bytes(until - file.size());
  memory.read(file.size(), bytes.size(), bytes.data());
  file.append(bytes.data(), bytes.size());
}

// Lays out the file without its values.
ImageContents lay_out(const std::filesystem::path& path, const StateDict& tensors,
                      std::optional<std::vector<std::string>> wrappers, MemoryFile& memory) {
  auto fail = [&](const std::string& why) {
    throw CheckpointError(
        fmt::format("cannot save checkpoint '{}': {}", printable(path.native()), why));
  };
  ImageContents contents{{}, std::move(wrappers)};
  for (const auto& [key, tensor] : tensors) {
    if (!tensor.defined()) fail(fmt::format("tensor '{}' is undefined", printable(key)));
    contents.tensors.push_back({key, tensor.dtype(), tensor.shape(), 0, 0});
  }
  try {
    build_image(contents, memory);
  } catch (const CheckpointError& error) {
    fail(error.what());
  }
  return contents;
}

void write(const std::filesystem::path& path, const StateDict& tensors,
           std::optional<std::vector<std::string>> wrappers) {
  MemoryFile memory;
  const ImageContents contents = lay_out(path, tensors, std::move(wrappers), memory);
  std::vector<size_t> order(tensors.size());  // by place in the file
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return contents.tensors[a].offset < contents.tensors[b].offset;
  });
  AtomicFile file(path);
  for (size_t i : order) {
    if (contents.tensors[i].bytes == 0) continue;
    append_metadata(file, memory, contents.tensors[i].offset);
    append_values(file, tensors[i].second, contents.tensors[i].bytes);
  }
  append_metadata(file, memory, memory.size());
  const Checksum body = file.body_checksum();
  file.commit(encode_header({.file_bytes = file.size(), .body = body}));
}

KeySide side_of(const std::vector<nn::StateEntry>& entries, ModuleRef model) {
  KeySide side{{}, wrappers_of(model)};
  for (const nn::StateEntry& entry : entries)
    side.tensors.push_back({entry.name, entry.tensor.shape(), entry.tensor.dtype()});
  return side;
}

KeySide side_of(const ImageContents& contents) {
  KeySide side{{}, contents.wrappers};
  for (const StoredTensor& tensor : contents.tensors)
    side.tensors.push_back({tensor.key, tensor.shape, tensor.dtype});
  return side;
}

Tensor read_values(const VerifiedFile& file, const StoredTensor& tensor) {
  const std::byte* values = file.image().data() + tensor.offset;
  if (tensor.dtype == DType::boolean &&
      !std::all_of(values, values + tensor.bytes, [](std::byte b) { return b <= std::byte{1}; }))
    throw CheckpointError("it is of type bool and holds bytes other than 0 and 1");
  return from_host(values, tensor.dtype, tensor.shape, {.dtype = tensor.dtype, .device = Device()});
}

std::string cannot_load(const std::filesystem::path& path) {
  return fmt::format("cannot load checkpoint '{}': ", printable(path.native()));
}

// Runs body(), which makes tensor `key` of the file. Errors are rethrown with the names of both.
template <class F>
auto naming(const std::filesystem::path& path, const std::string& key, F&& body) {
  const auto text = [&](const std::exception& error) {
    return fmt::format("{}tensor '{}': {}", cannot_load(path), printable(key), error.what());
  };
  try {
    return body();
  } catch (const OutOfMemoryError& error) {
    throw OutOfMemoryError(text(error));
  } catch (const Error& error) {
    throw CheckpointError(text(error));
  }
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

LoadReport load_model(const std::filesystem::path& path, ModuleRef model,
                      const LoadOptions& options) {
  std::optional<VerifiedFile> file(path);
  StagedLoad staged(model);
  KeyMap map = map_keys(side_of(file->contents()), side_of(staged.targets(), model), options,
                        std::string(model.type->name));
  for (auto [from, to] : map.pairs) {
    const StoredTensor& tensor = file->contents().tensors[from];
    naming(path, tensor.key, [&, to = to] { return staged.add(to, read_values(*file, tensor)); });
  }
  file.reset();  // its memory is not needed any more
  try {
    check_ties(map, staged, std::string(model.type->name));
    staged.commit();
  } catch (const OutOfMemoryError& error) {
    throw OutOfMemoryError(cannot_load(path) + error.what());
  }
  return std::move(map.report);  // a copy could fail, and the model is changed by now
}

StateDict load_tensors(const std::filesystem::path& path) {
  const VerifiedFile file(path);
  StateDict tensors;
  for (const StoredTensor& tensor : file.contents().tensors)
    tensors.set(tensor.key, naming(path, tensor.key, [&] { return read_values(file, tensor); }));
  return tensors;
}

CheckpointInfo look_into(const std::filesystem::path& path) {
  VerifiedFile file(path);
  KeySide side = side_of(file.contents());
  return {.file_bytes = file.image().size(),
          .format_version = kCheckpointFormatVersion,
          .tensors = std::move(side.tensors),
          .wrappers = std::move(side.wrappers)};
}

}  // namespace

void save(const std::filesystem::path& path, ModuleRef model) {
  to_save(path, [&] { write(path, nn::state_dict(model), wrappers_of(model)); });
}
void save(const std::filesystem::path& path, const StateDict& tensors) {
  to_save(path, [&] { write(path, tensors, std::nullopt); });
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
  KeyMap map = map_keys(side_of(tensors, std::nullopt), side_of(staged.targets(), model), options,
                        std::string(model.type->name));
  for (auto [from, to] : map.pairs) staged.add(to, tensors[from].second);
  check_ties(map, staged, std::string(model.type->name));
  staged.commit();
  return std::move(map.report);  // a copy could fail, and the model is changed by now
}

}  // namespace tenon
