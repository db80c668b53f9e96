// A load changes all of a model or nothing, wherever memory runs out.
#include <algorithm>
#include <atomic>
#include <functional>
#include <string_view>

#include <boost/test/unit_test.hpp>
#include <dlfcn.h>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/tensor.h>
#include <tenon/modules/data_parallel.h>
#include <tenon/plugins/host/registry.h>
#include <tenon/serialization/checkpoint.h>
#include <tenon/serialization/training_checkpoint.h>

#include "../files.h"
#include "places.h"
#include "support/expect.h"

using namespace tenon;
using test::require_error;
using test::SimFolder;

namespace {

// How many more large blocks the system has to give; negative: any number. Both backends, and
// reading a file, ask for them here.
std::atomic<int> blocks_left{-1};
constexpr size_t kLarge = size_t{1} << 20;

}  // namespace

extern "C" __attribute__((visibility("default"))) void* aligned_alloc(size_t alignment,
                                                                      size_t bytes) noexcept {
  static const auto real =
      reinterpret_cast<void* (*)(size_t, size_t)>(dlsym(RTLD_NEXT, "aligned_alloc"));
  if (bytes >= kLarge && blocks_left >= 0 && blocks_left-- == 0) {
    blocks_left = 0;  // what is used up stays used up
    return nullptr;
  }
  return real(alignment, bytes);
}

namespace {

// Parameters of several kinds, each of more than a megabyte: plain, transposed, one that another
// shares memory with, and a buffer.
struct Mixed : nn::Module<Mixed> {
  nn::Parameter plain{zeros({300, 1000})};
  nn::Parameter transposed{zeros({700, 500}).t()};
  nn::Parameter whole{zeros({500, 900})};
  nn::Parameter part;
  nn::Buffer counts{zeros({400, 800})};
  nn::Parameter last{zeros({600, 600})};
};

Mixed mixed(Device device, DType dtype) {
  Mixed model;
  model.to(device);
  model.to(dtype);
  NoGrad guard;
  model.part = nn::Parameter(model.whole.detach().narrow(0, 100, 300));
  model.transposed = nn::Parameter(model.transposed.detach().t().contiguous().t());
  return model;
}

void number(nn::ModuleRef model, double start) {
  NoGrad guard;
  for (const nn::StateEntry& entry : nn::state_entries(model)) Tensor(entry.tensor).fill_(start++);
}
// The first element of each tensor, and a number that depends on all of them.
std::vector<double> values(nn::ModuleRef model) {
  std::vector<double> all;
  for (const nn::StateEntry& entry : nn::state_entries(model)) {
    const std::vector<double> elements = entry.tensor.to_vector<double>();
    const std::string_view bytes(reinterpret_cast<const char*>(elements.data()),
                                 elements.size() * sizeof(double));
    all.push_back(elements[0]);
    all.push_back(static_cast<double>(std::hash<std::string_view>()(bytes)));
  }
  return all;
}

// Loads with 0, 1, 2 … blocks of memory until that is enough; how often it was not. All attempts
// before leave the model alone.
int count_failures(const std::filesystem::path& path, nn::ModuleRef model,
                   const std::vector<Device>& devices) {
  const std::vector<double> before = values(model);
  for (int blocks = 0; blocks < 100; ++blocks) {
    for (Device device : devices) empty_cache(device);
    blocks_left = blocks;
    std::string text;
    try {
      load(path, model);
    } catch (const Error& error) {
      text = error.what();
    }
    blocks_left = -1;
    if (text.empty()) return blocks;
    BOOST_TEST(has(text, "cannot load checkpoint '" + path.string() + "': "), text);
    BOOST_TEST((values(model) == before), "with " << blocks << " blocks of memory");
  }
  return -1;
}

}  // namespace

BOOST_GLOBAL_FIXTURE(SimFolder);

BOOST_AUTO_TEST_CASE(a_device_without_memory_leaves_the_model_as_it_was) {
  TempFolder folder;
  Mixed saved = mixed("cpu:0", f32);
  number(saved, 1);
  save(folder / "model.h5", saved);
  for (const char* device : {"cpu:0", "sim:0"})
    for (DType dtype : {f32, f64}) BOOST_TEST_CONTEXT(device << ", " << name_of(dtype)) {
        Mixed model = mixed(device, dtype);
        number(model, 101);
        const int failures = count_failures(folder / "model.h5", model, {"cpu:0", "sim:0"});
        BOOST_TEST(failures >= 4);
        BOOST_TEST((values(model) == values(saved)));
      }
}

