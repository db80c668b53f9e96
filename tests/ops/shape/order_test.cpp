// Other orders of the same elements, diagonals and repetition: values and errors that the table
// does not have.
#include <limits>

#include <tenon/core/ops/shape.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(shape)

using namespace tenon;
using namespace tenon::test;

namespace {
// 0, 1, 2, … in the given shape.
Tensor numbered(const Shape& shape) {
  return arange(0, static_cast<double>(shape.numel()), 1, f64).reshape(shape);
}
}  // namespace

BOOST_AUTO_TEST_CASE(methods_are_the_functions) {
  const Tensor x = numbered({2, 3});
  require_values(x.flip({0}), {2, 3}, {3, 4, 5, 0, 1, 2});
  require_values(x.flip(-1), {2, 3}, {2, 1, 0, 5, 4, 3});
  require_values(x.roll(1, 1), {2, 3}, {2, 0, 1, 5, 3, 4});
  require_values(x.roll(-2), {2, 3}, {2, 3, 4, 5, 0, 1});
  require_values(x.rot90(), {3, 2}, {2, 5, 1, 4, 0, 3});
  require_values(x.tril(), {2, 3}, {0, 0, 0, 3, 4, 0});
  require_values(x.triu(1), {2, 3}, {0, 1, 2, 0, 0, 5});
  require_values(x.diagonal(1), {2}, {1, 5});
  require_values(x.diag(), {2}, {0, 4});
  require_values(x[0].diag(-1).sum(1), {4}, {0, 0, 1, 2});
  require_values(x.trace(), {}, {4});
  require_values(x.repeat({2, 1}), {4, 3}, {0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5});
  require_values(x.tile(2).sum(1), {2}, {6, 24});
  require_values(x.repeat_interleave(2, 0).select(1, 0), {4}, {0, 0, 3, 3});
  require_values(x.unfold(1, 2, 1), {2, 2, 2}, {0, 1, 1, 2, 3, 4, 4, 5});
  require_values(x.mean(1), {2}, {1, 4});
  require_values(x.sum(0), {3}, {3, 5, 7});
  require_values(x.sum(-1, true), {2, 1}, {3, 12});
  require_values(x.permute({1, 0}), {3, 2}, {0, 3, 1, 4, 2, 5});
  require_values(x.permute(Shape{1, 0}), {3, 2}, {0, 3, 1, 4, 2, 5});
  require_values(x.movedim(0, 1).swapaxes(0, 1).unflatten(1, {1, -1}).squeeze(), {2, 3},
                 x.to_vector<double>());
  BOOST_CHECK(zeros({2, 3}, f64).dtype() == f64);
  BOOST_CHECK(full({2}, 1, i64).dtype() == i64);
  BOOST_CHECK(ones({2}, {}).dtype() == f32);
  BOOST_CHECK(x.to(f32).type_as(x).dtype() == f64);
}

// Lines of many packets that lie a few elements further in the result than in the source.
BOOST_AUTO_TEST_CASE(long_lines_move_by_any_number_of_elements) {
  constexpr int64_t rows = 3, length = 1027;
  std::vector<double> values(rows * length);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 101);
  for (DType dtype : {u8, bf16, f32, f64})
    for (int64_t shift : {1, 3, 16, 64, 500, 1000}) {
      const Tensor x = tensor(values, {rows, length}).to(dtype), y = x.roll(shift, 1).to(f64);
      std::vector<double> expected(values.size());
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < length; ++c)
          expected[static_cast<size_t>(r * length + (c + shift) % length)] =
              values[static_cast<size_t>(r * length + c)];
      BOOST_TEST(y.to_vector<double>() == expected, "a shift by " << shift);
    }
}

// Of contiguous and of other tensors, along dimensions that are rows of packets, parts of rows, and
// the ones outside of them.
BOOST_AUTO_TEST_CASE(shifts_along_several_dimensions) {
  constexpr int64_t planes = 3, rows = 37, cols = 133;
  const Tensor x = numbered({planes, rows, cols}),
               turned = x.transpose(1, 2).contiguous().transpose(1, 2),
               sparse = cat({x, x}, 2).narrow(2, 0, cols);
  for (DType dtype : {u8, f16, f32, f64})
    for (const Shape& by : {Shape{1, 0, 0}, Shape{0, 5, 0}, Shape{2, 36, 132}, Shape{0, 0, 64},
                            Shape{1, 0, 7}, Shape{0, 37, 0}}) {
      const Tensor expected =
          x.index_select(0, (arange(0, planes) - by[0] + planes).remainder(planes).to(i64))
              .index_select(1, (arange(0, rows) - by[1] + rows).remainder(rows).to(i64))
              .index_select(2, (arange(0, cols) - by[2] + cols).remainder(cols).to(i64))
              .to(dtype);
      const std::vector<double> values = expected.to(f64).to_vector<double>();
      for (const Tensor& from : {x, turned, sparse}) {
        const Tensor y = from.to(dtype).roll(by, {0, 1, 2});
        BOOST_TEST(y.to(f64).to_vector<double>() == values,
                   "shifts " << by[0] << " " << by[1] << " " << by[2]);
      }
    }
}

