// MD5 (RFC 1321), the checksum that public data sets publish. It detects damage, but not forgery.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include <tenon/core/api.h>

namespace tenon::data {

// Returns the checksum of bytes as 32 lower-case hexadecimal digits.
TENON_API std::string md5(std::span<const unsigned char> bytes);
// Returns the checksum of a file. Throws a DataError if it cannot be read.
TENON_API std::string md5_of_file(const std::filesystem::path& path);

}  // namespace tenon::data
