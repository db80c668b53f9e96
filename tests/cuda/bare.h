// A plugin's device by its C table alone, without the core in between: for rules that the core
// keeps to and tests want to break.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/plugins/host/registry.h>

#include "files.h"

namespace tenon::test {

inline void ok(tn_error* error) { BOOST_REQUIRE_MESSAGE(!error, plugins::take_message(error)); }
inline void refused(tn_error* error, tn_code code, const std::string& part) {
  BOOST_REQUIRE(error);
  BOOST_TEST(error->code == code);
  const auto text = plugins::take_message(error);
  BOOST_TEST(has(text, part), text);
}

// A stream (none on a caller's-thread device) and memory that ends with this object.
class Bare {
 public:
  explicit Bare(const char* plugin, uint32_t index = 0)
      : backend(plugins::registry().load(plugin)), device(backend.open_device(index)) {
    if (!(backend.device_info(device).flags & TN_DEVICE_CALLER_THREAD))
      ok(api.stream_create(device, &stream));
  }
  ~Bare() {
    for (auto [p, bytes] : memory_) api.memory_free(device, 0, p, bytes);
    if (stream) api.stream_destroy(stream);
  }
  Bare(const Bare&) = delete;

  template <class T>
  T* allocate(size_t n) {
    void* memory = nullptr;
    ok(api.memory_alloc(device, 0, n * sizeof(T), &memory));
    memory_.emplace_back(memory, n * sizeof(T));
    return static_cast<T*>(memory);
  }
  template <class T>
  void write(T* to, const std::vector<T>& values) {
    copy({sizeof(tn_copy), to, values.data(), values.size() * sizeof(T), device, nullptr});
  }
  template <class T>
  T* put(const std::vector<T>& values) {
    T* memory = allocate<T>(values.size());
    write(memory, values);
    return memory;
  }
  template <class T>
  std::vector<T> get(const T* from, size_t n) {
    std::vector<T> values(n);
    copy({sizeof(tn_copy), values.data(), from, n * sizeof(T), nullptr, device});
    return values;
  }
  void copy(const tn_copy& c) {
    ok(api.copy(device, &c, stream));
    wait();
  }
  void wait() {
    if (!stream) return;
    tn_event* event = nullptr;
    ok(api.event_create(device, &event));
    ok(api.event_record(event, stream));
    ok(api.event_wait(event));
    api.event_destroy(event);
  }

  plugins::Backend& backend;
  const tn_backend_api& api = backend.api().table();
  tn_device* const device;
  tn_stream* stream = nullptr;

 private:
  std::vector<std::pair<void*, uint64_t>> memory_;
};

}  // namespace tenon::test
