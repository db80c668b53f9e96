// Pages that a test writes in part.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <boost/test/unit_test.hpp>

namespace tenon::page {

inline std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Whether pages are written instead of compared.
inline bool writes() { return std::getenv("TENON_WRITE_LEVELS") != nullptr; }

// A page, and where the text between two lines of it begins and ends.
struct Part {
  std::string page;
  size_t begin, end;
};
// The text between the lines "<!-- begin -->" and "<!-- end -->".
inline Part between(const std::filesystem::path& path, const std::string& begin,
                    const std::string& end) {
  const std::string page = read(path), first = "<!-- " + begin + " -->\n",
                    last = "<!-- " + end + " -->\n";
  const size_t from = page.find(first), to = page.find(last);
  BOOST_REQUIRE_MESSAGE(from != page.npos && to != page.npos && from < to,
                        path.filename() << " lacks the lines " << first << " and " << last);
  return {page, from + first.size(), to};
}

// That text is `text`.
inline void require(const std::filesystem::path& path, const std::string& begin,
                    const std::string& end, const std::string& text) {
  const auto [page, from, to] = between(path, begin, end);
  const std::string expected = page.substr(0, from) + text + page.substr(to);
  if (writes()) {
    std::ofstream(path) << expected;
    return;
  }
  const auto differs = std::mismatch(page.begin(), page.end(), expected.begin(), expected.end());
  const auto line = std::count(page.begin(), differs.first, '\n') + 1;
  BOOST_CHECK_MESSAGE(page == expected,
                      path.filename() << " says something else from line " << line
                                      << " on; TENON_WRITE_LEVELS=1 and this test write it again");
}

}  // namespace tenon::page
