// IDX files, the format of MNIST and its kin (http://yann.lecun.com/exdb/mnist/), plain or packed
// with gzip.
#pragma once

#include <filesystem>

#include <tenon/data/tensor_dataset.h>

namespace tenon::data {

// One IDX file of any element type: u8, i32, f32 and f64 as they are, i8 and i16 as i32. DataError,
// beginning with the path and saying what was expected, where the file is missing, cut off,
// corrupt, too long or not IDX, or has absurd sizes.
TENON_API Tensor read_idx(const std::filesystem::path& path);

struct MnistOptions {
  int64_t classes = 10;  // labels have to be below
  ToFloat pixels = {};   // what batches hold
};
// A folder with the four files of MNIST or Fashion-MNIST under their usual names
// ("train-images-idx3-ubyte", with or without
// ".gz"). Stored: u8 images (N, 1, H, W) and i64 labels (N). Batches: f32 pixels, by default in [0,
// 1]. DataError as above, and where images and labels differ in number, there are none, or a label
// is out of range.
TENON_API TensorDataset mnist(const std::filesystem::path& folder, bool train,
                              const MnistOptions& options = {});

}  // namespace tenon::data
