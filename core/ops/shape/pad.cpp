// Padding (core/ops/shape.h).
#include <algorithm>

#include <tenon/core/dispatch/transfer.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

enum class Mode { constant, reflect, replicate, circular };

// How many elements each dimension gets in front and behind.
struct Borders {
  Shape before, after;

  explicit Borders(size_t rank) : before(Shape::filled(rank, 0)), after(before) {}
  explicit Borders(const Attrs& attrs)
      : before(attrs.get_list("before")), after(attrs.get_list("after")) {}
  Attrs attrs() const { return Attrs().set("before", before).set("after", after); }
  size_t rank() const { return before.size(); }
  bool none() const {
    const Shape zeros = Shape::filled(rank(), 0);
    return before == zeros && after == zeros;
  }
  // Only what is added or, with -1, what is removed.
  Borders only(int sign) const {
    Borders result(rank());
    for (size_t d = 0; d < rank(); ++d) {
      result.before[d] = std::max<int64_t>(0, sign * before[d]);
      result.after[d] = std::max<int64_t>(0, sign * after[d]);
    }
    return result;
  }
  // What lies inside the borders of y, in the dimensions from `first` on.
  Tensor inside(const Tensor& y, size_t first = 0) const {
    Tensor x = y;
    for (size_t d = first; d < rank(); ++d)
      if (before[d] || after[d]) {
        const auto dim = static_cast<int64_t>(d);
        x = narrow(x, dim, before[d], y.size(dim) - before[d] - after[d]);
      }
    return x;
  }
  Shape around(const Shape& shape) const {
    Shape result = shape;
    for (size_t d = 0; d < rank(); ++d)
      if (__builtin_add_overflow(result[d], before[d], &result[d]) ||
          __builtin_add_overflow(result[d], after[d], &result[d]))
        result[d] = kMaxNumel + 1;
    return result;
  }
};

// ---- constant ----

void constant_pad_gradient(const GradContext& c, Grads g) {
  g[0] = Borders(c.attrs).inside(c.grad());
}
void execute_constant_pad(const Call& call, Outputs& out) {
  const Tensor& x = call.in(0);
  const Borders borders(call.attrs);
  const tn_scalar value = call.scalars[0].value;
  const Number number = is_floating_point(dtype_of(x)) ? Number(value.f) : Number(value.i);
  Tensor result = full(
      borders.around(shape_of(x)), number,
      {.dtype = dtype_of(x), .device = x.device(), .memory_format = x.suggest_memory_format()});
  write_part(borders.inside(result), x);
  out.push_back(result);
}
const Op constant_pad_op{{
    .name = "constant_pad",
    .gradient = constant_pad_gradient,
    .execute = execute_constant_pad,
    .scalars = 1,
}};

// ---- borders that repeat the inside ----

// One side of one dimension: the border, and the elements inside that it repeats.
struct PaddedSide {
  Mode mode;
  int64_t dim, border, source, length;

  // Returns the side in front of a dimension whose inside has n elements, from `before` on.
  static PaddedSide front(Mode mode, int64_t dim, int64_t before, int64_t n) {
    const int64_t source = mode == Mode::reflect ? before + 1 : mode == Mode::circular ? n : before;
    return {mode, dim, 0, source, before};
  }
  static PaddedSide back(Mode mode, int64_t dim, int64_t before, int64_t n, int64_t after) {
    const int64_t source = mode == Mode::reflect    ? before + n - 1 - after
                           : mode == Mode::circular ? before
                                                    : before + n - 1;
    return {mode, dim, before + n, source, after};
  }
  Tensor inside(const Tensor& y) const {
    return narrow(y, dim, source, mode == Mode::replicate ? 1 : length);
  }
  void write(const Tensor& y) const {
    if (length == 0) return;
    Tensor values = inside(y);
    values = mode == Mode::reflect ? flip(values, dim) : clone(values);
    Shape shape = shape_of(values);
    shape[dim] = length;
    write_part(narrow(y, dim, border, length), expand(values, shape));
  }
  // The reverse: adds the border's gradient to that of what it repeats.
  void add(const Tensor& y) const {
    if (length == 0) return;
    Tensor values = narrow(y, dim, border, length);
    if (mode == Mode::reflect) values = flip(values, dim);
    if (mode == Mode::replicate) values = sum(values, dim, true);
    const Tensor target = inside(y);
    write_part(target, target + values);
  }
};

// Calls f(part of y, its dimension d's front or back) for each side. A dimension repeats the
// borders of those before it too, and of those behind it only the inside.
template <class F>
void for_sides(const Tensor& y, const Borders& borders, Mode mode, bool reversed, F&& f) {
  for (size_t i = 0; i < borders.rank(); ++i) {
    const size_t d = reversed ? borders.rank() - 1 - i : i;
    const int64_t before = borders.before[d], after = borders.after[d],
                  dim = static_cast<int64_t>(d), n = y.size(dim) - before - after;
    if (before == 0 && after == 0) continue;
    const Tensor part = borders.inside(y, d + 1);
    f(PaddedSide::front(mode, dim, before, n), part);
    f(PaddedSide::back(mode, dim, before, n, after), part);
  }
}

Mode mode_of(const Attrs& attrs) { return static_cast<Mode>(attrs.get_int("mode")); }
Tensor border_pad(const Tensor& x, const Borders& borders, Mode mode);
Tensor border_pad_backward(const Tensor& gradient, const Borders& borders, Mode mode);

