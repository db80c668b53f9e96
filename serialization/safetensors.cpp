#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <tenon/core/base/printable.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/serialization/safetensors.h>

namespace tenon {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the reference implementation
constexpr std::string_view kMetadataName = "__metadata__";

struct StoredType {
  std::string_view name;
  unsigned bits;
  std::optional<DType> dtype;  // nullopt if Tenon does not have it
};
constexpr std::array<StoredType, 20> kStoredTypes = {{
    {"F32", 32, DType::f32},      {"F64", 64, DType::f64},      {"F16", 16, DType::f16},
    {"BF16", 16, DType::bf16},    {"I64", 64, DType::i64},      {"I32", 32, DType::i32},
    {"U8", 8, DType::u8},         {"BOOL", 8, DType::boolean},  {"I8", 8, std::nullopt},
    {"I16", 16, std::nullopt},    {"U16", 16, std::nullopt},    {"U32", 32, std::nullopt},
    {"U64", 64, std::nullopt},    {"C64", 64, std::nullopt},    {"F8_E4M3", 8, std::nullopt},
    {"F8_E5M2", 8, std::nullopt}, {"F8_E8M0", 8, std::nullopt}, {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt}, {"F4", 4, std::nullopt},
}};

// One tensor as the header describes it.
struct HeaderEntry {
  std::string key;
  const StoredType* type = nullptr;
  std::optional<Shape> shape;
  std::optional<std::pair<uint64_t, uint64_t>> offsets;  // in the part of the file with the values
};

// Receives the header from the JSON parser and keeps nothing else of it than the entries. It
// accepts the nesting that the format has, so the depth is bounded, whatever the header is.
class HeaderEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<HeaderEntry> entries;

  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("true or false"); }
  bool number_integer(number_integer_t) override { return refuse("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return refuse("a fraction"); }
  bool binary(binary_t&) override { return refuse("binary data"); }
  bool number_unsigned(number_unsigned_t value) override {
    if (where_ != Where::shape && where_ != Where::offsets) return refuse("a number");
    if (numbers_.size() == Shape::max_rank)
      bad(fmt::format("it has more than {} numbers in its {}", +Shape::max_rank, field_));
    numbers_.push_back(value);
    return true;
  }
  bool string(string_t& text) override {
    if (where_ == Where::metadata) return true;
    if (where_ != Where::tensor || field_ != "dtype") return refuse("a text");
    const auto type = std::find_if(kStoredTypes.begin(), kStoredTypes.end(),
                                   [&](const StoredType& known) { return known.name == text; });
    if (type == kStoredTypes.end()) bad(fmt::format("its dtype '{}' is unknown", excerpt(text)));
    if (std::exchange(entries.back().type, &*type)) bad("it has two fields 'dtype'");
    return true;
  }
  bool start_object(size_t) override {
    if (where_ == Where::outside)
      where_ = Where::top;
    else if (where_ != Where::top)
      return refuse("an object");
    else if (name_ == kMetadataName)
      begin_metadata();
    else
      begin_tensor();
    return true;
  }
  bool key(string_t& name) override {
    if (where_ == Where::metadata)
      metadata_keys_.push_back(std::move(name));
    else
      (where_ == Where::top ? name_ : field_) = std::move(name);
    if (where_ == Where::tensor && field_ != "dtype" && field_ != "shape" &&
        field_ != "data_offsets")
      bad(fmt::format("it has an unknown field '{}'", excerpt(field_)));
    return true;
  }
  bool end_object() override {
    const HeaderEntry* entry = where_ == Where::tensor ? &entries.back() : nullptr;
    if (entry && (!entry->type || !entry->shape || !entry->offsets))
      bad("it lacks one of the fields dtype, shape and data_offsets");
    where_ = where_ == Where::top ? Where::outside : Where::top;
    return true;
  }
  bool start_array(size_t) override {
    if (where_ != Where::tensor || field_ == "dtype") return refuse("a list");
    where_ = field_ == "shape" ? Where::shape : Where::offsets;
    numbers_.clear();
    return true;
  }
  bool end_array() override {
    const bool was_shape = where_ == Where::shape;
    where_ = Where::tensor;
    was_shape ? take_shape() : take_offsets();
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    throw CheckpointError(
        fmt::format("its header is not valid JSON: there is a fault at byte {} of it", position));
  }

  // Throws if a name occurs twice.
  void require_unique() {
    require_unique(metadata_keys_);
    std::vector<std::string_view> keys;
    for (const HeaderEntry& entry : entries) keys.push_back(entry.key);
    require_unique(keys);
  }

 private:
  enum class Where { outside, top, metadata, tensor, shape, offsets };

  [[noreturn]] void bad(const std::string& why) const {
    throw CheckpointError(fmt::format("tensor '{}': {}", excerpt(name_), why));
  }
  bool refuse(std::string_view what) const {
    throw CheckpointError(where_ == Where::outside
                              ? fmt::format("its header is {} and not an object", what)
                              : fmt::format("its header has {} where a safetensors file has none, "
                                            "under the name '{}'",
                                            what, excerpt(name_)));
  }
  void begin_metadata() {
    if (std::exchange(has_metadata_, true))
      throw CheckpointError("its header has two parts '__metadata__'");
    where_ = Where::metadata;
  }
  void begin_tensor() {
    entries.emplace_back().key = name_;
    where_ = Where::tensor;
  }
  void take_shape() {
    Shape shape;
    for (uint64_t n : numbers_) {
      if (n > static_cast<uint64_t>(kMaxNumel)) bad("a dimension is absurdly large");
      shape.push_back(static_cast<int64_t>(n));
    }
    if (!is_addressable(shape)) bad(fmt::format("its shape {} is absurdly large", shape));
    if (entries.back().shape) bad("it has two fields 'shape'");
    entries.back().shape = shape;
  }
  void take_offsets() {
    if (numbers_.size() != 2 || numbers_[0] > numbers_[1])
      bad("its data_offsets are not a beginning and an end");
    if (entries.back().offsets) bad("it has two fields 'data_offsets'");
    entries.back().offsets = {numbers_[0], numbers_[1]};
  }
  template <class Text>
  static void require_unique(std::vector<Text>& names) {
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end())
      throw CheckpointError(fmt::format("its header has the name '{}' twice", excerpt(*twice)));
  }

  Where where_ = Where::outside;
  bool has_metadata_ = false;
  std::string name_, field_;  // of the tensor, and in it
  std::vector<uint64_t> numbers_;
  std::vector<std::string> metadata_keys_;
};

