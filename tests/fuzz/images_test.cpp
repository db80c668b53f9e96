// JPEG and PNG files, of every kind that the seeds have; the chunks of PNG have right CRC-32s.
#include <boost/test/unit_test.hpp>
#include <zlib.h>

#include <tenon/core/error.h>
#include <tenon/core/tensor.h>
#include <tenon/data/image_file.h>

#include "fuzz/targets.h"

BOOST_AUTO_TEST_SUITE(images_test)

using namespace tenon;
using namespace tenon::test::fuzz;

namespace {

bool image_is_refused(std::string_view bytes) {
  return is_refused<DataError>([&] {
    data::decode_image(std::as_bytes(std::span(bytes)), {.channels = 0, .max_pixels = 1 << 20});
  });
}

// After the signature: length, name, bytes and CRC-32 of each chunk, big-endian.
std::string with_sums(std::string png) {
  const auto* bytes = reinterpret_cast<const Bytef*>(png.data());
  for (size_t at = 8; at + 12 <= png.size();) {
    uint64_t length = 0;
    for (size_t i = 0; i < 4; ++i) length = length << 8 | bytes[at + i];
    if (length > png.size() - at - 12) break;
    const auto sum = crc32(0, bytes + at + 4, static_cast<uInt>(length + 4));
    for (size_t i = 0; i < 4; ++i)
      png[at + 8 + length + i] = static_cast<char>(sum >> (24 - 8 * i));
    at += 12 + length;
  }
  return png;
}

Target jpeg() {
  return {.name = "jpeg",
          .one_input = image_is_refused,
          .seeds = seed_files(".jpg"),
          .words = {"\xff\xd8", "\xff\xd9", "\xff\xda", "\xff\xc0", "\xff\xc2", "\xff\xc4",
                    "\xff\xdb", "\xff\xdd", "\xff\xe0", std::string(2, '\xff')}};
}
Target png() {
  return {.name = "png",
          .one_input = image_is_refused,
          .seeds = seed_files(".png"),
          .words = {"IHDR", "IDAT", "PLTE", "tRNS", "IEND", "gAMA", "iCCP",
                    std::string("\0\0\x10\0", 4)},
          .finish = with_sums};
}

}  // namespace

BOOST_AUTO_TEST_CASE(jpeg_files) { try_inputs(jpeg()); }
BOOST_AUTO_TEST_CASE(png_files) { try_inputs(png()); }

BOOST_AUTO_TEST_SUITE_END()
