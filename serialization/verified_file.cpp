#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <unordered_set>

#include <sys/mman.h>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/serialization/hdf5_wire.h>
#include <tenon/serialization/header.h>
#include <tenon/serialization/index_process.h>
#include <tenon/serialization/parallel.h>
#include <tenon/serialization/tensor_file.h>
#include <tenon/serialization/value_text.h>
#include <tenon/serialization/verified_file.h>

namespace tenon {
namespace {

constexpr size_t kStepBytes = size_t{1} << 20;  // of a file that is read as a whole
constexpr size_t kPageBytes = 4096, kHugePageBytes = size_t{2} << 20;
constexpr uint64_t kPiece = kCheckpointPieceBytes;
// What is read at once stays in the second-level cache until its checksum is known.
constexpr uint64_t kPiecesAtOnce = 4;
// What a thread takes at a time.
constexpr uint64_t kPartBytes = uint64_t{1} << 20;
static_assert(kPartBytes % (kPiece * kPiecesAtOnce) == 0);
static_assert(hdf5_wire::kPageBytes == kPiece);

constexpr const char* kWrongChecksum =
    "its checksum does not match: the file was damaged, or changed by another program, since it "
    "was written";

CheckpointHeader read_header(const InputFile& file, std::span<std::byte> first) {
  size_t count = file.read(first.data(), first.size(), 0);
  CheckpointHeader header;
  try {
    header = decode_header({first.data(), count});
  } catch (const UnreadError& error) {
    file.refuse(error.what());
  } catch (const CheckpointError& error) {
    file.fail(error.what());
  }
  const uint64_t hdf5_end = header.index_at != 0 ? header.index_at : header.pieces_at;
  if (header.pieces_at != 0 && file.size() == hdf5_end)  // as HDF5 leaves it
    file.fail(
        "its checksums are missing at its end: the file was cut off, or changed by another "
        "program, since it was written");
  if (file.size() < header.file_bytes)
    file.fail(fmt::format("the file is cut off: it has {} bytes instead of {}", file.size(),
                          header.file_bytes));
  if (file.size() > header.file_bytes)
    file.fail(fmt::format(
        "the file is too long: it has {} bytes instead of {}; something was added to it",
        file.size(), header.file_bytes));
  if (header.file_bytes <= kCheckpointHeaderBytes)
    file.fail("the file has nothing after its header");
  return header;
}

void require_read(const InputFile& file, void* to, uint64_t count, uint64_t offset) {
  if (file.read(to, count, offset) != count) file.fail("the file became shorter while it was read");
}

}  // namespace

void VerifiedFile::Free::operator()(std::byte* bytes) const { std::free(bytes); }

VerifiedFile::VerifiedFile(const std::filesystem::path& path, Shards shards)
    : file_(path, "cannot load checkpoint", InputFile::throw_as<NamedFileError>,
            InputFile::throw_as<UnreadFileError>) {
  const CheckpointHeader header = read_header(file_, header_);
  size_ = header.file_bytes;
  if (header.pieces_at != 0) {
    read_piece_table(header.pieces_at, header.pieces);
  } else {
    read_whole(header.body);
    // The header was read a second time and has to be the one that was checked.
    if (!std::equal(header_.begin(), header_.end(), bytes_.get()))
      file_.fail("the file was changed while it was read");
  }
  try {
    read_contents(header);
    list_shards();
    if (shards == Shards::opened) open_shards(path);
  } catch (const NamedFileError&) {
    throw;
  } catch (const UnreadError& error) {
    file_.refuse(error.what());
  } catch (const CheckpointError& error) {
    file_.fail(error.what());
  }
}

// HDF5 never runs in this process: what it would say is in the index, or another process says it.
void VerifiedFile::read_contents(const CheckpointHeader& header) {
  const uint64_t end = pieces_at_ != 0 ? pieces_at_ : size_;
  std::optional<CheckpointIndex> index;
  if (header.index_at != 0) {
    if (header.index_at < kCheckpointHeaderBytes || header.index_at > end ||
        header.index_bytes > end - header.index_at)
      throw CheckpointError("its index is not where its header says");
    std::string bytes(header.index_bytes, '\0');
    StoredTensor place;
    place.offset = header.index_at, place.bytes = header.index_bytes;
    read(place, bytes.data());
    index = decode_index(bytes, header.index_at);
  }
  if (!index)
    index = index_by_process(
        end, [this](uint64_t page, std::byte* to) { read_page(page * kPiece, to); });
  contents_ = std::move(index->contents);
  groups_ = std::move(index->groups);
}

// A page of the image that HDF5 sees, which is header, data and index.
void VerifiedFile::read_page(uint64_t begin, std::byte* to) const {
  const uint64_t end = std::min(begin + kPiece, pieces_at_ != 0 ? pieces_at_ : size_);
  if (bytes_) return static_cast<void>(std::memcpy(to, bytes_.get() + begin, end - begin));
  if (begin == 0) to = std::copy(header_.begin(), header_.end(), to);
  read_pieces(begin / kPiece, begin / kPiece + 1, to);
}

void VerifiedFile::list_shards() {
  const auto at = std::find(contents_.groups.begin(), contents_.groups.end(), kShardsGroup);
  if (at == contents_.groups.end()) return;
  contents_.groups.erase(at);
  for (const StoredTensor& tensor : own_group(kShardsGroup)) {
    if (tensor.key != kValuesKey) continue;
    std::string text(tensor.bytes, '\0');  // no longer than the file
    read(tensor, text.data());
    listed_ = shards_from(values_from_json(text));
  }
  if (listed_.empty() || !contents_.tensors.empty() || !contents_.groups.empty())
    throw CheckpointError("its list of shards is damaged");
}

// Adds up what the shards hold, in their order, which is that in which it was saved.
void VerifiedFile::open_shards(const std::filesystem::path& path) {
  std::error_code error;
  // A symbolic link may lead to the index from elsewhere.
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  const std::filesystem::path folder = (error ? path : real).parent_path();
  std::unordered_set<std::string> keys, groups;
  for (size_t i = 0; i < listed_.size(); ++i) {
    const auto text = [&](const std::string& why) {
      return fmt::format("its shard {} of {} cannot be used: {}", i + 1, listed_.size(), why);
    };
    const auto refuse = [&](const std::string& why) { throw CheckpointError(text(why)); };
    const std::string name = printable((folder / listed_[i].name).native());
    std::unique_ptr<VerifiedFile> shard;
    try {
      shard = std::make_unique<VerifiedFile>(folder / listed_[i].name, Shards::listed);
    } catch (const UnreadFileError& error) {
      file_.refuse(text(error.what()));
    } catch (const CheckpointError& error) {
      refuse(error.what());
    }
    if (checksum_of_header(shard->header_) != listed_[i].header)
      refuse(
          fmt::format("'{}' is not the file that was saved with this index: it is of another "
                      "save, or has changed places with another",
                      name));
    if (!shard->listed_.empty()) refuse(fmt::format("'{}' is an index itself", name));
    size_ += shard->size_;
    for (const StoredTensor& tensor : shard->contents_.tensors) {
      if (!keys.insert(tensor.key).second)
        refuse(fmt::format("'{}' has the tensor '{}', which an earlier one has, too", name,
                           printable(tensor.key)));
      contents_.tensors.push_back(tensor);
      contents_.tensors.back().shard = static_cast<uint32_t>(i + 1);
    }
    for (const std::string& group : shard->contents_.groups)
      if (groups.insert(group).second) contents_.groups.push_back(group);
    if (i >= kMaxOpenShards) shard->file_.close_between_reads();
    shards_.push_back(std::move(shard));
  }
}

void VerifiedFile::read_whole(const Checksum& body) {
  const bool large = size_ >= 2 * kHugePageBytes;
  const size_t alignment = large ? kHugePageBytes : kPageBytes;
  bytes_.reset(static_cast<std::byte*>(
      std::aligned_alloc(alignment, (size_ + alignment - 1) / alignment * alignment)));
  if (!bytes_) throw std::bad_alloc();
  if (large)
    madvise(bytes_.get(), size_, MADV_HUGEPAGE);  // fewer page faults: a quarter of the time
  Checksummer found;
  for (uint64_t offset = 0; offset < size_; offset += kStepBytes) {
    const size_t count = std::min<uint64_t>(kStepBytes, size_ - offset);
    require_read(file_, bytes_.get() + offset, count, offset);
    const size_t skip = offset == 0 ? kCheckpointHeaderBytes : 0;
    found.add(bytes_.get() + offset + skip, count - skip);
  }
  if (found.result() != body) file_.fail(kWrongChecksum);
}

void VerifiedFile::read_piece_table(uint64_t pieces_at, const Checksum& checksum) {
  if (pieces_at <= kCheckpointHeaderBytes || pieces_at >= size_ ||
      size_ - pieces_at != count_of_pieces(pieces_at) * sizeof(Checksum))
    file_.fail("the checksums of its pieces are not where its header says");
  pieces_at_ = pieces_at;
  pieces_.resize(count_of_pieces(pieces_at));
  seen_.resize(pieces_.size());
  require_read(file_, pieces_.data(), size_ - pieces_at, pieces_at);
  if (checksum_of(pieces_.data(), size_ - pieces_at) != checksum) file_.fail(kWrongChecksum);
}

uint64_t VerifiedFile::begin_of(uint64_t piece) const {
  return std::max<uint64_t>(piece * kPiece, kCheckpointHeaderBytes);
}
uint64_t VerifiedFile::end_of(uint64_t piece) const {
  return std::min((piece + 1) * kPiece, pieces_at_);
}

// Reads the pieces [first, last), which are few, and compares their checksums.
void VerifiedFile::read_pieces(uint64_t first, uint64_t last, std::byte* to) const {
  const uint64_t begin = begin_of(first);
  require_read(file_, to, end_of(last - 1) - begin, begin);
  for (uint64_t piece = first; piece < last; ++piece) {
    if (checksum_of(to + (begin_of(piece) - begin), end_of(piece) - begin_of(piece)) !=
        pieces_[piece])
      file_.fail(kWrongChecksum);
    std::atomic_ref(seen_[piece]).store(1, std::memory_order_relaxed);
  }
}

// Whole pieces are read into place, and those of which a part is asked for beside it.
void VerifiedFile::read_range(uint64_t begin, uint64_t end, std::byte* to) const {
  for (uint64_t at = begin; at < end;) {
    const uint64_t piece = at / kPiece;
    if (begin_of(piece) == at && end_of(piece) <= end) {
      uint64_t last = piece + 1;
      while (last < piece + kPiecesAtOnce && last < pieces_.size() && end_of(last) <= end) ++last;
      read_pieces(piece, last, to + (at - begin));
      at = end_of(last - 1);
      continue;
    }
    const std::unique_ptr<std::byte[]> beside(new std::byte[kPiece]);
    read_pieces(piece, piece + 1, beside.get());
    const uint64_t until = std::min(end, end_of(piece));
    std::memcpy(to + (at - begin), beside.get() + (at - begin_of(piece)), until - at);
    at = until;
  }
}

// What is in memory already is copied at once.
void VerifiedFile::divide_into_parts(const StoredTensor& tensor, std::byte* to,
                                     std::vector<Part>& parts) const {
  if (tensor.shard > 0) {
    StoredTensor there = tensor;
    there.shard = 0;
    return shards_.at(tensor.shard - 1)->divide_into_parts(there, to, parts);
  }
  const uint64_t begin = tensor.offset, end = tensor.offset + tensor.bytes;
  if (tensor.bytes == 0) return;
  if (bytes_) return static_cast<void>(std::memcpy(to, bytes_.get() + begin, tensor.bytes));
  if (end > pieces_at_ || begin < kCheckpointHeaderBytes)
    file_.fail(fmt::format("the values of its tensor '{}' are not between header and checksums",
                           printable(tensor.key)));
  for (uint64_t from = begin; from < end;) {
    const uint64_t until = std::min(end, (from / kPartBytes + 1) * kPartBytes);
    parts.push_back({this, from, until, to + (from - begin)});
    from = until;
  }
}

void VerifiedFile::read(std::span<const Wanted> all) const {
  std::vector<Part> parts;
  uint64_t bytes = 0;
  for (const auto& [tensor, to] : all) {
    divide_into_parts(*tensor, static_cast<std::byte*>(to), parts);
    bytes += tensor->bytes;
  }
  const auto read_part = [&](uint64_t i) {
    const Part& part = parts[i];
    part.file->read_range(part.begin, part.end, part.to);
  };
  if (bytes > kPartBytes) return in_parallel(parts.size(), read_part);
  for (uint64_t i = 0; i < parts.size(); ++i) read_part(i);  // less than a thread takes to begin
}

void VerifiedFile::verify_rest() const {
  for (const auto& shard : shards_) shard->verify_rest();
  constexpr uint64_t kPieces = kPartBytes / kPiece;
  in_parallel((pieces_.size() + kPieces - 1) / kPieces, [&](uint64_t part) {
    std::unique_ptr<std::byte[]> beside;
    const uint64_t end = std::min<uint64_t>((part + 1) * kPieces, pieces_.size());
    for (uint64_t piece = part * kPieces; piece < end;) {
      uint64_t last = piece;
      while (last < end && last < piece + kPiecesAtOnce &&
             !std::atomic_ref(seen_[last]).load(std::memory_order_relaxed))
        ++last;
      if (last == piece) {
        ++piece;
        continue;
      }
      if (!beside) beside.reset(new std::byte[kPiecesAtOnce * kPiece]);
      read_pieces(piece, last, beside.get());
      piece = last;
    }
  });
}

std::vector<StoredTensor> VerifiedFile::own_group(const std::string& name) const {
  const auto found = std::find_if(groups_.begin(), groups_.end(),
                                  [&](const StoredGroup& group) { return group.name == name; });
  if (found == groups_.end())
    throw CheckpointError(fmt::format("it has no group '{}'", printable(name)));
  if (!found->fault.empty()) throw CheckpointError(found->fault);
  return found->tensors;
}

std::vector<StoredTensor> VerifiedFile::group(const std::string& name) const {
  if (shards_.empty()) return own_group(name);
  std::vector<StoredTensor> tensors;
  std::unordered_set<std::string> keys;
  for (size_t i = 0; i < shards_.size(); ++i) {
    const std::vector<std::string>& groups = shards_[i]->contents_.groups;
    if (std::find(groups.begin(), groups.end(), name) == groups.end()) continue;
    for (StoredTensor& tensor : shards_[i]->group(name)) {
      if (!keys.insert(tensor.key).second)
        throw CheckpointError(fmt::format("two of its shards have the tensor '{}' of {}",
                                          printable(tensor.key), printable(name)));
      tensor.shard = static_cast<uint32_t>(i + 1);
      tensors.push_back(std::move(tensor));
    }
  }
  return tensors;
}

}  // namespace tenon
