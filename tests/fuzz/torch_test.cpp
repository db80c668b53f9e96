// State dicts of PyTorch: the pickle inside, with a right CRC-32 around it, and whole files.
#include <boost/test/unit_test.hpp>

#include "fuzz/targets.h"

BOOST_AUTO_TEST_SUITE(torch_test)

using namespace tenon::test::fuzz;

namespace {

std::string text(const std::string& value) { return "X" + number(value.size(), 4) + value; }
std::string integers(const std::vector<uint64_t>& values) {
  std::string code = "(";
  for (uint64_t value : values) code += "\x8a\x08" + number(value, 8);
  return code + "t";
}
std::string tensor(const std::string& name) {
  return text(name) + "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") +
         "ctorch\nFloatStorage\n" + text("0") + text("cpu") +
         "K\x0c"
         "tQ" +
         std::string("K\0", 2) + integers({2, 3}) + integers({3, 1}) +
         "\x89"
         "ccollections\nOrderedDict\n)RtR";
}

Target pickle() {
  return {.name = "pickle",
          .one_input = load_is_refused,
          .seeds = {"\x80\x02}q\1(" + tensor("weight") + tensor("bias") + "u."},
          .words = {"ctorch\nBoolStorage\n",
                    "ctorch\nUntypedStorage\n",
                    "ctorch\nFloatStorage\n",
                    "ctorch._utils\n_rebuild_tensor_v3\n",
                    ")R",
                    "tQ",
                    "tR",
                    "}(",
                    "](e",
                    "u.",
                    "h\1",
                    "q\2",
                    "\x94",
                    "\x85",
                    "\x86",
                    tensor("other"),
                    integers({INT64_MAX, 2}),
                    integers({uint64_t{1} << 63}),
                    integers({0, 0}),
                    integers({})},
          .finish = [](const std::string& pickle) {
            return archive_of({{"a/data.pkl", pickle}, {"a/data/0", std::string(48, '\1')}});
          }};
}

Target torch() {
  return {.name = "torch",
          .one_input = load_is_refused,
          .seeds = reference_files({"net.pt", "net_protocol_5.pt", "net_without_crc.pt", "views.pt",
                                    "expanded.pt", "dtypes.pt"}),
          .words = {"PK\1\2", "PK\3\4", "PK\5\6", "PK\6\6", "PK\6\7", number(UINT32_MAX, 4)}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(pickles) { try_inputs(pickle()); }
BOOST_AUTO_TEST_CASE(files) { try_inputs(torch()); }

BOOST_AUTO_TEST_SUITE_END()
