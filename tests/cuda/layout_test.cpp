// How the cuda plugin walks operands in memory: dimensions merged, sorted and tiled, and what
// 32-bit arithmetic cannot address cut into pieces. Only descriptions of tensors are used, so they
// may be larger than any memory.
#include "device/layout.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

using namespace tenon::cuda;

namespace {

constexpr int64_t kLimit = int64_t{1} << 31;

struct Described {
  std::vector<int64_t> shape, strides;
  tn_tensor_desc desc() const {
    tn_tensor_desc d{};
    d.struct_size = sizeof d;
    d.dtype = TN_F32;
    d.rank = static_cast<uint32_t>(shape.size());
    std::copy(shape.begin(), shape.end(), d.shape);
    std::copy(strides.begin(), strides.end(), d.strides);
    return d;
  }
};

using Sizes = std::vector<int64_t>;

Described contiguous(const Sizes& shape) {
  Described d{shape, Sizes(shape.size())};
  for (int64_t step = 1, i = static_cast<int64_t>(shape.size()); i-- > 0;
       step *= shape[static_cast<size_t>(i)])
    d.strides[static_cast<size_t>(i)] = step;
  return d;
}
// Dimension i of the result lies where dimension order[i] of a contiguous tensor lay.
Described permuted(const Sizes& shape, const std::vector<size_t>& order) {
  Sizes whole(shape.size());
  for (size_t i = 0; i < order.size(); ++i) whole[order[i]] = shape[i];
  auto from = contiguous(whole);
  Described d{shape, Sizes(shape.size())};
  for (size_t i = 0; i < order.size(); ++i) d.strides[i] = from.strides[order[i]];
  return d;
}
// The same elements along the dimensions named.
Described expanded(const Sizes& shape, const std::vector<size_t>& dims) {
  auto inner = shape;
  for (size_t d : dims) inner[d] = 1;
  Described d{shape, contiguous(inner).strides};
  for (size_t i : dims) d.strides[i] = 0;
  return d;
}
// Every second element of each dimension of a larger tensor.
Described every_second(const Sizes& shape) {
  auto whole = shape;
  for (auto& n : whole) n *= 2;
  auto d = contiguous(whole);
  for (auto& s : d.strides) s *= 2;
  d.shape = shape;
  return d;
}

int64_t offset_of(const Described& t, const Sizes& index) {
  int64_t offset = 0;
  for (size_t d = 0; d < index.size(); ++d) offset += index[d] * t.strides[d];
  return offset;
}

std::mt19937_64& generator() {
  static std::mt19937_64 engine(5);
  return engine;
}
int64_t below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(generator()); }

// A box of elements; dimensions as those of the nest it was cut from.
struct Box {
  Sizes first, size;
  bool meets(const Box& other) const {
    for (size_t d = 0; d < first.size(); ++d)
      if (first[d] + size[d] <= other.first[d] || other.first[d] + other.size[d] <= first[d])
        return false;
    return true;
  }
};

// Where a piece begins, from the offset of an operand whose elements have places of their own.
Box box_of(const Nest& whole, const Nest& piece, int unique) {
  Box box{Sizes(static_cast<size_t>(whole.rank)), Sizes(piece.shape, piece.shape + piece.rank)};
  std::vector<int> order(static_cast<size_t>(whole.rank));
  for (int d = 0; d < whole.rank; ++d) order[static_cast<size_t>(d)] = d;
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return whole.strides[unique][a] > whole.strides[unique][b]; });
  int64_t left = piece.base[unique];
  for (int d : order) {
    box.first[static_cast<size_t>(d)] = left / whole.strides[unique][d];
    left %= whole.strides[unique][d];
  }
  return box;
}

