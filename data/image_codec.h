// What unpacks JPEG and PNG.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tenon::data {

// How many pixels a row of an image in a file may have.
inline constexpr int64_t kMaxImageWidth = int64_t{1} << 22;

// A file on its way to pixels. The libraries report errors by longjmp, so nothing that has a
// destructor may live in a function between Decoder::run and them: all of it is in here.
struct Decoder {
  std::span<const unsigned char> file;
  int64_t wanted = 3;  // channels, 0 for those of the file
  int64_t max_pixels = 0;

  int64_t width = 0, height = 0;
  int64_t channels = 0;               // of `pixels`
  std::vector<unsigned char> pixels;  // interleaved, row by row
  char error[256] = "";               // why it failed, where it did

  std::jmp_buf jump;
  void* codec = nullptr;  // what the library knows of the file
  [[noreturn]] void fail(const char* why);
  // Fails if there are no pixels, or more than max_pixels. To be called before a library takes
  // memory for a row.
  void check_size();
  // Makes room for the pixels, if the size is right.
  void make_room();
  // Runs body(*this) and returns whether it came to its end.
  bool run(void (*body)(Decoder&));
};

// Return whether the file could be unpacked; `error` says why not.
bool decode_jpeg(Decoder& decoder);
bool decode_png(Decoder& decoder);

}  // namespace tenon::data
