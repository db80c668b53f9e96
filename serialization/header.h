// The 512 bytes in front of the HDF5 data (its user block), which make every byte of a checkpoint
// verifiable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <tenon/serialization/checksum.h>

namespace tenon {

inline constexpr size_t checkpoint_header_bytes = 512;
inline constexpr uint32_t checkpoint_format_version = 1;

struct CheckpointHeader {
  uint64_t file_bytes = 0;  // the whole file, this header included
  Checksum body;            // of everything behind this header
};

std::array<std::byte, checkpoint_header_bytes> encode_header(const CheckpointHeader& header);

// Whether a file that begins with these bytes can be a checkpoint; true where there are too few to
// tell.
bool begins_as_checkpoint(std::span<const std::byte> first_bytes);

// CheckpointError where the bytes are not an intact header of a known version. `first_bytes` is the
// file's beginning: shorter than a header where the file is. Bytes without a meaning, such as the
// line of text, may be anything: their checksum covers them.
CheckpointHeader decode_header(std::span<const std::byte> first_bytes);

}  // namespace tenon
