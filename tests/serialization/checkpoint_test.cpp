// What a checkpoint keeps, and who can read it.
#include <array>
#include <cstdio>
#include <limits>
#include <thread>

#include <boost/test/unit_test.hpp>
#include <sys/stat.h>

#include <tenon/core/ops/pointwise.h>
#include <tenon/core/tensor.h>
#include <tenon/modules/data_parallel.h>
#include <tenon/modules/linear.h>
#include <tenon/serialization/checkpoint.h>

#include "../files.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(checkpoint_test)

using namespace tenon;
using nn::StateDict;

namespace {

StateDict every_kind() {
  const Tensor some = tensor({-1.5f, 0, 2, 65504}, {2, 2});
  StateDict all;
  for (DType dtype : {f32, f64, f16, bf16, i64, i32, u8, boolean})
    all.set("kind." + std::string(name_of(dtype)), some.abs().to(dtype));
  all.set("scalar", scalar(3.25));
  all.set("no rows", zeros({0, 3}));
  all.set("one", tensor({7}, {1, 1, 1, 1, 1, 1, 1, 1}));
  all.set("special", tensor({std::numeric_limits<float>::quiet_NaN(),
                             -std::numeric_limits<float>::infinity(), -0.f, 1e-42f}));
  all.set("transposed", arange(0, 6).reshape({2, 3}).t());
  all.set("part", arange(0, 100).narrow(0, 10, 5));
  all.set("große Schicht ✓.weight", ones({1}));
  return all;
}

std::string bits(const Tensor& tensor) {
  std::string bytes(static_cast<size_t>(tensor.numel()) * size_of(tensor.dtype()), '\0');
  tensor.copy_to_host(bytes.data(), tensor.dtype());
  return bytes;
}

// What a program prints, and whether it ended well.
std::string output_of(const std::string& command, bool& ended_well) {
  std::string text;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> chunk;
  while (size_t n = fread(chunk.data(), 1, chunk.size(), pipe)) text.append(chunk.data(), n);
  ended_well = pclose(pipe) == 0;
  return text;
}

// Skips a test by name where a command does not run.
struct Runs {
  const char* command;
  boost::test_tools::assertion_result operator()(boost::unit_test::test_unit_id) {
    bool well;
    output_of(command, well);
    boost::test_tools::assertion_result result(well);
    result.message() << "`" << command << "` does not run here";
    return result;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(every_dtype_shape_and_name_comes_back_to_the_bit) {
  TempFolder folder;
  const StateDict saved = every_kind();
  save(folder / "all.h5", saved);
  const StateDict loaded = load(folder / "all.h5");
  BOOST_TEST((loaded.keys() == saved.keys()));  // in the same order
  for (const auto& [key, tensor] : saved) BOOST_TEST_CONTEXT(key) {
      BOOST_TEST((loaded.at(key).dtype() == tensor.dtype()));
      BOOST_TEST((loaded.at(key).shape() == tensor.shape()));
      BOOST_TEST((bits(loaded.at(key)) == bits(tensor)));
    }
}

BOOST_AUTO_TEST_CASE(an_empty_state_dict_is_a_checkpoint_too) {
  TempFolder folder;
  save(folder / "empty.h5", StateDict());
  BOOST_TEST(load(folder / "empty.h5").empty());
}

BOOST_AUTO_TEST_CASE(a_large_tensor_among_small_ones) {
  TempFolder folder;
  const StateDict saved{
      {"small", full({3}, 1)}, {"large", arange(0, 3 << 20)}, {"last", full({5}, 2)}};
  save(folder / "large.h5", saved);
  const StateDict loaded = load(folder / "large.h5");
  for (const auto& [key, tensor] : saved) BOOST_TEST((bits(loaded.at(key)) == bits(tensor)), key);
}

// In time proportional to their number: were it the square, as it was once, this would run into the
// test's time limit.
BOOST_AUTO_TEST_CASE(a_hundred_thousand_tensors) {
  const int count = test::kSanitized ? 20'000 : 100'000;
  TempFolder folder;
  StateDict saved;
  for (int i = 0; i < count; ++i) saved.set("layer." + std::to_string(i) + ".weight", full({3}, i));
  save(folder / "many.h5", saved);
  BOOST_TEST(std::filesystem::file_size(folder / "many.h5") < uint64_t{600} * count);
  const StateDict loaded = load(folder / "many.h5");
  BOOST_TEST((loaded.keys() == saved.keys()));
  for (int i = 0; i < count; i += count / 97)
    BOOST_TEST((bits(loaded[i].second) == bits(saved[i].second)));
}

BOOST_AUTO_TEST_CASE(the_same_tensors_give_the_same_bytes) {
  TempFolder folder;
  save(folder / "a.h5", every_kind());
  save(folder / "b.h5", every_kind());
  BOOST_TEST((read_bytes(folder / "a.h5") == read_bytes(folder / "b.h5")));
}

BOOST_AUTO_TEST_CASE(inspect_tells_keys_shapes_dtypes_and_wrappers) {
  TempFolder folder;
  save(folder / "wrapped.h5", nn::DataParallel(nn::Linear(3, 2), {"cpu:0"}));
  const CheckpointInfo info = inspect(folder / "wrapped.h5");
  BOOST_TEST(info.file_bytes == std::filesystem::file_size(folder / "wrapped.h5"));
  BOOST_TEST(info.format_version == 1u);
  BOOST_TEST(info.tensors.size() == 2u);
  BOOST_TEST(info.tensors[0].key == "module.weight");
  BOOST_TEST((info.tensors[0].shape == Shape{2, 3}));
  BOOST_TEST((info.tensors[0].dtype == f32));
  BOOST_TEST((info.wrappers.value() == std::vector<std::string>{"module"}));

  save(folder / "plain.h5", nn::Linear(3, 2));
  BOOST_TEST(inspect(folder / "plain.h5").wrappers.value().empty());
  save(folder / "dict.h5", StateDict{{"a", ones({1})}});
  BOOST_TEST(!inspect(folder / "dict.h5").wrappers.has_value());
}

BOOST_AUTO_TEST_CASE(names_that_hdf5_cannot_hold_are_refused_before_anything_is_written) {
  TempFolder folder;
  const std::string path = folder / "x.h5";
  auto refusal = [&](const std::string& key) {
    return error_of<CheckpointError>([&] { save(path, StateDict{{key, ones({1})}}); });
  };
  BOOST_TEST(
      has(refusal("a/b"),
          "cannot store a tensor under the key 'a/b': HDF5 takes '/' for a folder. Rename it"));
  BOOST_TEST(has(refusal(""), "it is empty"));
  BOOST_TEST(has(refusal("."), "folder itself"));
  BOOST_TEST(has(refusal("@optimizer"), "names that start with '@'"));
  BOOST_TEST(
      has(refusal(std::string("a\0b", 3)), "under the key 'a\\x00b': it contains a zero byte"));
  BOOST_TEST(has(refusal("\xff\xfe"), "not valid UTF-8"));
  BOOST_TEST(has(refusal("\xc0\xaf"), "not valid UTF-8"));  // '/' in disguise
  BOOST_TEST(has(error_of<CheckpointError>([&] {
                   save(path, StateDict{{"a", Tensor()}});
                 }),
                 "tensor 'a' is undefined"));
  BOOST_TEST(folder.count() == 0u);
}

BOOST_AUTO_TEST_CASE(queued_values_are_waited_for) {
  TempFolder folder;
  Tensor x = zeros({1000});
  for (int i = 0; i < 500; ++i) x = x + 1;
  save(folder / "x.h5", StateDict{{"x", x}});
  BOOST_TEST(load(folder / "x.h5").at("x").to_vector<float>()[999] == 500);
}

BOOST_AUTO_TEST_CASE(threads_may_save_and_load_at_once) {
  TempFolder folder;
  auto work = [&](int which) {
    const std::string path = folder / (std::to_string(which) + ".h5");
    for (int i = 0; i < 20; ++i) {
      save(path, StateDict{{"x", full({100}, i)}});
      save(folder / "shared.h5", StateDict{{"x", full({100}, which)}});
      if (load(path).at("x").to_vector<int>()[50] != i)
        throw std::runtime_error("another thread's values");
      load(folder / "shared.h5");
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  BOOST_TEST(folder.count() == 3u);
}

BOOST_AUTO_TEST_CASE(h5dump_reads_it, *boost::unit_test::precondition(Runs{"h5dump --version"})) {
  TempFolder folder;
  save(folder / "linear.h5", StateDict{{"fc1.weight", tensor({1, 2, 3, 4}, {2, 2})},
                                       {"fc1.half", tensor({0.5f}).to(f16)},
                                       {"fc1.on", tensor({1, 0}).to(boolean)}});
  bool well;
  const std::string text = output_of("h5dump '" + (folder / "linear.h5").string() + "'", well);
  BOOST_TEST(well);
  for (const char* part : {"DATASET \"fc1.weight\"", "H5T_IEEE_F32LE", "(0,0): 1, 2", "(1,0): 3, 4",
                           "16-bit little-endian floating-point", "(0): 0.5", "TRUE, FALSE",
                           "\"f16\"", "ATTRIBUTE \"format_version\""})
    BOOST_TEST(has(text, part), part << " in " << text);
}

#define PYTHON_WITH_H5PY "${TENON_PYTHON:-python3}"
BOOST_AUTO_TEST_CASE(h5py_reads_it,
                     *boost::unit_test::precondition(Runs{PYTHON_WITH_H5PY " -c 'import h5py'"})) {
  TempFolder folder;
  nn::DataParallel model(nn::Linear(2, 2), {"cpu:0"});
  model.module.weight.detach().copy_(tensor({1, 2, 3, 4}, {2, 2}));
  save(folder / "model.h5", model);
  save(folder / "all.h5", every_kind());
  write_bytes(folder / "read.py", R"(
import sys, h5py, numpy
f = h5py.File(sys.argv[1] + "/model.h5")
w = f["module.weight"]
assert (w[...] == [[1, 2], [3, 4]]).all() and w.dtype == numpy.float32 and w.chunks is None
assert f.attrs["format_version"] == 1 and list(f.attrs["wrappers"]) == [b"module"], dict(f.attrs)
assert f.userblock_size == 512
f = h5py.File(sys.argv[1] + "/all.h5")
kinds = dict(f32=numpy.float32, f64=numpy.float64, f16=numpy.float16, bf16=numpy.uint16, i64=numpy.int64, i32=numpy.int32, u8=numpy.uint8, bool=bool)
for name, dtype in kinds.items():
    d = f["kind." + name]
    assert d.dtype == dtype and d.shape == (2, 2) and numpy.bytes_(d.attrs["dtype"]).decode() == name, (name, d.dtype, d.attrs["dtype"])
assert f["kind.f16"][1, 1] == 65504 and f["kind.bool"][0, 0] and not f["kind.bool"][0, 1]
assert f["scalar"][()] == 3.25 and f["no rows"].shape == (0, 3)
assert (f["transposed"][...] == [[0, 3], [1, 4], [2, 5]]).all()
assert "große Schicht ✓.weight" in f
)");
  bool well;
  const std::string text = output_of(
      PYTHON_WITH_H5PY " '" + (folder / "read.py").string() + "' '" + folder.path().string() + "'",
      well);
  BOOST_TEST(well, text);
}

BOOST_AUTO_TEST_CASE(an_error_is_bounded_whatever_the_names_are) {
  TempFolder folder;
  nn::StateDict many;
  for (int i = 0; i < 3000; ++i) many.set("name" + std::to_string(i), ones({1}));
  many.set(std::string(100000, 'x'), ones({1}));
  save(folder / "many.h5", many);
  nn::Linear net(1, 1);
  const std::string text = error_of<StateDictError>([&] { load(folder / "many.h5", net); });
  BOOST_TEST(text.ends_with("\n\tThe checkpoint is '" + (folder / "many.h5").string() + "'."));
  BOOST_TEST(has(text, "\"name999\" and 2001 more"));
  BOOST_TEST(text.size() < 100000u);
}

BOOST_AUTO_TEST_SUITE_END()
