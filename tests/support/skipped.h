// Tests that need what a machine may not have.
#pragma once

#include <string>

#include <boost/test/unit_test.hpp>

namespace tenon::test {

// For a precondition: skips the test by name where something is not there.
inline boost::test_tools::assertion_result skipped_unless(bool there, const std::string& why) {
  boost::test_tools::assertion_result result(there);
  result.message() << why;
  if (!there) BOOST_TEST_MESSAGE("skipped: " << why);
  return result;
}

}  // namespace tenon::test
