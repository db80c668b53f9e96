#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>

#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/serialization/header.h>
#include <tenon/serialization/tensor_file.h>

static_assert(std::endian::native == std::endian::little,
              "checkpoints are little-endian and written as they are in memory");

namespace tenon {
namespace {

// As in PNG, the first byte is not text, and the line ends reveal a transfer in text mode.
constexpr std::string_view kMagic = "\x89TENON\r\n";
constexpr std::string_view kNote =
    "Tenon checkpoint: HDF5 behind a user block of 512 bytes; see docs/checkpoints.md\n";
constexpr size_t kVersionAt = 8, kHeaderBytesAt = 12, kFileBytesAt = 16, kBodyAt = 24,
                 kPiecesAtAt = 40, kPiecesAt = 48, kNoteAt = 64, kIndexMarkAt = 456,
                 kIndexAtAt = 464, kIndexBytesAt = 472, kOwnAt = 496;
// Earlier releases wrote zeros, or other text, where this stands if there is an index.
constexpr uint64_t kIndexMark = 0x315845444E494E54;  // "TNINDEX1"

template <class T>
void put(std::byte* header, size_t at, const T& value) {
  std::memcpy(header + at, &value, sizeof value);
}
template <class T>
T get(const std::byte* header, size_t at) {
  T value;
  std::memcpy(&value, header + at, sizeof value);
  return value;
}

bool starts_with(std::span<const std::byte> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

// Says what a file without our magic seems to be.
std::string foreign(std::span<const std::byte> bytes) {
  if (bytes.empty()) return "the file is empty";
  if (starts_with(bytes, "\x89HDF\r\n\x1a\n"))
    return "it is an HDF5 file that another program wrote, which has no training run that Tenon "
           "could go on with. Load its weights alone: tenon::load(path, model)";
  if (starts_with(bytes, "PK\x03\x04") || (bytes.size() > 8 && bytes[8] == std::byte{'{'} &&
                                           get<uint64_t>(bytes.data(), 0) < (uint64_t{1} << 32)))
    return "it is a file of PyTorch, NumPy or safetensors, which has no training run that Tenon "
           "could go on with. Load its weights alone: tenon::load(path, model)";
  if (starts_with(bytes, "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"))
    return "it is a file of torch.save as it was before PyTorch 1.6. Convert it in Python: "
           "torch.save(torch.load(path, weights_only=True), path)";
  if (bytes.size() > 1 && bytes[0] == std::byte{0x80} && bytes[1] >= std::byte{2} &&
      bytes[1] <= std::byte{5})
    return "it is a Python pickle, which is a program. Save the tensors alone, in Python: "
           "torch.save(model.state_dict(), path)";
  return "it does not start like a checkpoint: it is another kind of file, or its first bytes "
         "are damaged";
}

}  // namespace

std::array<std::byte, kCheckpointHeaderBytes> encode_header(const CheckpointHeader& header) {
  std::array<std::byte, kCheckpointHeaderBytes> bytes{};
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  put(bytes.data(), kVersionAt, kCheckpointFormatVersion);
  put(bytes.data(), kHeaderBytesAt, static_cast<uint32_t>(kCheckpointHeaderBytes));
  put(bytes.data(), kFileBytesAt, header.file_bytes);
  put(bytes.data(), kBodyAt, header.body);
  put(bytes.data(), kPiecesAtAt, header.pieces_at);
  put(bytes.data(), kPiecesAt, header.pieces);
  std::memcpy(bytes.data() + kNoteAt, kNote.data(), kNote.size());
  if (header.index_at != 0) {
    put(bytes.data(), kIndexMarkAt, kIndexMark);
    put(bytes.data(), kIndexAtAt, header.index_at);
    put(bytes.data(), kIndexBytesAt, header.index_bytes);
  }
  put(bytes.data(), kOwnAt, checksum_of(bytes.data(), kOwnAt));
  return bytes;
}

bool begins_as_checkpoint(std::span<const std::byte> first_bytes) {
  return std::memcmp(first_bytes.data(), kMagic.data(),
                     std::min(kMagic.size(), first_bytes.size())) == 0;
}

bool has_checkpoint_note(std::span<const std::byte> first_bytes) {
  constexpr std::string_view begin = kNote.substr(0, kNote.find(':'));
  return first_bytes.size() > kNoteAt && starts_with(first_bytes.subspan(kNoteAt), begin);
}

CheckpointHeader decode_header(std::span<const std::byte> first_bytes) {
  auto fail = [](const std::string& why) { throw CheckpointError(why); };
  if (first_bytes.empty() || !begins_as_checkpoint(first_bytes)) fail(foreign(first_bytes));
  if (first_bytes.size() < kCheckpointHeaderBytes)
    fail(fmt::format("the file is cut off: it has {} bytes, and its header alone has {}",
                     first_bytes.size(), kCheckpointHeaderBytes));
  const std::byte* header = first_bytes.data();
  if (get<Checksum>(header, kOwnAt) != checksum_of(header, kOwnAt))
    fail("its header is damaged (checksum does not match)");
  uint32_t version = get<uint32_t>(header, kVersionAt);
  if (version != kCheckpointFormatVersion ||
      get<uint32_t>(header, kHeaderBytesAt) != kCheckpointHeaderBytes)
    throw UnreadError(fmt::format(
        "it has format version {}, and this build reads version {}. Load it with a newer Tenon",
        version, kCheckpointFormatVersion));
  const bool has_index = get<uint64_t>(header, kIndexMarkAt) == kIndexMark;
  return {.file_bytes = get<uint64_t>(header, kFileBytesAt),
          .body = get<Checksum>(header, kBodyAt),
          .pieces_at = get<uint64_t>(header, kPiecesAtAt),
          .pieces = get<Checksum>(header, kPiecesAt),
          .index_at = has_index ? get<uint64_t>(header, kIndexAtAt) : 0,
          .index_bytes = has_index ? get<uint64_t>(header, kIndexBytesAt) : 0};
}

Checksum checksum_of_header(std::span<const std::byte, kCheckpointHeaderBytes> header) {
  return get<Checksum>(header.data(), kOwnAt);
}

}  // namespace tenon
