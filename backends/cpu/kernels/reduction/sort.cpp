// Sorting along one dimension, stable, NaN as the largest. Elements become whole numbers of the
// same order beside their places; long lines are sorted digit by digit (Knuth, "The Art of Computer
// Programming", vol. 3, 5.2.5).
#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include <tenon/plugins/sdk/requests/order.h>

#include "runtime/common.h"

namespace tenon::cpu {
namespace {

template <class Key>
struct Item {
  Key key, place;
  friend bool operator<(const Item& a, const Item& b) {
    return a.key != b.key ? a.key < b.key : a.place < b.place;
  }
};

// Equal elements get one key: zeros of both signs, and all NaN, which are the largest.
template <class Key, class T>
Key key_of(T x) {
  constexpr Key sign = Key{1} << (8 * sizeof(Key) - 1);
  if constexpr (std::is_floating_point_v<T>) {
    if (x != x) return ~Key{0};
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    const Bits bits = std::bit_cast<Bits>(x == 0 ? T(0) : x);
    constexpr Bits top = Bits{1} << (8 * sizeof(Bits) - 1);
    return static_cast<Key>(bits & top ? ~bits : bits | top);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<Key>(x) ^ sign;
  } else {
    return x;
  }
}

// n items, by way of as many spare ones: a byte of the keys after the other, from the lowest. Bytes
// that all keys share are left out.
template <class Key>
void sort_items(Item<Key>* items, Item<Key>* spare, int64_t n) {
  if (n <= 128) return std::sort(items, items + n);
  constexpr int kBytes = sizeof(Key);
  int64_t counts[kBytes][256] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int b = 0; b < kBytes; ++b) ++counts[b][items[i].key >> (8 * b) & 255];
  Item<Key>*from = items, *to = spare;
  for (int b = 0; b < kBytes; ++b) {
    int64_t* const count = counts[b];
    if (count[items[0].key >> (8 * b) & 255] == n) continue;
    int64_t next = 0;
    for (int digit = 0; digit < 256; ++digit) next += std::exchange(count[digit], next);
    for (int64_t i = 0; i < n; ++i) to[count[from[i].key >> (8 * b) & 255]++] = from[i];
    std::swap(from, to);
  }
  if (from != items) std::copy_n(from, n, items);
}

// One long line: each thread sorts a part, then neighbouring parts are merged.
template <class Key>
void sort_in_parts(Item<Key>* items, Item<Key>* spare, int64_t n, int64_t parts) {
  const auto edge = [&](int64_t part) { return n * std::min(part, parts) / parts; };
  parallel_for(parts, 1, [&](int64_t begin, int64_t end, uint32_t) {
    for (int64_t p = begin; p < end; ++p)
      sort_items(items + edge(p), spare + edge(p), edge(p + 1) - edge(p));
  });
  Item<Key>*from = items, *to = spare;
  for (int64_t step = 1; step < parts; step *= 2) {
    parallel_for((parts + 2 * step - 1) / (2 * step), 1, [&](int64_t begin, int64_t end, uint32_t) {
      for (int64_t p = begin; p < end; ++p) {
        const int64_t low = edge(2 * step * p), middle = edge(2 * step * p + step),
                      high = edge(2 * step * p + 2 * step);
        std::merge(from + low, from + middle, from + middle, from + high, to + low);
      }
    });
    std::swap(from, to);
  }
  if (from != items) std::copy_n(from, n, items);
}

// The k least of n items by their keys, in no order: those below the largest of the k least so far
// are kept until there are several times as many, and then these are parted again. Few are kept at
// all, so a block of keys is most often looked at as a whole.
template <class Key, class KeyAt>
void keep_least(KeyAt&& key, Item<Key>* kept, int64_t n, int64_t k) {
  constexpr int64_t kBlock = 64;
  const int64_t room = std::min(n, std::max<int64_t>(4 * k, kBlock));
  int64_t count = room;
  for (int64_t i = 0; i < room; ++i) kept[i] = {key(i), static_cast<Key>(i)};
  const auto part = [&] {
    std::nth_element(kept, kept + k - 1, kept + count);
    count = k;
  };
  part();
  for (int64_t begin = room; begin < n; begin += kBlock) {
    const int64_t size = std::min(kBlock, n - begin);
    Key keys[kBlock], least = ~Key{0};
    for (int64_t i = 0; i < size; ++i) {
      keys[i] = key(begin + i);
      least = std::min(least, keys[i]);
    }
    if (least >= kept[k - 1].key) continue;
    for (int64_t i = 0; i < size; ++i) {
      // One of the same key comes later, and so is not less.
      if (keys[i] >= kept[k - 1].key) continue;
      kept[count++] = {keys[i], static_cast<Key>(begin + i)};
      if (count == room) part();
    }
  }
  part();
}

template <class T, class Key>
class Sort {
 public:
  Sort(const sdk::SortRequest& r, int64_t threads)
      : r_(r), lines_(r.outer * r.inner), slots_(std::min(threads, lines_)), threads_(threads) {}

