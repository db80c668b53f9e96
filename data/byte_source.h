// The bytes of a file, unpacked where it is gzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <tenon/core/base/input_file.h>

namespace tenon::data {

// Every error is a DataError that begins with the path, but for std::bad_alloc (see
// naming_lack_of_memory). zlib's own gzread takes what follows a gzip stream for nothing at all;
// this reports it.
class ByteSource {
 public:
  explicit ByteSource(const std::filesystem::path& path);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;

  // Up to `count` bytes; fewer only at the end.
  size_t read(void* to, size_t count);
  // All of `count` bytes; DataError "cut off in <what>" otherwise.
  void read_exactly(void* to, size_t count, const char* what);
  // DataError where anything is left.
  void expect_end(const std::string& expected);
  // DataError where the file cannot hold `count` bytes, however well it is packed. To be asked
  // before memory is taken for them.
  void expect_room_for(uint64_t count, const std::string& what) const;

  [[noreturn]] void fail(const std::string& why) const;

 private:
  struct Inflater;
  bool fill();
  size_t inflate_into(unsigned char* to, size_t count);

  InputFile file_;
  uint64_t position_ = 0;  // of the next piece of the file
  uint64_t given_ = 0;
  std::vector<unsigned char> packed_;
  size_t begin_ = 0, end_ = 0;  // of what is not used yet in packed_
  std::unique_ptr<Inflater> inflater_;
};

// `folder`/`name`, or with ".gz" behind it; DataError where neither is there.
std::filesystem::path find_plain_or_gz(const std::filesystem::path& folder,
                                       const std::string& name);
// Empty where neither is there.
std::filesystem::path look_for_plain_or_gz(const std::filesystem::path& folder,
                                           const std::string& name);

}  // namespace tenon::data