// Checks that the values fill the file from the header to its end, one tensor after the other.
void require_layout(const std::vector<HeaderEntry>& entries, uint64_t data_bytes) {
  std::vector<const HeaderEntry*> order;
  for (const HeaderEntry& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(),
            [](const HeaderEntry* a, const HeaderEntry* b) { return *a->offsets < *b->offsets; });
  uint64_t end = 0;
  for (const HeaderEntry* entry : order) {
    auto bad = [&](const std::string& why) {
      throw CheckpointError(fmt::format("tensor '{}': {}", excerpt(entry->key), why));
    };
    const auto [first, last] = *entry->offsets;
    if (last > data_bytes)
      bad(fmt::format("its values end at byte {} after the header, and there are {}", last,
                      data_bytes));
    if (first != end)
      bad(first < end ? "its values overlap those of another tensor"
                      : fmt::format("there is a gap of {} bytes before its values", first - end));
    uint64_t bits = 0;
    if (__builtin_mul_overflow(static_cast<uint64_t>(entry->shape->numel()), entry->type->bits,
                               &bits) ||
        bits % 8 != 0 || bits / 8 != last - first)
      bad(fmt::format("its values have {} bytes, which do not fit its shape {} of {}", last - first,
                      *entry->shape, entry->type->name));
    end = last;
  }
  if (end != data_bytes)
    throw CheckpointError(fmt::format("{} bytes at its end belong to no tensor", data_bytes - end));
}

std::vector<HeaderEntry> parse_header(const std::string& header, uint64_t data_bytes) {
  if (!header.starts_with('{')) throw CheckpointError("its header does not begin with '{'");
  // The parser would take it for the end, and not see what follows.
  if (const size_t zero = header.find('\0'); zero != header.npos)
    throw CheckpointError(
        fmt::format("its header is not valid JSON: there is a zero byte at byte {} of it", zero));
  HeaderEvents events;
  nlohmann::json::sax_parse(header, &events);
  events.require_unique();
  require_layout(events.entries, data_bytes);
  return std::move(events.entries);
}

// Returns the header, in memory that nobody else changes while it is checked.
std::string read_safetensors_header(const InputFile& file) {
  uint64_t length = 0;
  read_exactly(file, &length, kLengthBytes, 0);
  if (length > kMaxHeaderBytes)
    throw CheckpointError(
        fmt::format("its header would have {} bytes, and that of a safetensors file has at most {}",
                    length, kMaxHeaderBytes));
  if (length > file.size() - kLengthBytes)
    throw CheckpointError(fmt::format(
        "the file is cut off or damaged: it has {} bytes, and its header alone would have {}",
        file.size(), length));
  std::string header(length, '\0');
  read_exactly(file, header.data(), length, kLengthBytes);
  return header;
}

}  // namespace

bool begins_as_safetensors(std::string_view first_bytes) {
  uint64_t length = 0;
  if (first_bytes.size() <= kLengthBytes || first_bytes[kLengthBytes] != '{') return false;
  std::memcpy(&length, first_bytes.data(), kLengthBytes);
  return length < uint64_t{1} << 32;
}

std::string_view safetensors_name(DType dtype) {
  return std::find_if(kStoredTypes.begin(), kStoredTypes.end(),
                      [&](const StoredType& stored) { return stored.dtype == dtype; })
      ->name;
}

TensorFile open_safetensors(std::shared_ptr<const InputFile> file) {
  const std::string header = read_safetensors_header(*file);
  const uint64_t data = kLengthBytes + header.size();  // where the values begin
  const std::vector<HeaderEntry> entries = parse_header(header, file->size() - data);
  TensorFile opened{FileFormat::safetensors, file->size(), {}, {}, {}, {}, {}};
  std::vector<uint64_t> begins;
  for (const HeaderEntry& entry : entries) {
    std::string fault;
    if (!entry.type->dtype)
      fault =
          fmt::format("its dtype {} is none of Tenon's; store it as F32 or I32", entry.type->name);
    opened.tensors.push_back(
        {entry.key, *entry.shape, entry.type->dtype.value_or(DType::f32), std::move(fault)});
    begins.push_back(data + entry.offsets->first);
  }
  opened.read = [file = std::move(file), begins = std::move(begins),
                 tensors = opened.tensors](size_t i) {
    return read_tensor_at(*file, begins[i], tensors[i].shape, tensors[i].dtype);
  };
  return opened;
}

}  // namespace tenon
