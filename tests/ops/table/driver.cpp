#include "ops/table/driver.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <random>

#include "ops/check.h"
#include "ops/table/layout.h"
#include "support/sanitized.h"

namespace tenon::test {

namespace {

constexpr DType kEvery[] = {f32, f64, f16, bf16, i64, i32, u8, boolean};

json parsed(const Variant& v) {
  std::string text = v.args.empty() ? "{}" : v.args;
  std::replace(text.begin(), text.end(), '\'', '"');
  return json::parse(text);
}

bool is_fixed(Values kind) {
  return kind == Values::flags || kind == Values::index || kind == Values::constant;
}
Values kind_of(const Line& line, const In& in) {
  return in.values == Values::any ? line.values : in.values;
}

// ---- values

class Random {
 public:
  Random(const Line& line, size_t run)
      : engine_(static_cast<unsigned>(std::hash<std::string>()(line.name) + run)) {}

  Tensor values(const In& in, Values kind, DType dtype, const Shape& shape) {
    std::vector<double> values(static_cast<size_t>(shape.numel()));
    for (auto& v : values) v = value(in, kind, dtype);
    const DType type = kind == Values::index ? i64 : kind == Values::flags ? boolean : dtype;
    return tensor(values, shape, {.dtype = f64, .device = Device("cpu")}).to(type);
  }

 private:
  int64_t pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  // From a table: making each anew would take longer than the operators.
  double normal() {
    static const auto table = [] {
      std::mt19937 engine(20);
      std::vector<double> values(8191);
      for (auto& v : values) v = std::normal_distribution<double>(0, 2)(engine);
      return values;
    }();
    return table[engine_() % table.size()];
  }
  double value(const In& in, Values kind, DType dtype) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    static const double odd[] = {0.0,          -0.0,  1.0, -1.0, inf,     -inf,
                                 std::nan(""), 1e-42, 0.5, 2.5,  -1e-310, 3e38};
    if (kind == Values::index) return static_cast<double>(pick(0, in.bound - 1));
    if (kind == Values::flags || dtype == boolean) return static_cast<double>(pick(0, 1));
    if (dtype == u8) return static_cast<double>(pick(0, 255));
    if (is_integer(dtype)) return static_cast<double>(pick(-9, 9));
    const double v = normal();
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
  std::mt19937 engine_;
};

// For finite differences: away from kinks, the k-th input unlike the others.
Tensor smooth(const In& in, Values kind, size_t k, Random& random) {
  const double phase = 0.3 + 0.8 * static_cast<double>(k);
  if (kind == Values::flags || kind == Values::index)
    return random.values(in, kind, f64, in.shape).to(default_device());
  if (kind == Values::positive || kind == Values::constant) return positive(in.shape, phase);
  if (kind == Values::near_one) return sample(in.shape, phase) * 0.1 + 1.0;
  return sample(in.shape, phase);
}

// ---- comparing

void require_same(const Tensor& found, const Tensor& expected, double allowed,
                  const std::string& what) {
  BOOST_REQUIRE_MESSAGE(
      found.dtype() == expected.dtype(),
      what << ": dtype " << name_of(found.dtype()) << ", expected " << name_of(expected.dtype()));
  BOOST_REQUIRE_MESSAGE(found.shape() == expected.shape(), what << ": shape " << found.shape().str()
                                                                << ", expected "
                                                                << expected.shape().str());
  if (expected.dtype() == i64) {
    BOOST_REQUIRE_MESSAGE(found.to_vector<int64_t>() == expected.to_vector<int64_t>(),
                          what << ": integers differ");
    return;
  }
  const auto f = found.to_vector<double>(), e = expected.to_vector<double>();
  // Boost counts its checks one by one, which would take longer than all else here.
  for (size_t i = 0; i < f.size(); ++i)
    if (!is_close(f[i], e[i], allowed, allowed))
      BOOST_FAIL(what << ": element " << i << " is " << f[i] << ", expected " << e[i]);
}

// One run: a variant in a dtype, with a layout for each input.
struct Run {
  const Line& line;
  const Variant& variant;
  DType dtype;
  std::vector<const Layout*> layout;
  size_t seed;

