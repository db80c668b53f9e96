// Every operator on every device: runs the table of conformance/cases, in one suite for
// each family. TENON_TEST_DEVICE names the device. A new operator needs a line in its family's
// table; the last tests here name those that have none.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/conformance/case_files.h>
#include <tenon/conformance/driver.h>
#include <tenon/core/autograd/node.h>
#include <tenon/core/dispatch/op.h>
#include <tenon/core/tensor_impl.h>

#include "places.h"
#include "support/sanitized.h"

// A namespace of its own, because the suites have the names of functions.
namespace tenon::table_test {

using conformance::Check;
using conformance::Line;
using conformance::Result;
using conformance::Status;
using conformance::Subject;

namespace {

const std::vector<Line>& lines_of(const std::string& family) {
  for (auto& f : conformance::table())
    if (family == f.name) return f.lines;
  throw std::logic_error("no family is called " + family);
}

conformance::CaseFolder read_cases(const conformance::CaseReading& reading = {}) {
  return conformance::read_case_folder(test::reference_dir() + "/cases", Device("cpu"), reading);
}

// To read all takes longer than to run what most families have.
conformance::CaseFolder cases_of(const std::vector<Line>& lines) {
  std::set<std::string> names;
  for (auto& line : lines) names.insert(line.name);
  return read_cases({.wanted = [&](auto& op) { return names.contains(op); }});
}

Subject subject() { return {default_device(), Device("cpu")}; }

// The checks of a line; on a GPU all variants in all dtypes. Rules of gradients are the same on any
// device, and only what computes them differs: where that is slow, one variant shows it. What
// computes on sim is the cpu's. TENON_TEST_BRIEFLY=1: a tool slows the device down.
conformance::Effort effort() {
  const std::string device(default_device().type());
  const bool gpu = std::getenv("TENON_TEST_GPU"), briefly = std::getenv("TENON_TEST_BRIEFLY"),
             checked = std::getenv("TENON_CHECK"), sim = device == "sim",
             slow = briefly || sim || (device == "cuda" && !gpu);
  conformance::Effort effort;
  if (briefly || sim || checked || (test::kSanitized && !gpu))
    effort.runs = 8;
  else if (gpu)
    effort.runs = effort.kAll;
  if (slow || checked || test::kSanitized) effort.differences = 1;
  effort.elsewhere = device == "cuda";
  effort.strided_cases = effort.rounded_cases = !slow && !checked && !test::kSanitized;
  return effort;
}

// What is not offered has failed here, too.
void require_passed(const std::vector<Check>& checks) {
  for (auto& check : checks) {
    const Result r = result_of(check);
    if (r.status != Status::passed && r.status != Status::skipped)
      BOOST_ERROR(r.op << " " << r.name << " in " << r.dtype << " on " << default_device().str()
                       << ": " << r.detail);
  }
}

void check_cases(const std::vector<Line>& lines, const conformance::CaseFolder& cases,
                 const Subject& subject) {
  size_t count = 0;
  for (auto& line : lines) {
    const auto checks = case_checks(line, subject, cases, effort());
    BOOST_CHECK_MESSAGE(line.no_reference || !checks.empty(),
                        line.name << ": no file in " << test::reference_dir()
                                  << "/cases has a case; add one with tests/reference/generate.py, "
                                     "or say in the line why there is none");
    require_passed(checks);
    count += checks.size();
  }
  BOOST_TEST_MESSAGE(count << " checks with reference cases on " << subject.device.str());
}
void check_layouts(const std::vector<Line>& lines) {
  for (size_t i = 0; i < lines.size(); ++i)
    require_passed(layout_checks(lines[i], subject(), i, effort()));
}
void check_gradients(const std::vector<Line>& lines) {
  for (size_t i = 0; i < lines.size(); ++i)
    require_passed(gradient_checks(lines[i], subject(), i, effort()));
}

}  // namespace

#define TENON_FAMILY(family)                                                      \
  BOOST_AUTO_TEST_SUITE(family)                                                   \
  BOOST_AUTO_TEST_CASE(table_reference) {                                         \
    check_cases(lines_of(#family), cases_of(lines_of(#family)), subject());       \
  }                                                                               \
  BOOST_AUTO_TEST_CASE(table_agreement) { check_layouts(lines_of(#family)); }     \
  BOOST_AUTO_TEST_CASE(table_differences) { check_gradients(lines_of(#family)); } \
  BOOST_AUTO_TEST_SUITE_END()

TENON_FAMILY(pointwise)
TENON_FAMILY(reduction)
TENON_FAMILY(linalg)
TENON_FAMILY(convolution)
TENON_FAMILY(pooling)
TENON_FAMILY(normalization)
TENON_FAMILY(loss)
TENON_FAMILY(indexing)
TENON_FAMILY(shape)
TENON_FAMILY(creation)
TENON_FAMILY(random)
TENON_FAMILY(optimizer)
TENON_FAMILY(attention)
TENON_FAMILY(recurrent)

// ---- nothing is forgotten

namespace {

bool has_line(const std::string& name) {
  for (auto& family : conformance::table())
    for (auto& line : family.lines)
      if (name == line.name || (line.op && name == line.op)) return true;
  return false;
}

// Gradient operators run where their operator's gradient does.
std::string without_ending(const std::string& name) {
  return name.substr(0, name.find("_backward"));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(table)

BOOST_AUTO_TEST_CASE(every_operator_has_a_line) {
  size_t count = 0;
  for (const Op* op = all_ops(); op; op = op->next, ++count)
    BOOST_CHECK_MESSAGE(has_line(without_ending(op->name)),
                        "operator \"" << op->name << "\" has no line in conformance/cases");
  BOOST_TEST(count > 200u);
}

namespace {

// Adds the names of all operators that took part in computing the tensors.
void add_history(const std::vector<Tensor>& tensors, std::set<std::string>& names) {
  std::vector<const Node*> open;
  std::set<const Node*> seen;
  const auto add = [&](const Node* node) {
    if (node && seen.insert(node).second) open.push_back(node);
  };
  for (auto& x : tensors)
    if (x.defined() && x.impl()->autograd) add(x.impl()->autograd->node.get());
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (node->op) names.insert(node->op->name);
    for (auto& edge : node->edges) add(edge.node.get());
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_gradient_rule_is_checked) {
  std::set<std::string> checked;
  for (auto& family : conformance::table())
    for (auto& line : family.lines)
      for_each_differentiated(line, subject(),
                              [&](auto& tensors) { add_history(tensors, checked); });
  for (const Op* op = all_ops(); op; op = op->next) {
    BOOST_CHECK_MESSAGE(!op->gradient || checked.contains(op->name),
                        "operator \"" << op->name
                                      << "\" has a gradient rule, but no variant in "
                                         "conformance/cases differentiates it");
  }
}

// Functions made of several operators too: those that the public headers declare.
BOOST_AUTO_TEST_CASE(every_public_function_has_a_line) {
  namespace fs = std::filesystem;
  const fs::path headers = fs::path(test::reference_dir()) / "../../core/ops";
  if (!fs::exists(headers)) return;  // carried to another machine, without the sources
  std::set<std::string> names;
  for (auto& entry : fs::directory_iterator(headers)) {
    if (entry.path().extension() != ".h") continue;
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    static const std::regex declared(
        R"(TENON_API\s+(?:[A-Z]\w+|std::\w+<Tensor(?:, Tensor)*>)\s+(?://[^\n]*\s+)?(\w+)\()");
    for (std::sregex_iterator at(text.begin(), text.end(), declared), end; at != end; ++at)
      names.insert((*at)[1]);
  }
  // Their lines are LSTM, GRU and RNN, as PyTorch's modules are called.
  for (const char* layers : {"lstm", "gru", "rnn"}) BOOST_TEST(names.erase(layers) == 1u);
  BOOST_TEST(names.size() > 330u);
  for (auto& name : names)
    BOOST_CHECK_MESSAGE(has_line(name),
                        "function \"" << name << "\" has no line in conformance/cases");
}

BOOST_AUTO_TEST_CASE(no_reference_case_is_lost) {
  const auto cases = read_cases();
  BOOST_TEST(cases.count >= 1708u);
  BOOST_TEST(cases.unreadable.empty());
  BOOST_TEST(conformance::cases_beside_the_table(cases) == "", "no line of the table runs these");
}

BOOST_AUTO_TEST_SUITE_END()

// A backend that offers simple operators only (tests/ops/primitives) gives the same results.
BOOST_AUTO_TEST_SUITE(decompose)
BOOST_AUTO_TEST_CASE(reference_cases) {
  const auto cases = read_cases();
  for (auto& family : conformance::table())
    check_cases(family.lines, cases, {Device("primitives:0"), Device("cpu")});
}
BOOST_AUTO_TEST_SUITE_END()

}  // namespace tenon::table_test
