// Older and newer plugins, overlays, what a loaded backend offers, threads, and the order at exit.
#include <algorithm>
#include <array>
#include <thread>

#include <boost/test/unit_test.hpp>

#include <tenon/core/error.h>
#include <tenon/tenon.h>

#include "plugin_folder.h"

BOOST_AUTO_TEST_SUITE(negotiation_test)

using namespace tenon;
using namespace tenon::test;

namespace {

// Makes and runs the fixtures' one operator.
std::array<float, 4> answer(plugins::Backend& backend) {
  auto* device = backend.open_device(0);
  tn_op_request request{};
  request.struct_size = sizeof request;
  request.op = "answer";
  tn_plan* plan = nullptr;
  auto* error = backend.api().plan_create(device, &request, &plan);
  BOOST_REQUIRE_MESSAGE(!error, plugins::take_message(error));
  std::array<float, 4> result{};
  void* outputs[] = {result.data()};
  tn_run run{sizeof run, nullptr, outputs, nullptr, nullptr, nullptr, 0, 1, 0, nullptr};
  BOOST_REQUIRE(!plan->run(plan, &run));
  plan->destroy(plan);
  return result;
}

const std::array<float, 4> expected{42, 43, 44, 45};

json overlay(const char* name, int priority) {
  return {{"name", name}, {"kind", "overlay"}, {"overlays", "good"}, {"priority", priority}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_plugin_built_against_an_older_header_works) {
  PluginFolder folder;
  folder.add("older", {{"name", "older"}, {"abi", {{"major", 1}, {"minor", 0}}}});
  Registry registry(folder.only());
  auto& backend = registry.load("older");
  BOOST_TEST(backend.api().table().struct_size == size_t{TN_BACKEND_API_SIZE_1_0});
  BOOST_TEST(answer(backend) == expected, boost::test_tools::per_element());
  // What it never heard of is absent, not garbage.
  BOOST_TEST(!backend.api().table().extension);
  BOOST_TEST(!backend.api().table().drain);
  BOOST_TEST(!backend.extension("test.answer", 1));
  registry.drain();
  registry.close();
}

// It has no streams, and says so once.
BOOST_AUTO_TEST_CASE(a_device_is_what_it_first_says_of_itself) {
  PluginFolder folder;
  folder.add("fickle", {{"name", "fickle"}});
  plugins::registry().add_path(folder.path());
  const Device device("fickle:0");
  BOOST_TEST(abs(ones({4}).to(device)).to_vector<float>() ==
                 std::vector<float>(expected.begin(), expected.end()),
             boost::test_tools::per_element());
  auto& backend = plugins::registry().load("fickle");
  BOOST_TEST(backend.device_info(backend.open_device(0)).flags == TN_DEVICE_CALLER_THREAD);
}

BOOST_AUTO_TEST_CASE(a_plugin_built_against_the_header_of_1_0_works) {
  PluginFolder folder;
  folder.add("first", {{"name", "first"}, {"abi", {{"major", 1}, {"minor", 0}}}});
  auto& registry = plugins::registry();
  registry.add_path(folder.path());
  auto& backend = registry.load("first");
  BOOST_TEST(backend.info().abi_minor == 0u);
  BOOST_TEST(answer(backend) == expected, boost::test_tools::per_element());
  // What came with 1.1 is empty, not garbage.
  auto info = backend.device_info(backend.open_device(1));
  BOOST_TEST(info.threads == 2u);
  BOOST_TEST(std::string(info.architecture).empty());
  BOOST_TEST(std::string(info.driver).empty());
  BOOST_TEST(!backend.extension(TN_EXT_COLLECTIVES, 1));
  // Its memory and copies, through the core.
  const Device device("first:0");
  Tensor x = arange(0, 1000).to(device);
  BOOST_TEST(x.device().str() == "first:0");
  BOOST_TEST(x.to_vector<float>()[999] == 999.0f);
  BOOST_TEST(x.to("cpu").sum().item() == 499500.0);
  BOOST_CHECK_THROW(StreamGraph::capture(device, [] {}), UnsupportedError);
}

BOOST_AUTO_TEST_CASE(a_plugin_built_against_the_header_of_1_1_works) {
  PluginFolder folder;
  folder.add("second", {{"name", "second"}, {"abi", {{"major", 1}, {"minor", 1}}}});
  plugins::registry().add_path(folder.path());
  auto& backend = plugins::registry().load("second");
  BOOST_TEST(backend.info().abi_minor == 1u);
  BOOST_TEST(answer(backend) == expected, boost::test_tools::per_element());
  // Through the core, whose tn_run is longer than the one that it knows.
  const Tensor x = ones({4}).to("second:0");
  BOOST_TEST(abs(x).to_vector<float>() == std::vector<float>({42, 43, 44, 45}),
             boost::test_tools::per_element());
}

// Both fixtures take cat, whatever its strides. A plugin that never heard of strides of outputs is
// asked for row-major ones alone; what is built against today's header gets the proposal.
BOOST_AUTO_TEST_CASE(a_plugin_built_against_the_header_of_1_2_is_asked_for_row_major_outputs) {
  PluginFolder folder;
  folder.add("third", {{"name", "third"}, {"abi", {{"major", 1}, {"minor", 2}}}});
  folder.add("versions", {{"name", "versions"}});
  plugins::registry().add_path(folder.path());
  BOOST_TEST(plugins::registry().load("third").info().abi_minor == 2u);
  const Tensor x = ones({2, 3, 4, 4}).to(channels_last);
  auto twice = [](const Tensor& t) { return cat({t, t}, 1); };
  const Tensor older = twice(x.to("third:0")), today = twice(x.to("versions:0"));
  BOOST_TEST(older.is_contiguous());
  BOOST_TEST((today.suggest_memory_format() == channels_last));
  // Pointwise operators keep the order on both: to a plugin they are what they always were.
  BOOST_TEST((abs(x.to("third:0")).suggest_memory_format() == channels_last));
}

BOOST_AUTO_TEST_CASE(a_run_says_how_many_inputs_outputs_and_scalars_there_are) {
  PluginFolder folder;
  folder.add("counts", {{"name", "counts"}});
  plugins::registry().add_path(folder.path());
  const Tensor x = ones({4}).to("counts:0");
  // The fixture answers {its tn_run is whole, inputs, outputs, scalars}; an absent input counts.
  BOOST_TEST(abs(x).to_vector<float>() == std::vector<float>({1, 1, 1, 0}),
             boost::test_tools::per_element());
  BOOST_TEST((x + x).to_vector<float>() == std::vector<float>({1, 2, 1, 0}),
             boost::test_tools::per_element());
  BOOST_TEST((x + 5).to_vector<float>() == std::vector<float>({1, 2, 1, 1}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_plugin_built_against_a_newer_header_works) {
  PluginFolder folder;
  folder.add("newer", {{"name", "newer"}, {"abi", {{"major", 1}, {"minor", 7}}}});
  Registry registry(folder.only());
  auto& backend = registry.load("newer");
  BOOST_TEST(backend.info().abi_minor == 7u);
  BOOST_TEST(backend.api().table().struct_size == sizeof(tn_backend_api));
  BOOST_TEST(answer(backend) == expected, boost::test_tools::per_element());
  BOOST_TEST(*backend.extension<uint32_t>("test.answer", 1) == 7u);
  BOOST_TEST(backend.device_info(backend.open_device(1)).threads == 2u);
}

BOOST_AUTO_TEST_CASE(extensions_are_found_by_name_and_version) {
  PluginFolder folder;
  folder.add("good");
  Registry registry(folder.only());
  auto& backend = registry.load("good");
  BOOST_TEST(*backend.extension<uint32_t>("test.answer", 1) == 7u);
  BOOST_TEST(!backend.extension("test.answer", 2));
  BOOST_TEST(!backend.extension(TN_EXT_COLLECTIVES, 1));
}

BOOST_AUTO_TEST_CASE(devices_are_opened_once_and_failures_have_the_reason) {
  PluginFolder folder;
  folder.add("good");
  Environment marker("TENON_TEST_TRACE", folder.file("trace"));
  Registry registry(folder.only());
  auto& backend = registry.load("good");
  BOOST_TEST(backend.device_count() == 2u);
  auto* device = backend.open_device(1);
  BOOST_TEST(backend.open_device(1) == device);
  BOOST_TEST(backend.open_device(0) != device);
  BOOST_TEST(read_text(folder.file("trace")) == "good load\ngood init\ngood open\ngood open\n");
  auto info = backend.device_info(device);
  BOOST_TEST(info.threads == 2u);
  BOOST_TEST(std::string(info.name) == "fixture");
  require_error<DeviceError>(
      [&] { backend.open_device(7); },
      "device good:7 cannot be opened: the fixture has no driver [driver=none]");
}

BOOST_AUTO_TEST_CASE(a_device_with_a_queue_needs_stream_functions) {
  PluginFolder folder;
  folder.add("no_streams");
  Registry registry(folder.only());
  auto& backend = registry.load("good");
  require_error<DeviceError>([&] { backend.open_device(0); }, "stream_create is NULL");
}

BOOST_AUTO_TEST_CASE(overlays_come_by_priority_and_are_loaded_when_asked_for) {
  PluginFolder folder;
  folder.add("good");
  folder.add("overlay_low", overlay("overlay_low", 1));
  folder.add("overlay_high", overlay("overlay_high", 20));
  folder.add("init_fails", overlay("broken", 30));
  Registry registry(folder.only());
  registry.load("good");
  BOOST_TEST(registry.loaded().size() == 1u);
  auto overlays = registry.overlays("good");
  BOOST_REQUIRE_EQUAL(overlays.size(), 2u);
  BOOST_TEST(overlays[0]->name() == "overlay_high");
  BOOST_TEST(overlays[1]->name() == "overlay_low");
  BOOST_TEST(answer(*overlays[1]) == expected, boost::test_tools::per_element());
  BOOST_TEST(registry.overlays("good") == overlays);
  BOOST_TEST(registry.overlays("other").empty());
  BOOST_TEST(plugins::to_string(entry_of(registry.report(), "init_fails.tenon.json").status) ==
             "refused");
}

BOOST_AUTO_TEST_CASE(at_exit_overlays_go_first_in_every_step) {
  PluginFolder folder;
  folder.add("good");
  folder.add("overlay_high", overlay("overlay_high", 20));
  auto trace = folder.file("trace");
  Registry registry(folder.only());
  registry.load("good").open_device(0);
  registry.overlays("good").at(0)->open_device(0);
  Environment marker("TENON_TEST_TRACE", trace);
  registry.drain();
  registry.close();
  registry.drain();
  registry.close();
  BOOST_TEST(read_text(trace) ==
             "overlay_high drain\ngood drain\noverlay_high close\ngood close\noverlay_high "
             "shutdown\ngood shutdown\n");
  BOOST_CHECK_THROW(registry.load("good"), PluginError);
  BOOST_TEST(registry.overlays("good").empty());
  BOOST_CHECK_THROW(registry.loaded().at(0)->open_device(0), DeviceError);

  Registry again(folder.only());
  require_error<PluginError>([&] { again.load("good"); }, "cannot be started twice");
}

BOOST_AUTO_TEST_CASE(many_threads_get_one_backend) {
  PluginFolder folder;
  folder.add("good");
  folder.add("overlay_high", overlay("overlay_high", 20));
  Environment marker("TENON_TEST_TRACE", folder.file("trace"));
  Registry registry(folder.only());
  std::array<plugins::Backend*, 8> found{};
  std::array<tn_device*, 8> devices{};
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < found.size(); ++i)
      threads.emplace_back([&, i] {
        registry.report();
        found[i] = &registry.load("good");
        devices[i] = found[i]->open_device(0);
        registry.overlays("good");
        registry.report();
      });
  }
  for (size_t i = 1; i < found.size(); ++i) {
    BOOST_TEST(found[i] == found[0]);
    BOOST_TEST(devices[i] == devices[0]);
  }
  BOOST_TEST(registry.loaded().size() == 2u);
  // load and init of both, and one open.
  auto trace = read_text(folder.file("trace"));
  BOOST_TEST(std::count(trace.begin(), trace.end(), '\n') == 5);
}

BOOST_AUTO_TEST_CASE(badly_filled_errors_are_survived) {
  BOOST_TEST(plugins::take_message(nullptr).empty());
  tn_error empty{sizeof(tn_error), TN_CODE_INTERNAL, nullptr, 3, nullptr, nullptr};
  BOOST_TEST(plugins::take_message(&empty) == "an error without a message; set tn_error.message");
  tn_error small{8, TN_CODE_INTERNAL, "text", 0, nullptr, nullptr};
  BOOST_TEST(has(plugins::take_message(&small), "too short"));
  tn_key_value holes[] = {{nullptr, "1"}, {"b", nullptr}};
  tn_error detailed{sizeof(tn_error), TN_CODE_INTERNAL, "text", 2, holes, nullptr};
  BOOST_TEST(plugins::take_message(&detailed) == "text [?=1, b=?]");
}

// Whoever logs an error should not write what a plugin has lost the end of.
BOOST_AUTO_TEST_CASE(endless_texts_of_errors_are_cut) {
  constexpr size_t kMessage = 16384, kDetail = 1024;
  const auto cut = [](const char* most) {
    return std::string("… (cut here: it has more than ") + most + " bytes)";
  };
  std::string message(kMessage, 'm'), value(kDetail, 'v');
  tn_key_value details[] = {{"key", value.c_str()}};
  tn_error error{sizeof(tn_error), TN_CODE_INTERNAL, message.c_str(), 1, details, nullptr};
  BOOST_TEST(plugins::take_message(&error) == message + " [key=" + value + "]");
  const std::string longer = message + std::string(50'000'000, 'n'), wider = value + "w";
  error.message = longer.c_str(), details[0].value = wider.c_str();
  BOOST_TEST(plugins::take_message(&error) ==
             message + cut("16384") + " [key=" + value + cut("1024") + "]");
  // Not within a character.
  const std::string whole(kMessage - 1, 'm'), letters = whole + "éé";
  error.message = letters.c_str(), error.num_details = 0;
  BOOST_TEST(plugins::take_message(&error) == whole + cut("16384"));
}

BOOST_AUTO_TEST_SUITE_END()
