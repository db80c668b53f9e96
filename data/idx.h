// IDX files, the format of MNIST and of similar data sets (http://yann.lecun.com/exdb/mnist/),
// plain or packed with gzip.
#pragma once

#include <filesystem>

#include <tenon/data/tensor_dataset.h>

namespace tenon::data {

// Reads an IDX file. Elements of type u8, i32, f32 and f64 keep their type; i8 and i16 become i32.
// Throws a DataError that names the path if the file is missing, cut off, corrupt, too long
// or not an IDX file, or if its sizes are too large.
TENON_API Tensor read_idx(const std::filesystem::path& path);

// Says how mnist checks labels and makes its batches.
struct MnistOptions {
  // Sets the number of classes: labels have to be less.
  int64_t classes = 10;
  // Says how batches convert the pixels.
  ToFloat pixels = {};
};
// Reads the training or the test data of MNIST or Fashion-MNIST from a folder with their four files
// under their usual names ("train-images-idx3-ubyte", with or without ".gz"). The data set stores
// u8 images (N, 1, H, W) and i64 labels (N); its batches have f32 pixels, by default in [0, 1].
// Throws a DataError as above, and if there are no images, not as many labels as images, or a label
// out of range.
TENON_API TensorDataset mnist(const std::filesystem::path& folder, bool train,
                              const MnistOptions& options = {});

}  // namespace tenon::data
