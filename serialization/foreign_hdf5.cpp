#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <tenon/core/base/printable.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/host_tensor.h>
#include <tenon/serialization/foreign_hdf5.h>
#include <tenon/serialization/hdf5_wire.h>
#include <tenon/serialization/reader_process.h>
#include <tenon/serialization/wire_types.h>

namespace tenon {
namespace {

namespace wire = hdf5_wire;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kSignature("\x89HDF\r\n\x1a\n", 8);

// The reader with its deadlines: a number of seconds, and one for each MiB.
class Conversation {
 public:
  explicit Conversation(const InputFile& file)
      : file_bytes_(file.size()),
        seconds_(reader_seconds()),
        process_("Tenon did not write it", file.descriptor(), seconds_ + (file_bytes_ >> 18)) {}

  std::vector<char> contents() {
    const auto end = deadline(0);
    const wire::Frame frame = next_frame(end);
    if (frame.kind == wire::FrameKind::failure) throw CheckpointError(text(frame, end));
    if (frame.kind != wire::FrameKind::contents || frame.bytes > 2 * wire::kMaxContentsBytes)
      bad_answer();
    return rest(frame, end);
  }

  // Reads the values of entry `number` of the contents, `count` bytes.
  void values(uint64_t number, void* to, uint64_t count) {
    if (count == 0) return;
    process_.extend(seconds_ + (count >> 20));
    process_.send(&number, sizeof number);
    const auto end = deadline(count);
    for (auto* at = static_cast<char*>(to); count > 0;) {
      const wire::Frame frame = next_frame(end);
      if (frame.kind == wire::FrameKind::fault) throw CheckpointError(text(frame, end));
      if (frame.kind != wire::FrameKind::values || frame.bytes > count || frame.bytes == 0)
        bad_answer();
      process_.receive(at, frame.bytes, end);
      at += frame.bytes, count -= frame.bytes;
    }
  }

  [[noreturn]] void bad_answer() { process_.fail_as_damaged("gave an answer that makes no sense"); }

 private:
  ReaderProcess::Time deadline(uint64_t count) const {
    return Clock::now() + std::chrono::seconds(seconds_ + ((file_bytes_ + count) >> 20));
  }
  wire::Frame next_frame(ReaderProcess::Time end) {
    wire::Frame frame{};
    process_.receive(&frame, sizeof frame, end);
    if (frame.magic != wire::kMagic) process_.fail("is not the reader of this version of Tenon");
    return frame;
  }
  std::vector<char> rest(const wire::Frame& frame, ReaderProcess::Time end) {
    std::vector<char> bytes(frame.bytes);
    process_.receive(bytes.data(), bytes.size(), end);
    return bytes;
  }
  std::string text(const wire::Frame& frame, ReaderProcess::Time end) {
    if (frame.bytes > wire::kMaxTextBytes) bad_answer();
    const std::vector<char> bytes = rest(frame, end);
    return printable({bytes.data(), bytes.size()});
  }

