// CIFAR-10 in its binary form (https://www.cs.toronto.edu/~kriz/cifar.html), plain or packed with
// gzip.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <tenon/data/tensor_dataset.h>

namespace tenon::data {

// Says how cifar10 makes its batches.
struct Cifar10Options {
  // Says how batches convert the pixels.
  ToFloat pixels = {};
};
// Reads the training data from data_batch_1.bin and the batches that follow it in a folder, or the
// test data from test_batch.bin, each with or without ".gz". The data set stores u8 images (N, 3,
// 32, 32) and i64 labels (N); its batches have f32 pixels, by default in [0, 1]. Throws a DataError
// that names the path if a file is missing (also one between others), cut off, corrupt or
// empty, or if it has a label above 9.
TENON_API TensorDataset cifar10(const std::filesystem::path& folder, bool train,
                                const Cifar10Options& options = {});

// Returns the ten names of classes in batches.meta.txt. Throws a DataError if there are not ten.
TENON_API std::vector<std::string> cifar10_classes(const std::filesystem::path& folder);

}  // namespace tenon::data
