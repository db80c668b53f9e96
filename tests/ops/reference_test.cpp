// Every operator that the library has, against PyTorch's results and gradients.
#include "reference_cases.h"

BOOST_AUTO_TEST_CASE(reference_cases) { tenon::test::run_all_files(); }
