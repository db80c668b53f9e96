// The bytes of an index: what a checkpoint holds, readable without HDF5. It is stored in
// checkpoints (docs/checkpoints.md describes it), and tenon-hdf5-reader makes it for older ones
// that have none. Numbers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::index_wire {

inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kNoWrappers = ~uint32_t{0};  // they were not recorded

// In front. Then come, as they are counted here: the wrappers, a length of 32 bits and a text each;
// groups; tensors.
struct Head {
  uint32_t version, wrappers, groups, reserved;
  uint64_t tensors;
};
// Followed by its name, and by what is wrong with it if the reader cannot read it.
struct Group {
  uint32_t name_bytes, fault_bytes;
};
// Followed by its dimensions, 64 bits each, and its key.
struct Tensor {
  uint32_t group;  // 0: of the model; else the number of the group, from 1
  uint32_t key_bytes;
  uint8_t type;  // hdf5_wire::Type
  uint8_t rank;
  uint8_t reserved[6];
  uint64_t offset;  // of its values in the file; 0 if it has no elements
};
static_assert(sizeof(Head) == 24 && sizeof(Group) == 8 && sizeof(Tensor) == 24);

template <class T>
void put(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}
inline void put_text(std::string& bytes, std::string_view text) {
  put(bytes, static_cast<uint32_t>(text.size()));
  bytes += text;
}

}  // namespace tenon::index_wire
