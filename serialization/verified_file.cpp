#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>

#include <sys/mman.h>

#include <tenon/core/base/input_file.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/serialization/header.h>
#include <tenon/serialization/verified_file.h>

namespace tenon {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr size_t kPageBytes = 4096, kHugePageBytes = size_t{2} << 20;

using FirstBytes = std::array<std::byte, kCheckpointHeaderBytes>;

CheckpointHeader read_header(const InputFile& file, FirstBytes& first) {
  size_t count = file.read(first.data(), first.size(), 0);
  CheckpointHeader header;
  try {
    header = decode_header({first.data(), count});
  } catch (const CheckpointError& error) {
    file.fail(error.what());
  }
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

}  // namespace

void VerifiedFile::Free::operator()(std::byte* bytes) const { std::free(bytes); }

VerifiedFile::VerifiedFile(const std::filesystem::path& path) {
  const InputFile file(path, "cannot load checkpoint", InputFile::throw_as<CheckpointError>);
  FirstBytes first{};
  const CheckpointHeader header = read_header(file, first);
  size_ = header.file_bytes;
  const bool large = size_ >= 2 * kHugePageBytes;
  const size_t alignment = large ? kHugePageBytes : kPageBytes;
  bytes_.reset(static_cast<std::byte*>(
      std::aligned_alloc(alignment, (size_ + alignment - 1) / alignment * alignment)));
  if (!bytes_) throw std::bad_alloc();
  if (large)
    madvise(bytes_.get(), size_, MADV_HUGEPAGE);  // fewer page faults: a quarter of the time
  Checksummer found;
  for (uint64_t offset = 0; offset < size_; offset += kPieceBytes) {
    size_t count = std::min<uint64_t>(kPieceBytes, size_ - offset);
    if (file.read(bytes_.get() + offset, count, offset) != count)
      file.fail("the file became shorter while it was read");
    size_t skip = offset == 0 ? kCheckpointHeaderBytes : 0;
    found.add(bytes_.get() + offset + skip, count - skip);
  }
  // The header was read a second time and has to be the one that was checked.
  if (!std::equal(first.begin(), first.end(), bytes_.get()))
    file.fail("the file was changed while it was read");
  if (found.result() != header.body)
    file.fail(
        "its checksum does not match: the file was damaged, or changed by another program, since "
        "it was written");
  try {
    contents_ = read_image(image());
  } catch (const CheckpointError& error) {
    file.fail(error.what());
  }
}

}  // namespace tenon
