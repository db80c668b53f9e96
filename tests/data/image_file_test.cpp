// Images in files, which libpng and libjpeg write here, and folders of them.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include <boost/test/unit_test.hpp>
#include <jpeglib.h>
#include <png.h>
#include <sys/resource.h>

#include <tenon/core/tensor.h>
#include <tenon/data/augment.h>
#include <tenon/data/image_folder.h>
#include <tenon/data/loader.h>
#include <tenon/data/resize.h>

#include "packed.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(image_file_test)

using namespace tenon;
using namespace tenon::data;
using tenon::test::require_error;
using Bytes = std::vector<uint8_t>;

namespace {

struct PngOptions {
  int color = PNG_COLOR_TYPE_RGB, depth = 8;
  bool interlaced = false, transparent = false;
};
// `rows` are the packed rows of the file one after the other.
std::string png_of(uint32_t width, uint32_t height, const Bytes& rows,
                   const PngOptions& options = {}) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp p, png_bytep bytes, size_t count) {
        static_cast<std::string*>(png_get_io_ptr(p))->append(reinterpret_cast<char*>(bytes), count);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, width, height, options.depth, options.color,
               options.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  const png_color palette[] = {{10, 20, 30}, {40, 50, 60}, {70, 80, 90}, {255, 0, 1}};
  const png_byte alpha[] = {0, 128};
  if (options.color == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette, 4);
  if (options.transparent) png_set_tRNS(png, info, alpha, 2, nullptr);
  png_write_info(png, info);
  std::vector<png_bytep> lines;
  for (uint32_t y = 0; y < height; ++y)
    lines.push_back(const_cast<png_bytep>(rows.data() + y * (rows.size() / height)));
  png_write_image(png, lines.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

struct JpegOptions {
  J_COLOR_SPACE space = JCS_RGB;
  int quality = 95;
  bool progressive = false;
};
std::string jpeg_of(uint32_t width, uint32_t height, Bytes pixels,
                    const JpegOptions& options = {}) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = width, info.image_height = height;
  info.in_color_space = options.space;
  info.input_components = static_cast<int>(pixels.size() / width / height);
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, options.quality, TRUE);
  if (options.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < height) {
    JSAMPROW row =
        pixels.data() + info.next_scanline * width * static_cast<unsigned>(info.input_components);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const std::string file(reinterpret_cast<char*>(memory), size);
  std::free(memory);
  return file;
}

// A smooth picture, interleaved.
Bytes smooth(uint32_t width, uint32_t height, uint32_t channels) {
  Bytes pixels;
  for (uint32_t y = 0; y < height; ++y)
    for (uint32_t x = 0; x < width; ++x)
      for (uint32_t c = 0; c < channels; ++c)
        pixels.push_back(
            static_cast<uint8_t>(40 + 60 * c / channels + 100 * x / width + 50 * y / height));
  return pixels;
}
// The same as planes.
std::vector<int> planes(const Bytes& pixels, size_t channels) {
  std::vector<int> result;
  for (size_t c = 0; c < channels; ++c)
    for (size_t i = c; i < pixels.size(); i += channels) result.push_back(pixels[i]);
  return result;
}

Tensor decode(const std::string& file, int64_t channels = 3) {
  return decode_image(std::as_bytes(std::span(file)), {.channels = channels});
}
std::vector<int> values(const Tensor& x) { return x.to_vector<int>(); }

void require_near(const std::vector<int>& found, const std::vector<int>& expected, int most) {
  BOOST_REQUIRE(found.size() == expected.size());
  int worst = 0;
  for (size_t i = 0; i < found.size(); ++i)
    worst = std::max(worst, std::abs(found[i] - expected[i]));
  BOOST_TEST(worst <= most);
}

std::string refusal(const std::string& file, const ImageFileOptions& options = {}) {
  return error_of<DataError>([&] { decode_image(std::as_bytes(std::span(file)), options); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(png_of_every_kind) {
  const Bytes rgb = smooth(7, 5, 3);
  for (bool interlaced : {false, true}) {
    const Tensor x = decode(png_of(7, 5, rgb, {.interlaced = interlaced}));
    BOOST_TEST((x.shape() == Shape{3, 5, 7}));
    BOOST_TEST((x.dtype() == u8));
    BOOST_TEST((values(x) == planes(rgb, 3)));
  }
  const Bytes rgba = smooth(3, 3, 4);
  const std::string with_alpha = png_of(3, 3, rgba, {.color = PNG_COLOR_TYPE_RGB_ALPHA});
  const std::vector<int> four = planes(rgba, 4);
  BOOST_TEST((values(decode(with_alpha, 4)) == four));
  BOOST_TEST((values(decode(with_alpha, 0)) == four));
  BOOST_TEST((values(decode(with_alpha, 3)) == std::vector<int>(four.begin(), four.begin() + 27)));

  const Bytes grey = smooth(4, 2, 1);
  const std::string plain = png_of(4, 2, grey, {.color = PNG_COLOR_TYPE_GRAY});
  std::vector<int> thrice;
  for (int i = 0; i < 3; ++i) thrice.insert(thrice.end(), grey.begin(), grey.end());
  BOOST_TEST((values(decode(plain)) == thrice));
  BOOST_TEST((values(decode(plain, 0)) == planes(grey, 1)));
  BOOST_TEST((values(decode(plain, 4)).back() == 255));
  // Two bits a pixel: 0, 1, 2, 3 of 3.
  BOOST_TEST((values(decode(png_of(4, 1, {0x1b}, {.color = PNG_COLOR_TYPE_GRAY, .depth = 2}), 1)) ==
              std::vector<int>{0, 85, 170, 255}));
  // Sixteen bits: rounded, not cut off.
  BOOST_TEST((values(decode(png_of(3, 1, {0x12, 0xff, 0xff, 0xff, 0x00, 0x7f},
                                   {.color = PNG_COLOR_TYPE_GRAY, .depth = 16}),
                            1)) == std::vector<int>{0x13, 255, 0}));
  const Bytes two = smooth(2, 2, 2);
  const std::string grey_alpha = png_of(2, 2, two, {.color = PNG_COLOR_TYPE_GRAY_ALPHA});
  BOOST_TEST((values(decode(grey_alpha, 0)) == planes(two, 2)));
  BOOST_TEST((decode(grey_alpha, 4).shape() == Shape{4, 2, 2}));
  BOOST_TEST(values(decode(grey_alpha, 4)).back() == two.back());

  const PngOptions palette{.color = PNG_COLOR_TYPE_PALETTE, .depth = 8};
  BOOST_TEST(
      (values(decode(png_of(2, 1, {3, 1}, palette))) == std::vector<int>{255, 40, 0, 50, 1, 60}));
  PngOptions transparent = palette;
  transparent.transparent = true, transparent.interlaced = true;
  BOOST_TEST((values(decode(png_of(3, 1, {0, 1, 2}, transparent), 4)) ==
              std::vector<int>{10, 40, 70, 20, 50, 80, 30, 60, 90, 0, 128, 255}));
  // Grey as Pillow computes it: 76, 150 and 29 for the colours of light.
  BOOST_TEST((values(decode(png_of(3, 1, {255, 0, 0, 0, 255, 0, 0, 0, 255}), 1)) ==
              std::vector<int>{76, 150, 29}));
}

BOOST_AUTO_TEST_CASE(jpeg_of_every_kind) {
  const Bytes rgb = smooth(50, 34, 3);
  for (bool progressive : {false, true}) {
    const Tensor x = decode(jpeg_of(50, 34, rgb, {.progressive = progressive}));
    BOOST_TEST((x.shape() == Shape{3, 34, 50}));
    require_near(values(x), planes(rgb, 3), 6);
  }
  const Bytes grey = smooth(50, 34, 1);
  const std::string plain = jpeg_of(50, 34, grey, {.space = JCS_GRAYSCALE});
  require_near(values(decode(plain, 0)), planes(grey, 1), 4);
  BOOST_TEST((decode(plain).shape() == Shape{3, 34, 50}));
  BOOST_TEST((decode(jpeg_of(50, 34, rgb), 0).shape() == Shape{3, 34, 50}));
  BOOST_TEST((decode(jpeg_of(50, 34, rgb), 1).shape() == Shape{1, 34, 50}));
  BOOST_TEST(values(decode(jpeg_of(50, 34, rgb), 4)).back() == 255);
  // libjpeg writes CMYK with Adobe's marker, whose ink is upside down: half of full cyan, no black.
  Bytes ink;
  for (int i = 0; i < 64; ++i) ink.insert(ink.end(), {128, 255, 255, 255});
  const std::vector<int> cyan =
      values(decode(jpeg_of(8, 8, ink, {.space = JCS_CMYK, .quality = 100})));
  BOOST_REQUIRE(cyan.size() == 192u);
  require_near({cyan[0], cyan[64], cyan[128]}, {128, 255, 255}, 3);
}

BOOST_AUTO_TEST_CASE(files_that_are_no_images) {
  const std::string png = png_of(30, 30, smooth(30, 30, 3)),
                    jpeg = jpeg_of(30, 30, smooth(30, 30, 3));
  BOOST_TEST(has(refusal(""), "cannot read the image: it is empty"));
  BOOST_TEST(has(refusal("GIF89a"), "it is neither JPEG nor PNG: it begins with 47494638"));
  BOOST_TEST(has(refusal(png.substr(0, 8)), "it is cut off"));
  for (size_t keep : {png.size() - 1, png.size() - 12, png.size() / 2, size_t{20}})
    BOOST_TEST(has(refusal(png.substr(0, keep)), "it is cut off"), "first " << keep << " bytes");
  for (size_t keep : {jpeg.size() / 2, jpeg.size() - 40, size_t{100}, size_t{3}})
    BOOST_TEST(!refusal(jpeg.substr(0, keep)).empty(), "first " << keep << " bytes");
  BOOST_TEST(has(refusal(jpeg.substr(0, jpeg.size() / 2)), "Premature end"));
  std::string damaged = png;
  damaged[png.size() / 2] = static_cast<char>(damaged[png.size() / 2] ^ 1);
  BOOST_TEST(!refusal(damaged).empty());

  BOOST_TEST(has(refusal(png, {.max_pixels = 899}),
                 "it claims 30 × 30 pixels, and max_pixels allows 899"));
  BOOST_TEST(refusal(png, {.max_pixels = 900}).empty());
  BOOST_TEST(has(refusal(jpeg, {.max_pixels = 899}), "it claims 30 × 30 pixels"));
  // A claim of 2^31 - 1 by 2^31 - 1, with a correct checksum.
  std::string huge = png;
  huge.replace(16, 8, "\x7f\xff\xff\xff\x7f\xff\xff\xff", 8);
  huge.replace(29, 4,
               big_endian(static_cast<uint32_t>(
                   crc32(0, reinterpret_cast<const Bytef*>(huge.data()) + 12, 17))));
  BOOST_TEST(has(refusal(huge), "it claims 2147483647 × 2147483647 pixels"));
  huge.replace(16, 8, std::string("\x04\0\0\0\0\0\0\x01", 8));
  huge.replace(29, 4,
               big_endian(static_cast<uint32_t>(
                   crc32(0, reinterpret_cast<const Bytef*>(huge.data()) + 12, 17))));
  BOOST_TEST(has(refusal(huge), "it claims 67108864 × 1 pixels, and a row has at most 4194304"));
  std::string tall = jpeg;
  const size_t frame = tall.find("\xff\xc0") + 5;
  tall.replace(frame, 4, "\xff\xdc\xff\xdc", 4);
  BOOST_TEST(has(refusal(tall), "it claims 65500 × 65500 pixels"));
  // Nothing was unpacked before it was refused: a row of the first one takes 6 GiB.
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  BOOST_TEST(used.ru_maxrss < 2'000'000);  // KiB
  require_error<ValueError>([&] { decode(png, 2); }, "channels are 1 (grey), 3", "not 2");
  require_error<ValueError>([&] { refusal(png, {.max_pixels = 0}); },
                            "max_pixels has to be from 1");
}

// A progressive file repeats its first scan, which costs a reader the whole image each time.
BOOST_AUTO_TEST_CASE(files_that_only_keep_a_reader_busy) {
  const std::string jpeg =
      jpeg_of(16, 16, smooth(16, 16, 1), {.space = JCS_GRAYSCALE, .progressive = true});
  const size_t begin = jpeg.find("\xff\xda"), end = jpeg.find("\xff\xc4", begin);
  BOOST_REQUIRE(end != jpeg.npos);
  std::string busy = jpeg.substr(0, end);
  for (int i = 0; i < 600; ++i) busy += jpeg.substr(begin, end - begin);
  const std::string why = refusal(busy + jpeg.substr(end));
  BOOST_TEST(has(why, "it has more than 500 scans"), why);
}

BOOST_AUTO_TEST_CASE(files_with_faults) {
  const TempFolder folder;
  const auto path = folder / "image";
  const int times = tenon::test::kSanitized ? 40 : 100;
  Image image;
  auto read = [&] { read_image(path, image, {.max_pixels = 1 << 20}); };
  const Bytes pixels = smooth(24, 24, 3);
  // A changed bit in the middle of a JPEG changes colours, no more: fewer of those are refused.
  read_with_faults<DataError>(path, png_of(24, 24, pixels), times, read);
  read_with_faults<DataError>(path, png_of(24, 24, pixels, {.interlaced = true}), times, read);
  std::mt19937 random(3);
  for (const std::string& whole :
       {jpeg_of(24, 24, pixels), jpeg_of(24, 24, pixels, {.progressive = true})})
    for (int i = 0; i < times; ++i) {
      const std::string file = with_faults(whole, random);
      try {
        decode_image(std::as_bytes(std::span(file)), {.max_pixels = 1 << 20});
      } catch (const DataError&) {
      }
    }
}

BOOST_AUTO_TEST_CASE(paths) {
  const TempFolder folder;
  write_bytes(folder / "a.png", png_of(2, 1, smooth(2, 1, 3)));
  BOOST_TEST((read_image(folder / "a.png").shape() == Shape{3, 1, 2}));
  require_error<DataError>([&] { read_image(folder / "b.png"); }, "b.png': there is no such file");
  for (const auto& [what, path] : special_files(folder))
    BOOST_TEST(!error_of<DataError>([&, p = path] { read_image(p); }).empty(), what);
  // A file of a terabyte that holds nothing.
  std::filesystem::resize_file(folder / "a.png", uintmax_t{1} << 40);
  require_error<DataError>([&] { read_image(folder / "a.png"); },
                           "it has 1099511627776 bytes, more than an image");
}

BOOST_AUTO_TEST_CASE(a_folder_for_each_class) {
  const TempFolder root;
  auto put = [&](const std::string& name, uint32_t width, uint8_t grey) {
    std::filesystem::create_directories((root / name).parent_path());
    write_bytes(root / name, png_of(width, 6, Bytes(width * 6 * 3, grey)));
  };
  put("dog/b.PNG", 6, 3), put("dog/a.png", 7, 2), put("dog/more/0.png", 6, 4);
  put("cat/10.png", 6, 1), put("cat/1.png", 6, 0), put("zebra/x.png", 9, 5);
  write_bytes(root / "dog/notes.txt", "no image");
  write_bytes(root / "list.png", "in no folder");
  ImageFolder set(root.path());
  BOOST_TEST((set.classes() == std::vector<std::string>{"cat", "dog", "zebra"}));
  BOOST_TEST(set.size() == 6);
  BOOST_TEST((set.labels().to_vector<int>() == std::vector<int>{0, 0, 1, 1, 1, 2}));
  BOOST_TEST(set.path(0) == root / "cat/1.png");
  BOOST_TEST(set.path(4) == root / "dog/more/0.png");
  const Batch batch = set.get_batch(std::vector<int64_t>{4, 0});
  BOOST_TEST((batch.data.shape() == Shape{2, 3, 6, 6}));
  BOOST_TEST((batch.data.dtype() == u8));
  BOOST_TEST(batch.data[0][0][0][0].item<int>() == 4);
  BOOST_TEST((batch.target.to_vector<int>() == std::vector<int>{1, 0}));
  require_error<DataError>(
      [&] {
        set.get_batch(std::vector<int64_t>{0, 2});
      },
      "example 2 of ImageFolder '" + root.path().string() + "': '",
      "dog/a.png': the image has shape (3, 6, 7)", "(3, 6, 6)");
  require_error<IndexError>([&] { set.get(6); }, "there is no example 6; it has 6");

  DataLoader loader(
      ImageFolder(root.path(), {.transform = {Resize({4, 4}), Normalize({0}, {1. / 255})},
                                .image = {.channels = 1}}),
      {.batch_size = 4, .shuffle = false});
  std::vector<int> greys;
  for (auto& [x, y] : loader) {
    BOOST_TEST((x.shape() == Shape{y.size(0), 1, 4, 4}));
    for (int64_t i = 0; i < y.size(0); ++i)
      greys.push_back(static_cast<int>(std::lround(x[i][0][0][0].item<float>())));
  }
  BOOST_TEST((greys == std::vector<int>{0, 1, 2, 3, 4, 5}));

  // What a step of one's own throws, whatever it is.
  const ImageFolder fails(root.path(), {.transform = {[](Image&, Random&) { throw 3; }}});
  require_error<DataError>([&] { fails.get(0); }, "example 0 of ImageFolder '",
                           fails.path(0).string() + "': an exception that is not a std::exception");
  write_bytes(root / "cat/10.png", "torn");
  DataLoader torn(set, {.batch_size = 2, .shuffle = false});
  require_error<DataError>(
      [&] {
        for ([[maybe_unused]] auto& b : torn) {
        }
      },
      "batch 0 of epoch 0", "example 1 of ImageFolder '",
      "cannot read '" + (root / "cat/10.png").string(),
      "it is neither JPEG nor PNG: it begins with 746f726e");
}

BOOST_AUTO_TEST_CASE(folders_that_are_no_data_set) {
  const TempFolder root;
  auto open = [&] { ImageFolder(root.path()); };
  require_error<DataError>(open, "cannot read '" + root.path().string() + "'",
                           "a folder for each class", "<root>/cat/1.jpg",
                           "found no folder, no image and 0 other files");
  write_bytes(root / "b.png", png_of(1, 1, {1, 2, 3}));
  write_bytes(root / "a.jpg", "");
  write_bytes(root / "notes.txt", "");
  require_error<DataError>(open, "found no folder but 2 images ('a.jpg', …)",
                           "into folders of their classes");
  std::filesystem::create_directory(root / "empty");
  require_error<DataError>(open, "empty': the class has no .jpg, .jpeg or .png files");
  require_error<DataError>([&] { ImageFolder(root / "none"); }, "none': there is no such folder");
  // A link to where it stands does not lead round in circles.
  write_bytes(root / "empty/a.png", png_of(1, 1, {1, 2, 3}));
  std::filesystem::create_directory_symlink(root.path(), root / "empty/loop");
  BOOST_TEST(ImageFolder(root.path()).size() == 1);
}

BOOST_AUTO_TEST_SUITE_END()