// Pieces lie within the whole, meet nowhere and are as many elements as it has: each is in exactly
// one.
void check_cover(const Nest& whole, const std::vector<Nest>& pieces, int unique,
                 const std::string& what) {
  std::vector<Box> boxes;
  int64_t total = 0;
  for (auto& p : pieces) {
    BOOST_REQUIRE_MESSAGE(p.rank == whole.rank && p.operands == whole.operands, what);
    BOOST_REQUIRE_MESSAGE(p.numel > 0 && p.numel < kLimit, what << ": " << p.numel << " elements");
    boxes.push_back(box_of(whole, p, unique));
    int64_t volume = 1;
    for (int d = 0; d < p.rank; ++d) {
      const auto i = static_cast<size_t>(d);
      volume *= p.shape[d];
      BOOST_REQUIRE_MESSAGE(boxes.back().first[i] + p.shape[d] <= whole.shape[d],
                            what << ": dimension " << d);
    }
    BOOST_REQUIRE_MESSAGE(volume == p.numel, what);
    total += volume;
    for (int k = 0; k < p.operands; ++k) {
      int64_t base = 0, last = 0;
      for (int d = 0; d < p.rank; ++d) {
        BOOST_REQUIRE_MESSAGE(p.strides[k][d] == whole.strides[k][d],
                              what << ": a stride has changed");
        base += boxes.back().first[static_cast<size_t>(d)] * p.strides[k][d];
        last += (p.shape[d] - 1) * p.strides[k][d];
      }
      BOOST_REQUIRE_MESSAGE(p.base[k] == base, what << ": operand " << k << " begins at "
                                                    << p.base[k] << ", not " << base);
      BOOST_REQUIRE_MESSAGE(last < kLimit, what << ": operand " << k << " reaches " << last);
    }
  }
  BOOST_REQUIRE_MESSAGE(total == whole.numel,
                        what << ": " << total << " elements of " << whole.numel);
  for (size_t i = 0; i < boxes.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      BOOST_REQUIRE_MESSAGE(!boxes[i].meets(boxes[j]), what << ": pieces " << i << " and " << j);
}

// What kernels compute: elements of a piece by their number. Operand 2 is the element's number in
// row-major order, so it says which element this is; the others have to lie where their strides
// say.
void check_offsets(const std::vector<Nest>& pieces, const std::vector<Described>& operands,
                   const std::string& what) {
  auto& shape = operands[0].shape;
  for (auto& p : pieces) {
    const auto layout = p.layout<3>();
    BOOST_REQUIRE_MESSAGE(static_cast<int64_t>(layout.numel) == p.numel, what);
    std::vector<int64_t> numbers = {0, p.numel - 1};
    for (int i = 0; i < 20; ++i) numbers.push_back(below(p.numel));
    for (int64_t number : numbers) {
      uint32_t at[1][3];
      layout.offsets(static_cast<uint32_t>(number), 0, at);
      int64_t left = p.base[2] + at[0][2];
      Sizes index(shape.size());
      for (size_t d = shape.size(); d-- > 0; left /= shape[d]) index[d] = left % shape[d];
      BOOST_REQUIRE_MESSAGE(left == 0, what << ": outside of the tensor");
      for (size_t k = 0; k < 2; ++k)
        BOOST_REQUIRE_MESSAGE(p.base[k] + at[0][k] == offset_of(operands[k], index),
                              what << ": operand " << k);
    }
  }
}

void check_nest(const Described& a, const Described& b, const std::string& what) {
  const std::vector<Described> operands = {a, b, contiguous(a.shape)};
  const auto da = a.desc(), db = b.desc(), number = operands[2].desc();
  Nest nest({&da, &db, &number});
  int64_t numel = 1;
  for (auto n : a.shape) numel *= n;
  BOOST_REQUIRE_MESSAGE(nest.numel == numel, what);
  for (const char* way : {"as it is", "sorted", "tiled"}) {
    if (way == std::string("sorted")) nest.sort();
    if (way == std::string("tiled")) nest.tile();
    const auto pieces = nest.pieces();
    const std::string name = what + ", " + way;
    check_cover(nest, pieces, 2, name);
    check_offsets(pieces, operands, name);
  }
}

// In every way that tensors of this shape may lie.
void check_shape(const Sizes& shape, const std::string& name) {
  std::vector<std::pair<std::string, Described>> ways = {{"contiguous", contiguous(shape)},
                                                         {"every second", every_second(shape)}};
  std::vector<size_t> turned, all;
  for (size_t d = shape.size(); d-- > 0;) turned.push_back(d);
  for (size_t d = 0; d < shape.size(); ++d) all.push_back(d);
  ways.emplace_back("transposed", permuted(shape, turned));
  ways.emplace_back("one value", expanded(shape, all));
  ways.emplace_back("one row", expanded(shape, {0}));
  ways.emplace_back("one column", expanded(shape, {shape.size() - 1}));
  if (shape.size() == 3) ways.emplace_back("rows swapped with planes", permuted(shape, {1, 0, 2}));
  for (auto& [first, a] : ways)
    for (auto& [second, b] : ways) check_nest(a, b, name + ", " + first + " and " + second);
}

}  // namespace

