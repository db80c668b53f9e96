// Class numbers as files contain them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include <tenon/core/tensor.h>

namespace tenon::data {

// Returns the labels as i64 (N). Throws a DataError that names the first label that is not below
// `classes`.
Tensor labels_from_bytes(std::span<const uint8_t> labels, int64_t classes,
                         const std::filesystem::path& path);

}  // namespace tenon::data