  std::string describe(Device device) const {
    std::string text = std::string(line.name) + " " + variant.args + " of";
    for (size_t i = 0; i < variant.in.size(); ++i)
      text += " " + variant.in[i].shape.str() + " " + layout[i]->name + ",";
    return text + " in " + std::string(name_of(dtype)) + " on " + device.str();
  }
};

struct Sides {
  List found, expected;  // inputs on the device in their layouts; contiguous on the cpu
};

// `wide`: the expected ones in f64.
Sides inputs_of(const Run& run, Device device, bool ordinary, bool wide) {
  Random random(run.line, run.seed);
  Sides sides;
  for (size_t i = 0; i < run.variant.in.size(); ++i) {
    const In& in = run.variant.in[i];
    Values kind = kind_of(run.line, in);
    if (kind == Values::absent) {
      sides.found.emplace_back();
      sides.expected.emplace_back();
      continue;
    }
    if (ordinary && (kind == Values::any || kind == Values::sums)) kind = Values::ordinary;
    const Layout& layout = *run.layout[i];
    const Tensor whole = random.values(in, kind, run.dtype, layout.whole(in.shape));
    sides.found.push_back(layout.view(whole.to(device), in.shape));
    const Tensor here = layout.view(whole, in.shape).contiguous();
    sides.expected.push_back(wide && is_floating_point(here.dtype()) ? here.to(f64) : here);
  }
  return sides;
}

bool differentiable(const Run& run, size_t i) {
  const Values kind = kind_of(run.line, run.variant.in[i]);
  return kind != Values::absent && !is_fixed(kind);
}

// The gradients of the first floating output, seeded with values that are the same on both sides.
List gradients(const Run& run, const json& args, List in) {
  List leaves;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!differentiable(run, i)) continue;
    in[i] = in[i].detach().requires_grad_();
    leaves.push_back(in[i]);
  }
  if (leaves.empty()) return {};
  for (const Tensor& y : run.line.call(args, in)) {
    if (!y.requires_grad()) continue;
    DeviceGuard on_cpu("cpu");
    const Tensor seed = sample(y.shape(), 0.9).to(y.dtype()).to(y.device());
    return grad(std::span(&y, 1), leaves, std::span(&seed, 1), {.allow_unused = true});
  }
  return {};
}

void compare(const Run& run, const json& args, Device device, bool wide, bool with_gradients) {
  const double allowed = run.line.tolerance.of(run.dtype);
  const std::string what = run.describe(device);
  const Sides sides = inputs_of(run, device, wide, wide);
  const List found = run.line.call(args, sides.found),
             expected = run.line.call(args, sides.expected);
  BOOST_REQUIRE_MESSAGE(found.size() == expected.size(), what << ": another number of results");
  for (size_t i = 0; i < found.size(); ++i) {
    BOOST_REQUIRE_MESSAGE(found[i].device() == device,
                          what << ": the result is on " << found[i].device().str());
    require_same(
        found[i],
        wide && is_floating_point(expected[i].dtype()) ? expected[i].to(run.dtype) : expected[i],
        allowed, what);
  }
  if (!with_gradients) return;
  const Sides ordinary = inputs_of(run, device, true, wide);
  const List there = gradients(run, args, ordinary.found),
             here = gradients(run, args, ordinary.expected);
  BOOST_REQUIRE_MESSAGE(there.size() == here.size(), what << ": gradients on one device only");
  for (size_t i = 0; i < here.size(); ++i) {
    const std::string which = what + ", gradient " + std::to_string(i);
    BOOST_REQUIRE_MESSAGE(there[i].defined() == here[i].defined(),
                          which << " is there on one device only");
    if (here[i].defined()) require_same(there[i], here[i], 4 * allowed, which);
  }
}

// ---- which combinations are run

// Runs of one line; on a GPU all variants in all dtypes. TENON_TEST_BRIEFLY=1: a tool slows the
// device down.
size_t most_runs() {
  if (std::getenv("TENON_TEST_BRIEFLY")) return 8;
  if (std::getenv("TENON_TEST_GPU")) return std::numeric_limits<size_t>::max();
  return kSanitized ? 8 : 24;
}

std::vector<DType> types_of(const Line& line, Device device) {
  std::vector<DType> types;
  const bool has_units = device.type() == "cuda";
  for (DType t : kEvery)
    if (contains(line.types | (has_units ? line.types_elsewhere : kNoTypes), t)) types.push_back(t);
  return types;
}

// Inputs that are there for their size: run once, whatever is left out.
bool is_large(const Variant& variant) { return variant.types == kF32; }

