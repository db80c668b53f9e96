#include <cctype>
#include <mutex>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/base/log.h>
#include <tenon/core/error.h>
#include <tenon/plugins/host/backend.h>

namespace tenon::plugins {

namespace {

// Calls a function of a plugin and throws a DeviceError if it fails. Plugins must not throw; the
// text says so if one does.
template <class F>
void call(const BackendInfo& plugin, const std::string& what, F&& function) {
  std::string reason;
  try {
    tn_error* error = function();
    if (!error) return;
    reason = take_message(error);
  } catch (const std::exception& e) {
    reason = fmt::format("the plugin let an exception out: {}", e.what());
  } catch (...) {
    reason = "the plugin let an exception of unknown type out";
  }
  throw DeviceError(fmt::format("{}: {} (plugin {})", what, reason, plugin.library));
}

template <class F>
void call_quietly(const BackendInfo& plugin, const char* what, F&& function) noexcept {
  try {
    call(plugin, what, function);
  } catch (const std::exception& e) {
    log_message(TN_LOG_WARNING, plugin.name, e.what());
  }
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

}  // namespace

std::string text_of(const tn_error& error) {
  const std::string message = error.message ? error.message : "an error without a message";
  std::string more;
  for (size_t i = 0; error.details && i < error.num_details; ++i) {
    const auto& [key, value] = error.details[i];
    if (value && mentions(message, value)) continue;
    more += fmt::format("{}{}={}", more.empty() ? "" : ", ", key ? key : "?", value ? value : "?");
  }
  return more.empty() ? message : fmt::format("{} [{}]", message, more);
}

std::string take_message(tn_error* error) noexcept {
  std::string text;
  try {
    if (!error) return text;
    if (error->struct_size < offsetof(tn_error, destroy) + sizeof(error->destroy))
      return "an error object that is too short to read";
    text = text_of(*error);
    if (error->destroy) error->destroy(error);
  } catch (...) {
  }
  return text;
}

Backend::Backend(BackendInfo info) : info_(std::move(info)) {}

const void* Backend::extension(const char* name, uint32_t version) const {
  try {
    return api_.extension ? api_.extension(api_.backend, name, version) : nullptr;
  } catch (...) {
    return nullptr;
  }
}

uint32_t Backend::device_count() const {
  uint32_t count = 0;
  if (api_.device_count)
    call(info_, fmt::format("no device of {}", name()),
         [&] { return api_.device_count(api_.backend, &count); });
  return count;
}

tn_device* Backend::open_device(uint32_t index) {
  std::lock_guard lock(mutex_);
  const auto failure = fmt::format("device {}:{} cannot be opened", name(), index);
  if (closed_) throw DeviceError(fmt::format("{}: its plugin was closed", failure));
  if (auto it = devices_.find(index); it != devices_.end()) return it->second;
  tn_device* device = nullptr;
  call(info_, failure, [&] { return api_.device_open(api_.backend, index, &device); });
  if (!device)
    throw DeviceError(
        fmt::format("{}: the plugin answered with no device (plugin {})", failure, info_.library));
  try {
    require_streams(index, device);
    devices_.emplace(index, device);
  } catch (...) {
    api_.device_close(device);
    throw;
  }
  return device;
}

tn_device_info Backend::device_info(tn_device* device) const {
  tn_device_info info{};
  info.struct_size = sizeof info;
  if (api_.device_info)
    call(info_, fmt::format("no description of a device of {}", name()),
         [&] { return api_.device_info(device, &info); });
  for (char* end : {info.name + sizeof info.name, info.architecture + sizeof info.architecture,
                    info.driver + sizeof info.driver})
    end[-1] = '\0';
  return info;
}

// Only an open device can tell whether it needs streams.
void Backend::require_streams(uint32_t index, tn_device* device) const {
  if (info_.kind != TN_PLUGIN_DEVICE || (device_info(device).flags & TN_DEVICE_CALLER_THREAD))
    return;
  const std::pair<bool, const char*> needed[] = {
      {!api_.stream_create, "stream_create"}, {!api_.stream_destroy, "stream_destroy"},
      {!api_.event_create, "event_create"},   {!api_.event_destroy, "event_destroy"},
      {!api_.event_record, "event_record"},   {!api_.stream_wait, "stream_wait"},
      {!api_.event_query, "event_query"},     {!api_.event_wait, "event_wait"}};
  for (auto& [missing, function] : needed)
    if (missing)
      throw DeviceError(
          fmt::format("device {}:{} cannot be used: it is not a TN_DEVICE_CALLER_THREAD device, "
                      "and {} is NULL (plugin {})",
                      name(), index, function, info_.library));
}

void Backend::drain() noexcept {
  std::lock_guard lock(mutex_);
  if (std::exchange(drained_, true) || !api_.drain) return;
  call_quietly(info_, "drain", [&] { return api_.drain(api_.backend); });
}

void Backend::close_devices() noexcept {
  std::lock_guard lock(mutex_);
  closed_ = true;
  for (auto& [index, device] : std::exchange(devices_, {}))
    call_quietly(info_, "device_close",
                 [&, d = device]() -> tn_error* { return api_.device_close(d), nullptr; });
}

void Backend::shutdown() noexcept {
  std::lock_guard lock(mutex_);
  if (std::exchange(shut_down_, true) || !api_.shutdown) return;
  call_quietly(info_, "shutdown",
               [&]() -> tn_error* { return api_.shutdown(api_.backend), nullptr; });
}

bool Backend::closed() const {
  std::lock_guard lock(mutex_);
  return closed_;
}

}  // namespace tenon::plugins
