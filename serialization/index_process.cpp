#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/serialization/hdf5_wire.h>
#include <tenon/serialization/index_process.h>
#include <tenon/serialization/reader_process.h>

namespace tenon {
namespace {

namespace wire = hdf5_wire;

// A tensor takes more bytes in HDF5 data than in an index, and a second link to it some of them.
constexpr uint64_t kIndexBytesPerByte = 8;

class IndexConversation {
 public:
  using ReadPage = std::function<void(uint64_t page, std::byte* to)>;
  IndexConversation(uint64_t image_bytes, const ReadPage& read_page)
      : image_bytes_(image_bytes),
        read_page_(read_page),
        process_("it has no index that this version of Tenon reads",
                 ReaderProcess::Image{image_bytes}, reader_seconds() + (image_bytes >> 18)),
        end_(std::chrono::steady_clock::now() +
             std::chrono::seconds(reader_seconds() + (image_bytes >> 20))) {}

  std::string index() {
    std::vector<std::byte> page(wire::kPageBytes);
    for (;;) {
      wire::Frame frame{};
      process_.receive(&frame, sizeof frame, end_);
      if (frame.magic != wire::kMagic) process_.fail("is not the reader of this version of Tenon");
      if (frame.kind == wire::FrameKind::index) return text(frame, most_index_bytes());
      if (frame.kind == wire::FrameKind::failure)
        throw CheckpointError(printable(text(frame, wire::kMaxTextBytes)));
      if (frame.kind != wire::FrameKind::page || frame.bytes != sizeof(uint64_t)) bad_answer();
      send_page(page);
    }
  }

  [[noreturn]] void bad_answer() { process_.fail_as_damaged("gave an answer that makes no sense"); }

 private:
  uint64_t most_index_bytes() const {
    return wire::kMaxContentsBytes + kIndexBytesPerByte * image_bytes_;
  }
  std::string text(const wire::Frame& frame, uint64_t most) {
    if (frame.bytes > most) bad_answer();
    std::string bytes(frame.bytes, '\0');
    process_.receive(bytes.data(), bytes.size(), end_);
    return bytes;
  }
  void send_page(std::vector<std::byte>& page) {
    uint64_t number = 0;
    process_.receive(&number, sizeof number, end_);
    if (number >= (image_bytes_ + wire::kPageBytes - 1) / wire::kPageBytes) bad_answer();
    read_page_(number, page.data());
    process_.send(page.data(),
                  std::min(wire::kPageBytes, image_bytes_ - number * wire::kPageBytes));
  }

  const uint64_t image_bytes_;
  const ReadPage& read_page_;
  ReaderProcess process_;
  const ReaderProcess::Time end_;
};

}  // namespace

CheckpointIndex index_by_process(
    uint64_t image_bytes, const std::function<void(uint64_t page, std::byte* to)>& read_page) {
  IndexConversation process(image_bytes, read_page);
  std::optional<CheckpointIndex> index = decode_index(process.index(), image_bytes);
  if (!index) process.bad_answer();
  return std::move(*index);
}

}  // namespace tenon
