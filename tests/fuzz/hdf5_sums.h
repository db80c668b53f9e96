// The checksums inside HDF5 files (version 2 of its structures), so that changed files have right
// ones: without them HDF5 refuses most changes before it comes to what it does not survive.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "serialization/sealed.h"

namespace tenon::test::fuzz {

// Where one is, and of what: of the bytes from `begin` to `end`, with its own taken for zeros if it
// is among them.
struct Hdf5Sum {
  size_t begin, end, at;
  bool inside() const { return at < end; }
};

namespace detail {

inline uint32_t word_at(std::string_view bytes, size_t at) {
  uint32_t word = 0;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}
inline uint32_t sum_of(std::string_view bytes, const Hdf5Sum& sum) {
  std::string part(bytes.substr(sum.begin, sum.end - sum.begin));
  if (sum.inside()) std::memset(part.data() + (sum.at - sum.begin), 0, 4);
  return lookup3(reinterpret_cast<const unsigned char*>(part.data()), part.size());
}

// A structure ends with its checksum, and where that is nobody has to know who tries each place.
inline bool find_at_end(std::string_view bytes, size_t begin, std::vector<Hdf5Sum>& sums) {
  const size_t most = std::min<size_t>(bytes.size() - begin, 4096);
  for (size_t length = 8; length + 4 <= most; ++length) {
    const Hdf5Sum sum{begin, begin + length, begin + length};
    if (word_at(bytes, sum.at) == sum_of(bytes, sum)) return sums.push_back(sum), true;
  }
  return false;
}
// But in a block of a heap, whose size is a power of two, it stands among the first bytes.
inline bool find_inside(std::string_view bytes, size_t begin, std::vector<Hdf5Sum>& sums) {
  for (size_t length = 256; length <= bytes.size() - begin && length <= 65536; length *= 2)
    for (size_t at = 13; at <= 24; ++at) {
      const Hdf5Sum sum{begin, begin + length, begin + at};
      if (word_at(bytes, sum.at) == sum_of(bytes, sum)) return sums.push_back(sum), true;
    }
  return false;
}

}  // namespace detail

// All checksums of a file whose checksums are right.
inline std::vector<Hdf5Sum> find_hdf5_sums(const std::string& bytes) {
  std::vector<Hdf5Sum> sums;
  for (const std::string_view name :
       {std::string_view("OHDR"), std::string_view("OCHK"), std::string_view("BTHD"),
        std::string_view("BTIN"), std::string_view("BTLF"), std::string_view("FRHP"),
        std::string_view("FHDB"), std::string_view("FHIB"),
        std::string_view("\x89HDF\r\n\x1a\n", 8)})
    for (size_t at = bytes.find(name); at != bytes.npos; at = bytes.find(name, at + 1))
      if (!(name == "FHDB" && detail::find_inside(bytes, at, sums)))
        detail::find_at_end(bytes, at, sums);
  return sums;
}

// Makes those right again that a file of this length has.
inline void make_hdf5_sums_right(std::string& bytes, const std::vector<Hdf5Sum>& sums) {
  for (const Hdf5Sum& sum : sums) {
    if (std::max(sum.end, sum.at + 4) > bytes.size()) continue;
    const uint32_t word = detail::sum_of(bytes, sum);
    std::memcpy(bytes.data() + sum.at, &word, sizeof word);
  }
}

}  // namespace tenon::test::fuzz
