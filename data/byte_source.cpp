#include <algorithm>
#include <cstring>
#include <new>
#include <system_error>

#include <zlib.h>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/data/byte_source.h>

namespace tenon::data {

constexpr size_t kChunkBytes = 64 << 10;
constexpr uint64_t kMaxPacked = 1032;  // the best compression ratio of deflate

struct ByteSource::Inflater {
  z_stream stream{};
  bool between_members = false;
  Inflater() {
    if (inflateInit2(&stream, 15 + 16) != Z_OK)
      throw std::bad_alloc();  // the only reason why it cannot start
  }
  ~Inflater() { inflateEnd(&stream); }
};

ByteSource::ByteSource(const std::filesystem::path& path)
    : file_(path, "cannot read", InputFile::throw_as<DataError>) {
  packed_.resize(kChunkBytes);
  if (fill() && end_ >= 2 && packed_[0] == 0x1f && packed_[1] == 0x8b)
    inflater_ = std::make_unique<Inflater>();
}
ByteSource::~ByteSource() = default;

void ByteSource::fail(const std::string& why) const { file_.fail(why); }

// Reads the next piece of the file, after the earlier one was used. Returns false at the end of the
// file.
bool ByteSource::fill() {
  begin_ = 0;
  end_ = file_.read(packed_.data(), packed_.size(), position_);
  position_ += end_;
  return end_ > 0;
}

size_t ByteSource::inflate_into(unsigned char* to, size_t count) {
  z_stream& z = inflater_->stream;
  size_t done = 0;
  while (done < count) {
    if (begin_ == end_ && !fill()) {
      if (inflater_->between_members) break;
      fail("the gzip data is cut off");
    }
    if (inflater_->between_members) {
      if (packed_[begin_] != 0x1f) fail("something else follows the gzip data");
      inflateReset(&z);
      inflater_->between_members = false;
    }
    z.next_in = packed_.data() + begin_;
    z.avail_in = static_cast<uInt>(end_ - begin_);
    z.next_out = to + done;
    z.avail_out = static_cast<uInt>(std::min<size_t>(count - done, 1 << 30));
    const uInt asked = z.avail_out;
    const int status = inflate(&z, Z_NO_FLUSH);
    begin_ = end_ - z.avail_in;
    done += asked - z.avail_out;
    if (status == Z_STREAM_END)
      inflater_->between_members = true;
    else if (status == Z_MEM_ERROR)
      throw std::bad_alloc();
    else if (status != Z_OK && status != Z_BUF_ERROR)
      fail(fmt::format("the gzip data is corrupt ({})", z.msg ? z.msg : zError(status)));
  }
  return done;
}

size_t ByteSource::read(void* to, size_t count) {
  auto* out = static_cast<unsigned char*>(to);
  size_t done = 0;
  if (inflater_) {
    done = inflate_into(out, count);
  } else {
    while (done < count && (begin_ < end_ || fill())) {
      size_t n = std::min(count - done, end_ - begin_);
      std::memcpy(out + done, packed_.data() + begin_, n);
      begin_ += n, done += n;
    }
  }
  given_ += done;
  return done;
}

void ByteSource::read_exactly(void* to, size_t count, const char* what) {
  const uint64_t before = given_;
  if (size_t found = read(to, count); found != count)
    fail(fmt::format("cut off in {}: expected {} bytes from position {}, found {}", what, count,
                     before, found));
}

void ByteSource::expect_end(const std::string& expected) {
  char more;
  const uint64_t before = given_;
  if (read(&more, 1) != 0)
    fail(fmt::format("it goes on after {} bytes, where {} end", before, expected));
}

void ByteSource::expect_room_for(uint64_t count, const std::string& what) const {
  uint64_t most = file_.size();
  if (inflater_ && __builtin_mul_overflow(most, kMaxPacked, &most)) most = UINT64_MAX;
  if (count > most)
    fail(fmt::format("{} would take {} bytes, which a file of {} bytes cannot hold", what, count,
                     file_.size()));
}

std::filesystem::path look_for_plain_or_gz(const std::filesystem::path& folder,
                                           const std::string& name) {
  std::error_code error;
  for (const char* ending : {"", ".gz"})
    if (std::filesystem::path path = folder / (name + ending); std::filesystem::exists(path, error))
      return path;
  return {};
}

std::filesystem::path find_plain_or_gz(const std::filesystem::path& folder,
                                       const std::string& name) {
  std::filesystem::path path = look_for_plain_or_gz(folder, name);
  std::error_code error;
  if (!path.empty()) return path;
  if (!std::filesystem::is_directory(folder, error))
    throw DataError(fmt::format("there is no folder '{}'", printable(folder.native())));
  throw DataError(fmt::format("there is neither '{0}' nor '{0}.gz' in folder '{1}'", name,
                              printable(folder.native())));
}

}  // namespace tenon::data
