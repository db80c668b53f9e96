#include <tenon/core/error.h>
#include <tenon/core/runtime/environment.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace tenon {

std::optional<uint32_t> count_from_environment(const char* name) {
  const char* text = std::getenv(name);
  if (!text) return std::nullopt;
  uint32_t n = 0;
  auto [end, error] = std::from_chars(text, text + std::strlen(text), n);
  if (error != std::errc() || *end || n < 1 || n > 1024)
    throw ValueError(std::string(name) + " is \"" + text + "\"; it must be a number from 1 to 1024");
  return n;
}

}  // namespace tenon