// Lines that fill vectors and lines that do not, in elements of each size.
BOOST_AUTO_TEST_CASE(lines_from_back_to_front) {
  for (DType dtype : {u8, bf16, f32, f64})
    for (int64_t length : {1, 2, 15, 16, 17, 63, 65, 1031, 70001}) {
      const int64_t rows = length > 2000 ? 2 : 5;
      const Tensor x = numbered({rows, length}).remainder(101),
                   turned = x.t().contiguous().t().to(dtype);
      const auto values = x.to_vector<double>();
      for (const Shape& dims : {Shape{1}, Shape{0}, Shape{0, 1}}) {
        const bool up = dims[0] == 0, back = dims[dims.size() - 1] == 1;
        std::vector<double> expected(values.size());
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < length; ++c)
            expected[static_cast<size_t>((up ? rows - 1 - r : r) * length +
                                         (back ? length - 1 - c : c))] =
                values[static_cast<size_t>(r * length + c)];
        for (const Tensor& from : {x.to(dtype), turned})
          BOOST_TEST(from.flip(dims).to(f64).to_vector<double>() == expected,
                     rows << " lines of " << length);
      }
    }
}

BOOST_AUTO_TEST_CASE(diagonals_share_storage_and_copies_do_not) {
  const Tensor x = numbered({3, 4});
  x.diagonal(-1).fill_(9);
  require_values(x, {3, 4}, {0, 1, 2, 3, 9, 5, 6, 7, 8, 9, 10, 11});
  x.unfold(0, 2, 2).fill_(1);
  require_values(x.sum(1), {3}, {4, 4, 38});
  for (const Tensor& copy : {x.diag(), x.flip({}), x.flip(0), x.rot90(4), x.repeat({1, 1}),
                             x.tile(1), x.roll(0), x.repeat_interleave(1, 0), pad(x, {0, 0}),
                             x.narrow(0, 0, 1).repeat({3, 1}), x[0][0].repeat({2})}) {
    const uint64_t before = x.version();
    Tensor(copy).fill_(7);
    BOOST_CHECK_EQUAL(x.version(), before);
  }
}