void border_pad_gradient(const GradContext& c, Grads g) {
  g[0] = border_pad_backward(c.grad(), Borders(c.attrs), mode_of(c.attrs));
}
void execute_border_pad(const Call& call, Outputs& out) {
  const Tensor& x = call.in(0);
  const Borders borders(call.attrs);
  Tensor y = allocate_tensor(borders.around(shape_of(x)), dtype_of(x), x.device());
  write_part(borders.inside(y), x);
  for_sides(y, borders, mode_of(call.attrs), false,
            [](const PaddedSide& side, const Tensor& part) { side.write(part); });
  out.push_back(y);
}
const Op border_pad_op{{
    .name = "border_pad",
    .gradient = border_pad_gradient,
    .execute = execute_border_pad,
}};

void border_pad_backward_gradient(const GradContext& c, Grads g) {
  g[0] = border_pad(c.grad(), Borders(c.attrs), mode_of(c.attrs));
}
void execute_border_pad_backward(const Call& call, Outputs& out) {
  const Borders borders(call.attrs);
  const Tensor y = clone(call.in(0));
  for_sides(y, borders, mode_of(call.attrs), true,
            [](const PaddedSide& side, const Tensor& part) { side.add(part); });
  out.push_back(borders.inside(y));
}
const Op border_pad_backward_op{{
    .name = "border_pad_backward",
    .gradient = border_pad_backward_gradient,
    .execute = execute_border_pad_backward,
}};

Tensor border_pad(const Tensor& x, const Borders& borders, Mode mode) {
  return run(border_pad_op, {&x}, borders.attrs().set("mode", static_cast<int64_t>(mode)));
}
Tensor border_pad_backward(const Tensor& gradient, const Borders& borders, Mode mode) {
  return run(border_pad_backward_op, {&gradient},
             borders.attrs().set("mode", static_cast<int64_t>(mode)));
}

// ---- arguments ----

Mode mode_named(std::string_view name) {
  if (name == "constant") return Mode::constant;
  if (name == "reflect") return Mode::reflect;
  if (name == "replicate") return Mode::replicate;
  if (name == "circular") return Mode::circular;
  throw ValueError(fmt::format(
      "pad: mode must be \"constant\", \"reflect\", \"replicate\" or \"circular\", found \"{}\"",
      name));
}

Borders borders_of(const std::vector<int64_t>& pad, size_t rank, Mode mode) {
  const size_t dims = pad.size() / 2,
               most = mode == Mode::constant ? rank : std::min<size_t>(rank, 3);
  if (pad.size() % 2 != 0 || dims > most)
    throw ValueError(
        fmt::format("pad: needs two sizes for each dimension that is padded, at most {} for a "
                    "tensor of {} dimensions in this mode; found {} sizes",
                    2 * most, rank, pad.size()));
  for (const int64_t size : pad)
    if (size > int64_t{1} << 61 || size < -(int64_t{1} << 61))  // sums of two overflow
      throw ValueError(
          fmt::format("pad: no tensor has so many elements to add or to remove: {}", size));
  Borders borders(rank);
  for (size_t i = 0; i < dims; ++i) {
    borders.before[rank - 1 - i] = pad[2 * i];
    borders.after[rank - 1 - i] = pad[2 * i + 1];
  }
  return borders;
}

// Returns x without the elements that negative sizes remove.
Tensor cropped(const Tensor& x, const Borders& borders) {
  const Borders removed = borders.only(-1);
  for (size_t d = 0; d < removed.rank(); ++d)
    if (removed.before[d] > shape_of(x)[d] || removed.after[d] > shape_of(x)[d] - removed.before[d])
      throw ShapeError(
          fmt::format("pad: {} and {} remove more than the {} elements that dim {} of shape {} has",
                      borders.before[d], borders.after[d], shape_of(x)[d], d, shape_of(x)));
  return removed.inside(x);
}

void require_source(const Tensor& x, const Borders& borders, Mode mode, std::string_view name) {
  for (size_t d = 0; d < borders.rank(); ++d) {
    const int64_t size = shape_of(x)[d], more = std::max(borders.before[d], borders.after[d]);
    const int64_t most = mode == Mode::reflect    ? size - 1
                         : mode == Mode::circular ? size
                         : size > 0               ? kMaxNumel
                                                  : 0;
    if (more > 0 && more > most)
      throw ShapeError(fmt::format(
          "pad: mode \"{}\" repeats the elements of dim {}, whose size is {} in shape {}, and can "
          "add at most {} on each side; found {} and {}",
          name, d, size, shape_of(x), std::max<int64_t>(most, 0), borders.before[d],
          borders.after[d]));
  }
}

}  // namespace

Tensor pad(const Tensor& x, const std::vector<int64_t>& pad, std::string_view mode,
           Number value) try {
  require_tensor("pad", x);
  const Mode kind = mode_named(mode);
  const Borders borders = borders_of(pad, shape_of(x).size(), kind), added = borders.only(1);
  if (kind == Mode::constant) {
    require_held("pad", dtype_of(x), value);
    const Tensor inner = cropped(x, borders);
    if (added.none()) return clone(inner);
    require_addressable("pad", added.around(shape_of(inner)));
    return run(constant_pad_op, {&inner}, added.attrs(), {scalar_for(dtype_of(x), value)});
  }
  // The other end of a circle is that of what is left; a mirror shows what was removed.
  const Tensor inner = kind == Mode::circular ? cropped(x, borders) : x;
  require_source(inner, added, kind, mode);
  require_addressable("pad", added.around(shape_of(inner)));
  const Tensor whole = added.none() ? clone(inner) : border_pad(inner, added, kind);
  return kind == Mode::circular ? whole : cropped(whole, borders);
} catch (const Error&) {
  rethrow_in("pad");
}

}  // namespace tenon
