// What tests ask again and again: errors by their texts, and the plugin "sim".
#pragma once

#include <string>
#include <string_view>

#include <boost/test/unit_test.hpp>

#include <tenon/core/error.h>
#include <tenon/plugins/host/registry.h>

#include "places.h"

namespace tenon::test {

// The text of the E that `call` throws; "" where it throws nothing. Any other exception goes on.
template <class E = Error>
std::string error_of(auto&& call) {
  try {
    call();
  } catch (const E& e) {
    return e.what();
  }
  return "";
}

inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

// `call` throws an E whose text holds all `parts`.
template <class E>
void require_error(auto&& call, const auto&... parts) {
  std::string text = "nothing was thrown";
  bool thrown = false;
  try {
    call();
  } catch (const E& e) {
    thrown = true;
    text = e.what();
  } catch (const std::exception& e) {
    text = std::string("another exception was thrown: ") + e.what();
  }
  BOOST_TEST(thrown, text);
  for (std::string_view part : {std::string_view(parts)...})
    BOOST_TEST(has(text, part), text << "\ndoes not hold \"" << part << "\"");
}

// As a global fixture: "sim" is found.
struct SimFolder {
  SimFolder() { plugins::registry().add_path(build_dir() + "/tests/sim"); }
};

}  // namespace tenon::test
