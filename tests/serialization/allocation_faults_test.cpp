// Memory that is missing, at each point of a save, of a load and of reading a data file: each time
// the operation ends well, or in an error that names the file; the old file and the model are as
// they were, nothing stays open, and the same operation succeeds at once. One allocation fails, or
// all from one on; or the host has so many bytes and no more.
#include <algorithm>
#include <cstdlib>
#include <functional>

#include <boost/test/unit_test.hpp>
#include <sys/resource.h>

#include <tenon/tenon.h>

#include "data/packed.h"
#include "files.h"
#include "fuzz.h"
#include "process/child.h"
#include "serialization/scarcity_walk.h"
#include "serialization/weights.h"

using namespace tenon;

namespace {

// With tensors of two names each.
struct Part : nn::Module<Part> {
  nn::Linear first{7, 5}, second{5, 7};
};
struct Net : nn::Module<Net> {
  Part module, tied = module;
};

void fill(nn::ModuleRef model, double value) {
  for (const nn::StateEntry& entry : nn::state_entries(model))
    no_grad([&] { Tensor(entry.tensor).fill_(value); });
}
bool all_are(const Tensor& tensor, float value) {
  const std::vector<float> values = tensor.to_vector<float>();
  return std::all_of(values.begin(), values.end(), [&](float found) { return found == value; });
}
bool all_are(nn::ModuleRef model, float value) {
  const auto entries = nn::state_entries(model);
  return std::all_of(entries.begin(), entries.end(),
                     [&](const nn::StateEntry& entry) { return all_are(entry.tensor, value); });
}

nn::StateDict generation(int number) {
  return {{"weight", full({30, 100}, number)},
          {"turned", full({7, 5}, number).t()},
          {"half", full({9}, number).to(f16)}};
}
int generation_of(const std::filesystem::path& path) {
  const nn::StateDict dict = load(path);
  const float first = dict.at("half").to_vector<float>().at(0);
  for (const auto& [key, tensor] : dict)
    if (!all_are(tensor, first)) return -1;
  return static_cast<int>(first);
}

// Saves the second generation over the first.
struct Save {
  TempFolder folder;
  std::filesystem::path path = folder / "model.h5";
  nn::StateDict old = generation(1), next = generation(2);
  Subject subject{"save", path, [this] { save(path, next); },
                  [this](bool failed, bool) {
                    BOOST_TEST(folder.count() == 1u);
                    BOOST_TEST(generation_of(path) == (failed ? 1 : 2));
                    save(path, next);
                    BOOST_TEST(generation_of(path) == 2);
                    save(path, old);
                  }};
};

// Loads ones into a model of twos.
struct Load {
  TempFolder folder;
  std::filesystem::path path = folder / "model.h5";
  Net model;
  Subject subject{"load", path, [this] { load(path, model); },
                  [this](bool failed, bool starved) {
                    // A load that has begun to change the model needs a few bytes to finish.
                    if (!starved) BOOST_TEST(all_are(model, failed ? 2 : 1));
                    load(path, model);
                    BOOST_TEST(all_are(model, 1));
                    fill(model, 2);
                  }};
  Load() {
    fill(model, 1);
    struct Outer : nn::Module<Outer> {
      Net module;
    } wrapped{{}, model};
    save(path, wrapped);
    fill(model, 2);
  }
};

// A run whose numbers are all 1 or all 2, in a file where they are 1.
struct SomeRun {
  TempFolder folder;
  std::filesystem::path path = folder / "run.h5";
  nn::Linear model{7, 5};
  optim::Adam optimizer{model.parameters(), {.lr = 0.5}};
  Checkpoint run{.model = model, .optimizer = optimizer};

