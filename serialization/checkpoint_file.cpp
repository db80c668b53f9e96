#include <algorithm>
#include <numeric>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/modules/module.h>
#include <tenon/serialization/atomic_file.h>
#include <tenon/serialization/checkpoint_file.h>
#include <tenon/serialization/conversion.h>
#include <tenon/serialization/header.h>
#include <tenon/serialization/ties.h>

namespace tenon {
namespace {

using nn::ModuleRef;

void collect_wrappers(ModuleRef module, const std::string& prefix,
                      std::vector<std::string>& wrappers) {
  for (const nn::NamedModule& child : nn::named_children(module)) {
    if (module.type->wrapper) wrappers.push_back(prefix + child.name);
    collect_wrappers(child.module, prefix + child.name + ".", wrappers);
  }
}

// Writes HDF5's own bytes between the tensors, up to the position `until`.
void append_metadata(AtomicFile& file, const MemoryFile& memory, uint64_t until) {
  std::vector<std::byte> bytes(until - file.size());
  memory.read(file.size(), bytes.size(), bytes.data());
  file.append(bytes.data(), bytes.size());
}

[[noreturn]] void refuse_to_save(const std::filesystem::path& path, const std::string& why) {
  throw CheckpointError(
      fmt::format("cannot save checkpoint '{}': {}", printable(path.native()), why));
}

// Lays out the file without its values.
void lay_out(const std::filesystem::path& path, ImageContents& contents, MemoryFile& memory) {
  try {
    build_image(contents, memory);
  } catch (const CheckpointError& error) {
    refuse_to_save(path, error.what());
  }
}

std::string cannot_load_file(const std::filesystem::path& path) {
  return fmt::format("cannot load checkpoint '{}': ", printable(path.native()));
}

}  // namespace

std::vector<std::string> wrappers_of(ModuleRef model) {
  std::vector<std::string> wrappers;
  collect_wrappers(model, "", wrappers);
  return wrappers;
}

void write_checkpoint(const std::filesystem::path& path, const std::vector<FileEntry>& entries,
                      std::optional<std::vector<std::string>> wrappers) {
  ImageContents contents{{}, std::move(wrappers)};
  for (const auto& [group, key, tensor] : entries) {
    if (!tensor.defined())
      refuse_to_save(path, fmt::format("tensor '{}' is undefined", printable(key)));
    contents.tensors.push_back({key, tensor.dtype(), tensor.shape(), 0, 0, group});
  }
  write_checkpoint(path, std::move(contents), [&](size_t i) { return entries[i].tensor; });
}

void write_checkpoint(const std::filesystem::path& path, ImageContents contents,
                      const std::function<Tensor(size_t)>& read) {
  MemoryFile memory;
  lay_out(path, contents, memory);
  std::vector<size_t> order(contents.tensors.size());  // by place in the file
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return contents.tensors[a].offset < contents.tensors[b].offset;
  });
  AtomicFile file(path);
  for (size_t i : order) {
    if (contents.tensors[i].bytes == 0) continue;
    append_metadata(file, memory, contents.tensors[i].offset);
    append_values(file, read(i), contents.tensors[i].bytes);
  }
  append_metadata(file, memory, memory.size());
  const Checksum body = file.body_checksum();
  file.commit(encode_header({.file_bytes = file.size(), .body = body}));
}

KeySide side_of_model(const std::vector<nn::StateEntry>& entries, ModuleRef model) {
  KeySide side{{}, wrappers_of(model)};
  for (const nn::StateEntry& entry : entries)
    side.tensors.push_back({entry.name, entry.tensor.shape(), entry.tensor.dtype()});
  return side;
}

KeySide side_of(const std::vector<StoredTensor>& tensors,
                std::optional<std::vector<std::string>> wrappers) {
  KeySide side{{}, std::move(wrappers)};
  for (const StoredTensor& tensor : tensors)
    side.tensors.push_back({tensor.key, tensor.shape, tensor.dtype});
  return side;
}

Tensor read_values(const VerifiedFile& file, const StoredTensor& tensor) {
  const std::byte* values = file.image().data() + tensor.offset;
  require_valid(values, tensor.bytes, tensor.dtype);
  return from_host(values, tensor.dtype, tensor.shape, {.dtype = tensor.dtype, .device = Device()});
}

Tensor read_stored(const std::filesystem::path& path, const VerifiedFile& file,
                   const StoredTensor& tensor) {
  return naming_tensor(path, tensor.key, [&] { return read_values(file, tensor); });
}

PreparedModel::PreparedModel(const std::filesystem::path& path, const KeySide& source,
                             const std::function<Tensor(size_t)>& read, ModuleRef model,
                             const LoadOptions& options)
    : staged(model), name_(model.type->name) {
  const Conversion conversion(source, options);
  map = map_converted(conversion, source, side_of_model(staged.targets(), model), options, name_);
  for (auto& [from, to] : map.pairs) {
    const size_t taken = from, target = to;
    from = conversion.position(taken);
    naming_tensor(path, source.tensors[from].key,
                  [&, at = from] { return staged.add(target, conversion.apply(taken, read(at))); });
  }
}
PreparedModel::PreparedModel(const std::filesystem::path& path, const VerifiedFile& file,
                             const std::vector<StoredTensor>& tensors,
                             std::optional<std::vector<std::string>> wrappers, ModuleRef model,
                             const LoadOptions& options)
    : PreparedModel(
          path, side_of(tensors, std::move(wrappers)),
          [&](size_t i) { return read_values(file, tensors[i]); }, model, options) {}

template <class Body>
void PreparedModel::to_load(const std::filesystem::path& path, Body&& body) {
  try {
    body();
  } catch (const OutOfMemoryError& error) {
    throw OutOfMemoryError(cannot_load_file(path) + error.what());
  }
}
void PreparedModel::check(const std::filesystem::path& path) {
  to_load(path, [&] { check_ties(map, staged, name_); });
}
void PreparedModel::commit(const std::filesystem::path& path) {
  to_load(path, [&] { staged.commit(); });
}

}  // namespace tenon
