// Traces that are written by processes of their own.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "plugin_folder.h"
#include "process/child.h"

namespace tenon::test {

// Parses a trace and checks what all traces have.
inline std::vector<json> events_of(const std::string& file) {
  const json all = json::parse(read_text(file));
  std::vector<json> events;
  std::set<int64_t> named;
  for (auto& e : all) {
    if (e.at("name") == "thread_name") named.insert(e.at("tid").get<int64_t>());
    if (e.at("ph") == "M") continue;
    BOOST_TEST(e.at("ph") == "X");
    BOOST_TEST(e.at("ts").get<double>() >= 0);
    BOOST_TEST(e.at("dur").get<double>() >= 0);
    BOOST_TEST(named.contains(e.at("tid").get<int64_t>()));
    events.push_back(e);
  }
  return events;
}
inline std::map<std::string, int> counts_of(const std::vector<json>& events,
                                            const std::string& category) {
  std::map<std::string, int> counts;
  for (auto& e : events)
    if (e.at("cat") == category) ++counts[e.at("name").get<std::string>()];
  return counts;
}
using Counts = std::map<std::string, int>;

// Runs the case of a suite, "trace_test/case", in a process of its own with TENON_TRACE=`trace`.
inline Outcome traced(const std::string& test_case, const std::string& trace,
                      std::vector<std::string> environment = {}, unsigned seconds = 120) {
  environment.push_back("TENON_TRACE=" + trace);
  return run_alone(test_case, std::move(environment), seconds);
}

}  // namespace tenon::test
