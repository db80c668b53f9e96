// Lookups by index of the cuda plugin against the cpu plugin: the same rows, gradients added in the
// same order, and errors that name the index.
#include <tenon/core/ops/indexing.h>

#include "cuda/agree.h"

using namespace tenon;
using namespace tenon::test;

BOOST_TEST_GLOBAL_FIXTURE(EmulatedCuda);

namespace {

Tensor random_indices(const Shape& shape, int64_t bound, DType dtype) {
  std::vector<int64_t> values(static_cast<size_t>(shape.numel()));
  for (auto& v : values) v = pick(0, bound - 1);
  return ints(values, shape).to(dtype);
}

}  // namespace

// Sums are made in the same order on both devices: no tolerance.
BOOST_AUTO_TEST_CASE(embeddings) {
  for (DType index : {DType::i64, DType::i32})
    for (DType dtype : {f32, f64})
      for (int64_t width : {1, 3, 4, 32, 70})
        for (int64_t count : {1, 20, 33, 500})
          for (int64_t padding : {-1, 2})
            require_agreement(
                describe("embedding", dtype, {9, width}, std::to_string(count)),
                [&](auto& v) { return embedding(v[1], v[0], padding); },
                {random_values({9, width}, dtype, false), random_indices({count}, 9, index)}, 0);
  require_agreement(
      "of a matrix of indices", [](auto& v) { return embedding(v[1], v[0]); },
      {random_values({50, 6}, f32, false), random_indices({7, 11}, 50, DType::i64)}, 0);
  require_agreement(
      "of no indices", [](auto& v) { return embedding(v[1], v[0]); },
      {random_values({5, 6}, f32, false), random_indices({0}, 5, DType::i64)}, 0);
}

BOOST_AUTO_TEST_CASE(selection) {
  for (const Shape& shape :
       {Shape{6}, Shape{5, 7}, Shape{3, 8, 4}, Shape{2, 300, 3}, Shape{300, 300}})
    for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d)
      for (int64_t count : {0, 1, 5, 40, 400}) {
        Tensor index = random_indices({count}, shape[static_cast<size_t>(d)], DType::i64);
        require_agreement(
            describe("index_select", f32, shape, "dim " + std::to_string(d)),
            [&](auto& v) { return index_select(v[0], d, v[1]); },
            {random_values(shape, f32, false), index}, 0);
      }
  for (DType dtype : {DType::f16, DType::bf16, DType::i64, DType::i32, DType::u8, DType::boolean}) {
    Tensor x = random_values({5, 7}, dtype), index = random_indices({9}, 7, DType::i32);
    require_same(index_select(x.to(kGpu), 1, index.to(kGpu)), index_select(x, 1, index),
                 describe("index_select", dtype, {5, 7}));
    require_same(index_select(misaligned(x.to(kGpu)), 1, index.to(kGpu)), index_select(x, 1, index),
                 "misaligned");
    Tensor places = random_indices({5, 3}, 7, DType::i64);
    require_same(gather(x.to(kGpu), 1, places.to(kGpu)), gather(x, 1, places),
                 describe("gather", dtype, {5, 7}));
  }
}

BOOST_AUTO_TEST_CASE(gathering) {
  struct Case {
    Shape x, index;
    int64_t dim;
  };
  // Short lines, long ones that are sorted, an index smaller than the input elsewhere, nothing.
  const std::vector<Case> cases = {{{6}, {4}, 0},
                                   {{5, 7}, {5, 3}, 1},
                                   {{5, 7}, {9, 7}, 0},
                                   {{3, 4, 5}, {3, 9, 5}, 1},
                                   {{10}, {5000}, 0},
                                   {{4, 6}, {4, 100}, 1},
                                   {{4, 6, 3}, {2, 50, 2}, 1},
                                   {{4, 6}, {2, 3}, 0},
                                   {{70000, 2}, {70000, 1}, 1},
                                   {{4, 6}, {4, 0}, 1},
                                   {{1, 1}, {1, 1}, 0}};
  for (DType dtype : {f32, f64})
    for (auto& c : cases)
      require_agreement(
          describe("gather", dtype, c.x, c.index.str()),
          [&](auto& v) { return gather(v[0], c.dim, v[1]); },
          {random_values(c.x, dtype, false),
           random_indices(c.index, c.x[static_cast<size_t>(c.dim)], DType::i64)},
          0);
  for (auto& lie : lies()) {
    Both x = random_both({6, 10, 8}, f32, lie, false),
         index = both(random_indices({6, 4, 8}, 10, DType::i64));
    require_same(gather(x.gpu, 1, index.gpu), gather(x.cpu, 1, index.cpu), "gather, " + lie.name);
  }
}

BOOST_AUTO_TEST_CASE(indices_out_of_range) {
  Tensor x = random_values({4, 3}, f32, false).to(kGpu);
  for (int64_t bad : {int64_t{-1}, int64_t{4}, INT64_MAX, INT64_MIN}) {
    auto name = "index " + std::to_string(bad) + " at position 1 is outside [0, 4)";
    Tensor index = ints({0, bad, 2}, {3}).to(kGpu);
    require_error<IndexError>([&] { embedding(index, x).wait(); }, "embedding: " + name);
    require_error<IndexError>([&] { index_select(x, 0, index).wait(); }, "index_select: " + name);
    require_error<IndexError>([&] { gather(x, 0, index.view({1, 3})).wait(); }, "gather: " + name);
  }
  require_same(index_select(x, 0, ints({3}, {1}).to(kGpu)),
               index_select(x.to(kCpu), 0, ints({3}, {1})), "after a fault");
}