// Variants of one line that are differentiated. The rules are the same on every device, and only
// what computes them differs: where that is slow, two show it.
size_t most_differences(Device device) {
  const bool emulated = device.type() == "cuda" && !std::getenv("TENON_TEST_GPU");
  const bool slow = emulated || (kSanitized && device.type() == "sim");
  return slow || std::getenv("TENON_TEST_BRIEFLY") ? 2 : std::numeric_limits<size_t>::max();
}

// Those with elements to differentiate by, at most 48.
std::vector<const Variant*> small_variants(const Line& line) {
  std::vector<const Variant*> small;
  for (const Variant& v : line.variants) {
    int64_t elements = 0;
    for (auto& in : v.in)
      if (!is_fixed(kind_of(line, in))) elements += in.shape.numel();
    if (elements > 0 && elements <= 48 && contains(v.types, f64)) small.push_back(&v);
  }
  return small;
}

void check_run(const Line& line, const Variant& variant, DType dtype, Device device, size_t seed,
               size_t first, size_t second) {
  const auto& all = layouts(!line.distinct);
  Run run{line, variant, dtype, {}, seed};
  for (size_t i = 0; i < variant.in.size(); ++i)
    run.layout.push_back(&all[(i == 0 ? first : second + 2 * (i - 1)) % all.size()]);
  const json args = parsed(variant);
  // The cpu's halves are compared with its f64, unless they are only moved.
  const bool halves_here =
      contains(line.types & kHalves, dtype) && device.type() == "cpu" && line.tolerance.f16 > 0;
  const bool wide = contains(line.types_elsewhere, dtype) || halves_here;
  const bool with_gradients = line.difference > 0 && contains(kReals, dtype);
  compare(run, args, device, wide, with_gradients);
}

}  // namespace

void check_agreement(const Line& line, Device device, size_t number) {
  const auto types = types_of(line, device);
  const size_t count = line.variants.size() * types.size();
  size_t step = std::max<size_t>(1, count / std::min(count, most_runs()));
  // Or some dtypes would never have their turn.
  while (std::gcd(step, types.size()) != 1) ++step;
  while (step > 1 && (count - number % step + step - 1) / step < types.size()) do
      --step;
    while (std::gcd(step, types.size()) != 1);
  for (size_t k = number % step; k < count; k += step) {
    const Variant& variant = line.variants[k / types.size()];
    const DType dtype = types[k % types.size()];
    if (!contains(variant.types, dtype) || is_large(variant)) continue;
    const size_t turn = k / step + number;
    check_run(line, variant, dtype, device, k, turn, turn / 2 + 4);
  }
  size_t turn = 0;
  for (auto& variant : line.variants)
    if (is_large(variant)) {
      check_run(line, variant, f32, device, turn, turn % 2, 0);
      ++turn;
    }
  if (!line.every_layout) return;
  for (size_t first = 0; first < layouts().size(); ++first)
    for (size_t second = 0; second < layouts().size(); ++second, ++turn)
      check_run(line, line.variants[turn % line.variants.size()], types[turn % types.size()],
                device, turn, first, second);
}

void check_differences(const Line& line, Device device, size_t number) {
  if (line.difference == 0) return;
  DeviceGuard guard(device);
  const auto small = small_variants(line);
  BOOST_REQUIRE_MESSAGE(!small.empty(),
                        line.name << ": no variant is small enough for finite differences");
  const size_t most = std::min(small.size(), most_differences(device)),
               step = (small.size() + most - 1) / most;
  for (size_t at = number % step; at < small.size(); at += step) {
    const Variant& v = *small[at];
    Random random(line, 0);
    const json args = parsed(v);
    List all, varied;
    std::vector<size_t> places;
    for (size_t i = 0; i < v.in.size(); ++i) {
      const Values kind = kind_of(line, v.in[i]);
      all.push_back(kind == Values::absent ? Tensor() : smooth(v.in[i], kind, i, random));
      if (kind == Values::absent || is_fixed(kind)) continue;
      varied.push_back(all.back());
      places.push_back(i);
    }
    const Function f = [&](const std::vector<Tensor>& moved) {
      List in = all;
      for (size_t k = 0; k < moved.size(); ++k) in[places[k]] = moved[k];
      const List out = line.call(args, in);
      Tensor total = weighted_sum(out[0], 0.7);
      for (size_t k = 1; k < out.size(); ++k)
        if (out[k].requires_grad()) total = total + weighted_sum(out[k], 0.7 + double(k));
      return total;
    };
    check_gradients(f, varied, std::string(line.name) + " " + v.args, line.difference);
  }
}

}  // namespace tenon::test
