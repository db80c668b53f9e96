#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <tenon/core/base/log.h>
#include <tenon/core/base/printable.h>

namespace tenon {

namespace {

constexpr const char* kLevelNames[] = {"debug", "info", "warning", "error"};

tn_log_level read_threshold() {
  const char* text = std::getenv("TENON_LOG");
  for (tn_log_level i = 0; text && i < 4; ++i)
    if (std::string_view(text) == kLevelNames[i]) return i;
  if (text && *text)  // a wrong log level should not end the program
    std::fprintf(stderr,
                 "[tenon] warning: TENON_LOG is \"%s\"; it must be debug, info, warning or "
                 "error, and warning is used\n",
                 excerpt(text).c_str());
  return TN_LOG_WARNING;
}

tn_log_level log_threshold() {
  static std::atomic<tn_log_level> threshold{-1};  // not read yet
  if (threshold < 0) threshold = read_threshold();
  return threshold;
}

}  // namespace

void log_message(tn_log_level level, const std::string& source,
                 const std::string& message) noexcept {
  const char* name = kLevelNames[level < 0 ? 0 : level > 3 ? 3 : level];
  try {
    if (level < log_threshold()) return;
    std::fprintf(stderr, "[%s] %s: %s\n", printable(source).c_str(), name,
                 printable_lines(message).c_str());
  } catch (...) {
    std::fprintf(stderr, "[tenon] %s: there is not enough memory to print a message\n", name);
  }
}

}  // namespace tenon
