#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <tenon/core/base/printable.h>
#include <tenon/core/dispatch/transfer.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/host_tensor.h>
#include <tenon/serialization/program/program_file.h>
#include <tenon/serialization/program/program_text.h>
#include <tenon/serialization/tensor_file.h>
#include <tenon/serialization/write_checkpoint.h>

namespace tenon {

namespace {
constexpr const char* kGraphKey = "graph";
}

Tensor memory_of(const graph::SavedTensor& t) {
  const auto offset = static_cast<int64_t>(t.offset / size_of(t.dtype));
  return Tensor(Ref<TensorImpl>::adopt(new TensorImpl(
      t.dtype, t.memory->context->device, t.shape, Shape::row_major(t.shape), offset, t.memory)));
}

void write_program(const std::filesystem::path& path, const graph::SavedProgram& program) {
  const std::string text = program_to_json(program);
  const HostTensor graph = make_host_tensor({static_cast<int64_t>(text.size())}, DType::u8);
  std::copy(text.begin(), text.end(), static_cast<char*>(graph.values));
  ImageContents contents{{}, std::nullopt};
  for (auto& t : program.tensors) contents.tensors.push_back({t.name, t.dtype, t.shape});
  contents.tensors.push_back({kGraphKey, DType::u8, graph.tensor.shape(), 0, 0, kProgramGroup});
  write_checkpoint(path, std::move(contents),
                   [&](size_t i) {
                     return i < program.tensors.size() ? memory_of(program.tensors[i])
                                                       : graph.tensor;
                   },
                   {});
}

graph::SavedProgram read_program(const VerifiedFile& file) {
  const auto& groups = file.contents().groups;
  if (std::find(groups.begin(), groups.end(), kProgramGroup) == groups.end())
    throw CheckpointError(
        "it is a checkpoint without a program; load its tensors: tenon::load(path, model)");
  for (const StoredTensor& stored : file.group(kProgramGroup)) {
    if (stored.key != kGraphKey || stored.dtype != DType::u8) continue;
    std::string text(stored.bytes, '\0');  // no longer than the file
    file.read(stored, text.data());
    return program_from_json(text);
  }
  throw CheckpointError("its program is damaged: it has no graph");
}

void match_tensors(const VerifiedFile& file, graph::SavedProgram& program) {
  std::unordered_map<std::string, const StoredTensor*> stored;
  for (const StoredTensor& t : file.contents().tensors) stored[t.key] = &t;
  if (stored.size() != program.tensors.size())
    throw CheckpointError(fmt::format("its program has {} tensors, and the file {}",
                                      program.tensors.size(), stored.size()));
  for (auto& t : program.tensors) {
    const auto found = stored.find(t.name);
    if (found == stored.end())
      throw CheckpointError(
          fmt::format("its program is damaged: there is no tensor '{}'", excerpt(t.name)));
    t.dtype = found->second->dtype, t.shape = found->second->shape;
  }
  for (size_t v = 0; v < program.values.size(); ++v) {
    const graph::SavedValue& value = program.values[v];
    if (value.kind != graph::SavedKind::tensor) continue;
    if (value.index >= program.tensors.size())
      throw CheckpointError("its program is damaged: a value is of no tensor");
    graph::SavedTensor& t = program.tensors[value.index];
    t.value = static_cast<uint32_t>(v);
    if (value.bytes != static_cast<uint64_t>(t.shape.numel()) * size_of(t.dtype))
      throw CheckpointError(fmt::format(
          "its program is damaged: tensor '{}' has another size than its value", excerpt(t.name)));
  }
}

void read_tensors(const VerifiedFile& file, graph::SavedProgram& program, Device device) {
  std::unordered_map<std::string, const StoredTensor*> stored;
  for (const StoredTensor& t : file.contents().tensors) stored[t.key] = &t;
  std::vector<HostTensor> made;
  std::vector<VerifiedFile::Wanted> wanted;
  for (auto& t : program.tensors) {
    made.push_back(make_host_tensor(t.shape, t.dtype));
    wanted.push_back({stored.at(t.name), made.back().values});
  }
  file.read(wanted);
  for (size_t i = 0; i < made.size(); ++i) {
    graph::SavedTensor& t = program.tensors[i];
    require_valid(made[i].values, wanted[i].tensor->bytes, t.dtype);
    const Tensor there = device == Device()
                             ? made[i].tensor
                             : tensor_from_host(made[i].values, t.dtype, t.shape, device);
    t.memory = impl_of(there).storage;
    t.offset = 0;
    made[i] = {};
  }
}

}  // namespace tenon
