// Reads zip archives (PKWARE's APPNOTE 6.3): those that torch.save and numpy.savez write, with
// members that are stored or deflated, and zip64.
//
// No library for archives is used: all of them unpack from the beginning of a member, and libzip
// brings five more libraries into every program. What is needed here is a table and zlib.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/core/base/input_file.h>

struct z_stream_s;

namespace tenon {

struct ZipMember {
  std::string name;
  uint64_t offset = 0;        // of its data in the file
  uint64_t stored_bytes = 0;  // in the file
  uint64_t bytes = 0;         // unpacked
  uint32_t crc = 0;           // CRC-32 of the unpacked bytes
  bool deflated = false;
};

// Returns the files in an archive, in the order of its directory; names are unique. Throws a
// CheckpointError for everything that those two programs do not write: members that overlap each
// other or are outside the file, a directory that differs from the headers of the members, more
// unpacked bytes than the packed ones can give, encryption, several disks.
std::vector<ZipMember> read_zip_directory(const InputFile& file);

// Unpacks one member from its beginning.
class ZipMemberReader {
 public:
  ZipMemberReader(const InputFile& file, const ZipMember& member);
  ~ZipMemberReader();
  ZipMemberReader(const ZipMemberReader&) = delete;

  // Reads the next `count` bytes. Throws a CheckpointError if the member ends before.
  void read(void* to, uint64_t count);
  // Throws a CheckpointError unless all bytes were read and their CRC is the recorded one.
  // `crc_optional`: a recorded CRC of 0 means that it was not computed.
  void finish(bool crc_optional = false);

 private:
  void inflate_into(std::byte* to, uint64_t count);
  void refill();
  bool at_end();

  const InputFile& file_;
  const ZipMember& member_;
  uint64_t unpacked_ = 0, taken_ = 0;  // bytes that were given out, and read from the file
  uint32_t crc_ = 0;
  bool ended_ = false;  // the packed bytes
  std::unique_ptr<z_stream_s> stream_;
  std::vector<unsigned char> packed_;
};

}  // namespace tenon