BOOST_AUTO_TEST_CASE(division_by_multiplication_is_exact) {
  std::vector<uint32_t> numbers = {0,     1,     2,          3,          5,         7,
                                   31,    32,    33,         255,        641,       65535,
                                   65536, 65537, 0x7ffffffe, 0x7fffffff, 0x40000000};
  for (int i = 0; i < 500; ++i)
    numbers.push_back(static_cast<uint32_t>(below(kLimit >> below(31))));
  for (uint32_t divisor : numbers) {
    if (divisor == 0) continue;
    const auto by = Divider::of(divisor);
    for (uint32_t n : numbers)
      BOOST_REQUIRE_MESSAGE(by.quotient(n) == n / divisor,
                            n << " / " << divisor << " came out as " << by.quotient(n));
    // Where the quotient steps up.
    for (uint64_t q = 1; q * divisor < uint64_t{kLimit}; q = q * 2 + 1)
      BOOST_REQUIRE_MESSAGE(by.quotient(static_cast<uint32_t>(q * divisor)) == q &&
                                by.quotient(static_cast<uint32_t>(q * divisor - 1)) == q - 1,
                            q << " * " << divisor);
  }
}

BOOST_AUTO_TEST_CASE(small_tensors_are_one_piece) {
  for (auto& shape : std::vector<Sizes>{
           {1}, {7}, {5, 1, 6}, {64, 96}, {3, 4, 5}, {1, 1, 1}, {2, 2, 2, 2, 2, 2, 2, 2}}) {
    check_shape(shape, "a small tensor");
    auto d = contiguous(shape).desc();
    BOOST_TEST(Nest({&d}).pieces().size() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(a_scalar_is_one_piece_and_nothing_is_none) {
  auto scalar = contiguous({}).desc(), nothing = contiguous({3, 0, 4}).desc();
  BOOST_TEST(Nest({&scalar, nullptr}).pieces().size() == 1u);
  BOOST_TEST(Nest({&scalar}).pieces()[0].numel == 1);
  BOOST_TEST(Nest({&nothing, nullptr}).pieces().size() == 0u);
}

BOOST_AUTO_TEST_CASE(the_limit_itself) {
  for (auto [numel, pieces] : std::vector<std::pair<int64_t, size_t>>{
           {kLimit - 1, 1}, {kLimit, 2}, {kLimit + 1, 2}, {5 * kLimit, 8}}) {
    auto d = contiguous({numel}).desc();
    BOOST_TEST(Nest({&d}).pieces().size() == pieces, "of " << numel);
  }
  // Few elements, far from each other.
  Described far{{2, 3}, {kLimit, 1}}, near = contiguous({2, 3});
  auto df = far.desc(), dn = near.desc();
  BOOST_TEST(Nest({&dn, &df}).pieces().size() == 2u);
  check_nest(near, far, "rows that are far from each other");
}

BOOST_AUTO_TEST_CASE(large_tensors_are_covered_once) {
  check_shape({kLimit + 3}, "one dimension");
  check_shape({3, kLimit - 1}, "long rows");
  check_shape({kLimit / 2 + 1, 5}, "short rows");
  check_shape({100003, 65537}, "a matrix");
  check_shape({70001, 129, 511}, "three dimensions");
  check_shape({2, 70001, 1, 65537}, "a dimension of one");
  check_shape({64, 4096, 32768}, "tiles");
  check_shape({3, 5, 7, 11, 13, 17, 19, 23 * 53}, "as many dimensions as there can be");
}

BOOST_AUTO_TEST_CASE(a_broadcast_operand_moves_only_where_it_has_elements) {
  const Sizes shape = {8, kLimit / 4, 3};
  auto y = contiguous(shape), row = expanded(shape, {0, 1}), plane = expanded(shape, {2});
  auto dy = y.desc(), dr = row.desc(), dp = plane.desc();
  auto pieces = Nest({&dy, &dr, &dp, nullptr}).pieces();
  BOOST_TEST(pieces.size() > 1u);
  for (auto& p : pieces) {
    BOOST_TEST(p.base[1] == 0);
    BOOST_TEST(p.base[2] * 3 == p.base[0]);
    BOOST_TEST(p.base[3] == 0);
  }
}