  const uint64_t file_bytes_, seconds_;
  ReaderProcess process_;
};

// Takes pieces from the bytes of an answer.
class AnswerBytes {
 public:
  AnswerBytes(std::vector<char> bytes, Conversation& with)
      : bytes_(std::move(bytes)), with_(with) {}
  template <class T>
  T take() {
    T value{};
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_) with_.bad_answer();
    return std::string_view(bytes_.data() + std::exchange(at_, at_ + count), count);
  }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  std::vector<char> bytes_;
  size_t at_ = 0;
  Conversation& with_;
};

// "layer/kernel:0" becomes "layer.kernel".
std::string dotted(std::string_view path) {
  if (path.ends_with(":0")) path.remove_suffix(2);
  std::string key(path);
  std::replace(key.begin(), key.end(), '/', '.');
  return key;
}

// What the process says of one object, once more checked.
FileTensor described(const wire::Entry& entry, uint64_t file_bytes, Conversation& reader) {
  FileTensor tensor;
  if (entry.rank > wire::kMaxRank || static_cast<size_t>(entry.type) >= kWireTypes.size())
    reader.bad_answer();
  tensor.dtype = kWireTypes[static_cast<size_t>(entry.type)];
  for (size_t i = 0; i < entry.rank; ++i) {
    if (entry.dims[i] > static_cast<uint64_t>(kMaxNumel)) reader.bad_answer();
    tensor.shape.push_back(static_cast<int64_t>(entry.dims[i]));
  }
  if (!is_addressable(tensor.shape) ||
      (entry.kind == wire::EntryKind::tensor &&
       value_bytes(tensor.shape, tensor.dtype) / wire::kMaxExpansion > file_bytes))
    reader.bad_answer();
  return tensor;
}

struct Listed {
  TensorFile file;
  std::vector<uint64_t> numbers;  // of the tensors, for the reader
  std::vector<std::string> paths;
};

Listed list_tensors(const InputFile& file, Conversation& reader, bool checkpoints_too) {
  Listed listed{{FileFormat::hdf5, file.size(), {}, {}, {}, {}, {}}, {}, {}};
  AnswerBytes answer(reader.contents(), reader);
  const auto contents = answer.take<wire::Contents>();
  if (contents.looks_like_checkpoint && !checkpoints_too)
    throw CheckpointError(
        "it is a checkpoint of Tenon's whose first bytes are damaged, so that it cannot be "
        "verified. Load it with .verify = false to read it nevertheless");
  for (uint64_t i = 0; i < contents.entries; ++i) {
    const auto entry = answer.take<wire::Entry>();
    const std::string path(answer.take(entry.path_bytes));
    const std::string why = printable(answer.take(entry.text_bytes));
    if (entry.text_bytes > wire::kMaxTextBytes) reader.bad_answer();
    FileTensor tensor = described(entry, file.size(), reader);
    tensor.key = dotted(path);
    if (entry.kind == wire::EntryKind::left_out || !is_utf8(path) || tensor.key.empty()) {
      listed.file.left_out.push_back({tensor.key, entry.kind == wire::EntryKind::left_out
                                                      ? why
                                                      : "its name is not valid UTF-8"});
      continue;
    }
    if (entry.kind != wire::EntryKind::tensor) tensor.fault = why.empty() ? "no reason given" : why;
    listed.file.tensors.push_back(std::move(tensor));
    listed.numbers.push_back(i);
    listed.paths.push_back(path);
  }
  if (!answer.at_end()) reader.bad_answer();
  return listed;
}

void require_distinct(const Listed& listed) {
  std::unordered_map<std::string_view, size_t> seen;
  const auto& tensors = listed.file.tensors;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (const auto [at, fresh] = seen.emplace(tensors[i].key, i); !fresh)
      throw CheckpointError(fmt::format("its data sets '{}' and '{}' both get the name '{}'",
                                        excerpt(listed.paths[at->second]), excerpt(listed.paths[i]),
                                        excerpt(tensors[i].key)));
}

}  // namespace

bool is_hdf5(const InputFile& file) {
  // The specification allows the signature at 0, 512, 1024, 2048 and so on.
  for (uint64_t at = 0; at < file.size(); at = at ? 2 * at : 512) {
    std::array<char, 8> bytes{};
    if (file.read(bytes.data(), bytes.size(), at) != bytes.size()) return false;
    if (std::string_view(bytes.data(), bytes.size()) == kSignature) return true;
  }
  return false;
}

TensorFile open_hdf5(std::shared_ptr<const InputFile> file, bool checkpoints_too) {
  const auto reader = std::make_shared<Conversation>(*file);
  Listed listed = list_tensors(*file, *reader, checkpoints_too);
  require_distinct(listed);
  listed.file.read = [reader, numbers = std::move(listed.numbers),
                      tensors = listed.file.tensors](size_t i) {
    const uint64_t bytes = value_bytes(tensors[i].shape, tensors[i].dtype);
    HostTensor made = make_host_tensor(tensors[i].shape, tensors[i].dtype);
    reader->values(numbers[i], made.values, bytes);
    require_valid(made.values, bytes, tensors[i].dtype);
    return made.tensor;
  };
  return std::move(listed.file);
}

}  // namespace tenon
