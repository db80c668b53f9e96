#include <algorithm>
#include <ostream>

#include <fmt/format.h>

#include <tenon/core/error.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/shape.h>

namespace tenon {

Shape::Shape(std::span<const int64_t> dims) {
  if (dims.size() > max_rank)
    throw ShapeError(
        fmt::format("a tensor may have at most {} dimensions, got {}; merge some with reshape",
                    max_rank, dims.size()));
  rank_ = static_cast<uint32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), dims_);
}

Shape Shape::filled(size_t rank, int64_t value) {
  Shape s;
  for (size_t i = 0; i < rank; ++i) s.push_back(value);
  return s;
}

void Shape::push_back(int64_t dim) { insert(rank_, dim); }

void Shape::insert(size_t at, int64_t dim) {
  if (at > rank_) refuse_index(static_cast<int64_t>(at));
  if (rank_ == max_rank)
    throw ShapeError(
        fmt::format("a tensor may have at most {} dimensions; merge some with reshape", max_rank));
  std::copy_backward(dims_ + at, dims_ + rank_, dims_ + rank_ + 1);
  dims_[at] = dim;
  ++rank_;
}

void Shape::erase(size_t at) {
  at = checked(at);
  std::copy(dims_ + at + 1, dims_ + rank_, dims_ + at);
  --rank_;
  dims_[rank_] = 0;
}

Shape Shape::contiguous_strides() const {
  Shape s;
  s.rank_ = rank_;
  int64_t step = 1;
  for (size_t i = rank_; i-- > 0;) {
    s.dims_[i] = step;
    if (i > 0 && __builtin_mul_overflow(step, std::max<int64_t>(dims_[i], 1), &step))
      refuse_product("contiguous_strides");
  }
  return s;
}

void Shape::refuse_index(int64_t i) const {
  const auto rank = static_cast<int64_t>(rank_);
  throw IndexError(fmt::format("dimension {} of {} does not exist; {}", i, str(),
                               rank > 0 ? fmt::format("it must lie in [{}, {}]", -rank, rank - 1)
                                        : "there are no dimensions"));
}
void Shape::refuse_product(const char* what) const { refuse_extent(what, *this); }

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.str(); }

std::string Shape::str() const {
  return fmt::format("({}{})", fmt::join(*this, ", "), rank_ == 1 ? "," : "");
}

Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op) {
  if (a == b) return a;
  size_t rank = std::max(a.size(), b.size());
  Shape out = Shape::filled(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      throw ShapeError(
          fmt::format("{}: shapes {} and {} cannot be broadcast together: {} and {} differ at "
                      "dimension {}; sizes must be equal or 1, counted from the last dimension",
                      op, a, b, x, y, rank - 1 - i));
    out[rank - 1 - i] = x == 1 ? y : x;
  }
  if (!is_addressable(out)) refuse_extent(fmt::format("{}: {} with {}", op, a, b), out);
  return out;
}

}  // namespace tenon
