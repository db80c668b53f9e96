// A training that is stopped in the middle and goes on from its checkpoint is, bit for bit, the one
// that was never stopped.
#include <cstdlib>
#include <cstring>

#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/tenon.h>

#include "files.h"
#include "places.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(resume_test, *boost::unit_test::fixture<tenon::test::SimFolder>())

using namespace tenon;

namespace {

constexpr int64_t kEpochs = 3, kBatches = 7, kSteps = kEpochs * kBatches;
constexpr const char *kPathVariable = "TENON_TEST_RESUME",
                     *kKindVariable = "TENON_TEST_RESUME_KIND";

// Examples with noise that differs in each epoch.
struct Noisy : data::ExampleDataset {
  Tensor rows;
  explicit Noisy(const Tensor& rows) : rows(rows) {}
  int64_t size() const override { return rows.size(0); }
  data::Example get(int64_t index) const override {
    data::Random random = data::reading().random(static_cast<uint64_t>(index));
    std::vector<float> values = rows[index].to_vector<float>();
    for (float& value : values) value += random.uniform(-0.1f, 0.1f);
    return {from_host(values.data(), f32, {static_cast<int64_t>(values.size())}, {}),
            scalar(index % 4).to(i64)};
  }
};

struct Net : nn::Module<Net> {
  static constexpr int num_fields = 5;
  bool training = true;
  nn::Linear first{12, 32}, second{32, 4};
  nn::BatchNorm1d norm{32};
  nn::Dropout dropout{0.3};
  Tensor forward(const Tensor& x) { return second(dropout(relu(norm(first(x))))); }
};
struct PlainNet : nn::Module<PlainNet> {  // the same on one device and on two, up to rounding
  nn::Linear first{12, 32}, second{32, 4};
  Tensor forward(const Tensor& x) { return second(relu(first(x))); }
};

struct Kind {
  bool adam = false, mixed = false, two_devices = false;
  const char* device = "cpu:0";  // the first, or only one
};

// Everything of a training that has a state. Those of other seeds differ in all of it until they
// load a checkpoint.
template <class Model>
struct Training {
  explicit Training(Kind kind, uint64_t seed = 1)
      : kind(kind), net(made(kind, seed)), shared(net, devices(kind)) {
    run.optimizer = *optimizer;
    run.scheduler = *scheduler;
    if (kind.two_devices) run.model = shared;
  }
  static Model made(Kind kind, uint64_t seed) {
    manual_seed(seed);
    Model net;
    net.to(kind.device);
    return net;
  }
  static std::vector<Device> devices(Kind kind) {
    if (kind.two_devices) return {kind.device, "cpu:1"};
    return {kind.device};
  }
  static std::unique_ptr<optim::Optimizer> make_optimizer(Kind kind, const Model& net) {
    if (kind.adam)
      return std::make_unique<optim::Adam>(net.parameters(), optim::AdamOptions{.lr = 0.01});
    return std::make_unique<optim::SGD>(net.parameters(),
                                        optim::SGDOptions{.lr = 0.05, .momentum = 0.9});
  }
  static Tensor rows() {
    const RandomState before = random_state();
    manual_seed(77);
    Tensor rows = randn({52, 12});
    set_random_state(before);
    return rows;
  }

  Tensor loss_of(const Tensor& x, const Tensor& y) {
    auto loss = [&] { return cross_entropy(shared(x), y); };
    return kind.mixed ? autocast(f16, loss) : loss();
  }
  void step(const Tensor& x, const Tensor& y) {
    optimizer->zero_grad();
    const Tensor loss = loss_of(x.to(kind.device), y.to(kind.device));
    scaler.scale(loss).backward();
    scaler.step(*optimizer);
    scaler.update();
    ema.update_parameters(net);
    ++run.step;
    run.user["loss"] = loss.item();
  }
  // Trains to the end, or until so many steps are made. `after_step` sees each.
  template <class F>
  void train(int64_t until, F&& after_step) {
    while (loader.state().epoch < kEpochs) {
      for (auto& [x, y] : loader) {
        step(x, y);
        after_step();
        if (run.step == until) return;
      }
      scheduler->step();
    }
  }
  void train(int64_t until = kSteps + 1) {
    train(until, [] {});
  }

