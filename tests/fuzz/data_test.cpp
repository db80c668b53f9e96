// Data sets: IDX, plain and packed, and CIFAR-10.
#include <boost/test/unit_test.hpp>

#include <tenon/core/error.h>
#include <tenon/core/tensor.h>
#include <tenon/data/cifar.h>
#include <tenon/data/idx.h>

#include "data/packed.h"
#include "files.h"
#include "fuzz/targets.h"
#include "serialization/weights.h"

BOOST_AUTO_TEST_SUITE(data_test)

using namespace tenon;
using namespace tenon::data;
using namespace tenon::test::fuzz;

namespace {

bool idx_is_refused(std::string_view bytes) {
  static test::BytesFile file;
  file.set(bytes);
  return is_refused<DataError>([] { read_idx(file.path()); });
}
Target idx() {
  const std::string bytes = std::string("\0\0\x08\x03\0\0\0\2\0\0\0\3\0\0\0\4", 16) +
                            std::string(24, 'x'),
                    doubles = std::string("\0\0\x0e\x01\0\0\0\2", 8) + std::string(16, '\0');
  return {.name = "idx",
          .one_input = idx_is_refused,
          .seeds = {bytes, doubles, gzip(bytes)},
          .words = {std::string("\0\0\x0d", 3), "\xff\xff\xff\xff", std::string(4, '\0'),
                    std::string("\0\0\0\1", 4)},
          .runs = 2000};
}

bool cifar_is_refused(std::string_view bytes) {
  static const TempFolder folder;
  write_bytes(folder / "test_batch.bin", bytes);
  return is_refused<DataError>([] { cifar10(folder.path(), false); });
}
Target cifar() {
  const std::string record = std::string(1, '\3') + std::string(3072, 'x');
  return {.name = "cifar",
          .one_input = cifar_is_refused,
          .seeds = {record, record + record},
          .words = {record, std::string(3072, '\x09')},
          .runs = 300};
}

}  // namespace

BOOST_AUTO_TEST_CASE(idx_files) { try_inputs(idx()); }
BOOST_AUTO_TEST_CASE(cifar_records) { try_inputs(cifar()); }

BOOST_AUTO_TEST_SUITE_END()
