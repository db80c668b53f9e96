// Images in JPEG and PNG files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include <tenon/data/image.h>

namespace tenon::data {

// Says what becomes of the image in a file.
struct ImageFileOptions {
  // Sets the channels that the image gets: 1 gray, 3 red, green and blue, 4 these and alpha; 0 what
  // the file has (a palette becomes colors; 2 channels are gray and alpha). Alpha that is not asked
  // for is dropped.
  int64_t channels = 3;
  // Limits the number of pixels, and is itself from 1 to 2^32. A file that claims more is refused
  // before it is unpacked, as is a row of more than 2^22 pixels.
  int64_t max_pixels = int64_t{1} << 27;
};

// Returns the image in a file as u8 (C, H, W). The contents of the file tell the format, not its
// name: JPEG, also progressive, gray and CMYK, or PNG of any kind, of which 16 bits a channel
// become 8. Throws a DataError that names the file if it cannot be read, is cut off or corrupt, or
// claims more than max_pixels; and a ValueError for options out of range.
TENON_API Tensor read_image(const std::filesystem::path& path,
                            const ImageFileOptions& options = {});
// Returns the same for the bytes of a file, which errors call `name`.
TENON_API Tensor decode_image(std::span<const std::byte> bytes,
                              const ImageFileOptions& options = {},
                              const std::string& name = "the image");
// Reads the same into an image, whose memory is used again.
TENON_API void read_image(const std::filesystem::path& path, Image& image,
                          const ImageFileOptions& options = {});

}  // namespace tenon::data
