#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <tenon/core/base/printable.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/host_tensor.h>
#include <tenon/core/tensor_impl.h>
#include <tenon/serialization/pickle.h>
#include <tenon/serialization/torch_file.h>
#include <tenon/serialization/torch_section.h>

namespace tenon {
namespace {

constexpr std::string_view kPickleEnding = "/data.pkl";

// A storage, which one or more tensors have parts of.
struct TorchStorage {
  size_t member = 0;
  const KnownGlobal* type = nullptr;
  int64_t numel = 0;
  size_t tensors = 0;  // how many have not been read yet
  Tensor values;       // its elements in a row, while some have not
};
struct TorchTensor {
  size_t storage = 0;
  int64_t offset = 0;  // in elements
  Shape shape;
  Strides strides;
};
struct TorchContents {
  std::vector<ZipMember> members;
  std::vector<TorchStorage> storages;
  std::vector<TorchTensor> tensors;
};

std::string name_of_archive(const std::vector<ZipMember>& members) {
  for (const ZipMember& member : members)
    if (member.name.ends_with(kPickleEnding))
      return member.name.substr(0, member.name.size() - kPickleEnding.size());
  return "";
}

const ZipMember* find_member(const std::vector<ZipMember>& members, const std::string& name) {
  const auto at = std::find_if(members.begin(), members.end(),
                               [&](const ZipMember& member) { return member.name == name; });
  return at == members.end() ? nullptr : &*at;
}

std::vector<char> read_whole(const InputFile& file, const ZipMember& member, uint64_t most) {
  if (member.bytes > most)
    throw CheckpointError(fmt::format("its member '{}' has {} bytes, and at most {} are read",
                                      excerpt(member.name), member.bytes, most));
  std::vector<char> bytes(member.bytes);
  ZipMemberReader reader(file, member);
  reader.read(bytes.data(), bytes.size());
  reader.finish(true);
  return bytes;
}

void require_little_endian(const InputFile& file, const std::vector<ZipMember>& members,
                           const std::string& archive) {
  const ZipMember* member = find_member(members, archive + "/byteorder");
  if (!member) return;  // PyTorch before 2.1
  const std::vector<char> order = read_whole(file, *member, 64);
  if (std::string_view(order.data(), order.size()) != "little")
    throw CheckpointError(fmt::format(
        "its byte order is '{}', and Tenon reads little-endian files. Save it again on a "
        "machine of that order",
        excerpt({order.data(), order.size()})));
}

// ---- tensors ----

[[noreturn]] void bad_tensor(const std::string& why) { throw CheckpointError(why); }

// Reads what describes one tensor, and checks that it lies in its storage.
class TensorRecords {
 public:
  TensorRecords(const Pickle& pickle, const std::string& archive, TorchContents& contents)
      : pickle_(pickle), contents_(contents), prefix_(archive + "/data/") {
    for (size_t i = 0; i < contents.members.size(); ++i)
      members_.emplace(contents.members[i].name, i);
  }

  FileTensor add(const std::string& key, const PickleValue& value) {
    const std::vector<uint32_t>& arguments =
        pickle_.values[static_cast<size_t>(value.integer)].items;
    const bool with_dtype = value.kind == PickleKind::tensor_v3;
    if (arguments.size() < (with_dtype ? 7u : 6u)) bad_tensor("its description is incomplete");
    const KnownGlobal* dtype = with_dtype ? global(arguments[6], PickleGlobal::dtype) : nullptr;
    TorchTensor tensor;
    tensor.storage = storage_of(arguments[0], dtype);
    tensor.offset = integer(arguments[1]);
    tensor.shape = numbers(arguments[2]);
    tensor.strides = numbers(arguments[3]);
    TorchStorage& storage = contents_.storages[tensor.storage];
    require_inside(tensor, storage.numel);
    ++storage.tensors;
    FileTensor described{key, tensor.shape, storage.type->dtype.value_or(DType::f32), ""};
    if (!storage.type->dtype)
      described.fault =
          fmt::format("its dtype {} is none of Tenon's; convert it, as with tensor.to(torch.int32)",
                      storage.type->dtype_name);
    if (arguments.size() > (with_dtype ? 7u : 6u))
      refuse_metadata(arguments[with_dtype ? 7 : 6], described);
    contents_.tensors.push_back(tensor);
    return described;
  }

