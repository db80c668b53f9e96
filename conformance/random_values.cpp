#include <cmath>
#include <limits>

#include <tenon/conformance/run.h>

namespace tenon::conformance {

namespace {

// From a table: making each again would take longer than the operators.
double normal(uint32_t drawn) {
  static const auto table = [] {
    std::mt19937 engine(20);
    std::vector<double> values(8191);
    for (auto& v : values) v = std::normal_distribution<double>(0, 2)(engine);
    return values;
  }();
  return table[drawn % table.size()];
}

// FNV-1a: the same on every machine, so that a run can be repeated elsewhere.
uint32_t hash_of(const char* name) {
  uint32_t hash = 2166136261u;
  for (; *name; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 16777619u;
  return hash;
}

}  // namespace

Random::Random(const Line& line, size_t run)
    : engine_(hash_of(line.name) + static_cast<uint32_t>(run)) {}

Tensor Random::values(const In& in, Values kind, DType dtype, const Shape& shape, Device device) {
  // Large tensors repeat themselves, at a distance that is no multiple of any block or row: to draw
  // numbers would take longer than the operators.
  constexpr size_t kPeriod = 4099;
  std::vector<double> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = i < kPeriod ? value(in, kind, dtype) : values[i - kPeriod];
  const DType type = kind == Values::index ? i64 : kind == Values::flags ? boolean : dtype;
  return tensor(values, shape, {.dtype = f64, .device = device}).to(type);
}

double Random::value(const In& in, Values kind, DType dtype) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  static const double odd[] = {0.0,          -0.0,  1.0, -1.0, inf,     -inf,
                               std::nan(""), 1e-42, 0.5, 2.5,  -1e-310, 3e38};
  if (kind == Values::index) return static_cast<double>(pick(0, in.bound - 1));
  if (kind == Values::flags || dtype == boolean) return static_cast<double>(pick(0, 1));
  if (dtype == u8) return static_cast<double>(pick(0, 255));
  if (is_integer(dtype)) return static_cast<double>(pick(-9, 9));
  const double v = normal(engine_());
  switch (kind) {
    case Values::any:
      return pick(0, 9) == 0 ? odd[pick(0, 11)] : v;
    case Values::sums:
      return pick(0, 29) == 0 ? odd[pick(0, 9)] : v;
    case Values::positive:
    case Values::constant:
      return std::abs(v) + 0.2;
    case Values::near_one:
      return 1 + 0.01 * v;
    case Values::lowest:
      return -inf;
    case Values::steps:
      return std::floor(v);
    default:
      return v;
  }
}

}  // namespace tenon::conformance
