#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <unordered_map>
#include <utility>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/factories.h>
#include <tenon/core/format.h>
#include <tenon/core/host_tensor.h>
#include <tenon/modules/module.h>
#include <tenon/serialization/atomic_file.h>
#include <tenon/serialization/checkpoint_file.h>
#include <tenon/serialization/checkpoint_index.h>
#include <tenon/serialization/conversion.h>
#include <tenon/serialization/header.h>
#include <tenon/serialization/shards.h>
#include <tenon/serialization/ties.h>
#include <tenon/serialization/value_text.h>

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

// Errors of names begin in PyTorch's words.
std::string with_file(const std::string& what, const std::filesystem::path& path) {
  return fmt::format("{}\n\tThe checkpoint is '{}'.", what, printable(path.native()));
}

}  // namespace

std::vector<std::string> wrappers_of(ModuleRef model) {
  std::vector<std::string> wrappers;
  collect_wrappers(model, "", wrappers);
  return wrappers;
}

void write_checkpoint(const std::filesystem::path& path, const std::vector<FileEntry>& entries,
                      std::optional<std::vector<std::string>> wrappers,
                      const SaveOptions& options) {
  ImageContents contents{{}, std::move(wrappers)};
  for (const auto& [group, key, tensor] : entries) {
    if (!tensor.defined())
      refuse_to_save(path, fmt::format("tensor '{}' is undefined", printable(key)));
    contents.tensors.push_back({key, tensor.dtype(), tensor.shape(), 0, 0, group});
  }
  write_checkpoint(
      path, std::move(contents), [&](size_t i) { return entries[i].tensor; }, options);
}

namespace {

// Writes a file, and does not put it in its place yet. Returns its header.
auto write_contents(AtomicFile& file, ImageContents& contents, const MemoryFile& memory,
                    const std::function<Tensor(size_t)>& read) {
  std::vector<size_t> order(contents.tensors.size());  // by place in the file
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return contents.tensors[a].offset < contents.tensors[b].offset;
  });
  for (size_t i : order) {
    if (contents.tensors[i].bytes == 0) continue;
    append_metadata(file, memory, contents.tensors[i].offset);
    append_values(file, read(i), contents.tensors[i].bytes);
  }
  append_metadata(file, memory, memory.size());
  const std::string index = encode_index(contents);
  CheckpointHeader header;
  header.index_at = file.size();
  header.index_bytes = index.size();
  file.append(index.data(), index.size());
  const std::vector<Checksum> pieces = file.end_pieces();
  const size_t pieces_bytes = pieces.size() * sizeof(Checksum);
  header.pieces_at = file.size();
  header.pieces = checksum_of(pieces.data(), pieces_bytes);
  file.append(pieces.data(), pieces_bytes);
  header.body = file.body_checksum();
  header.file_bytes = file.size();
  return encode_header(header);
}

// Removes the shards that earlier saves to the same path have made, and killed ones. A save does
// not fail because of this.
void remove_old_shards(const std::filesystem::path& target) noexcept {
  try {
    const std::string own = target.filename().native();
    remove_unused_shards(target.has_parent_path() ? target.parent_path() : ".",
                         [&](const std::string& index) { return index == own; });
  } catch (const std::bad_alloc&) {
  }
}

void write_file(const std::filesystem::path& path, ImageContents& contents,
                const std::function<Tensor(size_t)>& read) {
  MemoryFile memory;
  lay_out(path, contents, memory);
  AtomicFile file(path);
  file.commit(write_contents(file, contents, memory, read));
  remove_old_shards(file.target());
}

// The files of a save that has not ended: they go with this object.
struct NewShards {
  ~NewShards() {
    std::error_code ignored;
    for (const std::filesystem::path& path : paths) std::filesystem::remove(path, ignored);
  }
  std::vector<std::filesystem::path> paths;
};

