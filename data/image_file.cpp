#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>

#include <tenon/core/base/host_room.h>
#include <tenon/core/base/input_file.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/data/image_batch.h>
#include <tenon/data/image_codec.h>
#include <tenon/data/image_file.h>

namespace tenon::data {

void Decoder::fail(const char* why) {
  std::snprintf(error, sizeof error, "%s", why);
  std::longjmp(jump, 1);
}

void Decoder::check_size() {
  if (width <= 0 || height <= 0) fail("it has no pixels");
  const auto w = static_cast<long long>(width), h = static_cast<long long>(height);
  if (width > max_pixels / height) {
    std::snprintf(error, sizeof error, "it claims %lld × %lld pixels, and max_pixels allows %lld",
                  w, h, static_cast<long long>(max_pixels));
    std::longjmp(jump, 1);
  }
  if (width > kMaxImageWidth) {  // libpng takes memory for several rows of up to 8 bytes a pixel
    std::snprintf(error, sizeof error, "it claims %lld × %lld pixels, and a row has at most %lld",
                  w, h, static_cast<long long>(kMaxImageWidth));
    std::longjmp(jump, 1);
  }
}

void Decoder::make_room() {
  check_size();
  const auto bytes = static_cast<size_t>(width * height * channels);
  bool there = host_has_room(bytes, 2);
  try {
    if (there) pixels.resize(bytes);
  } catch (const std::bad_alloc&) {
    there = false;
  }
  if (!there) fail("the host has no memory for its pixels");
}

bool Decoder::run(void (*body)(Decoder&)) {
  if (setjmp(jump) != 0) return false;
  body(*this);
  return true;
}

namespace {

constexpr unsigned char kPngMagic[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
constexpr unsigned char kJpegMagic[] = {0xff, 0xd8, 0xff};

template <size_t N>
bool begins_with(std::span<const unsigned char> file, const unsigned char (&magic)[N]) {
  return file.size() >= N && std::equal(magic, magic + N, file.begin());
}

void check(const ImageFileOptions& options) {
  if (options.channels != 0 && options.channels != 1 && options.channels != 3 &&
      options.channels != 4)
    throw ValueError(fmt::format(
        "read_image: channels are 1 (grey), 3 (red, green, blue), 4 (and alpha) or 0 (those of the "
        "file), not {}",
        options.channels));
  if (options.max_pixels < 1 || options.max_pixels > int64_t{1} << 32)
    throw ValueError(fmt::format("read_image: max_pixels has to be from 1 to 2^32, but is {}",
                                 options.max_pixels));
}

// Takes pixels of 1 (grey), 2 (grey, alpha), 3 or 4 channels apart into planes of the channels that
// are wanted.
void take_apart(const Decoder& decoder, Image& image) {
  const int64_t has = decoder.channels, wanted = decoder.wanted ? decoder.wanted : has,
                count = decoder.width * decoder.height;
  image.remake(DType::u8, wanted, decoder.height, decoder.width);
  uint8_t* to = image.pixels<uint8_t>().data();
  const unsigned char* from = decoder.pixels.data();
  if (wanted == 1 && has >= 3) {  // the weights of Rec. 601, as Pillow and libjpeg have them
    for (int64_t i = 0; i < count; ++i, from += has)
      to[i] = static_cast<uint8_t>(
          (from[0] * 19595 + from[1] * 38470 + from[2] * 7471 + (1 << 15)) >> 16);
    return;
  }
  for (int64_t c = 0; c < wanted; ++c, to += count) {
    const bool alpha = c == 3 || (wanted == 2 && c == 1);
    if (alpha && has % 2 != 0) {
      std::fill_n(to, count, uint8_t{255});
      continue;
    }
    const unsigned char* channel = from + (alpha ? has - 1 : has < 3 ? 0 : c);
    for (int64_t i = 0; i < count; ++i) to[i] = channel[i * has];
  }
}

// Unpacks the file into the image; returns why it cannot.
std::string decode(Decoder& decoder, Image& image, const ImageFileOptions& options) {
  decoder.wanted = options.channels, decoder.max_pixels = options.max_pixels;
  bool done = false;
  if (begins_with(decoder.file, kPngMagic)) {
    done = decode_png(decoder);
  } else if (begins_with(decoder.file, kJpegMagic)) {
    done = decode_jpeg(decoder);
  } else {
    std::string bytes;
    for (size_t i = 0; i < decoder.file.size() && i < 4; ++i)
      bytes += fmt::format("{:02x}", decoder.file[i]);
    return decoder.file.empty()
               ? "it is empty"
               : fmt::format("it is neither JPEG nor PNG: it begins with {}", bytes);
  }
  if (done) take_apart(decoder, image);
  return done ? "" : decoder.error;
}

Tensor tensor_of(const Image& image) {
  ImageBatch batch(1);
  batch.put(0, image);
  return batch.tensor().squeeze(0);
}

}  // namespace

void read_image(const std::filesystem::path& path, Image& image, const ImageFileOptions& options) {
  check(options);
  naming_lack_of_memory<DataError>("cannot read", path, [&] {
    const InputFile file(path, "cannot read", InputFile::throw_as<DataError>);
    // An image takes at most its pixels in 16 bits, and what text it comes with.
    const uint64_t most = static_cast<uint64_t>(options.max_pixels) * 8 + (uint64_t{64} << 20);
    if (file.size() > most)
      file.fail(fmt::format("it has {} bytes, more than an image of max_pixels has", file.size()));
    if (!host_has_room(file.size(), 1)) throw std::bad_alloc();
    std::vector<unsigned char> bytes(static_cast<size_t>(file.size()));
    bytes.resize(file.read(bytes.data(), bytes.size(), 0));
    Decoder decoder;
    decoder.file = bytes;
    if (const std::string why = decode(decoder, image, options); !why.empty()) file.fail(why);
  });
}

Tensor read_image(const std::filesystem::path& path, const ImageFileOptions& options) {
  Image image;
  read_image(path, image, options);
  return tensor_of(image);
}

Tensor decode_image(std::span<const std::byte> bytes, const ImageFileOptions& options,
                    const std::string& name) {
  check(options);
  Image image;
  Decoder decoder;
  decoder.file = {reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()};
  if (const std::string why = decode(decoder, image, options); !why.empty())
    throw DataError(fmt::format("cannot read {}: {}", printable(name), why));
  return tensor_of(image);
}

}  // namespace tenon::data
