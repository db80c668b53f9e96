// A backend that offers simple operators only (tests/ops/primitives) gives the same results: the core makes the others of them.
#include <tenon/plugins/host/registry.h>

#include "places.h"
#include "reference_cases.h"

using namespace tenon;
using namespace tenon::test;

namespace {

const char* const device = "primitives:0";

struct PrimitivesFolder {
  PrimitivesFolder() { plugins::registry().add_path(test::build_dir() + "/tests/primitives"); }
};

}  // namespace

BOOST_TEST_GLOBAL_FIXTURE(PrimitivesFolder);

BOOST_AUTO_TEST_CASE(what_cannot_be_decomposed_is_refused_with_the_reason) {
  require_error<UnsupportedError>([] { randn({2}, {.device = device}); }, "primitives has no normal");
}

BOOST_AUTO_TEST_CASE(binary_cases) { run_file("binary.h5", 46, device); }
BOOST_AUTO_TEST_CASE(unary_cases) { run_file("unary.h5", 46, device); }
BOOST_AUTO_TEST_CASE(reduce_cases) { run_file("reduce.h5", 46, device); }
BOOST_AUTO_TEST_CASE(linalg_cases) { run_file("linalg.h5", 42, device); }
BOOST_AUTO_TEST_CASE(conv_cases) { run_file("conv.h5", 18, device); }
BOOST_AUTO_TEST_CASE(norm_cases) { run_file("norm.h5", 28, device); }
BOOST_AUTO_TEST_CASE(loss_cases) { run_file("loss.h5", 60, device); }
BOOST_AUTO_TEST_CASE(shape_cases) { run_file("shape.h5", 34, device); }
BOOST_AUTO_TEST_CASE(optim_cases) { run_file("optim.h5", 16, device); }