BOOST_AUTO_TEST_CASE(a_wrapped_model_stays_as_it_was_on_all_its_devices) {
  struct Sum : nn::Module<Sum> {
    nn::Parameter a{zeros({300, 1000})}, b{zeros({900, 1000})};
    Tensor forward(const Tensor& x) { return x + a[0][0] + b[0][0]; }
  };
  TempFolder folder;
  Sum saved;
  number(saved, 1);
  save(folder / "model.h5", saved);
  nn::DataParallel model(Sum(), {"sim:0", "sim:1"});
  number(model, 10);
  auto results = [&] {
    return no_grad([&] { return model(zeros({4}, {.device = "sim:0"})); }).to_vector<int>();
  };
  BOOST_TEST((results() == std::vector<int>(4, 21)));
  const int failures = count_failures(folder / "model.h5", model, {"cpu:0", "sim:0", "sim:1"});
  BOOST_TEST(failures >= 2);
  BOOST_TEST((results() == std::vector<int>(4, 3)));
}

BOOST_AUTO_TEST_CASE(with_low_memory_a_load_has_room_for_one_tensor) {
  struct Layers : nn::Module<Layers> {
    std::vector<nn::Parameter> layers;
  };
  const auto layers = [] {
    Layers model;
    for (int i = 0; i < 6; ++i) model.layers.push_back(nn::Parameter(zeros({300, 1000})));
    return model;
  };
  TempFolder folder;
  Layers saved = layers(), model = layers();
  number(saved, 1);
  save(folder / "model.h5", saved, {.max_shard_size = 3 << 20});
  save_safetensors(folder / "model.safetensors", saved);
  Checkpoint run{.model = saved, .random = false}, next{.model = model, .random = false};
  save(folder / "run.h5", run);
  for (const bool low_memory : {false, true})
    for (const char* name : {"model.h5", "model.safetensors", "run.h5"})
      BOOST_TEST_CONTEXT(name << (low_memory ? ", low memory" : "")) {
        number(model, 101);
        empty_cache("cpu:0");
        blocks_left = 2;
        const std::string text = error_of<Error>([&] {
          const LoadOptions options{.low_memory = low_memory};
          if (std::string_view(name) == "run.h5")
            load(folder / name, next, options);
          else
            load(folder / name, model, options);
        });
        blocks_left = -1;
        BOOST_TEST(has(text, low_memory ? "" : "cannot load checkpoint '"), text);
        BOOST_TEST((text.empty() == low_memory), text);
        BOOST_TEST(values(model)[10] == (low_memory ? 6 : 106));  // of the sixth tensor
      }
  // Names of one memory are compared before anything changes.
  Mixed tied = mixed("sim:0", f64), whole = mixed("cpu:0", f32);
  number(whole, 1);
  save(folder / "mixed.h5", whole);
  load(folder / "mixed.h5", tied, {.low_memory = true});
  BOOST_TEST((values(tied) == values(whole)));
  nn::StateDict tensors = whole.state_dict();
  tensors.set("part", full({300, 900}, 9));
  save(folder / "mixed.h5", tensors);
  require_error<StateDictError>([&] { load(folder / "mixed.h5", tied, {.low_memory = true}); },
                                "\"whole\" and \"part\" share memory in the model");
  BOOST_TEST((values(tied) == values(whole)));
}

BOOST_AUTO_TEST_CASE(values_in_memory_are_staged_alike) {
  Mixed saved = mixed("cpu:0", f32), model = mixed("sim:0", f64);
  number(saved, 1);
  number(model, 101);
  const nn::StateDict tensors = saved.state_dict();
  const std::vector<double> before = values(model);
  int failures = 0;
  for (bool done = false; !done; ++failures) {
    BOOST_REQUIRE(failures < 100);
    empty_cache("sim:0");
    blocks_left = failures;
    try {
      load_state_dict(model, tensors);
      done = true;
    } catch (const OutOfMemoryError&) {
    }
    blocks_left = -1;
    BOOST_TEST((values(model) == (done ? values(saved) : before)));
  }
  BOOST_TEST(failures >= 4);
}
