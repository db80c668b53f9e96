// Compiled functions on the cuda plugin: what stays the same from replay to replay runs as CUDA
// graphs, with the bits of the function as it is.
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "cuda/emulated.h"
#include "cuda/emulated/counters.h"
#include "cuda/in_runtime.h"
#include "graph/bits.h"
#include "support/expect.h"

using namespace tenon;
using namespace tenon::test;
BOOST_TEST_GLOBAL_FIXTURE(EmulatedCuda);

namespace {

const Device gpu("cuda:0");

boost::test_tools::assertion_result emulated_device(boost::unit_test::test_unit_id) {
  return !std::getenv("TENON_TEST_GPU");
}

struct Net : nn::Module<Net> {
  nn::Conv2d conv{1, 2, 3};
  nn::BatchNorm2d norm{2};
  nn::Dropout drop{0.25};
  nn::Linear fc1{2 * 4 * 4, 6}, fc2{6, 3};
  Tensor forward(const Tensor& x) { return fc2(drop(relu(fc1(relu(norm(conv(x))).flatten(1))))); }
};

enum class Form { plain, compiled, without_graphs };

// A model that learns, in one of these forms. Those of one kind begin alike.
class Learner {
 public:
  Learner(bool adam, Form form, CompileOptions options = {}) : form_(form) {
    manual_seed(7);
    net = Net();
    net.to(gpu);
    if (adam)
      optimizer = std::make_unique<optim::Adam>(net.parameters(), optim::AdamOptions{.lr = 0.02});
    else
      optimizer = std::make_unique<optim::SGD>(net.parameters(),
                                               optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
    options.passes.device_graphs = form == Form::compiled;
    compiled.emplace(compile(Step{this}, options));
  }

  // One step with the numbers of the generator that belong to it.
  Tensor step(int i, const Tensor& x, const Tensor& y) {
    manual_seed(1000 + static_cast<uint64_t>(i));
    return form_ == Form::plain ? run(x, y) : (*compiled)(x, y);
  }
  void set_rate(double lr) { optimizer->set_lr(lr); }

  Net net;
  std::unique_ptr<optim::Optimizer> optimizer;

 private:
  Tensor run(const Tensor& x, const Tensor& y) {
    optimizer->zero_grad();
    Tensor loss = cross_entropy(net(x), y);
    loss.backward();
    optimizer->step();
    return loss;
  }
  struct Step {
    Learner* of;
    Tensor operator()(const Tensor& x, const Tensor& y) const { return of->run(x, y); }
  };
  Form form_;

 public:
  std::optional<Compiled<Step>> compiled;
};

std::pair<Tensor, Tensor> batch(int64_t n = 3) {
  return {randn({n, 1, 6, 6}).to(gpu), randint(0, 3, {n}).to(gpu)};
}

void require_alike(Learner& a, Learner& b) {
  const auto p = a.net.parameters(), q = b.net.parameters();
  for (size_t i = 0; i < p.size(); ++i) {
    BOOST_TEST(same_bits(p[i], q[i]), i);
    BOOST_TEST(same_bits(p[i].grad(), q[i].grad()), i);
    BOOST_TEST(p[i].version() == q[i].version(), i);
  }
  BOOST_TEST(same_bits(a.net.buffers(), b.net.buffers()));
}

// Whether there are graphs of the device at present. Where something lies in another place than
// before, there are none for a call or two.
template <class Compiled>
bool has_graphs(const Compiled& compiled, const std::string& device = "cuda:0") {
  const std::string text = compiled.explain(), start = "device graphs of " + device + ": ";
  return has(text, start) && !has(text, start + "0,") && !has(text, start + "none");
}

// How often the host has queued something: kernels, and graphs.
struct Calls {
  const emulated::CudaCounters& counters =
      *in_runtime<emulated::CudaCounters>("tenon_emulated_cuda_counters");
  uint64_t kernels = counters.launches, graphs = counters.graph_launches,
           host = counters.host_allocations;
  uint64_t new_kernels() const { return counters.launches - kernels; }
  uint64_t new_graphs() const { return counters.graph_launches - graphs; }
  uint64_t new_host_allocations() const { return counters.host_allocations - host; }
};

}  // namespace

// Arguments that are elsewhere in each call, a rate that changes, dropout, running statistics, a
// parameter that is replaced, and a gradient that somebody keeps.
BOOST_AUTO_TEST_CASE(steps_are_those_of_the_function) {
  for (const bool adam : {false, true}) {
    Learner plain(adam, Form::plain), compiled(adam, Form::compiled);
    std::vector<Tensor> kept;
    int with_graphs = 0;
    for (int i = 0; i < 20; ++i) {
      const auto [x, y] = batch();
      if (i == 11) kept.push_back(compiled.net.parameters()[2].grad());
      if (i == 14)
        for (auto* run : {&plain, &compiled})
          no_grad([&] { run->net.fc2.bias = nn::Parameter(full({3}, 0.25, {.device = gpu})); });
      for (auto* run : {&plain, &compiled}) run->optimizer->set_lr(i % 5 == 4 ? 0.01 : 0.03);
      const Tensor expected = plain.step(i, x, y);
      BOOST_TEST(same_bits(compiled.step(i, x, y), expected), "step " << i);
      with_graphs += has_graphs(*compiled.compiled);
    }
    require_alike(plain, compiled);
    BOOST_TEST(with_graphs > 5);
  }
}

BOOST_AUTO_TEST_CASE(a_replay_queues_less, *boost::unit_test::precondition(emulated_device)) {
  uint64_t kernels[2], graphs[2];
  for (const bool with : {false, true}) {
    Learner run(false, with ? Form::compiled : Form::without_graphs);
    const auto [x, y] = batch();
    for (int i = 0; i < 5; ++i) run.step(i, x, y);
    const Calls recording;
    for (int i = 5; i < 10; ++i) run.step(i, x, y);
    BOOST_TEST(recording.new_host_allocations() == 0u);
    const Calls calls;
    run.step(10, x, y);
    kernels[with] = calls.new_kernels();
    graphs[with] = calls.new_graphs();
    BOOST_TEST_MESSAGE((with ? "with" : "without") << " graphs, a step queues " << kernels[with]
                                                   << " kernels and " << graphs[with] << " graphs\n"
                                                   << run.compiled->explain());
  }
  BOOST_TEST(graphs[false] == 0u);
  BOOST_TEST(graphs[true] > 0u);
  BOOST_TEST(2 * (kernels[true] + graphs[true]) < kernels[false]);
}

BOOST_AUTO_TEST_CASE(sizes_that_share_memory_take_turns) {
  Learner plain(false, Form::plain), compiled(false, Form::compiled, {.dynamic = {0}});
  for (int i = 0; i < 24; ++i) {
    const auto [x, y] = batch(2 + i % 3 + (i > 12 && i % 3 == 0 ? 4 : 0));
    const Tensor expected = plain.step(i, x, y);
    BOOST_TEST(same_bits(compiled.step(i, x, y), expected), "step " << i);
  }
  require_alike(plain, compiled);
}

// A forward and a backward program. The values between them are new in each call.
BOOST_AUTO_TEST_CASE(modules_learn_as_they_are) {
  Learner plain(false, Form::plain), other(false, Form::plain);
  std::vector<std::pair<Tensor, Tensor>> batches;
  std::vector<float> expected, losses;
  for (int i = 0; i < 14; ++i) {
    batches.push_back(batch());
    expected.push_back(plain.step(i, batches.back().first, batches.back().second).item<float>());
  }
  auto fast = compile(other.net);
  for (int i = 0; i < 14; ++i) {
    const auto& [x, y] = batches[static_cast<size_t>(i)];
    manual_seed(1000 + static_cast<uint64_t>(i));
    other.optimizer->zero_grad();
    Tensor loss = cross_entropy(fast(x), y);
    loss.backward();
    other.optimizer->step();
    losses.push_back(loss.item<float>());
  }
  BOOST_TEST(losses == expected, boost::test_tools::per_element());
  require_alike(plain, other);
  BOOST_TEST(says(fast, "device graphs of cuda:0: "));
}

// A kernel finds a bad label while a graph runs.
BOOST_AUTO_TEST_CASE(what_a_kernel_finds_in_a_graph_is_told_as_without) {
  std::string texts[2];
  double sound[2];
  for (const bool with : {false, true}) {
    const Tensor w = full({5}, 1.5, {.device = gpu});
    CompileOptions options{.passes = {.pointwise = false}};
    options.passes.device_graphs = with;
    auto compiled = compile(
        [&](const Tensor& x, const Tensor& y) {
          Tensor h = x;
          for (int i = 0; i < 4; ++i) h = sin(h * w);
          return cross_entropy(h, y) * 2.0 + 1.0;
        },
        options);
    const Tensor x = full({4, 5}, 0.5, {.device = gpu});
    Tensor y = tensor(std::vector<int64_t>{1, 0, 4, 3}).to(gpu);
    int with_graphs = 0;
    for (int i = 0; i < 8; ++i) compiled(x, y), with_graphs += has_graphs(compiled);
    synchronize(gpu);
    BOOST_TEST((with_graphs > 0) == with);
    y.copy_(tensor(std::vector<int64_t>{1, 0, 77, 3}));
    const Tensor spoilt = compiled(x, y);
    texts[with] = error_of<IndexError>([&] { spoilt.item(); });
    y.copy_(tensor(std::vector<int64_t>{2, 2, 1, 3}));
    sound[with] = compiled(x, y).item();
    synchronize(gpu);
  }
  BOOST_TEST(has(texts[1], "label 77 in row 2 lies outside [0, 5)"), texts[1]);
  BOOST_TEST(has(texts[1], "in cross_entropy"), texts[1]);
  BOOST_TEST(texts[0] == texts[1]);
  BOOST_TEST(sound[0] == sound[1]);
}

BOOST_AUTO_TEST_CASE(a_driver_without_memory_for_graphs,
                     *boost::unit_test::precondition(emulated_device)) {
  for (const char* call : {"instantiate", "launch"}) {
    Learner plain(false, Form::plain), compiled(false, Form::compiled);
    const auto [x, y] = batch();
    setenv("TENON_EMULATED_REFUSE_GRAPHS", call, 1);
    for (int i = 0; i < 9; ++i) {
      const Tensor expected = plain.step(i, x, y);
      BOOST_TEST(same_bits(compiled.step(i, x, y), expected), call << ", step " << i);
      if (i == 7) unsetenv("TENON_EMULATED_REFUSE_GRAPHS");
    }
    require_alike(plain, compiled);
    BOOST_TEST(says(*compiled.compiled, "device graphs of cuda:0: none, because"));
    BOOST_TEST(says(*compiled.compiled, "out of memory"));
  }
}

// What two devices have to do with each other is between the graphs.
BOOST_AUTO_TEST_CASE(layers_on_two_devices) {
  if (device_count("cuda") < 2) {
    BOOST_TEST_MESSAGE("skipped: there is one device");
    return;
  }
  const Device second("cuda:1");
  const Tensor a = randn({4}).to(gpu), b = randn({4}).to(second);
  const auto plain = [&](const Tensor& x) {
    Tensor h = x;
    for (int i = 0; i < 4; ++i) h = sin(h * a);
    h = h.to(second);
    for (int i = 0; i < 4; ++i) h = sin(h * b);
    Tensor back = h.to(gpu);
    for (int i = 0; i < 4; ++i) back = sin(back * a);
    return back;
  };
  auto compiled = compile(plain, {.passes = {.pointwise = false}});
  int on_first = 0, on_second = 0;
  for (int i = 0; i < 12; ++i) {
    const Tensor x = randn({4}).to(gpu);
    BOOST_TEST(same_bits(compiled(x), plain(x)), i);
    on_first += has_graphs(compiled), on_second += has_graphs(compiled, "cuda:1");
  }
  BOOST_TEST(on_first > 3);
  BOOST_TEST(on_second > 3);
}

// Lives on when the device is closed at exit.
BOOST_AUTO_TEST_CASE(a_program_in_static_storage) {
  static Learner run(false, Form::compiled);
  const auto [x, y] = batch();
  for (int i = 0; i < 8; ++i) run.step(i, x, y);
  BOOST_TEST(says(*run.compiled, "device graphs of cuda:0: "));
}
