// Bringing data from its home. Nothing here needs a network: the homes are files.
#include <cstdlib>

#include <boost/test/unit_test.hpp>

#include <tenon/core/error.h>
#include <tenon/data/fashion_mnist.h>
#include <tenon/data/md5.h>

#include "../files.h"

BOOST_AUTO_TEST_SUITE(fetch_test)

using namespace tenon;
using namespace tenon::data;

namespace {

std::string md5_of(const std::string& text) {
  return md5({reinterpret_cast<const unsigned char*>(text.data()), text.size()});
}

struct HasCurl {
  boost::test_tools::assertion_result operator()(boost::unit_test::test_unit_id) {
    boost::test_tools::assertion_result result(std::system("curl --version > /dev/null 2>&1") == 0);
    result.message() << "curl is not installed";
    return result;
  }
};

}  // namespace

// RFC 1321, A.5, and lengths around a block's end.
BOOST_AUTO_TEST_CASE(md5_as_the_standard_has_it) {
  BOOST_TEST(md5_of("") == "d41d8cd98f00b204e9800998ecf8427e");
  BOOST_TEST(md5_of("abc") == "900150983cd24fb0d6963f7d28e17f72");
  BOOST_TEST(md5_of("message digest") == "f96b697d7cb7938d525a2f31aaf161d0");
  BOOST_TEST(
      md5_of("12345678901234567890123456789012345678901234567890123456789012345678901234567890") ==
      "57edf4a22be3c955ac49da2e2107b67a");
  BOOST_TEST(md5_of(std::string(55, 'a')) == "ef1772b6dff9a122358552954ad0df65");
  BOOST_TEST(md5_of(std::string(56, 'a')) == "3b0c8ac703f828b04c6c197006d17218");
  BOOST_TEST(md5_of(std::string(64, 'a')) == "014842d480b571495a4a0363793f7367");
  TempFolder folder;
  write_bytes(folder / "large", std::string(1'000'000, 'a'));
  BOOST_TEST(md5_of_file(folder / "large") == "7707d6ae4e027c70eea2a935c2296f21");
  BOOST_TEST(
      has(error_of<DataError>([&] { md5_of_file(folder / "none"); }), "there is no such file"));
}

BOOST_AUTO_TEST_CASE(fashion_mnist_is_named) {
  BOOST_TEST(fashion_mnist_files().size() == 4u);
  for (const RemoteFile& file : fashion_mnist_files()) {
    BOOST_TEST(file.url.ends_with(file.name));
    BOOST_TEST(file.name.ends_with("-ubyte.gz"));
    BOOST_TEST(file.md5.size() == 32u);
  }
  BOOST_TEST(fashion_mnist_class(9) == "Ankle boot");
  BOOST_TEST(has(error_of<IndexError>([] { fashion_mnist_class(-1); }), "there is no class -1"));
}

BOOST_AUTO_TEST_CASE(files_are_fetched_checked_and_kept,
                     *boost::unit_test::precondition(HasCurl())) {
  TempFolder home, folder;
  write_bytes(home / "a", "abc");
  write_bytes(home / "b", "changed");
  const std::string url_a = "file://" + (home / "a").string(),
                    url_b = "file://" + (home / "b").string(),
                    url_c = "file://" + (home / "c").string();
  const RemoteFile good{"a", url_a, "900150983cd24fb0d6963f7d28e17f72"},
      changed{"b", url_b, "900150983cd24fb0d6963f7d28e17f72"},
      gone{"c", url_c, "900150983cd24fb0d6963f7d28e17f72"};
  const auto target = folder / "new/folder";
  std::string lines;
  auto report = [&](const std::string& line) { lines += line + "\n"; };

  fetch({&good, 1}, target, report);
  BOOST_TEST(read_bytes(target / "a") == "abc");
  BOOST_TEST(has(lines, "a: fetched"));
  std::filesystem::remove(home / "a");
  fetch({&good, 1}, target, report);  // there already: its home is not asked
  BOOST_TEST(has(lines, "a: there already"));

  BOOST_TEST(has(error_of<DataError>([&] {
                   fetch({&changed, 1}, target);
                 }),
                 "its MD5 is 8977dfac2f8e04cb96e66882235f5aba, expected 9001"));
  BOOST_TEST(has(error_of<DataError>([&] {
                   fetch({&gone, 1}, target);
                 }),
                 "cannot fetch '" + url_c + "': curl ended with status 37: curl: (37)"));
  std::string without_streams;
  {
    ClosedStandardStreams closed;
    without_streams = error_of<DataError>([&] { fetch({&gone, 1}, target); });
  }
  BOOST_TEST(has(without_streams, "curl ended with status 37: curl: (37)"), without_streams);
  write_bytes(target / "c", "mine");
  BOOST_TEST(has(error_of<DataError>([&] {
                   fetch({&gone, 1}, target);
                 }),
                 "is there, but it is not the file"));
  BOOST_TEST(read_bytes(target / "c") == "mine");
  std::filesystem::remove(target / "c");
  BOOST_TEST(std::distance(std::filesystem::directory_iterator(target), {}) ==
             1);  // nothing half-fetched is left
  BOOST_TEST(has(error_of<DataError>([&] {
                   fetch({&good, 1}, target / "a/below");
                 }),
                 "cannot fetch data into"));
}

BOOST_AUTO_TEST_CASE(a_missing_curl_is_named) {
  TempFolder folder;
  const std::string before = std::getenv("PATH");
  setenv("PATH", folder.path().c_str(), 1);
  const std::string text =
      error_of<DataError>([&] { fetch(fashion_mnist_files(), folder.path()); });
  setenv("PATH", before.c_str(), 1);
  BOOST_TEST(has(text, "the program curl cannot be run (No such file or directory); install it"));
}

BOOST_AUTO_TEST_SUITE_END()