 private:
  const PickleValue& value(uint32_t position, PickleKind kind) const {
    const PickleValue& found = pickle_.values[position];
    if (found.kind != kind)
      bad_tensor(
          fmt::format("its description has {} where it must not", describe(pickle_, position)));
    return found;
  }
  int64_t integer(uint32_t position) const { return value(position, PickleKind::integer).integer; }
  const KnownGlobal* global(uint32_t position, PickleGlobal kind) const {
    const KnownGlobal* found = value(position, PickleKind::global).global;
    if (found->kind != kind)
      bad_tensor(
          fmt::format("its description has {} where it must not", describe(pickle_, position)));
    return found;
  }
  Shape numbers(uint32_t position) const {
    const std::vector<uint32_t>& items = value(position, PickleKind::tuple).items;
    if (items.size() > Shape::max_rank)
      bad_tensor(fmt::format("it has {} dimensions, and a tensor has at most {}", items.size(),
                             +Shape::max_rank));
    Shape result;
    for (uint32_t item : items) result.push_back(integer(item));
    return result;
  }

  // A tensor may be a view whose values are those of the storage with another sign. Many tensors
  // may have one description, which is looked at once.
  void refuse_metadata(uint32_t position, FileTensor& described) {
    const auto [at, fresh] = negations_.emplace(position, nullptr);
    for (const char* name : {"neg", "conj"}) {
      if (!fresh || at->second) break;
      const auto entry = find_entry(pickle_, position, name);
      if (entry && pickle_.values[*entry].integer != 0) at->second = name;
    }
    if (at->second && described.fault.empty())
      described.fault = fmt::format(
          "it is a view that negates its values when they are read; store tensor.resolve_{}()",
          at->second);
  }

  // Returns the storage that a persistent id describes: ("storage", type, key, place, numel).
  size_t storage_of(uint32_t position, const KnownGlobal* dtype) {
    const PickleValue& id =
        pickle_.values[static_cast<size_t>(value(position, PickleKind::storage).integer)];
    if (id.items.size() != 5 || value(id.items[0], PickleKind::text).text != "storage")
      bad_tensor("the description of its storage is none");
    const KnownGlobal* type = dtype ? dtype : global(id.items[1], PickleGlobal::storage);
    const std::string_view key = value(id.items[2], PickleKind::text).text;
    const auto member = members_.find(prefix_ + std::string(key));
    if (member == members_.end())
      bad_tensor(fmt::format("its storage '{}' is not in the archive", excerpt(key)));
    const int64_t bytes_or_numel = integer(id.items[4]);
    const uint64_t bytes = contents_.members[member->second].bytes;
    const auto width = static_cast<int64_t>(type->element_bytes);
    const int64_t numel = dtype ? bytes_or_numel / width : bytes_or_numel;
    if (numel < 0 || bytes % type->element_bytes != 0 ||
        static_cast<uint64_t>(numel) != bytes / type->element_bytes)
      bad_tensor(fmt::format("its storage has {} bytes, which do not fit {} elements of {}", bytes,
                             numel, type->dtype_name));
    const auto [at, fresh] = storages_.emplace(member->second, contents_.storages.size());
    if (fresh) contents_.storages.push_back({member->second, type, numel, 0, {}});
    if (contents_.storages[at->second].type->dtype_name != type->dtype_name)
      bad_tensor("another tensor has its storage as another dtype");
    return at->second;
  }

  static void require_inside(const TorchTensor& tensor, int64_t numel) {
    if (tensor.shape.size() != tensor.strides.size() || !is_addressable(tensor.shape))
      bad_tensor(fmt::format("its shape {} and strides {} do not fit each other", tensor.shape,
                             tensor.strides));
    int64_t last = tensor.offset;
    bool inside = tensor.offset >= 0, empty = false;
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      int64_t step = 0;
      empty = empty || tensor.shape[i] == 0;
      inside = inside && tensor.strides[i] >= 0 &&
               !__builtin_mul_overflow(std::max<int64_t>(tensor.shape[i] - 1, 0), tensor.strides[i],
                                       &step) &&
               !__builtin_add_overflow(last, step, &last);
    }
    if (!inside || (!empty && last >= numel))
      bad_tensor(
          fmt::format("its elements, shape {} with strides {} from {} on, are not inside its "
                      "storage of {}",
                      tensor.shape, tensor.strides, tensor.offset, numel));
  }

