// What libtenon and the program tenon-hdf5-reader say to each other over a socket. Neither side
// trusts the other. Both run on one machine, so structs are sent as they are in memory.
//
// The reader of a file of another program sends what the file contains. Then, for each number of a
// tensor that libtenon sends (64 bits), it sends the values.
//
// For a checkpoint without an index it gets no file, but the size of the image. It asks for pages
// of the image, which libtenon has compared with their checksums, and sends an index at last
// (index_wire.h).
#pragma once

#include <cstdint>

namespace tenon::hdf5_wire {

inline constexpr uint32_t kMagic = 0x32523554;  // "T5R2"; another number for another protocol

enum class FrameKind : uint32_t {
  contents,  // Contents, and then entries: an Entry, its path and its text each
  failure,   // a text: the file cannot be read
  values,    // values of a tensor, row-major and little-endian, in one frame or several
  fault,     // a text: the values of this tensor cannot be read
  page,      // the number of a page that is asked for, 64 bits
  index,     // an index
};

// In front of everything that the reader sends.
struct Frame {
  uint32_t magic;
  FrameKind kind;
  uint64_t bytes;  // that follow
};

struct Contents {
  // The file has a block in front of the HDF5 data, and the attribute of a checkpoint of Tenon's.
  uint32_t looks_like_checkpoint;
  uint32_t entries;
};

enum class EntryKind : uint8_t {
  tensor,
  unreadable,  // numbers that Tenon cannot read; the text says why
  left_out,    // no numbers, or a link; the text says what it is
};

// Types of elements as libtenon gets them.
enum class Type : uint8_t { f32, f64, f16, bf16, i64, i32, u8, boolean };

inline constexpr uint32_t kMaxRank = 8;

// A page of an image; the last one is shorter.
inline constexpr uint64_t kPageBytes = uint64_t{1} << 16;

// Attributes of a checkpoint: of the file, and of each tensor.
inline constexpr const char* kVersionName = "format_version";
inline constexpr const char* kWrappersName = "wrappers";
inline constexpr const char* kDtypeName = "dtype";

struct Entry {
  EntryKind kind;
  Type type;
  uint8_t rank;
  uint8_t reserved;
  uint32_t path_bytes, text_bytes, reserved_2;
  uint64_t dims[kMaxRank];
};

// Limits that both sides know.
inline constexpr uint64_t kMaxContentsBytes = uint64_t{64} << 20;
inline constexpr uint64_t kMaxTextBytes = 4096;
// Deflate makes at most 1032 bytes of one.
inline constexpr uint64_t kMaxExpansion = 1032;

}  // namespace tenon::hdf5_wire
