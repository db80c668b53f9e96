// Records which bytes of memory were never written, and why.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <tenon/core/shape.h>

namespace tenon {

struct Failure;

// The bytes of a strided tensor relative to its first element: equal runs without gaps, at the
// positions that the axes give.
struct Footprint {
  struct Axis {
    uint64_t count, stride;  // the stride in bytes; axes are ordered by stride
  };
  Footprint(uint64_t bytes = 0) : run(bytes) {}
  Footprint(const Shape& shape, const Strides& strides, uint64_t item_bytes);

  uint64_t run;            // 0 if there are no bytes
  std::vector<Axis> axes;  // empty if there is one run
  uint64_t span() const;   // from the first byte to the end of the last one
};

// Calls f(address) for the start of each run of a footprint that begins at `data`, until it returns
// true. Returns whether one call did.
template <class F>
bool any_run(const char* data, const Footprint& footprint, F&& f) {
  if (footprint.run == 0) return false;
  auto& axes = footprint.axes;
  std::array<uint64_t, Shape::max_rank> at{};
  for (;;) {
    if (f(data)) return true;
    size_t i = 0;
    for (; i < axes.size(); ++i) {
      data += axes[i].stride;
      if (++at[i] < axes[i].count) break;
      data -= axes[i].stride * axes[i].count;
      at[i] = 0;
    }
    if (i == axes.size()) return false;
  }
}

// A list of address ranges, each with the failure because of which it was not written. A range of
// which a part was written has one bit for the largest unit that separates written from unwritten
// bytes, usually an element; so it needs at most an eighth of the memory that it describes. A
// look-up visits all ranges; there are none while nothing has failed.
class PoisonMap {
 public:
  using Pointer = std::shared_ptr<const Failure>;

  bool empty() const { return ranges_.empty(); }
  // If one of these throws std::bad_alloc, no byte outside the footprint has changed its state, and
  // the function may be called again.
  void add(const char* data, const Footprint& footprint, const Pointer& failure);
  void remove(const char* data, const Footprint& footprint);
  // Returns the failure of a byte of the footprint that was not written, or null.
  Pointer find(const char* data, const Footprint& footprint) const;

 private:
  struct Range {
    const char* begin = nullptr;
    uint64_t bytes = 0;
    Pointer failure;        // null if nothing is poisoned any more
    uint64_t unit = 0;      // bytes for each bit, if there are bits
    std::vector<bool> bad;  // empty if all bytes are poisoned
    uint64_t left = 0;      // the number of bits that are set

    bool meets(const char* data, uint64_t span) const {
      return data < begin + bytes && begin < data + span;
    }
    bool is_bad(uint64_t from, uint64_t to) const;
    void set(uint64_t from, uint64_t to, bool value);
    void shrink_or_clear(uint64_t from, uint64_t to);
    void refine(uint64_t finer);
    void extend(const char* from, const char* to);
  };
  size_t range_for(const char* data, const Footprint& footprint, const Pointer& failure);
  void remove_from_all_but(size_t kept, const char* data, const Footprint& footprint);

  std::vector<Range> ranges_;
};

}  // namespace tenon