  const Pickle& pickle_;
  TorchContents& contents_;
  std::string prefix_;
  std::unordered_map<std::string, size_t> members_;
  std::unordered_map<size_t, size_t> storages_;          // by member
  std::unordered_map<uint32_t, const char*> negations_;  // of dictionaries: "neg", or null
};

void add_tensors(const Pickle& pickle, uint32_t states, const std::string& archive,
                 TorchContents& contents, std::vector<FileTensor>& tensors) {
  TensorRecords records(pickle, archive, contents);
  const std::vector<uint32_t>& items = pickle.values[states].items;
  std::unordered_map<std::string_view, size_t> seen;
  for (size_t i = 0; i < items.size(); i += 2) {
    const std::string key(pickle.values[items[i]].text);
    try {
      if (!seen.emplace(pickle.values[items[i]].text, i).second)
        bad_tensor("there are two tensors of that name");
      tensors.push_back(records.add(key, pickle.values[items[i + 1]]));
    } catch (const CheckpointError& error) {
      throw CheckpointError(fmt::format("tensor '{}': {}", excerpt(key), error.what()));
    }
  }
}

// Elements of a storage, one after the other.
struct Elements {
  int64_t first, count;
};

Elements elements_of(const TorchTensor& tensor) {
  int64_t last = tensor.offset;
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    last += (tensor.shape[i] - 1) * tensor.strides[i];
  return {tensor.offset, last - tensor.offset + 1};
}

void skip(ZipMemberReader& reader, uint64_t bytes) {
  std::array<std::byte, 1 << 14> ignored;
  for (uint64_t count = 0; bytes > 0; bytes -= count) {
    count = std::min<uint64_t>(bytes, ignored.size());
    reader.read(ignored.data(), count);
  }
}

// All of the storage is unpacked, because its checksum is that of the whole.
Tensor read_storage(const InputFile& file, const TorchContents& contents,
                    const TorchStorage& storage, Elements wanted) {
  const ZipMember& member = contents.members[storage.member];
  const uint64_t width = storage.type->element_bytes,
                 before = static_cast<uint64_t>(wanted.first) * width,
                 bytes = static_cast<uint64_t>(wanted.count) * width;
  HostTensor made = make_host_tensor({wanted.count}, *storage.type->dtype);
  ZipMemberReader reader(file, member);
  skip(reader, before);
  reader.read(made.values, bytes);
  skip(reader, member.bytes - before - bytes);
  reader.finish(true);
  require_valid(made.values, bytes, *storage.type->dtype);
  return made.tensor;
}

// Returns a view of a storage, which is kept until the last tensor that has a part of it is read.
// Where no other tensor needs the storage, no more of it is kept than this one has.
Tensor read_torch_tensor(const InputFile& file, TorchContents& contents, size_t i) {
  const TorchTensor& tensor = contents.tensors[i];
  TorchStorage& storage = contents.storages[tensor.storage];
  const DType dtype = *storage.type->dtype;
  if (tensor.shape.numel() == 0) return make_host_tensor(tensor.shape, dtype).tensor;
  const bool is_shared = storage.tensors > 1 || storage.values.defined();
  const Elements wanted = is_shared ? Elements{0, storage.numel} : elements_of(tensor);
  Tensor values = storage.values;
  if (!values.defined()) values = read_storage(file, contents, storage, wanted);
  if (storage.tensors > 0) --storage.tensors;
  storage.values = storage.tensors > 0 ? values : Tensor();
  return Tensor(Ref<TensorImpl>::adopt(new TensorImpl(dtype, Device(), tensor.shape, tensor.strides,
                                                      tensor.offset - wanted.first,
                                                      impl_of(values).storage)));
}

}  // namespace

bool is_torch_archive(const std::vector<ZipMember>& members) {
  return std::any_of(members.begin(), members.end(),
                     [](const ZipMember& member) { return member.name.ends_with(kPickleEnding); });
}

TensorFile open_torch(std::shared_ptr<const InputFile> file, std::vector<ZipMember> members,
                      const std::string& section, Reads reads) {
  TensorFile opened{FileFormat::torch, file->size(), {}, {}, {}, {}, {}};
  auto contents = std::make_shared<TorchContents>();
  contents->members = std::move(members);
  const std::string archive = name_of_archive(contents->members);
  if (find_member(contents->members, archive + "/constants.pkl"))
    throw CheckpointError(
        "it is a TorchScript program. Save its state dict: torch.save(module.state_dict(), path)");
  require_little_endian(*file, contents->members, archive);
  const ZipMember& pickled = *find_member(contents->members, archive + std::string(kPickleEnding));
  const Pickle pickle = read_pickle(read_whole(*file, pickled, kMaxPickleBytes));
  const uint32_t states = find_state_dict(pickle, section);
  add_tensors(pickle, states, archive, *contents, opened.tensors);
  if (reads == Reads::any)  // then a storage is never kept
    for (TorchStorage& storage : contents->storages) storage.tensors = 0;
  opened.read = [file = std::move(file), contents](size_t i) {
    return read_torch_tensor(*file, *contents, i);
  };
  return opened;
}

}  // namespace tenon
