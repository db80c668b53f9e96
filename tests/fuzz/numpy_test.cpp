// Arrays of NumPy: headers, alone and in archives, and whole archives.
#include <boost/test/unit_test.hpp>

#include "fuzz/targets.h"

BOOST_AUTO_TEST_SUITE(numpy_test)

using namespace tenon::test::fuzz;

namespace {

const std::vector<std::string> kWords = {"'descr': ", "'<f8'", "'|b1'",     "'>f4'",
                                         "'|O'",      "(",     ")",         ",",
                                         "True",      "False", "'shape': ", "9223372036854775807",
                                         "0",         "{",     "}"};
const std::vector<std::string> kHeaders = {
    "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }\n",
    "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4), }\n"};

std::string npy_of(const std::string& header) {
  return "\x93NUMPY" + number(1, 2) + number(header.size(), 2) + header + std::string(48, '\0');
}

Target npy() {
  return {.name = "npy",
          .one_input = load_is_refused,
          .seeds = kHeaders,
          .words = kWords,
          .finish = npy_of};
}
Target npz_header() {
  return {.name = "npz_header",
          .one_input = load_is_refused,
          .seeds = kHeaders,
          .words = kWords,
          .finish = [](const std::string& header) {
            return archive_of({{"a.npy", npy_of(header)}});
          }};
}
Target npz() {
  std::vector<std::string> seeds = reference_files({"net.npz", "dtypes.npz"});
  seeds.push_back(archive_of({{"a.npy", npy_of(kHeaders[0])}, {"b.npy", npy_of(kHeaders[1])}}));
  return {.name = "npz",
          .one_input = load_is_refused,
          .seeds = std::move(seeds),
          .words = {"PK\1\2", "PK\3\4", "PK\5\6", "PK\6\6", "PK\6\7", number(UINT32_MAX, 4),
                    number(1, 2) + number(24, 2) + number(UINT64_MAX, 8)}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(headers) { try_inputs(npy()); }
BOOST_AUTO_TEST_CASE(headers_in_archives) { try_inputs(npz_header()); }
BOOST_AUTO_TEST_CASE(archives) { try_inputs(npz()); }

BOOST_AUTO_TEST_SUITE_END()
