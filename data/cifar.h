// CIFAR-10 in its binary form (https://www.cs.toronto.edu/~kriz/cifar.html), plain or packed with
// gzip.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <tenon/data/tensor_dataset.h>

namespace tenon::data {

struct Cifar10Options {
  ToFloat pixels = {};  // what batches hold
};
// A folder with data_batch_1.bin and those that follow it, or with test_batch.bin (each with or
// without ".gz"). Stored: u8 images (N, 3, 32, 32) and i64 labels (N). Batches: f32 pixels, by
// default in [0, 1]. DataError, beginning with the path, where a file is missing (one between
// others too), cut off, corrupt, empty, or holds a label above 9.
TENON_API TensorDataset cifar10(const std::filesystem::path& folder, bool train,
                                const Cifar10Options& options = {});

// The ten names in batches.meta.txt; DataError where there are not ten.
TENON_API std::vector<std::string> cifar10_classes(const std::filesystem::path& folder);

}  // namespace tenon::data
