// MD5 (RFC 1321), by which public data sets name their files. It finds damage, not forgery.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include <tenon/core/api.h>

namespace tenon::data {

// 32 lower-case hexadecimal digits.
TENON_API std::string md5(std::span<const unsigned char> bytes);
// The same of a file; DataError where it cannot be read.
TENON_API std::string md5_of_file(const std::filesystem::path& path);

}  // namespace tenon::data
