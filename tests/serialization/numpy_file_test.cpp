// Arrays of NumPy are loaded from .npy and .npz files.
#include "weights.h"

BOOST_AUTO_TEST_SUITE(numpy_file_test)

using namespace tenon;
using namespace tenon::test;

namespace {

// An .npy file of version 1 with this header and so many bytes of values.
std::string npy(std::string header, size_t values) {
  const auto length = static_cast<uint16_t>(header.size());
  std::string file("\x93NUMPY\1\0", 8);
  file += static_cast<char>(length & 0xff);
  file += static_cast<char>(length >> 8);
  return file + header + std::string(values, '\1');
}

}  // namespace

BOOST_AUTO_TEST_CASE(archives_of_numpy_are_loaded) {
  require_loads_everywhere(weights_file("net.npz"), FileFormat::npz);
  require_loads_everywhere(weights_file("net_wrapped.npz"), FileFormat::npz);
  require_each_dtype(load(weights_file("dtypes.npz")), false);
  const CheckpointInfo info = inspect(weights_file("net.npz"));
  BOOST_TEST(info.tensors.size() == 9u);
  BOOST_TEST((info.format == FileFormat::npz));
}

BOOST_AUTO_TEST_CASE(arrays_are_loaded_in_either_order) {
  for (const char* name : {"matrix", "fortran"}) {
    const nn::StateDict loaded = load(weights_file(name + std::string(".npy")));
    BOOST_TEST((loaded.keys() == std::vector<std::string>{name}));
    BOOST_TEST((loaded.at(name).shape() == Shape{2, 3}));
    BOOST_TEST((loaded.at(name).to_vector<float>() == std::vector<float>{0, 1, 2, 3, 4, 5}));
  }
  nn::Linear model(3, 2);
  const LoadReport report =
      load(weights_file("fortran.npy"), model,
           {.only = "weight", .rules = {{.pattern = "^fortran$", .replacement = "weight"}}});
  BOOST_TEST(report.loaded() == 1u);
  BOOST_TEST(has(report.str(), "unverified: a NumPy .npy file"));
  BOOST_TEST((model.weight.to_vector<float>() == std::vector<float>{0, 1, 2, 3, 4, 5}));
}

BOOST_AUTO_TEST_CASE(arrays_that_tenon_does_not_have_are_named) {
  BOOST_TEST(has(refusal_of(weights_file("big_endian.npy")), "its numbers are big-endian (>f4)"));
  BOOST_TEST(has(refusal_of(weights_file("int16.npy")), "its dtype <i2 is none of Tenon's"));
  BOOST_TEST(has(refusal_of(weights_file("object.npy")), "an array of Python objects"));
  BOOST_TEST(inspect(weights_file("object.npy")).unreadable.size() == 1u);
}

BOOST_AUTO_TEST_CASE(headers_are_read_strictly) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }  \n";
  BOOST_TEST(refusal_of_bytes(npy(good, 8)) == "");
  BOOST_TEST(
      refusal_of_bytes(npy("{\"shape\":(2,),\"descr\":\"<f4\",\"fortran_order\":True}", 8)) == "");
  BOOST_TEST(refusal_of_bytes(npy("{'descr':'|u1','fortran_order':False,'shape':()}", 1)) == "");

  auto check = [](const std::string& header, size_t values, const char* part) {
    const std::string text = refusal_of_bytes(npy(header, values));
    BOOST_TEST(has(text, part), header << " gives: " << text);
  };
  auto shaped = [](const std::string& shape) {
    return "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + "}";
  };
  check(good, 7, "its values have 7 bytes, which do not fit its shape (2, 1) of f32");
  check(good, 9, "its values have 9 bytes");
  check(good + "{}", 8, "something follows");
  check("", 0, "its NumPy header is cut off");
  check("  ", 0, "'{' was expected");
  check("{'descr': '<f4', 'shape': (2,)}", 8, "lacks one of the keys");
  check("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 8, "twice");
  check("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}", 8, "unknown");
  check("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", 8, "'False' was expected");
  check("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", 8, "structured array");
  check("{'descr': '\\x3cf4', 'fortran_order': False, 'shape': (2,)}", 8, "has a '\\'");
  check(shaped("(2)"), 8, "not a tuple");
  check(shaped("2"), 8, "'(' was expected");
  check(shaped("(2,"), 8, "no number");
  check(shaped("(-2,)"), 8, "no number");
  check(shaped("(02,)"), 8, "no number");
  check(shaped("(2.0,)"), 8, "')' was expected");
  check(shaped("(99999999999999999999,)"), 8, "no number");
  check(shaped("(4294967296, 4294967296)"), 8, "absurdly large");
  check(shaped("(0, 4611686018427387904, 9)"), 0, "absurdly large");
  check(shaped("(1,1,1,1,1,1,1,1,1)"), 4, "more than 8 dimensions");
  std::string bools = npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", 2);
  bools.back() = 2;
  BOOST_TEST(has(refusal_of_bytes(bools), "it is of type bool"));

  std::string version = npy(good, 8);
  version[6] = 4;
  BOOST_TEST(has(refusal_of_bytes(version), "version 1, 2 or 3"));
  std::string second("\x93NUMPY\2\0\x40\0\0\0", 12);
  BOOST_TEST(refusal_of_bytes(second + good + std::string(0x40 - good.size(), ' ') +
                              std::string(8, '\1')) == "");
  std::string length("\x93NUMPY\2\0\xff\xff\xff\xff", 12);
  BOOST_TEST(has(refusal_of_bytes(length + good), "would have 4294967295 bytes"));
}

BOOST_AUTO_TEST_CASE(damaged_files_of_numpy_are_refused_or_loaded) {
  attack(read_bytes(weights_file("fortran.npy")), 3000);
  attack(read_bytes(weights_file("net.npz")), 2000);
  attack(read_bytes(weights_file("dtypes.npz")), 2000);  // deflated
}

BOOST_AUTO_TEST_SUITE_END()
