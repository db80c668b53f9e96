// What the tests of files of other programs share: the model whose values those files hold, and
// attacks on them. tests/reference/generator/weights.py writes the files.
#pragma once

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <sys/mman.h>
#include <unistd.h>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/tensor.h>
#include <tenon/modules/data_parallel.h>
#include <tenon/modules/linear.h>
#include <tenon/modules/norm.h>
#include <tenon/serialization/checkpoint.h>

#include "../files.h"
#include "places.h"
#include "support/sanitized.h"

namespace tenon::test {

struct WeightsBody : nn::Module<WeightsBody> {
  nn::Linear fc1{4, 3};
  nn::BatchNorm1d norm{3};
};
struct WeightsNet : nn::Module<WeightsNet> {
  WeightsBody body;
  nn::Linear head{3, 2};
};
struct WeightsNestedNet : nn::Module<WeightsNestedNet> {
  nn::DataParallel<WeightsBody> body{WeightsBody(), {"cpu:0", "cpu:1"}};
  nn::Linear head{3, 2};
};

inline std::filesystem::path weights_file(const std::string& name) {
  return std::filesystem::path(reference_dir()) / "weights" / name;
}

// Element i of tensor number k is 100 k + i.
inline void require_numbered(nn::ModuleRef model) {
  double k = 0;
  for (const nn::StateEntry& entry : nn::state_entries(model)) {
    ++k;
    const std::vector<double> values = entry.tensor.to_vector<double>();
    for (size_t i = 0; i < values.size(); ++i)
      BOOST_REQUIRE_MESSAGE(values[i] == 100 * k + static_cast<double>(i),
                            entry.name << "[" << i << "] is " << values[i]);
  }
  BOOST_REQUIRE(k == 9);
}

// Loads a file into the model as it is, wrapped, with a part of it wrapped, both, and wrapped
// twice; and compares every value.
inline void require_loads_everywhere(const std::filesystem::path& path, FileFormat format,
                                     const LoadOptions& options = {}) {
  const std::vector<Device> two = {"cpu:0", "cpu:1"};
  auto check = [&](nn::ModuleRef model) {
    BOOST_TEST_CONTEXT(path.filename() << " into " << model.type->name) {
      const LoadReport report = load(path, model, options);
      BOOST_TEST(report.complete());
      BOOST_TEST(report.loaded() == 9u);
      BOOST_TEST((report.format == format));
      BOOST_TEST(report.unverified);
      require_numbered(model);
    }
  };
  check(WeightsNet());
  check(nn::DataParallel<WeightsNet>(WeightsNet(), two));
  check(WeightsNestedNet());
  check(nn::DataParallel<WeightsNestedNet>(WeightsNestedNet(), two));
  check(nn::DataParallel(nn::DataParallel(WeightsNet(), two), two));
}

// The same of the files that hold the model plain, wrapped, with a part of it wrapped, and wrapped
// twice.
inline void require_all_forms_load(const std::string& ending, FileFormat format) {
  for (const char* name : {"net", "net_wrapped", "net_nested", "net_wrapped_twice"})
    require_loads_everywhere(weights_file(name + ending), format);
}

// The tensor `name` for each dtype that the files named dtypes.* hold.
inline void require_each_dtype(const nn::StateDict& tensors, bool with_bf16 = true) {
  for (DType dtype : {f32, f64, f16, bf16, i64, i32, u8, boolean}) {
    if (dtype == bf16 && !with_bf16) continue;
    const Tensor& tensor = tensors.at(name_of(dtype));
    BOOST_TEST((tensor.dtype() == dtype));
    BOOST_TEST((tensor.shape() == Shape{2, 3}));
    const std::vector<double> truth = {0, 1, 1, 1, 1, 1}, count = {0, 1, 2, 3, 4, 5};
    BOOST_TEST((tensor.to_vector<double>() == (dtype == boolean ? truth : count)), name_of(dtype));
  }
  BOOST_TEST(tensors.at("scalar").item<double>() == 7.5);
  BOOST_TEST((tensors.at("scalar").shape() == Shape{}));
  BOOST_TEST((tensors.at("empty").shape() == Shape{3, 0}));
  BOOST_TEST(tensors.size() == (with_bf16 ? 10u : 9u));
}

inline std::string refusal_of(const std::filesystem::path& path, const LoadOptions& options = {}) {
  return error_of<CheckpointError>([&] { load(path, options); });
}

// A file in memory: thousands of changed files on a disk would take minutes.
class BytesFile {
 public:
  BytesFile() : file_(memfd_create("tenon-test", MFD_CLOEXEC)) { BOOST_REQUIRE(file_ >= 0); }
  ~BytesFile() { close(file_); }
  BytesFile(const BytesFile&) = delete;

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(file_); }
  void set(std::string_view bytes) {
    BOOST_REQUIRE(ftruncate(file_, 0) == 0);
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t n =
          pwrite(file_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
      BOOST_REQUIRE(n > 0);
      done += static_cast<size_t>(n);
    }
  }

 private:
  int file_;
};

// The error of a file with these bytes, or the empty text if it is loaded.
inline std::string refusal_of_bytes(std::string_view bytes) {
  BytesFile file;
  file.set(bytes);
  try {
    load(file.path());
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "";
}

// Whether a file is refused; any other failure than a CheckpointError that names it fails the test.
inline bool is_refused_cleanly(const std::filesystem::path& path) {
  try {
    load(path);
    inspect(path);
    return false;
  } catch (const CheckpointError& error) {
    BOOST_REQUIRE(has(error.what(), path.string()));
    return true;
  }
}

// Cuts a file off at each place, all of which have to be refused, and changes some of its bytes
// `times` times, each of which is refused or loaded; under a sanitizer a few of these. Returns how
// many changes were refused.
inline int attack(const std::string& whole, int times) {
  BytesFile file;
  const size_t stride = kSanitized ? 7 : 1;
  if (kSanitized) times /= 5;
  for (size_t length = 0; length < whole.size(); length += stride) {
    file.set(std::string_view(whole).substr(0, length));
    BOOST_REQUIRE_MESSAGE(is_refused_cleanly(file.path()), "cut off after " << length << " bytes");
  }
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < times; ++i) {
    std::string changed = whole;
    for (uint32_t n = random() % 4 + 1; n-- > 0;) {
      const char values[] = {0, 1, '\x7f', '\x80', '\xff', static_cast<char>(random())};
      changed[random() % changed.size()] = values[random() % 6];
    }
    file.set(changed);
    refused += is_refused_cleanly(file.path());
  }
  return refused;
}

}  // namespace tenon::test
