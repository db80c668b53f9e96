// Headers of safetensors files, and the lists of several files.
#include <boost/test/unit_test.hpp>

#include <tenon/core/error.h>
#include <tenon/serialization/checkpoint.h>

#include "files.h"
#include "fuzz/targets.h"

BOOST_AUTO_TEST_SUITE(safetensors_test)

using namespace tenon;
using namespace tenon::test::fuzz;

namespace {

std::string file_of(const std::string& header) {
  return number(header.size(), 8) + header + std::string(48, '\1');
}

const std::vector<std::string> kWords = {"\"dtype\":",
                                         "\"shape\":",
                                         "\"data_offsets\":",
                                         "\"F64\"",
                                         "\"F4\"",
                                         "[",
                                         "]",
                                         "{",
                                         "}",
                                         ",",
                                         "-",
                                         "0",
                                         "1e5",
                                         "9223372036854775808",
                                         "\"a\"",
                                         "\\u0000",
                                         "\"__metadata__\":{}"};

Target headers() {
  return {.name = "safetensors",
          .one_input = load_is_refused,
          .seeds = {R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                    R"("b":{"dtype":"BOOL","shape":[24],"data_offsets":[24,48]}})"},
          .words = kWords,
          .finish = file_of};
}

// The list stands beside one file, which it names.
bool list_is_refused(std::string_view bytes) {
  static const TempFolder folder;
  static const auto path = folder / "model.safetensors.index.json";
  static const bool written = [] {
    write_bytes(folder / "one.safetensors",
                file_of(R"({"a":{"dtype":"F32","shape":[12],"data_offsets":[0,48]}})"));
    return true;
  }();
  write_bytes(path, bytes);
  return written && is_refused<CheckpointError>([] { load(path); });
}
Target lists() {
  return {.name = "safetensors_index",
          .one_input = list_is_refused,
          .seeds = {R"({"metadata":{"total_size":48},"weight_map":{"a":"one.safetensors"}})"},
          .words = {"\"weight_map\":", "\"metadata\":", "one.safetensors", "../", "{", "}", "[",
                    "]", "\"a\":", ",", "\"\""}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(headers_of_files) { try_inputs(headers()); }
BOOST_AUTO_TEST_CASE(lists_of_files) { try_inputs(lists()); }

BOOST_AUTO_TEST_SUITE_END()
