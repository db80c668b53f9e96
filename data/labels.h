// Class numbers as files hold them. Internal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include <tenon/core/tensor.h>

namespace tenon::data {

// As i64 (N). DataError names the first that is not below `classes`.
Tensor labels_from_bytes(std::span<const uint8_t> labels, int64_t classes,
                         const std::filesystem::path& path);

}  // namespace tenon::data
