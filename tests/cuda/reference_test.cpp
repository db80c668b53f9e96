// Every operator on the cuda plugin, against PyTorch's results and gradients.
#include "cuda/emulated.h"
#include "ops/reference_cases.h"

using tenon::test::EmulatedCuda;
BOOST_TEST_GLOBAL_FIXTURE(EmulatedCuda);

BOOST_AUTO_TEST_CASE(reference_cases) { tenon::test::run_all_files("cuda:0"); }
