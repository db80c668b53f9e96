// Checked mode (TENON_CHECK) looks at copies and at replays of stream graphs, too: what a plugin
// spoils there is named. Each test runs in a process of its own.
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "checked_joint.h"
#include "logged.h"
#include "support/drain.h"

BOOST_AUTO_TEST_SUITE(checked_copies_test)

using namespace tenon;
using namespace tenon::test;
using namespace tenon::test::joint;

BOOST_AUTO_TEST_CASE(copies_alone,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  Joint joint;
  for (auto& c : kDevices) {
    const Device device = open(c);
    for (const std::string fault : {"copy_writes_beside", "copy_forgets_a_byte"}) {
      const std::string bytes = std::to_string(4 * ++size), last = std::to_string(4 * size - 1);
      const std::string said = fault == "copy_writes_beside"
                                   ? "wrote outside of its destination: 1 byte behind the end of "
                                     "the buffer of " +
                                         bytes + " bytes"
                                   : "changed 1 of " + bytes + " bytes on the way from cpu:0 to " +
                                         device.str() + ", byte " + last + " first: element " +
                                         std::to_string(size - 1) +
                                         " (f32) is -2 in the source and ";
      const Tensor values = full({size}, -2.0);
      std::string text;
      {
        Environment broken("TENON_TEST_FAULT", fault), only("TENON_TEST_FAULT_BYTES", bytes);
        const ModulePath path("Net");
        text = error_of([&] { (void)values.to(device).to_vector<float>(); });
      }
      for (std::string part :
           {said, "plugin joint (" + joint.folder.path(), std::string("joint.so): copy "),
            "copy of " + bytes + " bytes from the host"})
        BOOST_TEST(has(text, part), "\"" << text << "\" lacks " << part);
      if (fault == "copy_forgets_a_byte")
        for (std::string part :
             {std::string("What was copied is output 0 of fill"),
              std::string(", for module Net. Look at what is left over after the last wide copy")})
          BOOST_TEST(has(text, part), "\"" << text << "\" lacks " << part);
      BOOST_TEST(error_of([&] { synchronize(); }) == "");
      BOOST_TEST(error_with("", device) == "");
    }
  }
}

BOOST_AUTO_TEST_CASE(a_copy_that_spoils_memory_is_named) {
  require_success("copies_alone", {"TENON_CHECK=1"});
}

// A graph whose body needs memory that it frees.
BOOST_AUTO_TEST_CASE(graphs_alone,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  Joint joint;
  for (auto& c : {kDevices[1], kDevices[3]}) {
    const Device device = open(c);
    const Tensor x = full({++size}, -2.0).to(device);
    const std::string op = "abs: (" + std::to_string(size) + ",) on " + device.str(),
                      end = "1 byte behind the end of the buffer of ";
    (void)abs(x).to_vector<float>();
    Tensor y;
    auto graph = StreamGraph::capture(device, [&] { y = abs(abs(x)); });
    auto replay = [&](const std::string& fault) {
      Environment broken("TENON_TEST_FAULT", fault);
      return error_of([&] {
        graph.replay();
        synchronize();
      });
    };
    auto computed = [&] { return y.to_vector<float>() == abs(x).to_vector<float>(); };
    BOOST_TEST(replay("") == "");
    BOOST_TEST(computed());
    const struct {
      std::string fault;
      std::vector<std::string> said;
    } ways[] = {
        {"run_writes_behind", {"wrote outside of output 0 of " + op + ": " + end}},
        {"run_writes_before", {"wrote outside of output 0 of " + op, "byte -1"}},
        {"run_changes_an_input", {"changed memory that it may only read"}},
    };
    for (auto& way : ways) BOOST_TEST_CONTEXT(way.fault << " on " << device.str()) {
        const std::string text = replay(way.fault);
        for (auto& part : way.said) BOOST_TEST(has(text, part), text << " lacks " << part);
        for (std::string part : {"replay of a stream graph on " + device.str(),
                                 "plugin joint (" + joint.folder.path(), std::string("joint.so)")})
          BOOST_TEST(has(text, part), text << " lacks " << part);
        BOOST_TEST(replay("") == "");
        BOOST_TEST(computed());
      }
    // Nothing is left of what the body freed in the replay before.
    BOOST_TEST(replay("run_adds_what_was_left") == "");
    BOOST_TEST(std::isnan(y.to_vector<float>()[0]));
  }
}

BOOST_AUTO_TEST_CASE(a_replay_that_spoils_memory_is_named) {
  require_success("graphs_alone", {"TENON_CHECK=1"});
}

// Where events fail, nobody knows when the work before them ends, and it uses memory of the caller.
BOOST_AUTO_TEST_CASE(events_alone,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  Joint joint;
  const Device device = open(kDevices[3]);
  std::vector<std::string> faults = {"event_record_throws", "event_record_error",
                                     "event_query_throws"};
  if (!std::getenv("TENON_CHECK")) faults.push_back("event_wait_throws");  // else it is not called
  for (const std::string& fault : faults) {
    std::string text;
    const std::string log = logged([&] { text = error_with(fault + ",drain_logs", device); });
    BOOST_TEST_CONTEXT(fault << ": " << text) {
      BOOST_TEST(!text.empty());
      BOOST_TEST(has(log, "drain was called"), log);
      drain();  // each event that failed is a failure
      BOOST_TEST(error_with("", device) == "");
    }
  }
}

BOOST_AUTO_TEST_CASE(a_device_whose_events_fail_is_drained) {
  require_success("events_alone", {"TENON_CHECK=1"});
  require_success("events_alone", {});
}

BOOST_AUTO_TEST_SUITE_END()