  void set(int number) {
    fill(model, number);
    optimizer.set_lr(number);
    run.epoch = run.step = number;
    run.user["number"] = number;
    manual_seed(static_cast<uint64_t>(number));
  }
  bool is(int number) {
    return all_are(model, static_cast<float>(number)) && optimizer.lr() == number &&
           run.epoch == number && run.step == number && run.user.at("number").whole() == number &&
           random_state().seed == static_cast<uint64_t>(number);
  }
  SomeRun() {
    model(ones({2, 7})).sum().backward();
    optimizer.step();
    set(1);
    save(path, run);
    set(2);
  }
};

struct LoadRun : SomeRun {
  Subject subject{"load of a run", path, [this] { load(path, run); },
                  [this](bool failed, bool starved) {
                    if (!starved) BOOST_TEST(is(failed ? 2 : 1));
                    load(path, run);
                    BOOST_TEST(is(1));
                    set(2);
                  }};
};

// Saves a run behind the training, over the file.
struct SaveRun : SomeRun {
  Subject subject{"save of a run", path, [this] { save_async(path, run).wait(); },
                  [this](bool failed, bool) {
                    BOOST_TEST(folder.count() == 1u);
                    load(path, run);
                    BOOST_TEST(is(failed ? 1 : 2));
                    set(1);
                    save(path, run);
                    set(2);
                  }};
};

// Goes on from a folder with two files, and adds another. Those stay, whatever happens, and the
// newest of them is not taken for damaged where memory fails.
struct Manage : SomeRun {
  // Copies of a name that is short take no memory.
  const std::filesystem::path before = std::filesystem::current_path(), runs = "runs";
  Subject subject{"manager", runs,
                  [this] {
                    resumed = 0;
                    CheckpointManager manager(runs, {.every_steps = 1, .async = false});
                    manager.resume(run);
                    resumed = run.step;
                    manager.step(run, 1.0);
                  },
                  [this](bool, bool) {
                    BOOST_TEST((resumed == 0 || resumed == 2));
                    for (const auto& entry : std::filesystem::directory_iterator(runs))
                      BOOST_TEST(entry.path().filename().native()[0] != '.');
                    CheckpointManager manager(runs);
                    BOOST_TEST(manager.resume(run).has_value());
                    BOOST_TEST((run.step == 2 || run.step == 3));
                    std::filesystem::remove(runs / "step-000000000003.h5");
                  }};
  ~Manage() { std::filesystem::current_path(before); }
  Manage() {
    std::filesystem::current_path(folder.path());
    CheckpointManager manager(runs, {.async = false});
    for (int number : {1, 2}) {
      set(number);
      manager.save(run);
    }
  }
  int64_t resumed = 0;
};

// Loads a file of another program, which a process reads.
struct LoadForeign {
  std::filesystem::path path = test::weights_file("net.h5");
  test::WeightsNet model;
  Subject subject{"load of an HDF5 file", path, [this] { load(path, model); },
                  [this](bool failed, bool starved) {
                    if (!starved && failed) BOOST_TEST(all_are(model.body.fc1.weight, 2));
                    load(path, model);
                    test::require_numbered(model);
                    fill(model.body.fc1, 2);
                  }};
  LoadForeign() { fill(model.body.fc1, 2); }
};

// Loads a model of two files and the index that names them.
struct LoadIndexed {
  TempFolder folder;
  std::filesystem::path path = folder / "model.safetensors.index.json";
  nn::Linear model{3, 2};
  Subject subject{"load of an index", path, [this] { load(path, model); },
                  [this](bool failed, bool starved) {
                    if (!starved) BOOST_TEST(all_are(model, failed ? 2 : 1));
                    load(path, model);
                    BOOST_TEST(all_are(model, 1));
                    fill(model, 2);
                  }};
  LoadIndexed() {
    save_safetensors(folder / "1.safetensors", nn::StateDict{{"weight", ones({2, 3})}});
    save_safetensors(folder / "2.safetensors", nn::StateDict{{"bias", ones({2})}});
    write_bytes(path, R"({"weight_map": {"bias": "2.safetensors", "weight": "1.safetensors"}})");
    fill(model, 2);
  }
};

// A compiled step of training, and the file of its program.
struct SomeProgram {
  TempFolder folder;
  std::filesystem::path path = folder / "step.tenon";
  nn::Linear model{7, 5};
  optim::Adam optimizer{model.parameters(), {.lr = 0.5}};
  SaveProgramOptions options{.inputs = {"input"}};
  Compiled<std::function<Tensor(const Tensor&)>> step{[this](const Tensor& x) { return train(x); },
                                                      {}};

