#include <algorithm>

#include <fmt/core.h>

#include <tenon/core/error.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>

namespace tenon {

void refuse_extent(std::string_view what, const Shape& shape) {
  const std::string text = fmt::format("{}: shape {}", what, shape);
  if (std::any_of(shape.begin(), shape.end(), [](int64_t dim) { return dim < 0; }))
    throw ShapeError(text + " has a negative dimension");
  throw ShapeError(fmt::format(
      "{} has more elements than can be addressed: at most {}, where a dimension of 0 counts as 1",
      text, kMaxNumel));
}

}  // namespace tenon
