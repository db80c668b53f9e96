// A file of named tensors, whatever program wrote it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/core/api.h>
#include <tenon/core/base/input_file.h>
#include <tenon/core/error.h>
#include <tenon/core/tensor.h>
#include <tenon/serialization/load_report.h>

namespace tenon {

class AtomicFile;
class VerifiedFile;

// A CheckpointError whose text already names the file.
struct NamedFileError : CheckpointError {
  using CheckpointError::CheckpointError;
};

// The file cannot be read here and now, by this release: whether it is whole is not known. So it is
// never taken for a damaged one.
struct UnreadFileError : NamedFileError {
  using NamedFileError::NamedFileError;
};
// The same, before its text names the file.
struct UnreadError : CheckpointError {
  using CheckpointError::CheckpointError;
};

// The description of a tensor in a file.
struct FileTensor {
  std::string key;
  Shape shape;
  DType dtype = DType::f32;
  std::string fault;  // why Tenon cannot make it, such as a dtype that it does not have
};

// What a file holds besides tensors.
struct LeftOut {
  std::string key;
  std::string why;
};

struct TensorFile {
  FileFormat format = FileFormat::tenon;
  uint64_t bytes = 0;                                // the size of the file
  std::vector<FileTensor> tensors;                   // in the order of the file; keys are unique
  std::optional<std::vector<std::string>> wrappers;  // nullopt if the writer did not record them
  // Reads tensor i, onto cpu:0. Throws a CheckpointError without the name of the file if that
  // fails.
  std::function<Tensor(size_t)> read;
  std::shared_ptr<const VerifiedFile> native;  // of Tenon's own format
  std::vector<LeftOut> left_out;

  // Checks what nobody has read so far, if the format has checksums. Throws as read().
  TENON_API void verify_rest() const;
  // Frees what is kept of the values.
  void close() {
    read = nullptr;
    native = nullptr;
  }
};

// Opens a file of any format that Tenon reads, and checks everything but the values. The first
// bytes of the file tell the format. Throws a CheckpointError that names the file. `section` is
// LoadOptions::section, and `verify` LoadOptions::verify.
// `reads`: how often each tensor is asked for. Tensors that share memory in a file of PyTorch share
// it here as well only if each is read once.
enum class Reads { once, any };
TensorFile open_tensor_file(const std::filesystem::path& path, const std::string& section,
                            bool verify = true, Reads reads = Reads::once);

// Reads exactly `count` bytes; throws a CheckpointError if the file ends before.
void read_exactly(const InputFile& file, void* to, uint64_t count, uint64_t offset);
// Returns a contiguous tensor on cpu:0 whose values lie in a row at `offset` of the file. They are
// read straight into its memory. The file is not mapped: if its disk fails, or another process cuts
// it off meanwhile, a mapped file ends the process, and this throws a CheckpointError.
Tensor read_tensor_at(const InputFile& file, uint64_t offset, const Shape& shape, DType dtype);
// Throws a CheckpointError if values of type bool are other bytes than 0 and 1.
void require_valid(const void* values, uint64_t count, DType dtype);
// Writes the elements of a tensor in row-major order, without a copy if they lie so in the memory
// of the host. `bytes` is their size.
void append_values(AtomicFile& file, const Tensor& tensor, uint64_t bytes);
// Returns the number of bytes of a tensor. Throws a CheckpointError if no tensor may have `shape`.
uint64_t value_bytes(const Shape& shape, DType dtype);

}  // namespace tenon
