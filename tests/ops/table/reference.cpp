// The reference cases: PyTorch's values and gradients in f64, computed from exactly the inputs that
// the files hold (tests/reference/cases/FORMAT.md). Tolerances: in f32 those of the case; in f64
// 1e-9 relative, and 1e-9 of the largest value absolute.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "ops/check.h"
#include "ops/table/driver.h"
#include "places.h"
#include "reference/hdf5_case.h"

namespace tenon::test {

namespace {

// All cases of all files, by operator.
const std::map<std::string, std::vector<Case>>& cases_by_name() {
  static const auto all = [] {
    DeviceGuard on_cpu("cpu");  // where they are compared
    const std::string folder = reference_dir() + "/cases";
    std::set<std::string> files;
    for (auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".h5") files.insert(entry.path().filename());
    std::map<std::string, std::vector<Case>> cases;
    for (auto& file : files)
      for (auto& c : read_cases(folder, file)) cases[c.op].push_back(std::move(c));
    return cases;
  }();
  return all;
}

void compare(const Tensor& found, const Tensor& expected, const Case& c, DType dtype,
             const std::string& what) {
  BOOST_REQUIRE_MESSAGE(found.shape() == expected.shape(), what << ": shape " << found.shape().str()
                                                                << ", expected "
                                                                << expected.shape().str());
  const auto values = expected.to_vector<double>();
  double rtol = c.rtol, atol = c.atol;
  if (dtype == f64) {
    double largest = 0;
    for (double v : values) largest = std::max(largest, std::isfinite(v) ? std::abs(v) : 0);
    rtol = 1e-9;
    atol = 1e-9 * std::max(largest, 1.0);
  }
  require_close(found.to_vector<double>(), values, rtol, atol, what);
}

void run(const Line& line, const Case& c, DType dtype, Device device) {
  const std::string what = c.name + " in " + std::string(name_of(dtype)) + " on " + device.str();
  BOOST_TEST_CONTEXT(what) {
    List in;
    for (size_t i = 0; i < c.in.size(); ++i) {
      if (!c.in[i].defined()) {  // an optional input that was not given
        in.emplace_back();
        continue;
      }
      in.push_back(
          (is_floating_point(c.in[i].dtype()) ? c.in[i].to(dtype).clone() : c.in[i]).to(device));
      if (i < c.gin.size() && c.gin[i].defined()) in.back().requires_grad_();
    }
    const List out = line.call(c.args, in);
    BOOST_REQUIRE_EQUAL(out.size(), c.out.size());
    List sources, upstream;
    for (size_t i = 0; i < out.size(); ++i) {
      compare(out[i], c.out[i], c, dtype, what + ", output " + std::to_string(i));
      if (i >= c.gout.size() || !c.gout[i].defined()) continue;
      sources.push_back(out[i]);
      upstream.push_back(c.gout[i].to(dtype).to(device));
    }
    List wanted, expected;
    for (size_t i = 0; i < c.gin.size(); ++i)
      if (c.gin[i].defined()) {
        wanted.push_back(in[i]);
        expected.push_back(c.gin[i]);
      }
    if (wanted.empty()) return;
    // Once with the fused backward operators, once with the rules that can be differentiated again.
    for (bool again : {false, true}) {
      const auto found =
          grad(sources, wanted, upstream, {.retain_graph = true, .create_graph = again});
      for (size_t i = 0; i < found.size(); ++i)
        compare(found[i], expected[i], c, dtype,
                what + ", gradient " + std::to_string(i) + (again ? ", composed" : ""));
    }
  }
}

}  // namespace

size_t check_reference(const Line& line, Device device) {
  const auto found = cases_by_name().find(line.name);
  if (line.no_reference) return 0;
  BOOST_REQUIRE_MESSAGE(found != cases_by_name().end(),
                        line.name << ": no file in " << reference_dir()
                                  << "/cases has a case; add one with tests/reference/generate.py, "
                                     "or say in the line why there is none");
  for (auto& c : found->second)
    for (DType dtype : {f32, f64}) run(line, c, dtype, device);
  return found->second.size();
}

size_t reference_count() {
  size_t count = 0;
  for (auto& [name, cases] : cases_by_name()) count += cases.size();
  return count;
}

std::string reference_names_beside(const std::vector<const Line*>& lines) {
  std::string text;
  for (auto& [name, cases] : cases_by_name())
    if (std::none_of(lines.begin(), lines.end(),
                     [&](auto* l) { return name == l->name && !l->no_reference; }))
      text += " " + name + "(" + std::to_string(cases.size()) + ")";
  return text;
}

}  // namespace tenon::test
