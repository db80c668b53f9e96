#include "support/expect.h"

namespace tenon::test::detail {

std::string error_of(const Call& call) {
  try {
    call.run(call.object);
  } catch (const std::exception& e) {
    if (!call.is_expected(e)) throw;
    return e.what();
  }
  return "";
}

void require_error(const Call& call, std::initializer_list<std::string_view> parts) {
  std::string text = "nothing was thrown";
  bool thrown = false;
  try {
    call.run(call.object);
  } catch (const std::exception& e) {
    thrown = call.is_expected(e);
    text = (thrown ? "" : "another exception was thrown: ") + std::string(e.what());
  }
  BOOST_TEST(thrown, text);
  for (std::string_view part : parts)
    BOOST_TEST(has(text, part), text << "\ndoes not hold \"" << part << "\"");
}

}  // namespace tenon::test::detail
