// Devices by name, how many there are, and settings in the environment.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/ops/pointwise.h>
#include <tenon/core/runtime/stream_guard.h>
#include <tenon/core/tensor.h>

#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(device_test)

using namespace tenon;
using test::error_of;
using test::has;

BOOST_AUTO_TEST_CASE(a_device_without_its_colon_is_guessed) {
  BOOST_TEST(has(error_of([] { zeros({2}, {.device = "cpu0"}); }), "did you mean \"cpu:0\"?"));
  BOOST_TEST(!has(error_of([] { zeros({2}, {.device = "nonsense0"}); }), "did you mean"));
}

BOOST_AUTO_TEST_CASE(devices_by_name) {
  BOOST_TEST(Device("cpu").str() == "cpu:0");
  BOOST_TEST((Device("cpu:3") == Device("cpu", 3)));
  BOOST_TEST(parse_devices("cpu:0,cpu:1").size() == 2u);
  for (const char* bad :
       {"", ":", "cpu:", "cpu:x", "cpu:1x", "cpu:-1", "cpu:99999999999", "CPU", "../cpu", "cpu:0,"})
    BOOST_CHECK_THROW(parse_devices(bad), DeviceError);
  auto said = [](const char* list) { return error_of([&] { parse_devices(list); }); };
  BOOST_TEST(has(said("cpu:0, cpu:1"), "\"cpu:0, cpu:1\" has blanks in it; write \"cpu:0,cpu:1\""),
             said("cpu:0, cpu:1"));
  BOOST_TEST(
      has(said(" \t"), "has blanks in it; write one or more devices with commas between them"),
      said(" \t"));
  BOOST_TEST(has(said(""), "the list of devices is empty; write one or more devices"), said(""));
  BOOST_TEST(has(said("cpu:0,,cpu:1"), "the list of devices \"cpu:0,,cpu:1\" has an empty entry"),
             said("cpu:0,,cpu:1"));
  const std::string numbered = "has too large an index: devices are numbered from 0 to 65535";
  for (const char* large : {"cpu:99999", "cpu:65536", "cpu:99999999999999999999999"})
    BOOST_TEST(has(said(large), "\"" + std::string(large) + "\" " + numbered), said(large));
  BOOST_TEST(has(error_of([] { Device("cpu", 65536); }), "\"cpu:65536\" " + numbered));
  BOOST_TEST(said("cpu:1,cpu") == "");
  auto text = error_of([] { ones({1}, {.device = "tpu:0"}); });
  BOOST_TEST((has(text, "tpu") && has(text, "cpu")), text);  // the load report names what there is
  BOOST_CHECK_THROW(ones({1}) + ones({1}, {.device = "cpu:1"}), DeviceError);
  DeviceGuard guard("cpu:2");
  BOOST_TEST(ones({1}).device().str() == "cpu:2");
}

BOOST_AUTO_TEST_CASE(how_many_devices_cpu_stands_for) {
  setenv("TENON_CPU_DEVICES", "12", 1);
  BOOST_TEST(device_count("cpu") == 12u);
  setenv("TENON_CPU_DEVICES", "many", 1);
  BOOST_TEST(has(error_of([] { device_count("cpu"); }), "TENON_CPU_DEVICES is \"many\""));
  setenv("TENON_CPU_DEVICES", ("\x1b" + std::string(100'000, '1')).c_str(), 1);
  const std::string huge = error_of([] { device_count("cpu"); });
  BOOST_TEST((has(huge, "TENON_CPU_DEVICES is \"\\x1b111") && huge.size() < 1000), huge);
  unsetenv("TENON_CPU_DEVICES");
  ones({1}, {.device = "cpu:5"}).wait();
  BOOST_TEST(device_count("cpu") == 6u);  // those opened so far
}

// Told where the next device is opened: later they would be read where no error reaches anybody.
BOOST_AUTO_TEST_CASE(settings_in_the_environment_that_make_no_sense) {
  auto refused = [](const char* name, const char* value, const char* allowed) {
    setenv(name, value, 1);
    const auto text = error_of([] { ones({1}, {.device = "cpu:9"}); });
    unsetenv(name);
    BOOST_TEST(has(text, std::string(name) + " is \"" + value + "\"; it must be " + allowed), text);
  };
  for (auto* name : {"TENON_NUM_THREADS", "TENON_CPU_DEVICES"})
    for (auto* value : {"abc", "0", "99999999", "1025", "-1", "4x", " 4", "99999999999999999999"})
      refused(name, value, "a number from 1 to 1024");
  for (auto* value : {"yes", "2", "-1", " "}) {
    refused("TENON_SYNC", value, "1 for yes, or 0 for no");
    refused("TENON_CPU_FALLBACK", value, "1 for yes, 0 for no, or report");
  }
  for (auto* value : {"1", "op", "ops,", ",", "ops plans", "a.json,b.json", "trace.txt"})
    refused("TENON_TRACE", value, "ops, plans or the name of a file that ends in .json");
  // One that is empty is as one that is not set.
  for (auto* name : {"TENON_NUM_THREADS", "TENON_CPU_DEVICES", "TENON_SYNC", "TENON_CPU_FALLBACK",
                     "TENON_TRACE"}) {
    setenv(name, "", 1);
    BOOST_TEST(ones({1}, {.device = "cpu:9"}).item() == 1.0, name);
    unsetenv(name);
  }
  setenv("TENON_NUM_THREADS", "1024", 1);  // of a pool that is there already
  BOOST_TEST(ones({1}, {.device = "cpu:9"}).item() == 1.0);
  unsetenv("TENON_NUM_THREADS");
}

// The last one: no other name can be made afterwards.
BOOST_AUTO_TEST_CASE(more_names_of_backends_than_can_be_told_apart) {
  for (int i = 0; i < 65535; ++i) {
    try {
      BOOST_REQUIRE_NE(Device("filler" + std::to_string(i)).type_id(), 0u);
    } catch (const DeviceError&) {  // others stood in the table before
      BOOST_REQUIRE_GT(i, 65000);
      break;
    }
  }
  BOOST_TEST(has(error_of([] { Device("one-too-many"); }),
                 "name \"one-too-many\": a process can use at most 65536 names"));
  BOOST_TEST(Device("filler0").type() == "filler0");
  BOOST_TEST((Device("cpu:2") == Device("cpu", 2)));
}

BOOST_AUTO_TEST_CASE(guards_may_end_in_any_order) {
  auto first = std::make_unique<DeviceGuard>("cpu:1");
  auto second = std::make_unique<DeviceGuard>("cpu:2");
  auto third = std::make_unique<DeviceGuard>("cpu:3");
  second.reset();
  BOOST_TEST(default_device().str() == "cpu:3");
  first.reset();
  BOOST_TEST(default_device().str() == "cpu:3");
  third.reset();
  BOOST_TEST(default_device().str() == "cpu:0");
  BOOST_TEST(!device_guard_active());
  std::vector<std::unique_ptr<StreamGuard>> streams;
  const Stream one("cpu:0"), two("cpu:1");
  streams.push_back(std::make_unique<StreamGuard>(one));
  streams.push_back(std::make_unique<StreamGuard>(two));
  streams.erase(streams.begin());
  BOOST_TEST((ones({2}, {.device = "cpu:1"}) + 1).to_vector<float>()[0] == 2);
  streams.clear();
  BOOST_TEST((ones({2}) + 1).to_vector<float>()[0] == 2);
}

BOOST_AUTO_TEST_SUITE_END()
