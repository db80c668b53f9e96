#include <tenon/core/storage.h>

namespace tenon {

namespace {
constinit std::atomic<uint64_t> last_number{0};
}

uint64_t Storage::values_number() {
  if (adopted() || exported.load(std::memory_order_relaxed)) return 0;
  uint64_t number = values_number_.load(std::memory_order_relaxed);
  if (number) return number;
  const uint64_t next = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
  // Where another thread was faster, its number is as good.
  return values_number_.compare_exchange_strong(number, next, std::memory_order_relaxed) ? next
                                                                                         : number;
}

}  // namespace tenon
