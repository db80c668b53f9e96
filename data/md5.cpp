#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include <tenon/core/base/input_file.h>
#include <tenon/core/error.h>
#include <tenon/data/md5.h>

namespace tenon::data {
namespace {

constexpr size_t kBlockBytes = 64;
constexpr int kShifts[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

// floor(2^32 |sin(i + 1)|), as the RFC defines the table.
std::array<uint32_t, 64> sine_table() {
  std::array<uint32_t, 64> table;
  for (size_t i = 0; i < table.size(); ++i)
    table[i] =
        static_cast<uint32_t>(std::floor(std::abs(std::sin(static_cast<double>(i + 1))) * 0x1p32));
  return table;
}
const auto sines = sine_table();

class Md5 {
 public:
  void add(const unsigned char* bytes, size_t count) {
    total_ += count;
    while (count > 0) {
      const size_t n = std::min(count, kBlockBytes - filled_);
      std::memcpy(block_ + filled_, bytes, n);
      filled_ += n, bytes += n, count -= n;
      if (filled_ == kBlockBytes) mix();
    }
  }

  std::string finish() {
    const uint64_t bits = total_ * 8;
    unsigned char length[8];
    for (int i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(bits >> (8 * i));
    const unsigned char one = 0x80, zero = 0;
    add(&one, 1);
    while (filled_ != kBlockBytes - 8) add(&zero, 1);
    add(length, 8);
    std::string text;
    for (uint32_t word : state_)
      for (int i = 0; i < 4; ++i) {
        const uint32_t byte = word >> (8 * i) & 0xFF;
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
      }
    return text;
  }

 private:
  void mix() {
    uint32_t words[16];
    for (int i = 0; i < 16; ++i)
      words[i] = uint32_t{block_[4 * i]} | uint32_t{block_[4 * i + 1]} << 8 |
                 uint32_t{block_[4 * i + 2]} << 16 | uint32_t{block_[4 * i + 3]} << 24;
    auto [a, b, c, d] = state_;
    for (uint32_t i = 0; i < 64; ++i) {
      const uint32_t round = i / 16;
      const uint32_t f = round == 0   ? (b & c) | (~b & d)
                         : round == 1 ? (d & b) | (~d & c)
                         : round == 2 ? b ^ c ^ d
                                      : c ^ (b | ~d);
      const uint32_t g = (round == 0   ? i
                          : round == 1 ? 5 * i + 1
                          : round == 2 ? 3 * i + 5
                                       : 7 * i) %
                         16;
      const uint32_t turned = std::rotl(a + f + sines[i] + words[g], kShifts[round][i % 4]);
      a = d, d = c, c = b, b += turned;
    }
    state_[0] += a, state_[1] += b, state_[2] += c, state_[3] += d;
    filled_ = 0;
  }

  std::array<uint32_t, 4> state_ = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  unsigned char block_[kBlockBytes];
  size_t filled_ = 0;
  uint64_t total_ = 0;
};

}  // namespace

std::string md5(std::span<const unsigned char> bytes) {
  Md5 hash;
  hash.add(bytes.data(), bytes.size());
  return hash.finish();
}

std::string md5_of_file(const std::filesystem::path& path) {
  const InputFile file(path, "cannot read", InputFile::throw_as<DataError>);
  Md5 hash;
  std::vector<unsigned char> chunk(size_t{1} << 18);
  uint64_t at = 0;
  while (const size_t count = file.read(chunk.data(), chunk.size(), at)) {
    hash.add(chunk.data(), count);
    at += count;
  }
  return hash.finish();
}

}  // namespace tenon::data
