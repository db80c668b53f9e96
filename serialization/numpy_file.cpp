#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include <tenon/core/base/printable.h>
#include <tenon/core/format.h>
#include <tenon/core/host_tensor.h>
#include <tenon/serialization/numpy_file.h>

namespace tenon {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY", kNpyEnding = ".npy";
constexpr size_t kPreludeBytes = 8;              // magic and version
constexpr uint64_t kMaxNpyHeaderBytes = 10'000;  // NumPy's own limit, max_header_size

struct NpyHeader {
  std::string type;  // NumPy's name, such as "<f4"
  bool fortran = false;
  Shape shape;
};

// Parses the text of a header, which is a dictionary as Python writes it with three keys:
// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class NpyHeaderParser {
 public:
  explicit NpyHeaderParser(std::string_view text) : left_(text) {}

  NpyHeader parse() {
    NpyHeader header;
    std::array<bool, 3> seen{};
    expect("{");
    while (!accept("}")) {
      const std::string key = text();
      expect(":");
      const size_t field = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : 3;
      if (field == 3 || std::exchange(seen[field], true))
        bad(fmt::format("it has the key '{}' twice, or it is unknown", excerpt(key)));
      if (field == 0) header.type = type();
      if (field == 1) header.fortran = truth();
      if (field == 2) header.shape = shape();
      if (!accept(",")) {
        expect("}");
        break;
      }
    }
    skip_spaces();
    if (!left_.empty()) bad("something follows its dictionary");
    if (!seen[0] || !seen[1] || !seen[2])
      bad("it lacks one of the keys descr, fortran_order and shape");
    return header;
  }

 private:
  [[noreturn]] static void bad(const std::string& why) {
    throw CheckpointError("its NumPy header is damaged: " + why);
  }
  void skip_spaces() {
    left_.remove_prefix(std::min(left_.size(), left_.find_first_not_of(" \n")));
  }
  bool accept(std::string_view token) {
    skip_spaces();
    if (!left_.starts_with(token)) return false;
    left_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) bad(fmt::format("'{}' was expected before '{}'", token, excerpt(left_)));
  }
  std::string text() {
    skip_spaces();
    const char quote = left_.empty() ? '\0' : left_[0];
    const size_t end = quote == '\'' || quote == '"' ? left_.find(quote, 1) : left_.npos;
    if (end == left_.npos) bad("a text was expected");
    const std::string result(left_.substr(1, end - 1));
    if (result.find('\\') != result.npos) bad("a text has a '\\'");
    left_.remove_prefix(end + 1);
    return result;
  }
  std::string type() {
    skip_spaces();
    if (left_.starts_with('['))
      throw CheckpointError("it is a structured array, and a tensor has elements of one number");
    return text();
  }
  bool truth() {
    if (accept("True")) return true;
    expect("False");
    return false;
  }
  Shape shape() {
    Shape result;
    expect("(");
    while (!accept(")")) {
      if (result.size() == Shape::max_rank)
        throw CheckpointError(fmt::format(
            "it has more than {} dimensions, which is the most of a tensor", +Shape::max_rank));
      result.push_back(dimension());
      if (!accept(",")) {
        expect(")");
        if (result.size() == 1) bad("its shape is not a tuple");
        break;
      }
    }
    return result;
  }
  int64_t dimension() {
    skip_spaces();
    int64_t value = 0;
    const char* const begin = left_.data();
    const auto [end, fault] = std::from_chars(begin, begin + left_.size(), value);
    if (fault != std::errc() || value < 0 || (end - begin > 1 && *begin == '0'))
      bad("a dimension is no number");
    left_.remove_prefix(static_cast<size_t>(end - begin));
    return value;
  }

  std::string_view left_;
};

// Sets the dtype of a tensor, or the reason why Tenon does not have it.
void set_dtype(FileTensor& tensor, const std::string& type) {
  constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"<f4", f32}, {"<f8", f64}, {"<f2", f16},    {"<i8", i64},
      {"<i4", i32}, {"|u1", u8},  {"|b1", boolean}};
  for (const auto& [name, dtype] : kTypes)
    if (name == type) {
      tensor.dtype = dtype;
      return;
    }
  if (type.starts_with('>'))
    tensor.fault = fmt::format(
        "its numbers are big-endian ({}). Convert them: "
        "array.astype(array.dtype.newbyteorder('<'))",
        excerpt(type));
  else if (type == "|O")
    tensor.fault = "it is an array of Python objects, which are pickled and not read";
  else
    tensor.fault = fmt::format(
        "its dtype {} is none of Tenon's; convert it, as with array.astype(numpy.float32)",
        excerpt(type));
}

// One array: where it is described and read from. `read` gets the next bytes of it.
struct NpyArray {
  uint64_t header_bytes = 0;  // with everything in front of the values
  bool fortran = false;
};

