#include <algorithm>
#include <charconv>
#include <deque>
#include <mutex>
#include <ostream>
#include <unordered_map>

#include <fmt/core.h>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/base/per_thread.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/device.h>
#include <tenon/core/device_scope.h>
#include <tenon/core/error.h>

namespace tenon {

namespace {

struct TypeNames {
  ForkMutex mutex{ForkOrder::tables};
  std::deque<std::string> names{"cpu"};  // a deque: views of the names stay valid
  std::unordered_map<std::string_view, uint16_t> ids{{names[0], uint16_t{0}}};
};
TypeNames& type_names() {
  static constinit NeverDestroyed<TypeNames> names;
  return names.get();
}

uint16_t intern(std::string_view type) {
  auto& t = type_names();
  std::lock_guard lock(t.mutex);
  if (auto known = t.ids.find(type); known != t.ids.end()) return known->second;
  if (t.names.size() > UINT16_MAX)
    throw DeviceError(
        fmt::format("there is no room for the backend name \"{}\": a process can use at "
                    "most {} names",
                    type, t.names.size()));
  const auto id = static_cast<uint16_t>(t.names.size());
  t.ids.emplace(t.names.emplace_back(type), id);
  return id;
}

bool is_type_name(std::string_view s) {
  return !s.empty() && s.size() <= 64 && std::all_of(s.begin(), s.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

[[noreturn]] void malformed(std::string_view text) {
  throw DeviceError(
      fmt::format("\"{}\" names no device; write a backend and an index, such as \"cpu\", "
                  "\"cpu:1\" or \"cuda:0\"",
                  printable(text)));
}

[[noreturn]] void refuse_index(std::string_view type, std::string_view index) {
  throw DeviceError(
      fmt::format("\"{}:{}\" has too large an index: devices are numbered from 0 to {}",
                  printable(type), printable(index), UINT16_MAX));
}

}  // namespace

Device::Device(std::string_view text) {
  auto colon = text.find(':');
  auto type = text.substr(0, colon);
  if (!is_type_name(type)) malformed(text);
  uint32_t index = 0;
  if (colon != std::string_view::npos) {
    auto digits = text.substr(colon + 1);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (end != digits.data() + digits.size() || error == std::errc::invalid_argument)
      malformed(text);
    if (error == std::errc::result_out_of_range) refuse_index(type, digits);
  }
  *this = Device(type, index);
}

Device::Device(std::string_view type, uint32_t index) {
  if (!is_type_name(type)) malformed(fmt::format("{}:{}", type, index));
  if (index > UINT16_MAX) refuse_index(type, std::to_string(index));
  type_ = intern(type);
  index_ = static_cast<uint16_t>(index);
}

std::string_view Device::type() const {
  auto& t = type_names();
  std::lock_guard lock(t.mutex);
  return t.names[type_];
}

std::string Device::str() const { return fmt::format("{}:{}", type(), index_); }

std::ostream& operator<<(std::ostream& out, const Device& device) { return out << device.str(); }

std::vector<Device> parse_devices(std::string_view list) {
  const std::string form =
      "; write one or more devices with commas between them, such as \"cpu:0,cpu:1\" or \"cuda:0\"";
  if (list.empty()) throw DeviceError("the list of devices is empty" + form);
  const std::string named = fmt::format("the list of devices \"{}\"", printable(list));
  auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  if (std::any_of(list.begin(), list.end(), is_blank)) {
    std::string without(list);
    std::erase_if(without, is_blank);
    throw DeviceError(named + " has blanks in it" +
                      (without.empty() ? form : fmt::format("; write \"{}\"", printable(without))));
  }
  std::vector<Device> devices;
  for (size_t at = 0; at <= list.size();) {
    auto comma = std::min(list.find(',', at), list.size());
    if (comma == at) throw DeviceError(named + " has an empty entry" + form);
    devices.emplace_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  return devices;
}

constinit thread_local const detail::DeviceScope* innermost_scope TENON_FAST_TLS = nullptr;

void enter_scope(detail::DeviceScope& scope) {
  scope.before = innermost_scope;
  scope.guard = scope.stream ? (scope.before ? scope.before->guard : nullptr) : &scope;
  scope.streams = scope.stream ? &scope : scope.before ? scope.before->streams : nullptr;
  innermost_scope = &scope;
}
// Scopes usually end in the opposite order, but those of a container do not.
void leave_scope(const detail::DeviceScope& scope) {
  if (innermost_scope == &scope) [[likely]] {
    innermost_scope = scope.before;
    return;
  }
  const detail::DeviceScope* const before = scope.before;
  const auto without = [&](const detail::DeviceScope*& last, const detail::DeviceScope* earlier) {
    if (last == &scope) last = earlier;
  };
  for (auto* inner = const_cast<detail::DeviceScope*>(innermost_scope); inner;
       inner = const_cast<detail::DeviceScope*>(inner->before)) {
    without(inner->guard, before ? before->guard : nullptr);
    without(inner->streams, before ? before->streams : nullptr);
    if (inner->before == &scope) return static_cast<void>(inner->before = before);
  }
}
void continue_scopes(const detail::DeviceScope* callers) { innermost_scope = callers; }

Device default_device() {
  return device_guard_active() ? innermost_scope->guard->device : Device();
}
bool device_guard_active() { return innermost_scope && innermost_scope->guard; }

DeviceGuard::DeviceGuard(Device device) {
  scope_.device = device;
  enter_scope(scope_);
}
DeviceGuard::~DeviceGuard() { leave_scope(scope_); }

}  // namespace tenon
