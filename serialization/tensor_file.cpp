#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include <tenon/core/extent.h>
#include <tenon/core/factories.h>
#include <tenon/core/format.h>
#include <tenon/core/host_tensor.h>
#include <tenon/core/tensor_impl.h>
#include <tenon/serialization/atomic_file.h>
#include <tenon/serialization/checkpoint_file.h>
#include <tenon/serialization/foreign_hdf5.h>
#include <tenon/serialization/header.h>
#include <tenon/serialization/numpy_file.h>
#include <tenon/serialization/safetensors.h>
#include <tenon/serialization/shards.h>
#include <tenon/serialization/tensor_file.h>
#include <tenon/serialization/torch_file.h>
#include <tenon/serialization/verified_file.h>
#include <tenon/serialization/zip.h>

namespace tenon {
namespace {

constexpr size_t kSniffedBytes = kCheckpointHeaderBytes;

TensorFile open_native(const std::filesystem::path& path) {
  const auto file = std::make_shared<const VerifiedFile>(path);
  const ImageContents& contents = file->contents();
  TensorFile opened{FileFormat::tenon, file->size(), {}, contents.wrappers, {}, file, {}};
  for (const StoredTensor& tensor : contents.tensors)
    opened.tensors.push_back({tensor.key, tensor.shape, tensor.dtype, ""});
  opened.read = [file](size_t i) { return read_values(*file, file->contents().tensors[i]); };
  return opened;
}

// A checkpoint that another program has changed is read as one of another program. An index has no
// tensors of its own, so what is wrong with its shards stays wrong.
TensorFile open_unverified(const std::filesystem::path& path,
                           const std::shared_ptr<const InputFile>& file) {
  try {
    return open_native(path);
  } catch (const CheckpointError&) {
    TensorFile opened = open_hdf5(file, true);
    const bool is_index =
        std::any_of(opened.left_out.begin(), opened.left_out.end(),
                    [](const LeftOut& left) { return left.key.starts_with(kShardsGroup); });
    if (is_index) throw;
    return opened;
  }
}

void require_no_section(const std::string& section) {
  if (!section.empty())
    throw CheckpointError(fmt::format(
        "section '{}' was asked for, and only PyTorch's files have sections", printable(section)));
}

TensorFile open_archive(std::shared_ptr<const InputFile> file, const std::string& section,
                        Reads reads) {
  std::vector<ZipMember> members = read_zip_directory(*file);
  if (is_torch_archive(members))
    return open_torch(std::move(file), std::move(members), section, reads);
  require_no_section(section);
  if (is_npz_archive(members)) return open_npz(std::move(file), std::move(members));
  throw CheckpointError(
      fmt::format("it is a zip archive of neither PyTorch nor NumPy: it has no data.pkl, and its "
                  "member '{}' is no .npy file",
                  excerpt(members.front().name)));
}

}  // namespace

void TensorFile::verify_rest() const {
  if (native) native->verify_rest();
}

void read_exactly(const InputFile& file, void* to, uint64_t count, uint64_t offset) {
  if (count > 0 && file.read(to, count, offset) != count)
    throw CheckpointError("the file became shorter while it was read");
}

void require_valid(const void* values, uint64_t count, DType dtype) {
  if (dtype != DType::boolean) return;
  const auto* bytes = static_cast<const std::byte*>(values);
  if (!std::all_of(bytes, bytes + count, [](std::byte b) { return b <= std::byte{1}; }))
    throw CheckpointError("it is of type bool and holds bytes other than 0 and 1");
}

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

uint64_t value_bytes(const Shape& shape, DType dtype) {
  if (!is_addressable(shape))
    throw CheckpointError(fmt::format("its shape {} is absurdly large", shape));
  return static_cast<uint64_t>(shape.numel()) * size_of(dtype);
}

Tensor read_tensor_at(const InputFile& file, uint64_t offset, const Shape& shape, DType dtype) {
  const uint64_t bytes = value_bytes(shape, dtype);
  HostTensor made = make_host_tensor(shape, dtype);
  read_exactly(file, made.values, bytes, offset);
  require_valid(made.values, bytes, dtype);
  return made.tensor;
}

TensorFile open_tensor_file(const std::filesystem::path& path, const std::string& section,
                            bool verify, Reads reads) {
  const auto file = std::make_shared<const InputFile>(path, "cannot load checkpoint",
                                                      InputFile::throw_as<NamedFileError>);
  std::array<char, kSniffedBytes> first{};
  const std::string_view begin(first.data(), file->read(first.data(), first.size(), 0));
  const bool is_archive = begin.starts_with("PK\x03\x04") || begin.starts_with("PK\x05\x06");
  const bool is_safetensors = begins_as_safetensors(begin);
  try {
    if (is_archive) return open_archive(file, section, reads);
    require_no_section(section);
    if (is_safetensors) return open_safetensors(file);
    if (begins_as_safetensors_index(begin)) return open_safetensors_index(*file, path);
    if (begins_as_npy(begin)) return open_npy(file, path.stem().string());
    const auto header = std::as_bytes(std::span(begin));
    if (!verify && is_hdf5(*file)) return open_unverified(path, file);
    if (!begins_as_checkpoint(header) && !has_checkpoint_note(header) && is_hdf5(*file))
      return open_hdf5(file, false);
  } catch (const NamedFileError&) {
    throw;
  } catch (const CheckpointError& error) {
    // This format has no magic number: the file may be something else.
    file->fail(std::string(error.what()) +
               (is_safetensors ? " (it was read as a safetensors file)" : ""));
  }
  return open_native(path);  // or its error, which says what the file seems to be
}

}  // namespace tenon
