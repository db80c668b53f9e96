// Text from outside, as it is printed.
#include <boost/test/unit_test.hpp>

#include <tenon/core/text.h>

using namespace tenon;

BOOST_AUTO_TEST_CASE(what_is_readable_stays) {
  for (std::string text : {"", "a/b c.h5", "ä €", "\xf0\x9f\x98\x80", "back\\slash", "\xef\xbf\xbd", "\xed\x9f\xbf"})
    BOOST_TEST(printable(text) == text);
}

BOOST_AUTO_TEST_CASE(control_characters_are_written_out) {
  using namespace std::string_literals;
  BOOST_TEST(printable("red\x1b[31m\r\n"s) == "red\\x1b[31m\\x0d\\x0a");
  BOOST_TEST(printable("\0\x7f\t"s) == "\\x00\\x7f\\x09");
  BOOST_TEST(printable("one\ntwo\r", Lines::keep) == "one\ntwo\\x0d");
  BOOST_TEST(printable("\xc2\x9b"
                       "31m") == "\\xc2\\x9b31m");  // U+009B begins a sequence for terminals, as ESC [ does
  BOOST_TEST(printable("\xc2\xa0") == "\xc2\xa0");
}

BOOST_AUTO_TEST_CASE(bytes_that_are_not_utf8_are_written_out) {
  BOOST_TEST(printable("\x9b") == "\\x9b");
  BOOST_TEST(printable("a\xff") == "a\\xff");
  BOOST_TEST(printable("\xc3") == "\\xc3");  // cut short
  BOOST_TEST(printable("\xe2\x82") == "\\xe2\\x82");
  BOOST_TEST(printable("\xc0\xaf") == "\\xc0\\xaf");  // overlong
  BOOST_TEST(printable("\xe0\x80\xaf") == "\\xe0\\x80\\xaf");
  BOOST_TEST(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");           // a surrogate
  BOOST_TEST(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // beyond Unicode
  BOOST_TEST(printable("\xc3(") == "\\xc3(");
}
