#include <algorithm>
#include <cstring>

#include <png.h>

#include <tenon/data/image_codec.h>

namespace tenon::data {
namespace {

constexpr size_t kMaxChunk = size_t{8} << 20;  // of text and profiles, which may be packed

struct Png {
  png_structp png = nullptr;
  png_infop info = nullptr;
  size_t given = 0;  // how many bytes of the file were read
};

[[noreturn]] void fail_png(png_structp png, png_const_charp why) {
  static_cast<Decoder*>(png_get_error_ptr(png))->fail(why);
}
void ignore_png(png_structp, png_const_charp) {}

void read_file(png_structp png, png_bytep to, size_t count) {
  auto& decoder = *static_cast<Decoder*>(png_get_io_ptr(png));
  auto& given = static_cast<Png*>(decoder.codec)->given;
  if (count > decoder.file.size() - given) decoder.fail("it is cut off");
  std::memcpy(to, decoder.file.data() + given, count);
  given += count;
}

void read_png(Decoder& decoder) {
  Png& own = *static_cast<Png*>(decoder.codec);
  own.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &decoder, fail_png, ignore_png);
  if (!own.png) decoder.fail("libpng cannot begin");
  own.info = png_create_info_struct(own.png);
  if (!own.info) decoder.fail("libpng cannot begin");
  png_set_read_fn(own.png, &decoder, read_file);
  png_set_user_limits(own.png, 0x7fffffff, 0x7fffffff);  // check_size knows better
  png_set_chunk_malloc_max(own.png, kMaxChunk);
  png_set_chunk_cache_max(own.png, 100);
  png_read_info(own.png, own.info);
  decoder.width = png_get_image_width(own.png, own.info);
  decoder.height = png_get_image_height(own.png, own.info);
  decoder.check_size();
  png_set_expand(
      own.png);  // a palette to colours, fewer than 8 bits to 8, a transparent colour to alpha
  png_set_scale_16(own.png);
  const int passes = png_set_interlace_handling(own.png);
  png_read_update_info(own.png, own.info);
  decoder.channels = png_get_channels(own.png, own.info);
  decoder.make_room();
  const auto row = static_cast<size_t>(decoder.width * decoder.channels);
  if (png_get_rowbytes(own.png, own.info) != row) decoder.fail("its rows have an unknown layout");
  if (passes > 1) std::fill(decoder.pixels.begin(), decoder.pixels.end(), 0);
  for (int pass = 0; pass < passes; ++pass)
    for (int64_t y = 0; y < decoder.height; ++y)
      png_read_row(own.png, decoder.pixels.data() + static_cast<size_t>(y) * row, nullptr);
  png_read_end(own.png, nullptr);
}

}  // namespace

bool decode_png(Decoder& decoder) {
  Png png;
  decoder.codec = &png;
  const bool done = decoder.run(read_png);
  png_destroy_read_struct(&png.png, &png.info, nullptr);
  return done;
}

}  // namespace tenon::data
