// Programs made at random of operators, views, changes in place and copies over several devices,
// and the plain loops that compute the same.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <tenon/core/device.h>

namespace tenon::test {

// What a step does with the slots that `a` and `b` name; the result goes to slot `to`. A step that
// does not fit takes the next slot that does, so every part of a program is a program.
enum class Kind : uint32_t {
  // New tensors.
  made,
  add,
  subtract,
  larger,
  halve,
  duplicate,
  join,
  // Changes in place.
  add_in_place,
  subtract_in_place,
  halve_in_place,
  fill_in,
  // Copies, also to other devices.
  copy_into,
  move,
  // Views.
  transposed,
  top,
  bottom,
  every_other,
  row,
  // What the program waits for.
  read,
  wait,
  kKinds
};
struct Step {
  Kind kind;
  uint32_t a, b, to, device;
  uint32_t stream;  // in which scope: 0 is none
};
struct RandomProgram {
  uint64_t seed;
  int64_t n;   // matrices are n x n, and views of their halves
  bool gated;  // no device begins before everything is queued
  std::vector<Step> steps;
};

inline constexpr size_t kSlots = 10;
inline constexpr uint32_t kStreams =
    2;  // further ones of each device, in the scope of which steps may be
inline const std::array<Device, 6> kDevices = {"cpu:0", "cpu:1", "cpu:2",
                                               "cpu:3", "sim:0", "sim:1"};

inline RandomProgram make_program(uint64_t seed) {
  std::mt19937_64 draw(seed);
  // One of 50 has matrices of 132 KiB, whose copies run beside other work.
  RandomProgram p{
      seed, seed % 50 == 0 ? 184 : 4 + static_cast<int64_t>(draw() % 4) * 4, seed % 4 != 0, {}};
  p.steps.resize(8 + draw() % 32);
  for (auto& s : p.steps)
    s = {static_cast<Kind>(draw() % static_cast<uint32_t>(Kind::kKinds)),
         static_cast<uint32_t>(draw() % kSlots),
         static_cast<uint32_t>(draw() % kSlots),
         static_cast<uint32_t>(draw() % kSlots),
         static_cast<uint32_t>(draw() % kDevices.size()),
         static_cast<uint32_t>(draw() % 2 * (draw() % (kStreams + 1)))};
  return p;
}

// The plain loop's side of a tensor of `rows` rows and n columns.
struct Plain {
  std::shared_ptr<std::vector<float>> memory;
  int64_t rows, n, offset, row_stride, column_stride;

  static Plain of(std::vector<float> values, int64_t n) {
    const auto rows = static_cast<int64_t>(values.size()) / n;
    return {std::make_shared<std::vector<float>>(std::move(values)), rows, n, 0, n, 1};
  }
  std::vector<float> values() const {
    std::vector<float> all(static_cast<size_t>(rows * n));
    const float* from = memory->data() + offset;
    float* to = all.data();
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < n; ++j) *to++ = from[i * row_stride + j * column_stride];
    return all;
  }
  void set(const std::vector<float>& all) const {
    float* to = memory->data() + offset;
    const float* from = all.data();
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < n; ++j) to[i * row_stride + j * column_stride] = *from++;
  }
  bool writable() const { return row_stride && column_stride; }
};

template <class F>
std::vector<float> combined(const Plain& a, const Plain& b, F&& f) {
  std::vector<float> x = a.values();
  const std::vector<float> y = b.values();
  const float* from = y.data();
  for (float& v : x) v = f(v, *from++);
  return x;
}

}  // namespace tenon::test
