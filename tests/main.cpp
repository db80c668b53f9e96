// The main function of every test program: Boost.Test makes it here, so that the test files share one precompiled header.
#undef BOOST_TEST_MODULE
#define BOOST_TEST_MODULE tenon
#include <boost/test/unit_test.hpp>