  // Twice a line of items for each thread.
  uint64_t workspace_bytes() const {
    return static_cast<uint64_t>(slots_ * 2 * r_.size) * sizeof(Item<Key>);
  }

  void operator()(const tn_run& run) const {
    auto* const items = static_cast<Item<Key>*>(run.workspace);
    const bool parted = lines_ < threads_ && r_.size >= 2 * kGrain;
    if (parted) {
      for (int64_t line = 0; line < lines_; ++line) sort_line(run, line, items, threads_);
      return;
    }
    // A thread has its own items, whatever number the host gives it.
    parallel_for(slots_, 1, [&](int64_t begin, int64_t end, uint32_t) {
      for (int64_t slot = begin; slot < end; ++slot)
        for (int64_t line = lines_ * slot / slots_; line < lines_ * (slot + 1) / slots_; ++line)
          sort_line(run, line, items + slot * 2 * r_.size, 1);
    });
  }

 private:
  void sort_line(const tn_run& run, int64_t line, Item<Key>* items, int64_t parts) const {
    const int64_t n = r_.size, inner = r_.inner, k = r_.k;
    const int64_t outer = line / inner, column = line - outer * inner;
    auto* x = static_cast<const T*>(run.inputs[0]) + outer * n * inner + column;
    const Key flip = r_.descending ? ~Key{0} : Key{0};
    const auto key = [&](int64_t i) { return static_cast<Key>(key_of<Key>(x[i * inner]) ^ flip); };
    if (parts == 1 && k < n / 8) {
      keep_least(key, items, n, k);
      sort_items(items, items + n, k);
    } else {
      for (int64_t i = 0; i < n; ++i) items[i] = {key(i), static_cast<Key>(i)};
      parts > 1 ? sort_in_parts(items, items + n, n, parts) : sort_items(items, items + n, n);
    }
    auto* values = static_cast<T*>(run.outputs[0]) + outer * k * inner + column;
    auto* places = static_cast<int64_t*>(run.outputs[1]) + outer * k * inner + column;
    for (int64_t i = 0; i < k; ++i) {
      const auto place = static_cast<int64_t>(items[i].place);
      values[i * inner] = x[place * inner];
      places[i * inner] = place;
    }
  }

  sdk::SortRequest r_;
  int64_t lines_, slots_, threads_;
};

template <class T, class Key>
tn_plan* sort_plan(const sdk::SortRequest& r) {
  const Sort<T, Key> sort(r, thread_count());
  const auto elements = static_cast<double>(r.outer * r.size * r.inner);
  const auto cost = static_cast<uint64_t>(30 + 15 * elements);
  return sdk::make_plan(sort, {sort.workspace_bytes(), cost});
}

tn_plan* make_sort(tn_device*, const Request& request) {
  const auto r = sdk::SortRequest::from(request);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  return with_number(sdk::byte_for_bool(r.dtype), [&]<class T>(T) {
    if (sizeof(T) == 8 || r.size > UINT32_MAX) return sort_plan<T, uint64_t>(r);
    if constexpr (sizeof(T) == 8)
      return sort_plan<T, uint64_t>(r);
    else
      return sort_plan<T, uint32_t>(r);
  });
}
const sdk::Kernel sorts({"sort", "topk"}, make_sort);

}  // namespace
}  // namespace tenon::cpu
