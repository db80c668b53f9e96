// Every operator on every device: runs the tables of tests/ops/<family>/cases.h, a suite a family.
// TENON_TEST_DEVICE names the device. A new operator needs a line in its family's table; the last
// tests here name those that have none.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include <boost/test/unit_test.hpp>

#include <tenon/core/dispatch/op.h>

#include "ops/convolution/cases.h"
#include "ops/creation/cases.h"
#include "ops/indexing/cases.h"
#include "ops/linalg/cases.h"
#include "ops/loss/cases.h"
#include "ops/normalization/cases.h"
#include "ops/optimizer/cases.h"
#include "ops/pointwise/cases.h"
#include "ops/pooling/cases.h"
#include "ops/random/cases.h"
#include "ops/reduction/cases.h"
#include "ops/shape/cases.h"
#include "ops/table/driver.h"
#include "places.h"

using namespace tenon;
using namespace tenon::test;

namespace {

void check_values(const std::vector<Line>& lines) {
  size_t cases = 0;
  for (auto& line : lines) cases += check_reference(line, default_device());
  BOOST_TEST_MESSAGE(cases << " reference cases on " << default_device().str());
}
void check_agreement_of(const std::vector<Line>& lines) {
  for (size_t i = 0; i < lines.size(); ++i) check_agreement(lines[i], default_device(), i);
}
void check_differences_of(const std::vector<Line>& lines) {
  for (size_t i = 0; i < lines.size(); ++i) check_differences(lines[i], default_device(), i);
}

}  // namespace

#define TENON_FAMILY(family)                                                          \
  BOOST_AUTO_TEST_SUITE(family)                                                       \
  BOOST_AUTO_TEST_CASE(table_reference) { check_values(family##_cases()); }           \
  BOOST_AUTO_TEST_CASE(table_agreement) { check_agreement_of(family##_cases()); }     \
  BOOST_AUTO_TEST_CASE(table_differences) { check_differences_of(family##_cases()); } \
  BOOST_AUTO_TEST_SUITE_END()

namespace tenon::test {

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

}  // namespace tenon::test

// ---- nothing is forgotten

namespace {

struct Table {
  std::vector<Line> lines;
  Table() {
    for (auto& family : {pointwise_cases(), reduction_cases(), linalg_cases(), convolution_cases(),
                         pooling_cases(), normalization_cases(), loss_cases(), indexing_cases(),
                         shape_cases(), creation_cases(), random_cases(), optimizer_cases()})
      lines.insert(lines.end(), family.begin(), family.end());
  }
  bool has(const std::string& name) const {
    return std::any_of(lines.begin(), lines.end(),
                       [&](auto& l) { return name == l.name || (l.op && name == l.op); });
  }
};

// Gradient operators run where their operator's gradient does.
std::string without_ending(const std::string& name) {
  return name.substr(0, name.find("_backward"));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(table)

BOOST_AUTO_TEST_CASE(every_operator_has_a_line) {
  const Table table;
  size_t count = 0;
  for (const Op* op = all_ops(); op; op = op->next, ++count)
    BOOST_CHECK_MESSAGE(table.has(without_ending(op->name)),
                        "operator \"" << op->name << "\" has no line in tests/ops/*/cases.h");
  BOOST_TEST(count > 90u);
}

// Functions made of several operators too: those that the public headers declare.
BOOST_AUTO_TEST_CASE(every_public_function_has_a_line) {
  namespace fs = std::filesystem;
  const fs::path headers = fs::path(reference_dir()) / "../../core/ops";
  if (!fs::exists(headers)) return;  // carried to another machine, without the sources
  const Table table;
  std::set<std::string> names;
  for (auto& entry : fs::directory_iterator(headers)) {
    if (entry.path().extension() != ".h") continue;
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    static const std::regex declared(
        R"(TENON_API\s+(?:Tensor|std::vector<Tensor>)\s+(?://[^\n]*\s+)?(\w+)\()");
    for (std::sregex_iterator at(text.begin(), text.end(), declared), end; at != end; ++at)
      names.insert((*at)[1]);
  }
  BOOST_TEST(names.size() > 70u);
  for (auto& name : names)
    BOOST_CHECK_MESSAGE(table.has(name),
                        "function \"" << name << "\" has no line in tests/ops/*/cases.h");
}

// Cases of operators that the library does not have yet are named here, so that none is lost.
BOOST_AUTO_TEST_CASE(no_reference_case_is_lost) {
  const Table table;
  std::vector<const Line*> lines;
  for (auto& l : table.lines) lines.push_back(&l);
  BOOST_TEST(reference_count() == 503u);
  BOOST_TEST(reference_names_beside(lines) ==
             " Adadelta(2) Adagrad(2) RMSprop(4) atan2(2) binary_cross_entropy_with_logits(12)"
             " conv1d(4) conv3d(4) conv_transpose2d(4) cumsum(2) elu(4) expm1(2) flip(2)"
             " group_norm(4) hardsigmoid(2) hardswish(2) hardtanh(2) huber_loss(12)"
             " instance_norm(4) interpolate(8) kl_div(12) leaky_relu(4) lerp(2) log1p(2)"
             " masked_fill(2) mish(2) normalize(4) one_hot(2) pad(6) relu6(2) repeat(2)"
             " rms_norm(4) roll(2) scaled_dot_product_attention(8) scatter_add(2) selu(2)"
             " smooth_l1_loss(12) softplus(4) sort(2) topk(2) tril(2) triu(2)");
}

BOOST_AUTO_TEST_SUITE_END()

// A backend that offers simple operators only (tests/ops/primitives) gives the same results.
BOOST_AUTO_TEST_SUITE(decompose)
BOOST_AUTO_TEST_CASE(reference_cases) {
  for (auto& line : Table().lines) check_reference(line, Device("primitives:0"));
}
BOOST_AUTO_TEST_SUITE_END()