// Enough for several threads, as they lie and transposed, in elements of each size.
BOOST_AUTO_TEST_CASE(triangles_of_many_rows) {
  const Tensor column = arange(0, 257).reshape({1, 257}), row = arange(0, 300).reshape({300, 1});
  for (DType dtype : {boolean, bf16, f32, f64}) {
    const Tensor x = (rand({3, 300, 257}) + 0.5).to(dtype), zero = zeros({}, {.dtype = dtype});
    const Tensor turned = x.transpose(1, 2).contiguous().transpose(1, 2);
    for (int64_t diagonal : {-290, -17, 0, 3, 250}) {
      const Tensor below = where(le(column, row + diagonal), x, zero),
                   above = where(ge(column, row + diagonal), x, zero);
      for (const Tensor& from : {x, turned}) {
        require_equal(tril(from, diagonal), below);
        require_equal(triu(from, diagonal), above);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_ends_of_triangles) {
  const int64_t least = std::numeric_limits<int64_t>::min(),
                most = std::numeric_limits<int64_t>::max();
  const Tensor x = numbered({2, 2}) + 1;
  require_values(x.tril(most), {2, 2}, {1, 2, 3, 4});
  require_values(x.tril(least), {2, 2}, {0, 0, 0, 0});
  require_values(x.triu(most), {2, 2}, {0, 0, 0, 0});
  require_values(x.triu(least), {2, 2}, {1, 2, 3, 4});
  BOOST_CHECK_EQUAL(x.diagonal(most).numel(), 0);
  BOOST_CHECK_EQUAL(x.diagonal(least).numel(), 0);
  // What is cut off may be NaN.
  const Tensor bad = doubles({1, std::nan(""), 2, 3}, {2, 2}).requires_grad_();
  const Tensor y = bad.tril();
  require_values(y, {2, 2}, {1, 0, 2, 3});
  y.sum().backward();
  require_values(bad.grad(), {2, 2}, {1, 0, 1, 1});
}

// Fewer times than a vector has elements, as many, and more; in elements of each size.
BOOST_AUTO_TEST_CASE(each_element_several_times) {
  for (DType dtype : {u8, bf16, f32, f64})
    for (int64_t rows : {1, 7, 300})
      for (int64_t times : {2, 3, 8, 15, 16, 17, 31, 33, 64, 65}) {
        const Tensor x = numbered({rows, 2}).remainder(101).to(dtype).select(1, 1);
        const auto values = x.to(f64).to_vector<double>();
        std::vector<double> expected;
        for (double value : values)
          expected.insert(expected.end(), static_cast<size_t>(times), value);
        BOOST_TEST(x.repeat_interleave(times, 0).to(f64).to_vector<double>() == expected,
                   rows << " elements " << times << " times");
      }
}

BOOST_AUTO_TEST_CASE(repetition_by_numbers_of_a_tensor) {
  const Tensor x = numbered({3, 2});
  require_values(x.repeat_interleave(ints({2, 0, 1}, {3}), 0), {3, 2}, {0, 1, 0, 1, 4, 5});
  require_values(x.repeat_interleave(ints({1, 0, 0, 2, 0, 1}, {6})), {4}, {0, 3, 3, 5});
  require_values(x.repeat_interleave(ints({2}, {1}).to(i32), 1).select(0, 0), {4}, {0, 0, 1, 1});
  require_error<ShapeError>(
      [&] {
        x.repeat_interleave(ints({1, 2}, {2}), 0);
      },
      "repeat_interleave: repeats has shape (2,)", "must be one number or (3,)");
  require_error<ValueError>(
      [&] {
        x.repeat_interleave(ints({1, -2, 1}, {3}), 0);
      },
      "repeats must not be negative, found -2");
  require_error<DTypeError>([&] { x.repeat_interleave(x.select(1, 0), 0); },
                            "repeats must be i64 or i32, found f64");
}

BOOST_AUTO_TEST_CASE(errors_of_orders) {
  const Tensor x = numbered({2, 3});
  require_error<IndexError>([&] { x.flip(2); }, "flip: dim 2 is out of range");
  require_error<ValueError>([&] { x.flip({1, -1}); }, "flip: dim 1 appears twice in (1, -1)");
  require_error<ShapeError>([&] { fliplr(x[0]); }, "fliplr: needs at least two dimensions");
  require_error<ShapeError>([&] { flipud(x[0][0]); }, "flipud: needs at least one dimension");
  require_error<ValueError>(
      [&] {
        x.roll({1, 2});
      },
      "roll: needs as many shifts as dims", "(1, 2) and ()");
  require_error<ValueError>([&] { x.rot90(1, {0}); }, "rot90: dims must be two dimensions");
  require_error<ValueError>(
      [&] {
        x.rot90(1, {0, -2});
      },
      "rot90: dims must be two different dimensions, found (0, -2)");
  require_error<ShapeError>([&] { x[0].tril(); },
                            "tril: needs at least two dimensions, found shape (3,)");
  require_error<ShapeError>([&] { x[0].triu(); }, "triu: needs at least two dimensions");
  require_error<ShapeError>([&] { x.unsqueeze(0).diag(); },
                            "diag: expects a vector or a matrix, found shape (1, 2, 3)");
  require_error<ShapeError>([&] { x[0].trace(); }, "trace: expects a matrix, found shape (3,)");
  require_error<ValueError>([&] { x.diagonal(0, 1, -1); },
                            "diagonal: dim1 1 and dim2 -1 must be different");
  require_error<ValueError>([&] { x.diag_embed(0, 0, -3); }, "diag_embed: dim1 0 and dim2 -3");
  require_error<ShapeError>([&] { x.diag_embed(int64_t{1} << 62); }, "diag_embed",
                            "more elements than can be addressed");
  require_error<ShapeError>([&] { x[0][0].diag_embed(); },
                            "diag_embed: needs at least one dimension");
  require_error<ShapeError>([&] { x.repeat(2); },
                            "repeat: repeats must have a number for each dimension", "(2, 3)",
                            "tile");
  require_error<ValueError>(
      [&] {
        x.tile({2, -1});
      },
      "tile: repeats must not be negative, found -1");
  require_error<ShapeError>(
      [&] {
        x.repeat({int64_t{1} << 62, 4});
      },
      "repeat", "more elements than can be addressed");
  require_error<ValueError>([&] { x.repeat_interleave(-1); },
                            "repeat_interleave: repeats must not be negative");
  require_error<ValueError>([&] { x.movedim({0, 1}, 0); }, "movedim", "equally many");
  require_error<ValueError>(
      [&] {
        x.movedim({0, -2}, {0, 1});
      },
      "movedim: source (0, -2) lists dim 0 twice");
  require_error<ShapeError>(
      [&] {
        x.unflatten(1, {2, -1});
      },
      "unflatten: sizes (2, -1) do not make dim 1 of shape (2, 3)");
  require_error<ShapeError>([&] { x.unflatten(1, {-1, -1}); }, "unflatten");
  require_error<ShapeError>([&] { broadcast_tensors({x, numbered({2})}); }, "broadcast_tensors");
  require_error<ValueError>([&] { Tensor().flip(0); }, "flip: x is an undefined tensor");
}

BOOST_AUTO_TEST_SUITE_END()
