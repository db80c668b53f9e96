#include <cctype>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/base/log.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/plugins/host/backend.h>

namespace tenon::plugins {

namespace {

// Throws a DeviceError if `error` is not null, and destroys it.
void require(const BackendInfo& plugin, const std::string& what, tn_error* error) {
  if (!error) return;
  std::string reason = take_message(error);
  const bool named = reason.find(plugin.library) != reason.npos;  // by CheckedApi
  throw DeviceError(named ? fmt::format("{}: {}", what, reason)
                          : fmt::format("{}: {} (plugin {})", what, reason, plugin.library));
}

// Whether a text contains `value`, but not as a part of a longer word or number.
bool mentions(std::string_view text, std::string_view value) {
  auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = 0; !value.empty() && (at = text.find(value, at)) != text.npos; ++at) {
    const size_t end = at + value.size();
    if (!(at > 0 && is_part(text[at - 1])) && !(end < text.size() && is_part(text[end])))
      return true;
  }
  return false;
}

// A text of a plugin, which may have lost the zero at its end: at most `most` bytes of it.
std::string beginning(const char* text, size_t most) {
  const size_t length = strnlen(text, most + 1);
  if (length <= most) return text;
  size_t end = most;
  // Not within a character of UTF-8, of which all bytes but the first are 10xxxxxx.
  while (end > most - 4 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return std::string(text, end) + fmt::format("… (cut here: it has more than {} bytes)", most);
}

}  // namespace

std::string text_of(const tn_error& error) {
  constexpr size_t kLongestMessage = 16 << 10, kLongestDetail = 1 << 10;
  const bool silent = !error.message || !*error.message;
  std::string message = silent ? "an error without a message; set tn_error.message"
                               : beginning(error.message, kLongestMessage);
  if (error.code < TN_CODE_INVALID_ARGUMENT || error.code > TN_CODE_INTERNAL)
    message += fmt::format(
        " (an error with the code {}, which is none of ABI {}.{}; it counts as "
        "TN_CODE_INTERNAL)",
        error.code, TN_ABI_MAJOR, TN_ABI_MINOR);
  std::string more;
  for (size_t i = 0; error.details && i < error.num_details; ++i) {
    const auto& [key, value] = error.details[i];
    const std::string shown = value ? beginning(value, kLongestDetail) : "?";
    if (value && mentions(message, shown)) continue;
    more += fmt::format("{}{}={}", more.empty() ? "" : ", ",
                        key ? beginning(key, kLongestDetail) : "?", shown);
  }
  return printable_lines(more.empty() ? message : fmt::format("{} [{}]", message, more));
}

std::string take_message(tn_error* error) noexcept {
  std::string text;
  try {
    if (!error) return text;
    if (error->struct_size < offsetof(tn_error, destroy) + sizeof(error->destroy))
      return "an error object that is too short to read";
    text = text_of(*error);
  } catch (...) {
  }
  try {  // also where there was no memory for its text
    if (error && error->destroy) error->destroy(error);
  } catch (...) {
  }
  return text;
}

Backend::Backend(BackendInfo info) : info_(std::move(info)), api_(info_) {}

uint32_t Backend::device_count() const {
  uint32_t count = 0;
  if (api_.table().device_count)
    require(info_, fmt::format("no device of {}", name()), api_.device_count(&count));
  return count;
}

tn_device* Backend::open_device(uint32_t index) {
  std::lock_guard lock(mutex_);
  const auto failure = fmt::format("device {}:{} cannot be opened", name(), index);
  if (closed_) throw DeviceError(fmt::format("{}: its plugin was closed", failure));
  if (auto it = devices_.find(index); it != devices_.end()) return it->second.device;
  tn_device* device = nullptr;
  require(info_, failure, api_.device_open(index, &device));
  try {
    tn_device_flags flags = 0;
    if (info_.kind == TN_PLUGIN_DEVICE)
      require_usable(index, flags = ask_device_info(device).flags);
    devices_.emplace(index, Opened{device, flags});
  } catch (...) {
    api_.device_close(device);
    throw;
  }
  return device;
}

tn_device_info Backend::device_info(tn_device* device) const {
  tn_device_info info = ask_device_info(device);
  std::lock_guard lock(mutex_);
  for (auto& [index, opened] : devices_)
    if (opened.device == device) info.flags = opened.flags;
  return info;
}

tn_device_info Backend::ask_device_info(tn_device* device) const {
  tn_device_info info{};
  info.struct_size = sizeof info;
  if (api_.table().device_info)
    require(info_, fmt::format("no description of a device of {}", name()),
            api_.device_info(device, &info));
  for (char* end : {info.name + sizeof info.name, info.architecture + sizeof info.architecture,
                    info.driver + sizeof info.driver})
    end[-1] = '\0';
  return info;
}

// Only an open device can tell whether any index may be opened and whether it needs streams.
void Backend::require_usable(uint32_t index, tn_device_flags flags) const {
  if (!(flags & TN_DEVICE_LOGICAL))
    if (const uint32_t count = device_count(); index >= count)
      throw DeviceError(fmt::format(
          "device {}:{} cannot be used: there {} of {}, and the plugin does not say "
          "that they are logical (TN_DEVICE_LOGICAL) (plugin {})",
          name(), index, count == 1 ? "is 1 device" : fmt::format("are {} devices", count), name(),
          info_.library));
  if (flags & TN_DEVICE_CALLER_THREAD) return;
  const tn_backend_api& table = api_.table();
  const std::pair<bool, const char*> needed[] = {
      {!table.stream_create, "stream_create"}, {!table.stream_destroy, "stream_destroy"},
      {!table.event_create, "event_create"},   {!table.event_destroy, "event_destroy"},
      {!table.event_record, "event_record"},   {!table.stream_wait, "stream_wait"},
      {!table.event_query, "event_query"},     {!table.event_wait, "event_wait"}};
  for (auto& [missing, function] : needed)
    if (missing)
      throw DeviceError(
          fmt::format("device {}:{} cannot be used: it is not a TN_DEVICE_CALLER_THREAD device, "
                      "and {} is NULL; set the flag, or offer all of stream_* and event_* (plugin "
                      "{})",
                      name(), index, function, info_.library));
}

void Backend::drain() noexcept {
  std::lock_guard lock(mutex_);
  if (std::exchange(drained_, true) || !api_.table().drain) return;
  if (tn_error* error = api_.drain())
    log_message(TN_LOG_WARNING, name(), fmt::format("drain: {}", take_message(error)));
}

void Backend::close_devices() noexcept {
  std::lock_guard lock(mutex_);
  closed_ = true;
  for (auto& [index, opened] : std::exchange(devices_, {})) api_.device_close(opened.device);
}

void Backend::shutdown() noexcept {
  std::lock_guard lock(mutex_);
  if (std::exchange(shut_down_, true) || !api_.table().shutdown) return;
  api_.shutdown();
}

bool Backend::closed() const {
  std::lock_guard lock(mutex_);
  return closed_;
}

}  // namespace tenon::plugins
