#include <algorithm>
#include <chrono>
#include <limits>

#include <fmt/format.h>

#include <tenon/conformance/checklist.h>
#include <tenon/conformance/joint/bench.h>
#include <tenon/conformance/run.h>
#include <tenon/conformance/speed.h>

namespace tenon::conformance {

namespace {

using Clock = std::chrono::steady_clock;

// The shortest of several runs in seconds: what disturbs one makes it longer.
double shortest(const std::function<void()>& work) {
  constexpr int kFewest = 5;
  constexpr auto kEnough = std::chrono::milliseconds(30);
  double best = std::numeric_limits<double>::infinity();
  const auto begin = Clock::now();
  for (int run = 0; run < kFewest || Clock::now() - begin < kEnough; ++run) {
    const auto start = Clock::now();
    work();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (run > 0) best = std::min(best, seconds);  // the first one makes the plan
  }
  return best;
}

int64_t size_in_bytes(const List& tensors) {
  int64_t bytes = 0;
  for (auto& x : tensors)
    if (x.defined()) bytes += x.numel() * static_cast<int64_t>(size_of(x.dtype()));
  return bytes;
}

// The plugin's copy of bytes, which reads and writes as many together.
double copy_time(int64_t bytes, const Subject& subject) {
  const auto half = static_cast<uint64_t>(std::max<int64_t>(bytes / 2, 1));
  joint::Bench bench(subject);
  const joint::Memory from(bench, half), to(bench, half);
  joint::Stream stream(bench);
  const std::vector<char> values(half, 1);
  stream.copy(from.data(), values.data(), half, true, false);
  stream.wait();
  return shortest([&] {
    stream.copy(to.data(), from.data(), half, true, true);
    stream.wait();
  });
}

void measure(const Run& run, const Subject& subject, std::string& note) {
  const json args = parsed(run.variant);
  const Sides sides = inputs_of(run, subject, true, false);
  const auto time = [&](const List& in) {
    return shortest([&] {
      for (auto& y : run.line->call(args, in))
        if (y.defined()) y.wait();
    });
  };
  const double here = time(sides.found),
               there = from_reference(subject, [&] { return time(sides.expected); });
  const int64_t bytes =
      size_in_bytes(sides.found) + size_in_bytes(run.line->call(args, sides.found));
  std::string shapes;
  for (auto& x : sides.found)
    if (x.defined()) shapes += (shapes.empty() ? "" : " ") + x.shape().str();
  note = fmt::format("{:20} {:5} {:>12.1f} {:>12.1f} {:>8.2f} {:>7.0f}%  {}", run.line->name,
                     name_of(run.dtype), here * 1e6, there * 1e6, there / here,
                     100 * copy_time(bytes, subject) / here, shapes);
}

const Variant& largest(const Line& line) {
  const auto elements = [](const Variant& v) {
    int64_t sum = 0;
    for (auto& in : v.in) sum += in.shape.numel();
    return sum;
  };
  return *std::max_element(line.variants.begin(), line.variants.end(),
                           [&](auto& a, auto& b) { return elements(a) < elements(b); });
}

DType type_for(const Line& line, const Options& options) {
  if (options.dtype) return *options.dtype;
  for (DType t : {f32, i64, boolean})
    if (contains(line.types, t)) return t;
  return f32;
}

}  // namespace

const char* speed_heading() {
  return "operator             dtype  device, µs    cpu, µs  times   of copy  shapes\n"
         "(\"times\": as fast as the cpu that is compared; \"of copy\": the share of the bandwidth "
         "that a copy of as many bytes has)";
}

std::vector<Check> speed_checks(const Options& options, const Subject& subject) {
  std::vector<Check> checks;
  for (auto& family : table())
    for (auto& line : family.lines) {
      const DType dtype = type_for(line, options);
      if (!is_asked_for(options, line) || !contains(line.types | line.types_elsewhere, dtype))
        continue;
      Run run{&line, largest(line), dtype, {}};
      run.layout.assign(run.variant.in.size(), &layouts()[0]);
      auto note = std::make_shared<std::string>();
      Check check{"speed", line.name, run.describe(), dtype,
                  [run, subject, note] { measure(run, subject, *note); }};
      check.note = note;
      checks.push_back(std::move(check));
    }
  return checks;
}

}  // namespace tenon::conformance
