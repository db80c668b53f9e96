// The bytes of a file, which is unpacked if it is a gzip file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <tenon/core/base/input_file.h>

namespace tenon::data {

// All errors are DataErrors that begin with the path, except std::bad_alloc (see
// naming_lack_of_memory). Bytes after a gzip stream, which zlib's own gzread ignores, are an error.
class ByteSource {
 public:
  explicit ByteSource(const std::filesystem::path& path);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;

  // Reads up to `count` bytes and returns their number, which is smaller only at the end.
  size_t read(void* to, size_t count);
  // Reads exactly `count` bytes. Throws the DataError "cut off in <what>" if there are fewer.
  void read_exactly(void* to, size_t count, const char* what);
  // Throws a DataError unless everything has been read.
  void expect_end(const std::string& expected);
  // Throws a DataError if the file cannot contain `count` bytes, however well it is packed. Call it
  // before allocating memory for them.
  void expect_room_for(uint64_t count, const std::string& what) const;

  [[noreturn]] void fail(const std::string& why) const;

 private:
  struct Inflater;
  bool fill();
  size_t inflate_into(unsigned char* to, size_t count);

  InputFile file_;
  uint64_t position_ = 0;  // where the next piece of the file begins
  uint64_t given_ = 0;     // bytes that were read by the caller
  std::vector<unsigned char> packed_;
  size_t begin_ = 0, end_ = 0;  // the part of packed_ that is not used yet
  std::unique_ptr<Inflater> inflater_;
};

// Returns the path `folder`/`name`, or the same with ".gz" added. Throws a DataError if neither
// file exists.
std::filesystem::path find_plain_or_gz(const std::filesystem::path& folder,
                                       const std::string& name);
// Returns the same path, or an empty one if neither file exists.
std::filesystem::path look_for_plain_or_gz(const std::filesystem::path& folder,
                                           const std::string& name);

}  // namespace tenon::data
