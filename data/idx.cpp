#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <string>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/host_tensor.h>
#include <tenon/data/byte_source.h>
#include <tenon/data/idx.h>
#include <tenon/data/labels.h>

namespace tenon::data {
namespace {

// How an element type is stored, and the dtype that it becomes.
struct ElementKind {
  uint8_t code;
  size_t bytes;
  DType dtype;
};
constexpr ElementKind kKinds[] = {{0x08, 1, DType::u8},  {0x09, 1, DType::i32},
                                  {0x0B, 2, DType::i32}, {0x0C, 4, DType::i32},
                                  {0x0D, 4, DType::f32}, {0x0E, 8, DType::f64}};

const ElementKind& kind_of(const ByteSource& source, const uint8_t* magic) {
  auto found = std::find_if(std::begin(kKinds), std::end(kKinds),
                            [&](const ElementKind& kind) { return kind.code == magic[2]; });
  if (magic[0] != 0 || magic[1] != 0 || found == std::end(kKinds)) {
    source.fail(
        fmt::format("not an IDX file: it begins with {:02x}{:02x}{:02x}{:02x}, and IDX with 0000, "
                    "a type code (08, 09, 0b to 0e) and the rank",
                    magic[0], magic[1], magic[2], magic[3]));
  }
  return *found;
}

Shape read_shape(ByteSource& source, const ElementKind& kind, size_t rank) {
  if (rank > Shape::max_rank)
    source.fail(
        fmt::format("it has {} dimensions; a tensor has at most {}", rank, +Shape::max_rank));
  Shape shape;
  for (size_t i = 0; i < rank; ++i) {
    uint8_t b[4];
    source.read_exactly(b, 4, "the header");
    shape.push_back(int64_t{b[0]} << 24 | int64_t{b[1]} << 16 | int64_t{b[2]} << 8 | b[3]);
  }
  if (!is_addressable(shape)) source.fail(fmt::format("its shape {} is absurdly large", shape));
  source.expect_room_for(static_cast<uint64_t>(shape.numel()) * kind.bytes,
                         fmt::format("its shape {}", shape));
  return shape;
}

// Allocates memory for the values. A packed file of a few megabytes may claim more values than fit.
HostTensor make_room(const ByteSource& source, const Shape& shape, DType dtype) {
  std::string why;
  try {
    return make_host_tensor(shape, dtype);
  } catch (const OutOfMemoryError& error) {
    why = error.what();
  } catch (const std::bad_alloc&) {
    why = "the system gives none";
  }
  source.fail(fmt::format("there is no memory for its shape {} of {}: {}", shape, dtype, why));
}

// Converts big-endian values in place.
template <class T>
void to_native(void* values, size_t count) {
  static_assert(std::endian::native == std::endian::little);
  auto* bytes = static_cast<unsigned char*>(values);
  for (size_t i = 0; i < count; ++i)
    std::reverse(bytes + i * sizeof(T), bytes + (i + 1) * sizeof(T));
}

// Converts i8 and i16, which are narrower in the file than in memory, in place. It starts at the
// end, so that no value is overwritten before it is read.
void widen(void* values, size_t count, size_t from_bytes) {
  auto* bytes = static_cast<unsigned char*>(values);
  for (size_t i = count; i-- > 0;) {
    const unsigned char* b = bytes + i * from_bytes;
    const int32_t value =
        from_bytes == 1 ? static_cast<int8_t>(b[0]) : static_cast<int16_t>(b[0] << 8 | b[1]);
    std::memcpy(bytes + i * 4, &value, 4);
  }
}

Tensor read(const std::filesystem::path& path) {
  ByteSource source(path);
  uint8_t magic[4];
  source.read_exactly(magic, 4, "the magic number");
  const ElementKind& kind = kind_of(source, magic);
  const Shape shape = read_shape(source, kind, magic[3]);
  HostTensor result = make_room(source, shape, kind.dtype);
  const auto count = static_cast<size_t>(shape.numel());
  source.read_exactly(result.values, count * kind.bytes, "the values");
  source.expect_end(fmt::format("the values of shape {}", shape));
  if (kind.bytes < size_of(kind.dtype))
    widen(result.values, count, kind.bytes);
  else if (kind.bytes == 4)
    to_native<uint32_t>(result.values, count);
  else if (kind.bytes == 8)
    to_native<uint64_t>(result.values, count);
  return result.tensor;
}

}  // namespace

Tensor read_idx(const std::filesystem::path& path) {
  return naming_lack_of_memory<DataError>("cannot read", path, [&] { return read(path); });
}

TensorDataset mnist(const std::filesystem::path& folder, bool train, const MnistOptions& options) {
  const std::string prefix = train ? "train" : "t10k";
  const auto images_path = find_plain_or_gz(folder, prefix + "-images-idx3-ubyte");
  const auto labels_path = find_plain_or_gz(folder, prefix + "-labels-idx1-ubyte");
  const Tensor images = read_idx(images_path), labels = read_idx(labels_path);
  auto refuse = [](const std::filesystem::path& path, const std::string& why) {
    throw DataError(fmt::format("cannot read '{}': {}", printable(path.native()), why));
  };
  if (images.dim() != 3 || images.dtype() != DType::u8)
    refuse(images_path, fmt::format("expected u8 images (N, H, W), found {} of shape {}",
                                    images.dtype(), images.shape()));
  if (labels.dim() != 1 || labels.dtype() != DType::u8)
    refuse(labels_path, fmt::format("expected u8 labels (N), found {} of shape {}", labels.dtype(),
                                    labels.shape()));
  if (images.numel() == 0)
    refuse(images_path, fmt::format("it holds no images: its shape is {}", images.shape()));
  if (images.size(0) != labels.size(0))
    refuse(labels_path, fmt::format("it has {} labels, and '{}' has {} images", labels.size(0),
                                    printable(images_path.native()), images.size(0)));
  auto* bytes = static_cast<const uint8_t*>(host_values(labels));
  TensorDataset dataset(images.unsqueeze(1),
                        labels_from_bytes({bytes, static_cast<size_t>(labels.size(0))},
                                          options.classes, labels_path));
  return dataset.convert(options.pixels);
}

}  // namespace tenon::data
