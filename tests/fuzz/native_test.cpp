// Checkpoints of Tenon's, with checksums that are right: header, index and values.
#include <boost/test/unit_test.hpp>

#include <tenon/core/ops/creation.h>
#include <tenon/core/tensor.h>
#include <tenon/serialization/training_checkpoint.h>

#include "files.h"
#include "fuzz/targets.h"
#include "serialization/sealed.h"

BOOST_AUTO_TEST_SUITE(native_test)

using namespace tenon;
using namespace tenon::test::fuzz;

namespace {

const std::string& checkpoint() {
  static const std::string bytes = [] {
    TempFolder folder;
    save(folder / "run.h5", Checkpoint{.epoch = 1, .user = {{"note", "text"}, {"t", ones({3})}}});
    return read_bytes(folder / "run.h5");
  }();
  return bytes;
}
std::string index_of(const std::string& bytes) {
  return bytes.substr(number_at(bytes, 464), number_at(bytes, 472));
}

// The index is changed, also in its length, and stands again before the checksums of the pieces.
std::string with_index(const std::string& index) {
  std::string bytes = checkpoint().substr(0, number_at(checkpoint(), 464)) + index;
  const uint64_t fields[] = {bytes.size() - index.size(), index.size()};
  const uint64_t pieces_at = bytes.size();
  bytes += std::string(16 * ((pieces_at + 65535) / 65536), '\0');
  const uint64_t file_bytes = bytes.size();
  std::memcpy(bytes.data() + 16, &file_bytes, 8);
  std::memcpy(bytes.data() + 40, &pieces_at, 8);
  std::memcpy(bytes.data() + 464, fields, 16);
  reseal(bytes);
  return bytes;
}
Target indexes() {
  return {.name = "index",
          .one_input = load_is_refused,
          .seeds = {index_of(checkpoint())},
          .words = {"@user", "@values", "@shards", std::string(4, '\xff'), std::string(8, '\0'),
                    number(UINT64_MAX, 8), number(1, 4)},
          .finish = with_index,
          .runs = 1500};
}

// Whole files, of which the header alone is right again: most have wrong checksums.
std::string with_right_header(std::string bytes) {
  if (bytes.size() < 512) return bytes;
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), 496);
  const uint64_t halves[] = {hash.low64, hash.high64};
  std::memcpy(bytes.data() + 496, halves, sizeof halves);
  return bytes;
}
Target headers() {
  return {.name = "native",
          .one_input = load_is_refused,
          .seeds = {checkpoint()},
          .words = {"TNINDEX1", "\x89TENON\r\n", number(512, 8), number(UINT64_MAX, 8)},
          .finish = with_right_header};
}

}  // namespace

BOOST_AUTO_TEST_CASE(indexes_of_checkpoints) { try_inputs(indexes()); }
BOOST_AUTO_TEST_CASE(whole_files) { try_inputs(headers()); }

BOOST_AUTO_TEST_SUITE_END()