// The shards come first, one after the other, and at last the index that makes them the checkpoint.
void write_shards(const std::filesystem::path& path, const ImageContents& contents,
                  const std::function<Tensor(size_t)>& read, const std::vector<size_t>& ends) {
  // Otherwise those of saves that are killed again and again would fill the disk.
  remove_old_shards(follow_links(path));
  AtomicFile index(path);  // as long as it is there, nobody takes the shards for left over
  const uint64_t save = number_of_save();
  NewShards made;
  std::vector<Shard> shards;
  for (size_t i = 0; i < ends.size(); ++i) {
    const size_t begin = i ? ends[i - 1] : 0;
    const std::filesystem::path& target = index.target();
    const std::string name = name_of_shard(target.filename().native(), save, i, ends.size());
    const std::filesystem::path shard_path = target.parent_path() / name;
    ImageContents part{{contents.tensors.begin() + static_cast<std::ptrdiff_t>(begin),
                        contents.tensors.begin() + static_cast<std::ptrdiff_t>(ends[i])},
                       contents.wrappers};
    MemoryFile memory;
    lay_out(path, part, memory);
    made.paths.push_back(shard_path);
    try {
      AtomicFile file(shard_path, &index);
      const auto header =
          write_contents(file, part, memory, [&](size_t at) { return read(begin + at); });
      shards.push_back({name, file.size(), checksum_of_header(header)});
      file.commit(header);
    } catch (const CheckpointError& error) {
      refuse_to_save(path, error.what());
    }
  }
  const std::string text = values_to_json(values_of_shards(shards));
  const Tensor listed = from_host(text.data(), u8, {static_cast<int64_t>(text.size())},
                                  {.dtype = u8, .device = Device()});
  ImageContents list{{{kValuesKey, u8, listed.shape(), 0, 0, kShardsGroup}}, contents.wrappers};
  MemoryFile memory;
  lay_out(path, list, memory);
  const auto header = write_contents(index, list, memory, [&](size_t) { return listed; });
  try {
    index.commit(header);
  } catch (...) {
    if (index.committed()) made.paths.clear();
    throw;
  }
  made.paths.clear();
  remove_old_shards(index.target());
}

}  // namespace

void write_checkpoint(const std::filesystem::path& path, ImageContents contents,
                      const std::function<Tensor(size_t)>& read, const SaveOptions& options) {
  std::vector<size_t> ends;
  try {
    ends = divide(contents.tensors, options.max_shard_size);
  } catch (const CheckpointError& error) {
    refuse_to_save(path, error.what());
  }
  if (ends.size() > 1)
    write_shards(path, contents, read, ends);
  else
    write_file(path, contents, read);
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
  const HostTensor made = make_host_tensor(tensor.shape, tensor.dtype);
  file.read(tensor, made.values);
  require_valid(made.values, tensor.bytes, tensor.dtype);
  return made.tensor;
}

Tensor read_stored(const std::filesystem::path& path, const VerifiedFile& file,
                   const StoredTensor& tensor) {
  return naming_tensor(path, tensor.key, [&] { return read_values(file, tensor); });
}

// Reads tensors of a file in the order in which they will be asked for, many at a time. The threads
// that read them begin and end once for all of these, and nobody waits for the last part of each.
class PreparedModel::ReadAhead {
 public:
  ReadAhead(const VerifiedFile& file, std::vector<StoredTensor> tensors)
      : file_(file), tensors_(std::move(tensors)) {}
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  void expect(std::vector<size_t> order) { order_ = std::move(order); }

  Tensor take(size_t i) {
    if (ready_.empty() && next_ < order_.size() && order_[next_] == i) read_next();
    if (ready_.empty() || ready_.front().first != i) return read_values(file_, tensors_[i]);
    const HostTensor made = std::move(ready_.front().second);
    ready_.pop_front();
    require_valid(made.values, tensors_[i].bytes, tensors_[i].dtype);
    return made.tensor;
  }

 private:
  // What a load needs in the memory of the host beside what it puts on other devices.
  static constexpr uint64_t kBytes = uint64_t{64} << 20;

  void read_next() {
    std::vector<VerifiedFile::Wanted> wanted;
    for (uint64_t bytes = 0; next_ < order_.size() && bytes < kBytes; ++next_) {
      const StoredTensor& tensor = tensors_[order_[next_]];
      bytes += tensor.bytes;
      if (bytes > kBytes && !ready_.empty()) break;
      try {
        ready_.emplace_back(order_[next_], make_host_tensor(tensor.shape, tensor.dtype));
      } catch (const OutOfMemoryError&) {
        if (ready_.empty()) throw;
        break;  // there may be room for it when those before it have been copied to a device
      }
      wanted.push_back({&tensor, ready_.back().second.values});
    }
    file_.read(wanted);
  }