  Tensor train(const Tensor& x) {
    optimizer.zero_grad();
    const Tensor loss = relu(model(x)).sum();
    loss.backward();
    optimizer.step();
    return loss;
  }
  bool runs() { return Program::load(path).run({{"input", ones({2, 7})}}).size() == 1; }
  SomeProgram() {
    for (int i = 0; i < 4; ++i) step(full({2, 7}, i));
    step.save(path, options);
  }
};

struct LoadProgram : SomeProgram {
  Subject subject{"load of a program", path, [this] { Program::load(path); },
                  [this](bool, bool) { BOOST_TEST(runs()); }};
};
struct SaveProgram : SomeProgram {
  Subject subject{"save of a program", path, [this] { step.save(path, options); },
                  [this](bool, bool) {
                    BOOST_TEST(folder.count() == 1u);
                    BOOST_TEST(runs());
                  }};
};

// Reads a packed file.
struct Read {
  TempFolder folder;
  std::filesystem::path path = folder / "file.gz";
  std::string values = std::string(10'000, '\x07');
  Tensor found;
  Subject subject{
      "read", path, [this] { found = data::read_idx(path); },
      [this](bool, bool) {
        found = data::read_idx(path);
        BOOST_TEST((found.to_vector<uint8_t>() == std::vector<uint8_t>(values.size(), 7)));
      }};
  Read() {
    write_bytes(path, gzip(idx_header(8, {static_cast<uint32_t>(values.size())}) + values));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_save_survives_each_failed_allocation, Save) {
  fail_at_each_allocation(subject);
}
BOOST_FIXTURE_TEST_CASE(a_save_survives_too_little_memory, Save) { fail_at_each_size(subject); }
BOOST_FIXTURE_TEST_CASE(a_load_survives_each_failed_allocation, Load) {
  fail_at_each_allocation(subject);
}
BOOST_FIXTURE_TEST_CASE(a_load_survives_too_little_memory, Load) { fail_at_each_size(subject); }
BOOST_FIXTURE_TEST_CASE(a_load_of_an_hdf5_file_survives_each_failed_allocation, LoadForeign) {
  fail_at_each_allocation(subject);
}
BOOST_FIXTURE_TEST_CASE(a_load_of_a_run_survives_each_failed_allocation, LoadRun) {
  fail_at_each_allocation(subject);
}
BOOST_FIXTURE_TEST_CASE(a_save_of_a_run_survives_each_failed_allocation, SaveRun) {
  fail_at_each_allocation(subject);
}
BOOST_FIXTURE_TEST_CASE(a_manager_survives_each_failed_allocation, Manage) {
  fail_at_each_allocation(subject);
}
BOOST_FIXTURE_TEST_CASE(a_load_of_an_index_survives_each_failed_allocation, LoadIndexed) {
  fail_at_each_allocation(subject);
}
BOOST_FIXTURE_TEST_CASE(a_load_of_a_program_survives_each_failed_allocation, LoadProgram) {
  fail_at_each_allocation(subject);
}
BOOST_FIXTURE_TEST_CASE(a_load_of_a_program_survives_too_little_memory, LoadProgram) {
  fail_at_each_size(subject);
}
BOOST_FIXTURE_TEST_CASE(a_save_of_a_program_survives_each_failed_allocation, SaveProgram) {
  fail_at_each_allocation(subject);
}
BOOST_FIXTURE_TEST_CASE(reading_survives_each_failed_allocation, Read) {
  fail_at_each_allocation(subject);
}
BOOST_FIXTURE_TEST_CASE(reading_survives_too_little_memory, Read) { fail_at_each_size(subject); }

// ---- with the system's own limit ----

namespace {

constexpr const char* kLimitVariable = "TENON_TEST_ADDRESS_SPACE";

struct IsPlain {
  boost::test_tools::assertion_result operator()(boost::unit_test::test_unit_id) const {
    boost::test_tools::assertion_result result(!__interceptor_malloc);
    result.message() << "the address sanitizer cannot do with little address space";
    return result;
  }
};

}  // namespace

// The child of the test below: its first save, and so the first call of HDF5, has few bytes more
// than the process has now.
BOOST_FIXTURE_TEST_CASE(save_with_little_memory, Save, *boost::unit_test::disabled()) {
  const char* bytes = std::getenv(kLimitVariable);
  BOOST_REQUIRE(bytes);
  rlimit before{};
  BOOST_REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit little{pages * 4096 + std::strtoull(bytes, nullptr, 10), before.rlim_max};
  BOOST_REQUIRE(setrlimit(RLIMIT_AS, &little) == 0);
  const std::string text = error_of<Error>([&] { save(path, next); });
  BOOST_REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
  BOOST_TEST((text.empty() || has(text, "'" + path.string() + "'")), text);
  for (int number : {1, 2}) {
    save(path, generation(number));
    BOOST_TEST(generation_of(path) == number);
  }
}

BOOST_AUTO_TEST_CASE(the_first_save_of_a_process_survives_too_little_memory,
                     *boost::unit_test::precondition(IsPlain())) {
  for (int kib = 0; kib <= 6400; kib += test::fuzz_long() ? 16 : 400) {
    const Outcome outcome =
        run_child({"/proc/self/exe", "--run_test=save_with_little_memory", "--color_output=no"},
                  {std::string(kLimitVariable) + "=" + std::to_string(kib << 10)});
    BOOST_TEST(outcome.status == 0, kib << " KiB: " << outcome.output);
  }
}
