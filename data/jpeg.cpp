#include <cstdio>  // jpeglib.h needs it

#include <jerror.h>
#include <jpeglib.h>

#include <tenon/data/image_codec.h>

namespace tenon::data {
namespace {

// A progressive file may have thousands of scans of few bytes, each of which goes over the whole
// image.
constexpr int kMaxScans = 500;

struct Jpeg {
  jpeg_decompress_struct info;
  jpeg_error_mgr errors;
  jpeg_progress_mgr progress;
  Decoder* decoder;
};

Jpeg& jpeg_of(j_common_ptr info) { return *static_cast<Jpeg*>(info->client_data); }

[[noreturn]] void fail_jpeg(j_common_ptr info) {
  Jpeg& jpeg = jpeg_of(info);
  char text[JMSG_LENGTH_MAX];
  jpeg.errors.format_message(info, text);
  jpeg.decoder->fail(text);
}

// Warnings are about data that is lost, except these.
void warn_jpeg(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_JFIF_MAJOR:
    case JWRN_ADOBE_XFORM:
    case JWRN_TOO_MUCH_DATA:
    case JWRN_BOGUS_PROGRESSION:
      return;
    default:
      fail_jpeg(info);
  }
}

void ignore_jpeg(j_common_ptr) {}

void watch_jpeg(j_common_ptr info) {
  Jpeg& jpeg = jpeg_of(info);
  if (jpeg.info.input_scan_number > kMaxScans)
    jpeg.decoder->fail("it has more than 500 scans, which only serve to keep a reader busy");
}

J_COLOR_SPACE color_space_of(const Jpeg& jpeg) {
  const J_COLOR_SPACE stored = jpeg.info.jpeg_color_space;
  if (stored == JCS_CMYK || stored == JCS_YCCK) return JCS_CMYK;
  const bool grey = jpeg.decoder->wanted == 0 ? stored == JCS_GRAYSCALE : jpeg.decoder->wanted == 1;
  return grey ? JCS_GRAYSCALE : JCS_RGB;
}

// Ink to light, in place: four numbers a pixel become three. Adobe stores ink upside down.
void to_rgb(Decoder& decoder, bool inverted) {
  const unsigned char* from = decoder.pixels.data();
  unsigned char* to = decoder.pixels.data();
  for (int64_t i = 0; i < decoder.width * decoder.height; ++i, from += 4, to += 3) {
    const int black = inverted ? from[3] : 255 - from[3];
    for (int c = 0; c < 3; ++c)
      to[c] = static_cast<unsigned char>((inverted ? from[c] : 255 - from[c]) * black / 255);
  }
  decoder.channels = 3;
}

void read_jpeg(Decoder& decoder) {
  Jpeg& jpeg = *static_cast<Jpeg*>(decoder.codec);
  jpeg_decompress_struct& info = jpeg.info;
  jpeg_create_decompress(&info);
  info.progress = &jpeg.progress;
  jpeg_mem_src(&info, decoder.file.data(), static_cast<unsigned long>(decoder.file.size()));
  jpeg_read_header(&info, TRUE);
  info.out_color_space = color_space_of(jpeg);
  decoder.width = info.image_width, decoder.height = info.image_height;
  decoder.channels = info.out_color_space == JCS_GRAYSCALE ? 1
                     : info.out_color_space == JCS_RGB     ? 3
                                                           : 4;
  decoder.make_room();
  jpeg_start_decompress(&info);
  const size_t row = static_cast<size_t>(decoder.width * decoder.channels);
  while (info.output_scanline < info.output_height) {
    JSAMPROW to = decoder.pixels.data() + info.output_scanline * row;
    jpeg_read_scanlines(&info, &to, 1);
  }
  jpeg_finish_decompress(&info);
  if (decoder.channels == 4) to_rgb(decoder, info.saw_Adobe_marker);
}

}  // namespace

bool decode_jpeg(Decoder& decoder) {
  Jpeg jpeg{};
  jpeg.decoder = &decoder;
  jpeg.info.err = jpeg_std_error(&jpeg.errors);
  jpeg.info.client_data = &jpeg;
  jpeg.errors.error_exit = fail_jpeg;
  jpeg.errors.emit_message = warn_jpeg;
  jpeg.errors.output_message = ignore_jpeg;
  jpeg.progress.progress_monitor = watch_jpeg;
  decoder.codec = &jpeg;
  const bool done = decoder.run(read_jpeg);
  jpeg_destroy_decompress(&jpeg.info);
  return done;
}

}  // namespace tenon::data