  const VerifiedFile& file_;
  const std::vector<StoredTensor> tensors_;
  std::vector<size_t> order_;
  size_t next_ = 0;  // of the order
  std::deque<std::pair<size_t, HostTensor>> ready_;
};

PreparedModel::PreparedModel(const std::filesystem::path& path, const KeySide& source,
                             const std::function<Tensor(size_t)>& read, const Expect& expect,
                             ModuleRef model, const LoadOptions& options)
    : staged(model, !options.low_memory), name_(model.type->name) {
  const auto conversion = std::make_shared<const Conversion>(source, options);
  to_load(path, [&] {
    map =
        map_converted(*conversion, source, side_of_model(staged.targets(), model), options, name_);
  });
  const auto make = [conversion, read](size_t taken) {
    return conversion->apply(taken, read(conversion->position(taken)));
  };
  if (expect && !options.low_memory) {
    std::vector<size_t> order;
    for (const auto& [taken, target] : map.pairs) order.push_back(conversion->position(taken));
    expect(std::move(order));
  }
  std::unordered_map<size_t, std::pair<size_t, std::string>> sources;  // of each target
  for (auto& [from, to] : map.pairs) {
    const size_t taken = from, target = to;
    from = conversion->position(taken);
    const std::string& key = source.tensors[from].key;
    naming_tensor(path, key, [&] { staged.add(target, make(taken)); });
    if (options.low_memory) sources[target] = {taken, key};
  }
  if (options.low_memory)
    again_ = [path, make, sources = std::move(sources)](size_t target) {
      const auto& [taken, key] = sources.at(target);
      return naming_tensor(path, key, [&, taken = taken] { return make(taken); });
    };
}
PreparedModel::PreparedModel(const std::filesystem::path& path, const KeySide& source,
                             const std::function<Tensor(size_t)>& read, ModuleRef model,
                             const LoadOptions& options)
    : PreparedModel(path, source, read, {}, model, options) {}
PreparedModel::PreparedModel(const std::filesystem::path& path,
                             const std::shared_ptr<ReadAhead>& ahead,
                             std::optional<std::vector<std::string>> wrappers, ModuleRef model,
                             const LoadOptions& options)
    : PreparedModel(
          path, side_of(ahead->tensors(), std::move(wrappers)),
          [ahead](size_t i) { return ahead->take(i); },
          [ahead](std::vector<size_t> order) { ahead->expect(std::move(order)); }, model, options) {
}
PreparedModel::PreparedModel(const std::filesystem::path& path, const VerifiedFile& file,
                             const std::vector<StoredTensor>& tensors,
                             std::optional<std::vector<std::string>> wrappers, ModuleRef model,
                             const LoadOptions& options)
    : PreparedModel(path, std::make_shared<ReadAhead>(file, tensors), std::move(wrappers), model,
                    options) {}

template <class Body>
void PreparedModel::to_load(const std::filesystem::path& path, Body&& body) {
  try {
    body();
  } catch (const OutOfMemoryError& error) {
    throw OutOfMemoryError(cannot_load_file(path) + error.what());
  } catch (const StateDictError& error) {
    throw StateDictError(with_file(error.what(), path));
  }
}
void PreparedModel::check(const std::filesystem::path& path) {
  to_load(path, [&] { check_ties(map, staged, name_); });
}
void PreparedModel::commit(const std::filesystem::path& path) {
  if (!again_) return to_load(path, [&] { staged.commit(); });
  const auto fail = [](const std::string& why) {
    throw CheckpointError(
        why + ". With .low_memory, part of the model may have been changed by now: load it again");
  };
  try {
    staged.commit(again_);
  } catch (const CheckpointError& error) {
    fail(error.what());
  } catch (const std::exception& error) {
    fail(cannot_load_file(path) + error.what());
  }
}

}  // namespace tenon
