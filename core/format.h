// How {fmt} writes Tenon's types: `fmt::format("found shape {} on {}", x.shape(), x.device())`.
// Include this in .cpp files only: an installed header that did would require {fmt} of every
// application.
#pragma once

#include <algorithm>
#include <string_view>

#include <fmt/core.h>

#include <tenon/core/device.h>
#include <tenon/core/dtype.h>
#include <tenon/core/shape.h>

namespace tenon::detail {

// Writes a text and takes no options such as a width. It does not use fmt::format_to(), with which
// each file that includes this would compile all of {fmt} again.
struct TextFormatter {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  static auto write(std::string_view text, fmt::format_context& context) {
    return std::copy(text.begin(), text.end(), context.out());
  }
};

}  // namespace tenon::detail

template <>
struct fmt::formatter<tenon::Shape> : tenon::detail::TextFormatter {
  auto format(const tenon::Shape& shape, fmt::format_context& context) const {
    return write(shape.str(), context);
  }
};

template <>
struct fmt::formatter<tenon::Device> : tenon::detail::TextFormatter {
  auto format(const tenon::Device& device, fmt::format_context& context) const {
    return write(device.str(), context);
  }
};

template <>
struct fmt::formatter<tenon::DType> : tenon::detail::TextFormatter {
  auto format(tenon::DType dtype, fmt::format_context& context) const {
    return write(tenon::name_of(dtype), context);
  }
};