// Reads everything before the values. `bytes` is the size of the whole; Read is called with an
// address and a count, and gives the next bytes.
template <class Read>
NpyArray read_npy_header(Read&& read, uint64_t bytes, FileTensor& tensor) {
  std::array<char, kPreludeBytes> prelude{};
  uint64_t length = 0;
  if (bytes < kPreludeBytes + 4) throw CheckpointError("its NumPy header is cut off");
  read(prelude.data(), prelude.size());
  const int version = prelude[6];
  if (!begins_as_npy({prelude.data(), prelude.size()}) || version < 1 || version > 3 ||
      prelude[7] != 0)
    throw CheckpointError("it does not begin as an array of NumPy, version 1, 2 or 3");
  const size_t width = version == 1 ? 2 : 4;
  read(&length, width);
  if (length > kMaxNpyHeaderBytes || length > bytes - kPreludeBytes - width)
    throw CheckpointError(
        fmt::format("its NumPy header would have {} bytes: it is cut off, or damaged", length));
  std::string text(length, '\0');
  read(text.data(), length);
  NpyHeader header = NpyHeaderParser(text).parse();
  set_dtype(tensor, header.type);
  tensor.shape = header.shape;
  const uint64_t values = bytes - kPreludeBytes - width - length;
  if (value_bytes(tensor.shape, tensor.dtype) != values && tensor.fault.empty())
    throw CheckpointError(
        fmt::format("its values have {} bytes, which do not fit its shape {} of {}", values,
                    tensor.shape, tensor.dtype));
  return {kPreludeBytes + width + length, header.fortran};
}

// Returns a tensor whose values `read` gives; those of a Fortran array have their first dimension
// lie closest in memory.
template <class Read>
Tensor make_array(const FileTensor& tensor, const NpyArray& array, Read&& read) {
  Shape shape = tensor.shape, order = tensor.shape;
  for (size_t i = 0, rank = shape.size(); i < rank; ++i) {
    if (array.fortran) shape[i] = tensor.shape[rank - 1 - i];
    order[i] = static_cast<int64_t>(rank - 1 - i);
  }
  const uint64_t bytes = value_bytes(shape, tensor.dtype);
  HostTensor made = make_host_tensor(shape, tensor.dtype);
  read(made.values, bytes);
  require_valid(made.values, bytes, tensor.dtype);
  return array.fortran ? made.tensor.permute(order).contiguous() : made.tensor;
}

}  // namespace

bool begins_as_npy(std::string_view first_bytes) { return first_bytes.starts_with(kNpyMagic); }

TensorFile open_npy(std::shared_ptr<const InputFile> file, const std::string& name) {
  TensorFile opened{FileFormat::npy, file->size(), {}, {}, {}, {}, {}};
  FileTensor tensor{name, {}, DType::f32, ""};
  uint64_t at = 0;
  const NpyArray array = read_npy_header(
      [&](void* to, uint64_t count) {
        read_exactly(*file, to, count, at);
        at += count;
      },
      file->size(), tensor);
  opened.tensors.push_back(tensor);
  opened.read = [file = std::move(file), tensor, array](size_t) {
    return make_array(tensor, array, [&](void* to, uint64_t count) {
      read_exactly(*file, to, count, array.header_bytes);
    });
  };
  return opened;
}

bool is_npz_archive(const std::vector<ZipMember>& members) {
  return std::all_of(members.begin(), members.end(),
                     [](const ZipMember& member) { return member.name.ends_with(kNpyEnding); });
}

TensorFile open_npz(std::shared_ptr<const InputFile> file, std::vector<ZipMember> members) {
  TensorFile opened{FileFormat::npz, file->size(), {}, {}, {}, {}, {}};
  std::vector<NpyArray> arrays;
  for (const ZipMember& member : members) {
    FileTensor tensor{member.name.substr(0, member.name.size() - kNpyEnding.size()), {}, {}, ""};
    try {
      ZipMemberReader reader(*file, member);
      arrays.push_back(read_npy_header([&](void* to, uint64_t count) { reader.read(to, count); },
                                       member.bytes, tensor));
    } catch (const NamedFileError&) {
      throw;
    } catch (const CheckpointError& error) {
      throw CheckpointError(
          fmt::format("member '{}': {}", excerpt(member.name), printable(error.what())));
    }
    opened.tensors.push_back(std::move(tensor));
  }
  opened.read = [file = std::move(file), members = std::move(members), arrays = std::move(arrays),
                 tensors = opened.tensors](size_t i) {
    ZipMemberReader reader(*file, members[i]);
    std::vector<char> header(arrays[i].header_bytes);
    reader.read(header.data(), header.size());
    Tensor made = make_array(tensors[i], arrays[i],
                             [&](void* to, uint64_t count) { reader.read(to, count); });
    reader.finish();
    return made;
  };
  return opened;
}

}  // namespace tenon
