#include <fmt/core.h>

#include <tenon/core/runtime/check/changes.h>

namespace tenon::checked {

namespace {
std::string bytes_text(uint64_t n) { return n == 1 ? "1 byte" : fmt::format("{} bytes", n); }
}  // namespace

void Changes::look(const char* from, const unsigned char* host, uint64_t bytes, Pattern pattern) {
  for (uint64_t i = 0; i < bytes; ++i) {
    i += intact(host + i, bytes - i, pattern, reinterpret_cast<uintptr_t>(from + i));
    if (i < bytes && count++ == 0) first = from + i;
  }
}

std::string Changes::text(const Buffer& buffer, const char* where) const {
  if (!count) return "";
  return fmt::format("{} {} of {}, the first of them byte {}", bytes_text(count), where,
                     bytes_text(buffer.bytes), static_cast<int64_t>(first - buffer.data));
}

}  // namespace tenon::checked
