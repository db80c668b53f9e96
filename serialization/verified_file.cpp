#include <tenon/serialization/verified_file.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <tenon/core/error.h>
#include <tenon/serialization/header.h>

namespace tenon {
namespace {

constexpr size_t chunk_bytes = size_t{1} << 20;
constexpr size_t page_bytes = 4096, huge_page_bytes = size_t{2} << 20;

class File {
 public:
  explicit File(const std::filesystem::path& path)
      : path_(path.string()), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (file_ < 0 && errno == ENOENT) fail("there is no such file");
    if (file_ < 0) fail(std::system_category().message(errno));
    struct stat status {};
    if (fstat(file_, &status) != 0) fail(std::system_category().message(errno));
    if (S_ISDIR(status.st_mode)) fail("it is a folder");
    if (!S_ISREG(status.st_mode)) fail("it is not a regular file");
    size_ = static_cast<uint64_t>(status.st_size);
  }
  ~File() { close(file_); }
  File(const File&) = delete;

  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  [[noreturn]] void fail(const std::string& why) const { throw CheckpointError("cannot load checkpoint '" + path_ + "': " + why); }

  // Fewer bytes than asked for mean that the file ended.
  size_t read(std::byte* to, size_t count, uint64_t offset) const {
    size_t done = 0;
    while (done < count) {
      ssize_t n = pread(file_, to + done, count - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("reading failed: " + std::system_category().message(errno));
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  }

 private:
  std::string path_;
  int file_;
  uint64_t size_ = 0;
};

CheckpointHeader read_header(const File& file) {
  std::array<std::byte, checkpoint_header_bytes> first{};
  size_t count = file.read(first.data(), first.size(), 0);
  CheckpointHeader header = decode_header({first.data(), count}, file.path());
  const std::string sizes = std::to_string(file.size()) + " bytes instead of " + std::to_string(header.file_bytes);
  if (file.size() < header.file_bytes) file.fail("the file is cut off: it has " + sizes);
  if (file.size() > header.file_bytes) file.fail("the file is too long: it has " + sizes + "; something was added to it");
  if (header.file_bytes <= checkpoint_header_bytes) file.fail("the file holds nothing behind its header");
  return header;
}

}  // namespace

void VerifiedFile::Free::operator()(std::byte* bytes) const { std::free(bytes); }

VerifiedFile::VerifiedFile(const std::filesystem::path& path) {
  File file(path);
  CheckpointHeader header = read_header(file);
  size_ = header.file_bytes;
  const bool large = size_ >= 2 * huge_page_bytes;
  const size_t alignment = large ? huge_page_bytes : page_bytes;
  bytes_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, (size_ + alignment - 1) / alignment * alignment)));
  if (!bytes_) file.fail("there is no memory for its " + std::to_string(size_) + " bytes");
  if (large) madvise(bytes_.get(), size_, MADV_HUGEPAGE);  // fewer page faults: a quarter of the time
  Checksummer found;
  for (uint64_t offset = 0; offset < size_; offset += chunk_bytes) {
    size_t count = std::min<uint64_t>(chunk_bytes, size_ - offset);
    if (file.read(bytes_.get() + offset, count, offset) != count) file.fail("the file became shorter while it was read");
    size_t skip = offset == 0 ? checkpoint_header_bytes : 0;
    found.add(bytes_.get() + offset + skip, count - skip);
  }
  // The header in front was read once more; it has to be the one that was checked.
  if (!std::equal(bytes_.get(), bytes_.get() + checkpoint_header_bytes, encode_header(header).begin()))
    file.fail("the file was changed while it was read");
  if (found.result() != header.body)
    file.fail("its checksum does not match: the file was damaged, or changed by another program, since it was written");
  try {
    contents_ = read_image(image());
  } catch (const CheckpointError& error) {
    file.fail(error.what());
  }
}

}  // namespace tenon
