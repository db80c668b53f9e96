#include <algorithm>

#include <tenon/core/error.h>
#include <tenon/core/extent.h>

namespace tenon {

void refuse_extent(std::string_view what, const Shape& shape) {
  const std::string text = std::string(what) + ": shape " + shape.str();
  if (std::any_of(shape.begin(), shape.end(), [](int64_t dim) { return dim < 0; }))
    throw ShapeError(text + " holds a negative dimension");
  throw ShapeError(text + " has more elements than can be addressed: at most " +
                   std::to_string(kMaxNumel) + ", where a dimension of 0 counts as 1");
}

}  // namespace tenon
