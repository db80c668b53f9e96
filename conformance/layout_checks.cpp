#include <algorithm>
#include <numeric>

#include <tenon/conformance/driver.h>
#include <tenon/conformance/run.h>

namespace tenon::conformance {

namespace {

std::vector<DType> types_of(const Line& line, const Subject& subject, const Effort& effort) {
  const Types wanted = types_for(line, subject) |
                       (effort.elsewhere ? line.types_elsewhere : kNoTypes) |
                       (effort.optional ? line.types_of_cpu : kNoTypes);
  std::vector<DType> types;
  for (DType t : kEvery)
    if (contains(wanted, t)) types.push_back(t);
  return types;
}

// Inputs that are there for their size: run once, whatever is left out.
bool is_large(const Variant& variant) { return variant.types == kF32; }

Check check_of(Run run, const Subject& subject) {
  const Line& line = *run.line;
  return {"layouts", line.name, run.describe(), run.dtype, [=] {
            compare_sides(run, subject, compared_in_f64(line, run.dtype, subject),
                          compares_gradients(line, run.dtype));
          }};
}

// The layout of the first input, and the one from which those of the others are counted.
Run run_of(const Line& line, const Variant& variant, DType dtype, size_t seed, size_t first,
           size_t second) {
  const auto& all = layouts(!line.distinct);
  Run run{&line, variant, dtype, {}, seed, Alias::none};
  for (size_t i = 0; i < variant.in.size(); ++i)
    run.layout.push_back(&all[(i == 0 ? first : second + 2 * (i - 1)) % all.size()]);
  return run;
}

bool has_channels(const In& in) {
  const size_t rank = in.shape.size();
  return rank == 4 || rank == 5;
}

// Images and volumes in the order of channels_last: all of them, and the first alone, where a
// backend may copy, or write another order than it reads. Of each line, two variants do.
void add_channels_last(const Line& line, std::vector<Check>& checks, const Subject& subject) {
  size_t made = 0;
  for (auto& variant : line.variants) {
    if (made == 2) return;
    if (is_large(variant) || !contains(variant.types, f32) || variant.in.empty() ||
        !has_channels(variant.in[0]))
      continue;
    ++made;
    for (const bool all : {true, false}) {
      Run run = run_of(line, variant, f32, made, 0, 0);
      for (size_t i = 0; i < variant.in.size(); ++i)
        run.layout[i] = all || i == 0 ? &channels_last_layout() : &layouts()[0];
      checks.push_back(check_of(run, subject));
    }
  }
}

// Every step-th of `count` combinations is run; and no dtype never.
size_t step_of(size_t count, size_t most, size_t types, size_t number) {
  size_t step = std::max<size_t>(1, count / std::min(count, most));
  while (std::gcd(step, types) != 1) ++step;
  while (step > 1 && (count - number % step + step - 1) / step < types) do
      --step;
    while (std::gcd(step, types) != 1);
  return step;
}

}  // namespace

std::vector<Check> layout_checks(const Line& line, const Subject& subject, size_t number,
                                 const Effort& effort) {
  std::vector<Check> checks;
  if (line.variants.empty()) return checks;
  const auto add = [&](const Variant& variant, DType dtype, size_t seed, size_t first,
                       size_t second) {
    checks.push_back(check_of(run_of(line, variant, dtype, seed, first, second), subject));
  };
  const auto types = types_of(line, subject, effort);
  const size_t count = line.variants.size() * types.size(),
               step = step_of(count, effort.runs, types.size(), number);
  for (size_t k = number % step; k < count; k += step) {
    const Variant& variant = line.variants[k / types.size()];
    const DType dtype = types[k % types.size()];
    if (!contains(variant.types, dtype) || is_large(variant)) continue;
    const size_t turn = k / step + number;
    add(variant, dtype, k, turn, turn / 2 + 4);
  }
  size_t turn = 0;
  for (auto& variant : line.variants)
    if (is_large(variant)) {
      add(variant, f32, turn, turn % 2, 0);
      ++turn;
    }
  if (contains(types_for(line, subject), f32)) add_channels_last(line, checks, subject);
  if (!line.every_layout) return checks;
  for (size_t first = 0; first < layouts().size(); ++first)
    for (size_t second = 0; second < layouts().size(); ++second, ++turn)
      add(line.variants[turn % line.variants.size()], types[turn % types.size()], turn, first,
          second);
  return checks;
}

}  // namespace tenon::conformance
