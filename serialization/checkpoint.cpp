#include <tenon/serialization/checkpoint.h>

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/error.h>
#include <tenon/core/tensor_impl.h>
#include <tenon/modules/module.h>
#include <tenon/serialization/atomic_file.h>
#include <tenon/serialization/header.h>
#include <tenon/serialization/image.h>
#include <tenon/serialization/verified_file.h>

namespace tenon {
namespace {

using nn::ModuleRef;
using nn::StateDict;

void collect_wrappers(ModuleRef module, const std::string& prefix, std::vector<std::string>& wrappers) {
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
  for (const auto& [key, tensor] : tensors) side.tensors.push_back({key, tensor.shape(), tensor.dtype()});
  return side;
}

// Writes a tensor's elements, from where they lie if that is a contiguous piece of the host's memory.
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

// HDF5's own bytes between the tensors.
void append_metadata(AtomicFile& file, const MemoryFile& memory, uint64_t until) {
  std::vector<std::byte> bytes(until - file.size());
  memory.read(file.size(), bytes.size(), bytes.data());
  file.append(bytes.data(), bytes.size());
}

void save(const std::filesystem::path& path, const StateDict& tensors, std::optional<std::vector<std::string>> wrappers) {
  ImageContents contents{{}, std::move(wrappers)};
  for (const auto& [key, tensor] : tensors) {
    if (!tensor.defined())
      throw CheckpointError("cannot save checkpoint '" + path.string() + "': tensor '" + key + "' is undefined");
    contents.tensors.push_back({key, tensor.dtype(), tensor.shape(), 0, 0});
  }
  MemoryFile memory;
  build_image(contents, memory);

  std::vector<size_t> order(tensors.size());  // by place in the file
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return contents.tensors[a].offset < contents.tensors[b].offset; });
  AtomicFile file(path);
  for (size_t i : order) {
    if (contents.tensors[i].bytes == 0) continue;
    append_metadata(file, memory, contents.tensors[i].offset);
    append_values(file, tensors[i].second, contents.tensors[i].bytes);
  }
  append_metadata(file, memory, memory.size());
  file.commit(encode_header({.file_bytes = file.size(), .body = file.body_checksum()}));
}

// Copies the paired values into the model. All that can fail on account of the input has been looked at before.
void assign(const KeyMap& map, const std::vector<Tensor>& sources, const std::vector<nn::StateEntry>& targets) {
  NoGrad guard;
  for (auto [from, to] : map.pairs) {
    Tensor target = targets[to].tensor;
    if (!target.is_same(sources[from])) target.copy_(sources[from]);
  }
  for (auto [from, to] : map.pairs) targets[to].tensor.wait();
}

KeySide side_of(const std::vector<nn::StateEntry>& entries, ModuleRef model) {
  KeySide side{{}, wrappers_of(model)};
  for (const nn::StateEntry& entry : entries) side.tensors.push_back({entry.name, entry.tensor.shape(), entry.tensor.dtype()});
  return side;
}

KeySide side_of(const ImageContents& contents) {
  KeySide side{{}, contents.wrappers};
  for (const StoredTensor& tensor : contents.tensors) side.tensors.push_back({tensor.key, tensor.shape, tensor.dtype});
  return side;
}

Tensor read_values(const VerifiedFile& file, const StoredTensor& tensor) {
  const std::byte* values = file.image().data() + tensor.offset;
  if (tensor.dtype == DType::boolean && !std::all_of(values, values + tensor.bytes, [](std::byte b) { return b <= std::byte{1}; }))
    throw CheckpointError("tensor '" + tensor.key + "' of type bool holds bytes other than 0 and 1");
  return from_host(values, tensor.dtype, tensor.shape, {.dtype = tensor.dtype, .device = Device()});
}

// A value that is about to be overwritten as another tensor of the model is kept in a copy.
Tensor keep_source(const Tensor& source, const Tensor& own_target, const std::unordered_set<const Storage*>& written) {
  const Storage* storage = impl_of(source).storage.get();
  return storage != impl_of(own_target).storage.get() && written.contains(storage) ? source.clone() : source;
}

}  // namespace

void save(const std::filesystem::path& path, ModuleRef model) { save(path, nn::state_dict(model), wrappers_of(model)); }
void save(const std::filesystem::path& path, const StateDict& tensors) { save(path, tensors, std::nullopt); }

LoadReport load(const std::filesystem::path& path, ModuleRef model, const LoadOptions& options) {
  VerifiedFile file(path);
  const std::vector<nn::StateEntry> targets = nn::state_entries(model);
  KeyMap map = map_keys(side_of(file.contents()), side_of(targets, model), options, std::string(model.type->name));
  std::vector<Tensor> sources(file.contents().tensors.size());
  // All of them before the first is assigned, so that running out of memory leaves the model alone.
  for (auto [from, to] : map.pairs) sources[from] = read_values(file, file.contents().tensors[from]);
  assign(map, sources, targets);
  return map.report;
}

StateDict load(const std::filesystem::path& path) {
  VerifiedFile file(path);
  StateDict tensors;
  for (const StoredTensor& tensor : file.contents().tensors) tensors.set(tensor.key, read_values(file, tensor));
  return tensors;
}

LoadReport load_state_dict(ModuleRef model, const StateDict& tensors, const LoadOptions& options) {
  for (const auto& [key, tensor] : tensors)
    if (!tensor.defined()) throw StateDictError("load_state_dict: tensor '" + key + "' is undefined");
  const std::vector<nn::StateEntry> targets = nn::state_entries(model);
  KeyMap map = map_keys(side_of(tensors, std::nullopt), side_of(targets, model), options, std::string(model.type->name));
  std::unordered_set<const Storage*> written;
  for (auto [from, to] : map.pairs) written.insert(impl_of(targets[to].tensor).storage.get());
  std::vector<Tensor> sources(tensors.size());
  for (auto [from, to] : map.pairs) sources[from] = keep_source(tensors[from].second.detach(), targets[to].tensor, written).wait();
  assign(map, sources, targets);
  return map.report;
}

CheckpointInfo inspect(const std::filesystem::path& path) {
  VerifiedFile file(path);
  KeySide side = side_of(file.contents());
  return {.file_bytes = file.image().size(),
          .format_version = checkpoint_format_version,
          .tensors = std::move(side.tensors),
          .wrappers = std::move(side.wrappers)};
}

}  // namespace tenon