  Kind kind;
  Model net;
  nn::DataParallel<Model> shared;
  optim::swa_utils::AveragedModel<Model> ema{net, optim::swa_utils::get_ema_avg_fn(0.9)};
  std::unique_ptr<optim::Optimizer> optimizer = make_optimizer(kind, net);
  std::unique_ptr<optim::LRScheduler> scheduler =
      std::make_unique<optim::ExponentialLR>(*optimizer, 0.5);
  amp::GradScaler scaler{{.init_scale = 1 << 20, .growth_interval = 3, .enabled = kind.mixed}};
  data::DataLoader loader{Noisy(rows()), {.batch_size = 8, .seed = 5, .workers = 2}};
  Checkpoint run{.model = net, .average = ema, .scaler = scaler, .loader = loader};
};

// Every bit of a file's tensors and values: the same state gives the same bytes.
template <class Model>
std::string bits(Training<Model>& training) {
  TempFolder folder;
  save(folder / "x.h5", training.run);
  return read_bytes(folder / "x.h5");
}

template <class Model>
std::string uninterrupted(Kind kind) {
  Training<Model> training(kind);
  training.train();
  BOOST_TEST_REQUIRE(training.run.step == kSteps);
  return bits(training);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_run_that_was_stopped_goes_on_bit_for_bit) {
  for (const Kind kind :
       {Kind{}, Kind{.adam = true, .mixed = true}, Kind{.mixed = true, .two_devices = true},
        Kind{.adam = true, .two_devices = true}}) {
    const std::string whole = uninterrupted<Net>(kind);
    // In the middle of an epoch, after its last batch, and in a later one.
    for (int64_t stop : {int64_t{3}, kBatches, kBatches + 4}) {
      TempFolder folder;
      {
        Training<Net> before(kind);
        before.train(stop);
        save(folder / "run.h5", before.run);
      }
      Training<Net> after(kind, 9);  // other weights, and another place among the random numbers
      after.train(2);
      const CheckpointReport report = load(folder / "run.h5", after.run);
      BOOST_TEST(report.missing.empty());
      BOOST_TEST(after.run.step == stop);
      after.train();
      BOOST_TEST((bits(after) == whole),
                 "on " << kind.device << ", optimizer " << after.optimizer->name() << ", mixed "
                       << kind.mixed << ", two devices " << kind.two_devices << ", stop " << stop);
    }
  }
}

BOOST_AUTO_TEST_CASE(an_epoch_that_a_program_ends_early_is_over_after_a_load) {
  for (const bool over : {true, false}) {
    Training<Net> whole({});
    for (auto& [x, y] : whole.loader) {
      whole.step(x, y);
      if (whole.run.step < 3) continue;
      if (over) whole.loader.set_state({.epoch = whole.loader.state().epoch + 1});
      break;
    }
    TempFolder folder;
    save(folder / "run.h5", whole.run);
    whole.train();
    BOOST_TEST(whole.run.step == 3 + 2 * kBatches);
    const std::string wanted = bits(whole);
    Training<Net> after({}, 9);
    load(folder / "run.h5", after.run);
    after.train();
    // After a break alone, the file is in the middle of the epoch, which a load goes on with.
    BOOST_TEST(after.run.step == (over ? whole.run.step : kSteps));
    BOOST_TEST((bits(after) == wanted) == over);
  }
}

BOOST_AUTO_TEST_CASE(the_average_of_a_run_is_taken_out_as_a_plain_model) {
  Training<Net> training({});
  training.train(3);
  TempFolder folder;
  save(folder / "run.h5", training.run);
  Net plain;
  const RandomState random = random_state();
  load(folder / "run.h5", Checkpoint{.average = plain, .random = false}, {.strict = false});
  const auto taken = plain.state_dict(), wanted = training.ema.module.state_dict();
  BOOST_TEST_REQUIRE(taken.size() == wanted.size());
  for (size_t i = 0; i < taken.size(); ++i)
    BOOST_TEST(equal(taken[i].second, wanted[i].second), taken[i].first);
  BOOST_TEST(!equal(plain.first.weight, training.net.first.weight));
  BOOST_TEST(random_state().offset == random.offset);
}

BOOST_AUTO_TEST_CASE(other_seeds_and_parts_left_out_change_the_result) {
  // The comparison above sees each of them.
  const std::string whole = uninterrupted<Net>({});
  TempFolder folder;
  Training<Net> before({});
  before.train(10);
  save(folder / "run.h5", before.run);
  for (const int left_out : {0, 1, 2, 3}) {
    Training<Net> after({}, 9);
    Checkpoint some = after.run;
    if (left_out == 0) some.random = false;
    if (left_out == 1) some.loader = {};
    if (left_out == 2) some.optimizer = {};
    if (left_out == 3) some.average = {};
    load(folder / "run.h5", some, {.strict = false});
    after.run.step = some.step;
    after.train();
    BOOST_TEST((bits(after) != whole), "left out " << left_out);
  }
}

BOOST_AUTO_TEST_CASE(from_two_devices_to_one_and_back_up_to_rounding) {
  for (bool adam : {false, true}) {
    const Kind one{.adam = adam}, two{.adam = adam, .two_devices = true};
    Training<PlainNet> whole(one);
    whole.train();
    for (const auto& [from, to] : {std::pair(two, one), {one, two}}) {
      TempFolder folder;
      Training<PlainNet> before(from), after(to, 9);
      before.train(10);
      save(folder / "run.h5", before.run);
      load(folder / "run.h5", after.run);
      after.train();
      for (size_t i = 0; i < whole.net.parameters().size(); ++i) {
        const Tensor wanted = whole.net.parameters()[i], found = after.net.parameters()[i];
        BOOST_TEST((found - wanted).abs().max().item() <= 1e-3 * wanted.abs().max().item());
      }
    }
  }
}

// The child of the test below: goes on from the checkpoint, if there is one, and saves after each
// step.
BOOST_AUTO_TEST_CASE(train_and_save,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  const char *path = std::getenv(kPathVariable), *kind = std::getenv(kKindVariable);
  BOOST_REQUIRE(path && kind);
  alarm(120);  // should the parent die
  Training<Net> training({.adam = kind[0] == 'a', .mixed = kind[1] == 'm'},
                         std::filesystem::exists(path) ? static_cast<uint64_t>(getpid()) : 1);
  if (std::filesystem::exists(path)) load(path, training.run);
  training.train(kSteps + 1, [&] {
    save(path, training.run);
    BOOST_REQUIRE(write(1, "!", 1) == 1);
  });
  save(path, training.run);
}

namespace {

// Runs the child and kills it after `steps` of its steps, in the middle of the next. Returns
// whether it had come to the end.
bool run_and_kill(const std::filesystem::path& path, const char* kind, int steps) {
  int ends[2];
  BOOST_REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 1);
    setenv(kPathVariable, path.c_str(), 1);
    setenv(kKindVariable, kind, 1);
    execl("/proc/self/exe", "resume_test", "--run_test=resume_test/train_and_save",
          "--log_level=nothing", "--report_level=no", nullptr);
    _exit(127);
  }
  close(ends[1]);
  for (char c = 0; steps > 0 && read(ends[0], &c, 1) == 1;) steps -= c == '!';
  if (steps == 0) kill(child, SIGKILL);
  close(ends[0]);
  int status = 0;
  BOOST_REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status)) BOOST_TEST_REQUIRE(WEXITSTATUS(status) == 0);
  return WIFEXITED(status);
}

}  // namespace

BOOST_AUTO_TEST_CASE(killed_again_and_again_it_comes_to_the_same_end) {
  const std::pair<const char*, Kind> kinds[] = {{"a-", {.adam = true}}, {"sm", {.mixed = true}}};
  for (const auto& [name, kind] : kinds) {
    TempFolder folder;
    int kills = 0;
    while (!run_and_kill(folder / "run.h5", name, 6)) BOOST_TEST_REQUIRE(++kills <= kSteps / 6 + 1);
    BOOST_TEST(kills >= 3);
    BOOST_TEST((read_bytes(folder / "run.h5") == uninterrupted<Net>(kind)), name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
