// Every operator that the library has, against PyTorch's results and gradients; the numbers say how many cases are covered.
#include "reference_cases.h"

using tenon::test::run_file;

BOOST_AUTO_TEST_CASE(binary_cases) { run_file("binary.h5", 46); }
BOOST_AUTO_TEST_CASE(unary_cases) { run_file("unary.h5", 46); }
BOOST_AUTO_TEST_CASE(reduce_cases) { run_file("reduce.h5", 46); }
BOOST_AUTO_TEST_CASE(linalg_cases) { run_file("linalg.h5", 42); }
BOOST_AUTO_TEST_CASE(conv_cases) { run_file("conv.h5", 18); }
BOOST_AUTO_TEST_CASE(norm_cases) { run_file("norm.h5", 28); }
BOOST_AUTO_TEST_CASE(loss_cases) { run_file("loss.h5", 60); }
BOOST_AUTO_TEST_CASE(shape_cases) { run_file("shape.h5", 34); }
BOOST_AUTO_TEST_CASE(optim_cases) { run_file("optim.h5", 16); }
