// Text from outside that stands in messages.
#include <boost/test/unit_test.hpp>

#include <tenon/core/base/printable.h>

BOOST_AUTO_TEST_SUITE(printable_test)

using tenon::excerpt;
using tenon::printable;
using tenon::printable_lines;

BOOST_AUTO_TEST_CASE(letters_of_any_script_stay) {
  for (const char* text :
       {"", "fc1.weight", "große Schicht ✓", "層.重み", "\xF0\x9F\x98\x80", "back\\slash 'quote'"})
    BOOST_TEST(printable(text) == text);
}

BOOST_AUTO_TEST_CASE(what_moves_the_cursor_is_written_out) {
  BOOST_TEST(printable("a\nb\r\tc") == "a\\nb\\r\\tc");
  BOOST_TEST(printable("\x1b[31m\x7f") == "\\x1b[31m\\x7f");
  BOOST_TEST(printable(std::string("a\0b", 3)) == "a\\x00b");
  BOOST_TEST(printable("\xC2\x9B"
                       "31m") == "\\xc2\\x9b31m");  // a control sequence in one character
  BOOST_TEST(printable("\xE2\x80\xAE"
                       "x") == "\\xe2\\x80\\xaex");            // right-to-left override
  BOOST_TEST(printable("\xE2\x80\xA8") == "\\xe2\\x80\\xa8");  // line separator
}

BOOST_AUTO_TEST_CASE(what_is_not_utf8_is_written_out) {
  BOOST_TEST(printable("\xff\xfe") == "\\xff\\xfe");
  BOOST_TEST(printable("a\xE2\x9C") == "a\\xe2\\x9c");  // cut off
  BOOST_TEST(printable("\xC0\xAF") == "\\xc0\\xaf");    // overlong
  BOOST_TEST(printable("\xE0\x80\xAF") == "\\xe0\\x80\\xaf");
  BOOST_TEST(printable("\xED\xA0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  BOOST_TEST(printable("\xF4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
}

BOOST_AUTO_TEST_CASE(printing_twice_changes_nothing_more) {
  const std::string once = printable("a\n\x1b\xff");
  BOOST_TEST(printable(once) == once);
}

BOOST_AUTO_TEST_CASE(lines_may_be_kept) {
  BOOST_TEST(printable_lines("one\ntwo\r\n\n\x1b[31m") == "one\ntwo\\r\n\n\\x1b[31m");
  BOOST_TEST(printable_lines("") == "");
  BOOST_TEST(printable_lines("no break") == "no break");
}

BOOST_AUTO_TEST_CASE(an_excerpt_is_short) {
  BOOST_TEST(excerpt("a\n") == "a\\n");
  BOOST_TEST(excerpt(std::string(100, 'x')) == std::string(100, 'x'));
  BOOST_TEST(excerpt(std::string(101, 'x')) == std::string(100, 'x') + "… (101 bytes)");
}

BOOST_AUTO_TEST_SUITE_END()
