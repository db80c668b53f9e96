// The header of a checkpoint: the 512 bytes in front of the HDF5 data (its user block), with the
// checksums by which every byte of the file is verified.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <tenon/serialization/checksum.h>

namespace tenon {

inline constexpr size_t kCheckpointHeaderBytes = 512;
inline constexpr uint32_t kCheckpointFormatVersion = 1;

// The checksums of a checkpoint's pieces lie in a row at its end: so parts of the file are verified
// without the rest, and by several threads. A piece is what lies between two multiples of this
// number of bytes, after the header and before the checksums.
inline constexpr uint64_t kCheckpointPieceBytes = uint64_t{1} << 16;

struct CheckpointHeader {
  uint64_t file_bytes = 0;  // the size of the file, including this header
  Checksum body;            // the checksum of everything after this header
  uint64_t pieces_at = 0;   // where the checksums of the pieces begin; 0 if there are none
  Checksum pieces;          // the checksum of these checksums
  uint64_t index_at = 0;    // where the index begins; 0 if there is none
  uint64_t index_bytes = 0;
};
// Returns how many pieces a file has whose checksums of them begin at `pieces_at`.
inline uint64_t count_of_pieces(uint64_t pieces_at) {
  return (pieces_at + kCheckpointPieceBytes - 1) / kCheckpointPieceBytes;
}

// Returns the bytes of a header.
std::array<std::byte, kCheckpointHeaderBytes> encode_header(const CheckpointHeader& header);

// Whether a file that begins with these bytes can be a checkpoint; true if there are too few bytes
// to tell.
bool begins_as_checkpoint(std::span<const std::byte> first_bytes);

// Whether the first bytes of a file have the line of text that Tenon writes into a header: the rest
// of a header may be damaged.
bool has_checkpoint_note(std::span<const std::byte> first_bytes);

// Reads the header from the first bytes of a file, which are fewer than a header if the file is
// shorter. Throws a CheckpointError unless they are an intact header of a known version. Bytes
// without a meaning, such as the line of text, are covered by the checksum and otherwise ignored.
CheckpointHeader decode_header(std::span<const std::byte> first_bytes);

// Returns the checksum of a header, which depends on every byte of its file.
Checksum checksum_of_header(std::span<const std::byte, kCheckpointHeaderBytes> header);

}  // namespace tenon
