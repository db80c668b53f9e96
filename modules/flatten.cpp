#include <tenon/core/format.h>
#include <tenon/modules/flatten.h>
#include <tenon/modules/repr.h>

namespace tenon::nn {

namespace {

void check_windows(const char* layer, Pair kernel_size, const UnfoldOptions& options) {
  require_size(kernel_size, 1, layer, "kernel_size");
  require_size(options.dilation, 1, layer, "dilation");
  require_size(options.padding, 0, layer, "padding");
  require_size(options.stride, 1, layer, "stride");
}

std::string windows_text(Pair kernel_size, const UnfoldOptions& options) {
  return fmt::format("kernel_size={}, dilation={}, padding={}, stride={}", repr(kernel_size),
                     repr(options.dilation), repr(options.padding), repr(options.stride));
}

}  // namespace

std::string Flatten::extra_repr() const {
  return fmt::format("start_dim={}, end_dim={}", start_dim, end_dim);
}

std::string Unflatten::extra_repr() const {
  return fmt::format("dim={}, unflattened_size={}", dim, unflattened_size);
}

Unfold::Unfold(Pair kernel, const UnfoldOptions& o) : kernel_size(kernel), options(o) {
  check_windows("Unfold", kernel, o);
}
std::string Unfold::extra_repr() const { return windows_text(kernel_size, options); }

Fold::Fold(Pair output, Pair kernel, const UnfoldOptions& o)
    : output_size(output), kernel_size(kernel), options(o) {
  require_size(output, 1, "Fold", "output_size");
  check_windows("Fold", kernel, o);
}
std::string Fold::extra_repr() const {
  return fmt::format("output_size={}, {}", repr(output_size), windows_text(kernel_size, options));
}

}  // namespace tenon::nn
