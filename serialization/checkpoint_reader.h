// A file of tensors that is open, of which single tensors are read:
//
//   const tenon::CheckpointReader file = tenon::open("model.h5");
//   for (const tenon::NamedShape& tensor : file.tensors())
//     std::cout << tensor.key << ' ' << tensor.dtype << ' ' << tensor.shape << '\n';
//   tenon::Tensor embedding = file.read("embedding.weight");
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/core/tensor.h>
#include <tenon/serialization/key_map.h>
#include <tenon/serialization/load_report.h>

namespace tenon {

// Reads single tensors of an open file. Belongs to one thread at a time. The file, and 128 shards
// of an index, stay open; that another save replaces them meanwhile does no harm. Of more shards,
// the others are opened when they are read.
class TENON_API CheckpointReader {
 public:
  CheckpointReader(CheckpointReader&&) noexcept;
  CheckpointReader& operator=(CheckpointReader&&) noexcept;
  ~CheckpointReader();

  // Returns the format of the file.
  FileFormat format() const;
  // Returns all tensors of the model that can be read, in the order of the file.
  const std::vector<NamedShape>& tensors() const;
  // Returns the paths of wrapped models, such as "module"; nullopt if the writer did not record
  // them.
  const std::optional<std::vector<std::string>>& wrappers() const;
  // Returns whether there is a tensor of this name that can be read.
  bool contains(std::string_view key) const;
  // Returns shape and dtype of a tensor. Throws a StateDictError if there is none of this name, or
  // if it cannot be read.
  const NamedShape& at(std::string_view key) const;
  // Reads a tensor, onto cpu:0 and into memory of its own. Needs memory for it alone, and reads
  // only the part of the file that it has to, which is compared with its checksums, where the
  // format has them. Throws as at() does, and a CheckpointError that names file and tensor if it is
  // damaged or there is too little memory.
  Tensor read(std::string_view key) const;

 private:
  friend TENON_API CheckpointReader open(const std::filesystem::path&, const std::string&, bool);
  struct Opened;
  explicit CheckpointReader(std::unique_ptr<Opened> opened);
  size_t position(std::string_view key) const;
  std::unique_ptr<Opened> opened_;
};

// Opens a file of any format that load reads, which its contents tell. Everything but the values is
// checked at once. `section` and `verify` are those of LoadOptions. Throws a CheckpointError as
// load does.
TENON_API CheckpointReader open(const std::filesystem::path& path, const std::string& section = {},
                                bool verify = true);

}  // namespace tenon
