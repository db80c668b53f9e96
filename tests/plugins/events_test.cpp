// Events that do not tell when work has ended: the device is drained, and is lost where that is not
// possible either.
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/ops/pointwise.h>
#include <tenon/core/tensor_impl.h>
#include <tenon/plugins/host/registry.h>
#include <tenon/tenon.h>

#include "plugin_folder.h"
#include "process/child.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(events_test)

using namespace tenon;
using namespace tenon::test;

namespace {

// Two devices whose work is done while the caller goes on.
struct Streams {
  Streams() {
    folder.add("joint_streams", {{"name", "joint_streams"}, {"version", "1.0"}});
    plugins::registry().add_path(folder.path());
  }
  PluginFolder folder;
};
void streams() { static Streams once; }

std::string error_of_reading(const Tensor& x) {
  return error_of([&] { x.to_vector<float>(); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_answer_without_a_meaning_does_not_end_work) {
  streams();
  Environment fault("TENON_TEST_FAULT", "query_answers_7");
  const Tensor y = abs(full({5}, -7.25).to("joint_streams:0"));
  while (!y.is_ready()) std::this_thread::yield();
  const auto* values = static_cast<const float*>(y.impl()->storage->data);
  BOOST_TEST(std::vector<float>(values, values + 5) == std::vector<float>(5, 7.25f));
  require_has(error_of_reading(y), "event_query set *done to 7");
}

BOOST_AUTO_TEST_CASE(queued_alone,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  streams();
  const Device device("joint_streams", 0);
  const Tensor x = full({5}, -3.0).to(device);
  BOOST_TEST(abs(x).to_vector<float>()[0] == 3);  // a plan is made
  Environment fault("TENON_TEST_FAULT", "no_events_and_drain_waits_for_a_third_run");
  const Tensor first = abs(x);
  std::string told;
  std::thread reader([&] { told = error_of([&] { first.wait(); }); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // by then the other one waits
  const Tensor second = abs(x);
  reader.join();
  require_has(told, "there are no events");
  BOOST_TEST(!has(told, "is lost"), told);
}

BOOST_AUTO_TEST_CASE(others_queue_work_while_a_device_is_drained) {
  const Outcome outcome = run_alone("events_test/queued_alone", {}, 120);
  BOOST_TEST(outcome.status == 0, outcome.output);
}

BOOST_AUTO_TEST_CASE(lost_alone, *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  streams();
  const Tensor x = full({5}, -3.0).to("joint_streams:0"), y = abs(x);
  const std::string told = error_of_reading(y);
  require_has(told, "joint_streams:0 is lost and cannot be used again in this process: ");
  require_has(told, "drain is missing or has failed, and no event tells when the work ends; give");
  require_has(error_of([&] { abs(x); }), "is lost");
  BOOST_TEST(abs(full({5}, -3.0)).to_vector<float>()[0] == 3);  // others work
}

BOOST_AUTO_TEST_CASE(a_device_is_lost_where_nothing_tells_when_work_ends) {
  for (const char* fault : {"no_events_and_drain_fails", "wait_throws_and_drain_fails"}) {
    const Outcome outcome =
        run_alone("events_test/lost_alone", {std::string("TENON_TEST_FAULT=") + fault}, 60);
    BOOST_TEST(outcome.status == 0, fault << "\n" << outcome.output);
  }
}

BOOST_AUTO_TEST_SUITE_END()
