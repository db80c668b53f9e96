// Which bytes of memory hold no values, and why. Not installed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <tenon/core/shape.h>

namespace tenon {

struct Failure;

// The bytes of a strided tensor, counted from its first element: equal runs without gaps, at the
// places that the axes span.
struct Footprint {
  struct Axis {
    uint64_t count, stride;  // in bytes; strides rise
  };
  Footprint(uint64_t bytes = 0) : run(bytes) {}
  Footprint(const Shape& shape, const Strides& strides, uint64_t item_bytes);

  uint64_t run;            // 0: no bytes at all
  std::vector<Axis> axes;  // none: one run
  uint64_t span() const;   // from the first byte to behind the last one
};

// Ranges of addresses, each with the failure that left it unwritten. A range that is written in
// part keeps one bit for the largest unit that tells written from unwritten bytes, usually an
// element; so it never takes more than an eighth of the memory it is about. Looking up takes as
// many steps as there are ranges: there are none while nothing is wrong.
class PoisonMap {
 public:
  using Pointer = std::shared_ptr<const Failure>;

  bool empty() const { return ranges_.empty(); }
  // Where there is no memory for these two (std::bad_alloc), no byte has lost its failure that was
  // not to lose it, and no sound one was given one that was not to have it: they may be called
  // again.
  void add(const char* data, const Footprint& footprint, const Pointer& failure);
  void remove(const char* data, const Footprint& footprint);
  // The failure of a byte of the footprint that was not written, or null.
  Pointer find(const char* data, const Footprint& footprint) const;

 private:
  struct Range {
    const char* begin = nullptr;
    uint64_t bytes = 0;
    Pointer failure;        // null: it is over
    uint64_t unit = 0;      // bytes to a bit; only where there are bits
    std::vector<bool> bad;  // empty: all of it
    uint64_t left = 0;      // bits that are set

    bool meets(const char* data, uint64_t span) const {
      return data < begin + bytes && begin < data + span;
    }
    bool is_bad(uint64_t from, uint64_t to) const;
    void set(uint64_t from, uint64_t to, bool value);
    void shrink_or_clear(uint64_t from, uint64_t to);
    void regrain(uint64_t finer);
    void extend(const char* from, const char* to);
  };
  size_t range_for(const char* data, const Footprint& footprint, const Pointer& failure);
  void remove_from_all_but(size_t kept, const char* data, const Footprint& footprint);

  std::vector<Range> ranges_;
};

}  // namespace tenon
