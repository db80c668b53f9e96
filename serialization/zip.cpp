#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>

#include <zlib.h>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/serialization/tensor_file.h>
#include <tenon/serialization/zip.h>

namespace tenon {
namespace {

constexpr uint32_t kLocalMagic = 0x04034b50, kEntryMagic = 0x02014b50, kEndMagic = 0x06054b50,
                   kEnd64Magic = 0x06064b50, kLocator64Magic = 0x07064b50;
constexpr size_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                 kLocator64Bytes = 20, kMaxCommentBytes = 65535;
constexpr uint64_t kMaxDirectoryBytes = 100'000'000;
// Level of deflate, data descriptor, names in UTF-8. Other bits mean encryption or patches.
constexpr uint16_t kKnownFlags = 0x080e;
constexpr uint64_t kMaxInflation = 1032;  // what deflate can do at most, says zlib
constexpr uint64_t kPackedChunk = uint64_t{1} << 16;

[[noreturn]] void bad_zip(const std::string& why) {
  throw CheckpointError("its zip archive is damaged: " + why);
}

// Numbers of a record, one after the other, all of which have to be there.
class RecordReader {
 public:
  explicit RecordReader(std::string_view bytes) : left_(bytes) {}
  template <class T>
  T next() {
    T value;
    std::memcpy(&value, text(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view text(size_t count) {
    if (count > left_.size()) bad_zip("a record of its directory is cut off");
    const std::string_view result = left_.substr(0, count);
    left_.remove_prefix(count);
    return result;
  }
  bool empty() const { return left_.empty(); }

 private:
  std::string_view left_;
};

std::string read_part(const InputFile& file, uint64_t offset, uint64_t count) {
  if (offset > file.size() || count > file.size() - offset)
    bad_zip("a record would be outside the file");
  std::string bytes(count, '\0');
  read_exactly(file, bytes.data(), count, offset);
  return bytes;
}

struct Directory {
  uint64_t entries = 0, bytes = 0, offset = 0;
};

// Reads the zip64 record of the end, if the locator in front of the ordinary record names one.
// `end` becomes its position.
void use_zip64(const InputFile& file, Directory& directory, uint64_t& end) {
  if (end < kLocator64Bytes) return;
  const std::string locator_bytes = read_part(file, end - kLocator64Bytes, kLocator64Bytes);
  RecordReader locator(locator_bytes);
  if (locator.next<uint32_t>() != kLocator64Magic) return;
  const auto disk = locator.next<uint32_t>();
  const auto at = locator.next<uint64_t>();
  if (disk != 0 || locator.next<uint32_t>() > 1) bad_zip("it has several disks");
  const std::string bytes = read_part(file, at, kEnd64Bytes);
  RecordReader record(bytes);
  if (record.next<uint32_t>() != kEnd64Magic || record.next<uint64_t>() != kEnd64Bytes - 12 ||
      at + kEnd64Bytes != end - kLocator64Bytes)
    bad_zip("its zip64 record is not where its locator says");
  record.text(4);  // versions
  if (record.next<uint64_t>() != 0) bad_zip("it has several disks");
  directory.entries = record.next<uint64_t>();
  if (record.next<uint64_t>() != directory.entries) bad_zip("it has several disks");
  directory.bytes = record.next<uint64_t>();
  directory.offset = record.next<uint64_t>();
  end = at;
}

Directory find_directory(const InputFile& file) {
  const uint64_t tail_bytes = std::min<uint64_t>(file.size(), kEndBytes + kMaxCommentBytes);
  const uint64_t tail_at = file.size() - tail_bytes;
  const std::string tail = read_part(file, tail_at, tail_bytes);
  for (size_t at = tail.size() - std::min(tail.size(), kEndBytes) + 1; at-- > 0;) {
    if (tail.size() - at < kEndBytes) break;
    RecordReader record(std::string_view(tail).substr(at));
    if (record.next<uint32_t>() != kEndMagic) continue;
    const auto disks = record.next<uint32_t>();
    const auto entries_here = record.next<uint16_t>();
    Directory directory;
    directory.entries = record.next<uint16_t>();
    directory.bytes = record.next<uint32_t>();
    directory.offset = record.next<uint32_t>();
    if (record.next<uint16_t>() != tail.size() - at - kEndBytes) continue;
    uint64_t end = tail_at + at;
    if (disks != 0 || entries_here != directory.entries) bad_zip("it has several disks");
    use_zip64(file, directory, end);
    if (directory.offset > end || directory.bytes != end - directory.offset)
      bad_zip("its directory does not end where the record of its end begins");
    if (directory.bytes > kMaxDirectoryBytes || directory.entries > directory.bytes / kEntryBytes)
      bad_zip(fmt::format("its directory of {} bytes cannot have {} entries", directory.bytes,
                          directory.entries));
    return directory;
  }
  bad_zip("it is cut off, or something was added: the record of its end is missing");
}

// Takes the 64-bit numbers of a member from its extra field, where the others are all ones.
void use_zip64_extra(std::string_view extra, ZipMember& member, uint64_t& at) {
  constexpr uint64_t kElsewhere = std::numeric_limits<uint32_t>::max();
  for (RecordReader fields(extra); !fields.empty();) {
    const auto id = fields.next<uint16_t>();
    RecordReader field(fields.text(fields.next<uint16_t>()));
    if (id != 1) continue;
    for (uint64_t* number : {&member.bytes, &member.stored_bytes, &at})
      if (*number == kElsewhere) *number = field.next<uint64_t>();
    return;
  }
}

// Finds the data of a member behind its own header, which has to say the same as the directory.
void use_local_header(const InputFile& file, ZipMember& member, uint64_t at, uint16_t flags) {
  const std::string bytes = read_part(file, at, kLocalBytes);
  RecordReader record(bytes);
  if (record.next<uint32_t>() != kLocalMagic) bad_zip("a member has no header");
  record.next<uint16_t>();
  const bool same_flags = record.next<uint16_t>() == flags;
  const bool same_method = record.next<uint16_t>() == (member.deflated ? 8 : 0);
  record.text(16);
  const size_t name_bytes = record.next<uint16_t>();
  const size_t extra_bytes = record.next<uint16_t>();
  if (!same_flags || !same_method || read_part(file, at + kLocalBytes, name_bytes) != member.name)
    bad_zip(fmt::format("the header of its member '{}' differs from its directory",
                        excerpt(member.name)));
  member.offset = at + kLocalBytes + name_bytes + extra_bytes;
}

struct Range {
  uint64_t begin, end;
};

ZipMember read_entry(const InputFile& file, RecordReader& directory, Range& range) {
  if (directory.next<uint32_t>() != kEntryMagic) bad_zip("its directory is cut off");
  ZipMember member;
  directory.text(4);  // versions
  const auto flags = directory.next<uint16_t>();
  const auto method = directory.next<uint16_t>();
  directory.text(4);  // time
  member.crc = directory.next<uint32_t>();
  member.stored_bytes = directory.next<uint32_t>();
  member.bytes = directory.next<uint32_t>();
  const size_t name_bytes = directory.next<uint16_t>(), extra_bytes = directory.next<uint16_t>(),
               comment_bytes = directory.next<uint16_t>();
  const auto disk = directory.next<uint16_t>();
  directory.text(6);  // attributes
  uint64_t at = directory.next<uint32_t>();
  member.name = directory.text(name_bytes);
  use_zip64_extra(directory.text(extra_bytes), member, at);
  directory.text(comment_bytes);
  if (disk != 0) bad_zip("it has several disks");
  if ((flags & ~kKnownFlags) != 0 || (method != 0 && method != 8))
    throw CheckpointError(fmt::format(
        "member '{}' of its zip archive is encrypted, or packed by method {}; stored and deflated "
        "members can be read",
        excerpt(member.name), method));
  member.deflated = method == 8;
  if (member.deflated ? member.bytes / kMaxInflation > member.stored_bytes
                      : member.bytes != member.stored_bytes)
    bad_zip(fmt::format("member '{}' cannot have {} bytes", excerpt(member.name), member.bytes));
  use_local_header(file, member, at, flags);
  if (member.offset > file.size() || member.stored_bytes > file.size() - member.offset)
    bad_zip(fmt::format("member '{}' is outside the file", excerpt(member.name)));
  range = {at, member.offset + member.stored_bytes};
  return member;
}

void require_separate(std::vector<Range> ranges, uint64_t directory_at) {
  ranges.push_back({directory_at, directory_at});
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].begin < ranges[i - 1].end) bad_zip("its members overlap");
}

void require_unique_names(const std::vector<ZipMember>& members) {
  std::vector<std::string_view> names;
  for (const ZipMember& member : members) names.push_back(member.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) bad_zip(fmt::format("it has two members '{}'", excerpt(*twice)));
}

}  // namespace

std::vector<ZipMember> read_zip_directory(const InputFile& file) {
  const Directory directory = find_directory(file);
  const std::string bytes = read_part(file, directory.offset, directory.bytes);
  RecordReader records(bytes);
  std::vector<ZipMember> members;
  std::vector<Range> ranges;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    members.push_back(read_entry(file, records, ranges.emplace_back()));
    if (members.back().name.ends_with('/') && members.back().bytes == 0) members.pop_back();
  }
  if (!records.empty()) bad_zip("its directory has more entries than it says");
  require_separate(std::move(ranges), directory.offset);
  require_unique_names(members);
  return members;
}

ZipMemberReader::ZipMemberReader(const InputFile& file, const ZipMember& member)
    : file_(file), member_(member) {
  if (!member.deflated) return;
  packed_.resize(std::min(kPackedChunk, member.stored_bytes));
  auto stream = std::make_unique<z_stream>();
  if (inflateInit2(stream.get(), -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  stream_ = std::move(stream);
}

ZipMemberReader::~ZipMemberReader() {
  if (stream_) inflateEnd(stream_.get());
}

void ZipMemberReader::refill() {
  const uint64_t count = std::min<uint64_t>(packed_.size(), member_.stored_bytes - taken_);
  read_exactly(file_, packed_.data(), count, member_.offset + taken_);
  taken_ += count;
  stream_->next_in = packed_.data();
  stream_->avail_in = static_cast<uInt>(count);
}

void ZipMemberReader::inflate_into(std::byte* to, uint64_t count) {
  while (count > 0) {
    if (stream_->avail_in == 0) refill();
    const uInt wanted = static_cast<uInt>(std::min<uint64_t>(count, uint64_t{1} << 30));
    stream_->next_out = reinterpret_cast<Bytef*>(to);
    stream_->avail_out = wanted;
    const int result = inflate(stream_.get(), Z_NO_FLUSH);
    const uInt made = wanted - stream_->avail_out;
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    ended_ = result == Z_STREAM_END;
    if (result != Z_OK && !(result == Z_STREAM_END && made == count))
      bad_zip(fmt::format("the packed bytes of member '{}' are damaged", excerpt(member_.name)));
    to += made;
    count -= made;
  }
}

void ZipMemberReader::read(void* to, uint64_t count) {
  if (count == 0) return;
  if (count > member_.bytes - unpacked_)
    bad_zip(fmt::format("member '{}' has {} bytes, and more are needed", excerpt(member_.name),
                        member_.bytes));
  auto* bytes = static_cast<std::byte*>(to);
  if (member_.deflated)
    inflate_into(bytes, count);
  else
    read_exactly(file_, bytes, count, member_.offset + unpacked_);
  unpacked_ += count;
  crc_ = static_cast<uint32_t>(crc32_z(crc_, reinterpret_cast<const Bytef*>(bytes), count));
}

// Whether the packed bytes end where the unpacked ones do.
bool ZipMemberReader::at_end() {
  if (!stream_) return true;
  Bytef more = 0;
  while (!ended_) {
    if (stream_->avail_in == 0) refill();
    stream_->next_out = &more;
    stream_->avail_out = 1;
    const int result = inflate(stream_.get(), Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    ended_ = result == Z_STREAM_END;
    if (stream_->avail_out == 0 || (result != Z_OK && !ended_)) return false;
  }
  return taken_ == member_.stored_bytes && stream_->avail_in == 0;
}

void ZipMemberReader::finish(bool crc_optional) {
  if (unpacked_ != member_.bytes || !at_end())
    bad_zip(fmt::format("member '{}' does not have the {} bytes that it should",
                        excerpt(member_.name), member_.bytes));
  if (crc_ != member_.crc && !(crc_optional && member_.crc == 0))
    bad_zip(fmt::format("the CRC-32 of member '{}' does not match: its bytes were changed",
                        excerpt(member_.name)));
}

}  // namespace tenon
