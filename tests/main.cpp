// The main function of every test program: Boost.Test makes it here, so that the test files share
// one precompiled header.
#undef BOOST_TEST_MODULE
#define BOOST_TEST_MODULE tenon
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>

#include <boost/test/tree/traverse.hpp>
#include <boost/test/tree/visitor.hpp>
#include <boost/test/unit_test.hpp>

#include <tenon/core/device.h>

namespace {

// TENON_TEST_DEVICE=sim:0 (or cuda:0): tensors are made there unless a test says where. The plugin
// is found as ever, by TENON_PLUGIN_PATH.
struct TestDevice {
  TestDevice() {
    if (const char* name = std::getenv("TENON_TEST_DEVICE"); name && *name)
      guard.emplace(tenon::Device(name));
  }
  std::optional<tenon::DeviceGuard> guard;
};

// A program that has suites is run suite by suite: a case outside of them would never be run.
struct AllInSuites : boost::unit_test::test_tree_visitor {
  AllInSuites() {
    boost::unit_test::traverse_test_tree(master, *this, true);
    if (suites && !outside.empty())
      throw std::logic_error("test cases outside of BOOST_AUTO_TEST_SUITE:" + outside);
  }
  void visit(const boost::unit_test::test_case& test_case) override {
    if (test_case.p_parent_id == master.p_id) outside += " " + test_case.p_name.get();
  }
  bool test_suite_start(const boost::unit_test::test_suite& suite) override {
    suites = suites || suite.p_id != master.p_id;
    return true;
  }

  const boost::unit_test::test_suite& master = boost::unit_test::framework::master_test_suite();
  std::string outside;
  bool suites = false;
};

}  // namespace
BOOST_TEST_GLOBAL_FIXTURE(TestDevice);
BOOST_TEST_GLOBAL_FIXTURE(AllInSuites);
