#include <ostream>
#include <string>

#include <fmt/format.h>

#include <tenon/core/base/printable.h>
#include <tenon/core/dtype.h>
#include <tenon/core/error.h>

namespace tenon {

namespace {
constexpr std::string_view kNames[] = {"f32", "f64", "f16", "bf16", "i64", "i32", "u8", "bool"};
}

std::string_view name_of(DType t) { return kNames[static_cast<int32_t>(t)]; }
std::ostream& operator<<(std::ostream& out, DType t) { return out << name_of(t); }

DType parse_dtype(std::string_view name) {
  for (int32_t i = 0; i < 8; ++i)
    if (kNames[i] == name) return static_cast<DType>(i);
  throw DTypeError(fmt::format("unknown dtype \"{}\"; the dtypes are {}", excerpt(name),
                               fmt::join(kNames, ", ")));
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  // A floating type wins over an integer, and a wider type over a narrower one; f16 and bf16
  // together give f32.
  auto rank = [](DType t) {
    switch (t) {
      case DType::boolean:
        return 0;
      case DType::u8:
        return 1;
      case DType::i32:
        return 2;
      case DType::i64:
        return 3;
      case DType::f16:
        return 4;
      case DType::bf16:
        return 4;
      case DType::f32:
        return 5;
      case DType::f64:
        return 6;
    }
    return 6;
  };
  if (rank(a) == rank(b)) return DType::f32;
  return rank(a) > rank(b) ? a : b;
}

}  // namespace tenon
