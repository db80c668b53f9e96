// What cannot be saved or run as a program of a file, and what is said of it.
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "../files.h"
#include "../support/expect.h"
#include "bits.h"
#include "saved_nets.h"

BOOST_AUTO_TEST_SUITE(program_refusals_test)

using namespace tenon;
using namespace tenon::test::saved;

BOOST_AUTO_TEST_CASE(what_cannot_be_saved_is_said) {
  TempFolder folder;
  NoGrad guard;
  Perceptron net;
  net.eval();
  const std::string file = folder / "f.tenon";
  auto f = compile([&](const Tensor& x) { return net(x); });
  BOOST_TEST(has(refusal([&] { f.save(file); }), "it has no program yet"));
  f(randn({2, 6}));
  BOOST_TEST(
      has(refusal([&] { f.save(file); }), "Call it at least twice with arguments of these shapes"));
  f(randn({2, 6}));
  f.save(file);
  BOOST_TEST(has(refusal([&] {
                   f.save(file, {.inputs = {"x", "y"}});
                 }),
                 "2 names of inputs are given, and the function has 1 arguments"));
  BOOST_CHECK_THROW(f.save(folder / "none" / "f.tenon"), CheckpointError);
  net.train();
  BOOST_TEST(
      has(refusal([&] { f.save(file); }), "something was changed since its last program ran"));

  const Tensor same = randn({2, 6});
  auto pinned = compile([&](const Tensor& x) { return relu(x); });
  for (int i = 0; i < 3; ++i) pinned(same);
  BOOST_TEST(has(refusal([&] { pinned.save(file); }), "was the same memory in the calls"));
  for (int i = 0; i < 3; ++i) pinned(randn({2, 6}));
  pinned.save(file);
}

// A file that was written can be loaded.
BOOST_AUTO_TEST_CASE(names_that_no_file_can_have_are_refused) {
  TempFolder folder;
  const std::string file = folder / "f.tenon";
  auto f = compile([](const Tensor& x, const Tensor& y) { return std::pair(x + y, x - y); });
  for (int i = 0; i < 3; ++i) f(randn({2}), randn({2}));
  const auto refused = [&](const SaveProgramOptions& options) {
    const std::string text = refusal([&] { f.save(file, options); });
    BOOST_TEST(!std::filesystem::exists(file));
    return text;
  };
  BOOST_TEST(has(refused({.outputs = {"1"}}), "two outputs have the name \"1\"; give each"));
  BOOST_TEST(has(refused({.inputs = {"x", "x"}}), "two inputs have the name \"x\""));
  BOOST_TEST(has(refused({.inputs = {std::string(5000, 'x')}}), "has more than 4096 bytes"));
  BOOST_TEST(has(refused({.outputs = {std::string("a\0b", 3)}}), "or a zero byte"));
  BOOST_TEST(has(refused({.inputs = {"caf\xe9"}}), "of one of its inputs is not UTF-8"));
  BOOST_TEST(
      has(refused({.inputs = {"a=b"}}), "\"a=b\" of one of its inputs has a line end or a '='"));
  BOOST_TEST(has(refused({.outputs = {"0", "y\n"}}), "of one of its outputs has a line end"));
  const Tensor w = ones({2});
  BOOST_TEST(has(refused({.tensors = {{"", w}}}), "one of its tensors is given an empty name"));
  BOOST_TEST(has(refused({.tensors = {{"w=", w}}}), "of one of its tensors has a line end or"));
  BOOST_TEST(has(refused({.tensors = {{"a/w", w}}}), "\"a/w\" of one of its tensors has a '/'"));
  BOOST_TEST(has(refused({.tensors = {{"w", Tensor()}}}), "to be called \"w\" is undefined"));
  BOOST_TEST(has(refused({.tensors = {{"w", w}, {"w", ones({3})}}}),
                 "two tensors are given the name \"w\""));
  f.save(file, {.inputs = {std::string(4096, 'x')}, .outputs = {"1", "0"}});
  Program::load(file);
  // An empty name of an input or output is none; a tensor that is not used may be named, and one
  // may have two names, as those of a module's state do.
  f.save(file, {.inputs = {"", "y"}, .outputs = {"", "d"}, .tensors = {{"w", w}, {"v", w}}});
  Program program = Program::load(file);
  const Tensor x = full({2}, 3.0), y = full({2}, 1.0);
  BOOST_TEST(program.run({{"0", x}, {"y", y}})["d"].to_vector<float>()[1] == 2.0F);
}

// A file has them apart, and an operator that reads one reads no other.
BOOST_AUTO_TEST_CASE(arguments_that_share_memory_are_refused) {
  TempFolder folder;
  const std::string file = folder / "f.tenon";
  const NoGrad guard;
  auto f = compile([](const Tensor& x, const Tensor& y) { return x * 2.0 + y.sum(); });
  const auto refused = [&] { return refusal([&] { f.save(file); }); };
  const Tensor x = ones({4}), y = full({4}, 7.0);
  for (int i = 0; i < 3; ++i) f(x.clone(), y.clone());
  f.save(file);
  for (int i = 0; i < 3; ++i) {
    const Tensor both = randn({4});
    f(both, both);
  }
  f.save(file);  // by the program that takes them apart
  f.reset();
  for (int i = 0; i < 3; ++i) {
    const Tensor both = randn({6});
    f(both.narrow(0, 0, 4), both.narrow(0, 2, 4));
  }
  BOOST_TEST(has(refused(), "arguments 0 and 1 shared memory in the calls"), refused());
  for (int i = 0; i < 3; ++i) f(x.clone(), y.clone());
  f.save(file);
  BOOST_TEST(test::same_bits(Program::load(file).run({{"0", x}, {"1", y}})[0], f(x, y)));
}

// Why a step that trains two parts of one tensor is not saved.
std::string refusal_of_parts(const Tensor& a, const Tensor& b, optim::Optimizer& optimizer) {
  TempFolder folder;
  auto step = compile([&](const Tensor& x) {
    optimizer.zero_grad();
    const Tensor loss = (a * b * x).sum();
    loss.backward();
    optimizer.step();
    return loss.detach();
  });
  for (int i = 0; i < 3; ++i) step(randn({3}));
  return refusal([&] { step.save(folder / "f.tenon"); });
}

// A number of a program has one value for all of a tensor.
BOOST_AUTO_TEST_CASE(parameters_of_two_groups_in_one_tensor_are_refused) {
  const Tensor memory = randn({2, 3});
  Tensor a = memory.select(0, 0), b = memory.select(0, 1);
  a.requires_grad_(), b.requires_grad_();
  using Group = optim::ParamGroup<optim::SGDOptions>;
  optim::SGD optimizer(std::vector<Group>{{{a}, {.lr = 0.1}}, {{b}, {.lr = 0.2}}});
  const std::string text = refusal_of_parts(a, b, optimizer);
  BOOST_TEST(has(text, "parts of one tensor are parameters of two groups"), text);
}

// So are parameters of one group of which one has taken another number of steps.
BOOST_AUTO_TEST_CASE(parts_of_one_tensor_with_other_steps_are_refused) {
  const Tensor memory = randn({2, 3});
  Tensor a = memory.select(0, 0), b = memory.select(0, 1);
  a.requires_grad_(), b.requires_grad_();
  optim::Adam optimizer({a, b}, {.lr = 0.1});
  a.sum().backward();
  optimizer.step();
  const std::string text = refusal_of_parts(a, b, optimizer);
  BOOST_TEST(has(text, "no number \"step\""), text);
  BOOST_TEST(has(text, "different numbers of steps"), text);
}

// A file holds memory as the program uses it, and whoever loads it takes values for rows.
BOOST_AUTO_TEST_CASE(named_tensors_whose_values_would_change_their_order_are_refused) {
  TempFolder folder;
  const std::string file = folder / "f.tenon";
  const NoGrad guard;
  const Tensor base = randn({9, 8});
  for (const Tensor& w : {base.t(), base.narrow(1, 0, 5), base.narrow(0, 1, 3).slice(1, 0, 8, 2),
                          randn({1, 8}).expand({9, 8}), base.select(0, 3)})
    for (const bool cast : {false, true}) {
      auto f = compile([&](const Tensor& x) { return x * (cast ? w.to(bf16).to(f32) : w); });
      for (int i = 0; i < 3; ++i) f(randn({1}));
      const std::string text = refusal([&] { f.save(file, {.tensors = {{"w", w}}}); });
      BOOST_TEST(has(text, "called \"w\" has the shape " + w.shape().str()), text);
      BOOST_TEST(has(text, "make it contiguous()"), text);
      BOOST_TEST(!std::filesystem::exists(file));
      f.save(file);
      const Tensor x = randn({1});
      BOOST_TEST(test::same_bits(Program::load(file).run({{"0", x}})[0], f(x)));
      std::filesystem::remove(file);
    }
  nn::Conv2d net(2, 4, 3);
  net.to(channels_last);
  auto f = compile([&](const Tensor& x) { return net(x); });
  for (int i = 0; i < 3; ++i) f(randn({1, 2, 8, 8}));
  const nn::StateDict all = nn::state_dict(net);
  BOOST_TEST(has(refusal([&] {
                   f.save(file, {.tensors = {all.begin(), all.end()}});
                 }),
                 "called \"weight\" has the shape (4, 2, 3, 3)"));
}

// The program that would be saved is of other arguments than those of the last call.
BOOST_AUTO_TEST_CASE(a_function_whose_last_arguments_found_no_room_is_not_saved) {
  TempFolder folder;
  const std::string file = folder / "f.tenon";
  auto f = compile([](const Tensor& x) { return x + 1.0; }, {.max_programs = 2});
  for (int i = 0; i < 20; ++i)
    for (int64_t n = 1; n <= 3; ++n) f(randn({n}));
  BOOST_REQUIRE(has(f.explain(), "take turns"));
  std::string text;
  for (int64_t n = 1; n <= 3; ++n) {
    f(randn({n}));
    try {
      f.save(file);
    } catch (const ValueError& error) {
      text = error.what();
      continue;
    }
    Program::load(file).run({{"0", randn({n})}});  // of these arguments
  }
  BOOST_TEST(has(text, "no program, because more kinds of arguments take turns"));
  f.reset();
  for (int i = 0; i < 2; ++i) f(randn({5}));
  f.save(file);
  Program::load(file).run({{"0", randn({5})}});
}

// As eager functions do: what they change in place must not require a gradient.
BOOST_AUTO_TEST_CASE(inputs_that_require_gradients_are_not_changed_in_place) {
  TempFolder folder;
  auto f = compile([](const Tensor& x) { return Tensor(x).mul_(2.0); });
  for (int i = 0; i < 3; ++i) f(randn({2}));
  f.save(folder / "f.tenon", {.inputs = {"x"}});
  Program program = Program::load(folder / "f.tenon");
  const Tensor leaf = ones({2}).requires_grad_(), made = leaf * 3.0;
  for (const Tensor& x : {leaf, made}) {
    const double before = x.detach().sum().item();
    BOOST_CHECK_THROW(program.run({{"x", x}}), AutogradError);
    BOOST_TEST(x.detach().sum().item() == before);
  }
  NoGrad guard;
  program.run({{"x", leaf}});
  BOOST_TEST(leaf.sum().item() == 4.0);
  test::require_error<IndexError>(
      [&] {
        program.run({{"x", leaf}})[-1];
      },
      "there is no tensor -1 of 1");
}

BOOST_AUTO_TEST_CASE(a_program_that_was_moved_from_says_so) {
  TempFolder folder;
  auto f = compile([](const Tensor& x) { return x + 1.0; });
  for (int i = 0; i < 3; ++i) f(randn({2}));
  f.save(folder / "f.tenon");
  Program program = Program::load(folder / "f.tenon");
  Program moved = std::move(program);
  const std::vector<std::function<void()>> calls = {[&] { program.run({}); },
                                                    [&] { program.device(); },
                                                    [&] { program.inputs(); },
                                                    [&] { program.outputs(); },
                                                    [&] { program.numbers(); },
                                                    [&] { program.input_strides("x"); },
                                                    [&] { program.number("lr"); },
                                                    [&] { program.set("lr", 1); },
                                                    [&] { program.manual_seed(1); },
                                                    [&] { program.tensor("w"); },
                                                    [&] { program.save(folder / "g.tenon"); }};
  for (auto& call : calls) BOOST_TEST(refusal(call) == "Program: this object was moved from");
  moved.run({{"0", ones({2})}});
}

BOOST_AUTO_TEST_CASE(steps_that_need_their_optimizer_are_refused) {
  TempFolder folder;
  const auto data = batches({4, 6}, 4);
  const auto refused = [&](const MakeOptimizer& make,
                           const std::function<void(Run<Perceptron>&)>& f,
                           const std::function<void(Run<Perceptron>&)>& then) {
    Run<Perceptron> run(make);
    run.net.eval();
    auto step = compile([&](const Tensor& x, const Tensor& y) {
      run.optimizer->zero_grad();
      Tensor loss = cross_entropy(run.net(x), y);
      loss.backward();
      f(run);
      return loss.detach();
    });
    for (int i = 0; i < 3; ++i) step(data[i].x, data[i].y);
    then(run);
    return refusal([&] { step.save(folder / "f.tenon"); });
  };
  const auto step = [](Run<Perceptron>& run) { run.optimizer->step(); };
  const auto nothing = [](Run<Perceptron>&) {};
  using namespace optim;
  for (auto& [name, make] : std::vector<std::pair<const char*, MakeOptimizer>>{
           {"NAdam", making<NAdam>(NAdamOptions{})},
           {"RAdam", making<RAdam>(RAdamOptions{})},
           {"Adadelta", making<Adadelta>(AdadeltaOptions{})},
           {"Lion", making<Lion>(LionOptions{})}}) {
    const std::string text = refused(make, step, nothing);
    BOOST_TEST(has(text, std::string(name) + ": the host computes numbers of its step"), text);
    BOOST_TEST(has(text, "adam, rmsprop, sgd"), text);
  }
  const MakeOptimizer sgd = making<SGD>(SGDOptions{.lr = 0.1, .momentum = 0.9});
  const auto options = [](Run<Perceptron>& run) -> SGDOptions& {
    return static_cast<SGD&>(*run.optimizer).options();
  };
  std::string text = refused(sgd, step, [&](auto& run) { options(run).momentum = 0.5; });
  BOOST_TEST(has(text, "its option momentum was 0.9 when the function was recorded, and is 0.5"),
             text);
  text = refused(sgd, step, [&](auto& run) { options(run).maximize = true; });
  BOOST_TEST(has(text, "its option maximize was changed"), text);
  text = refused(
      sgd, [](auto& run) { run.optimizer->step(), run.optimizer->step(); }, nothing);
  BOOST_TEST(has(text, "it takes two steps in one call"), text);
  text = refused(sgd, step,
                 [&](auto& run) { run.optimizer->load_state_dict(run.optimizer->state_dict()); });
  BOOST_TEST(has(text, "something was changed since its last program ran"), text);
  text = refused(sgd, step, [&](auto& run) { run.optimizer = nullptr; });
  BOOST_TEST(has(text, "does not exist any more"), text);

  // Gradients from outside, and those of earlier calls.
  Run<Perceptron> run(sgd);
  auto only_step = compile([&] {
    run.optimizer->step();
    return ones({1});
  });
  auto adds = compile([&](const Tensor& x, const Tensor& y) {
    Tensor loss = cross_entropy(run.net(x), y);
    loss.backward();
    return loss.detach();
  });
  for (int i = 0; i < 4; ++i) adds(data[i].x, data[i].y), only_step();
  BOOST_TEST(has(refusal([&] { only_step.save(folder / "f.tenon"); }),
                 "a gradient that the function does not compute"));
  BOOST_TEST(
      has(refusal([&] { adds.save(folder / "f.tenon"); }), "it adds to gradients of earlier"));
}

BOOST_AUTO_TEST_CASE(inputs_that_do_not_fit_are_named) {
  TempFolder folder;
  NoGrad guard;
  auto f = compile([](const Tensor& x) { return x + 1.0; });
  for (int i = 0; i < 3; ++i) f(randn({2, 3}));
  f.save(folder / "f.tenon", {.inputs = {"x"}});
  auto program = Program::load(folder / "f.tenon", {.device = "cpu:1"});
  BOOST_TEST((program.device() == Device("cpu:1")));
  const Tensor x = ones({2, 3}, Device("cpu:1"));
  BOOST_TEST(program.run({{"x", x}})[0].to_vector<float>()[5] == 2.0f);
  const auto run = [&](const NamedTensors& inputs) {
    return refusal([&] { program.run(inputs); });
  };
  BOOST_TEST(has(run({}), "input \"x\" of the program of '"));
  BOOST_TEST(has(run({}), "is missing; it is f32 (2, 3)"));
  BOOST_TEST(has(run({{"y", x}}), "has no input \"y\"; it has \"x\""));
  BOOST_TEST(has(run({{"x", x}, {"x", x}}), "the input \"x\" of the program of '"));
  BOOST_TEST(has(run({{"x", x}, {"x", x}}), "is given twice"));
  BOOST_TEST(has(run({{"x", x.to(f64)}}), "is f32, found f64"));
  BOOST_TEST(has(run({{"x", x.t()}}), "has the shape (2, 3), found (3, 2)"));
  BOOST_TEST(has(run({{"x", ones({3, 2}, Device("cpu:1")).t()}}), "has the strides (3, 1)"));
  BOOST_TEST(has(error_of<DeviceError>([&] {
                   program.run({{"x", ones({2, 3})}});
                 }),
                 "is on cpu:0, and the program on cpu:1"));
  BOOST_TEST(
      has(error_of<PluginError>([&] { Program::load(folder / "f.tenon", {.device = "abacus"}); }),
          "cannot load program '"));
  const auto out = program.run({{"x", x}});
  BOOST_TEST(has(refusal([&] { out["z"]; }), "there is no tensor \"z\"; there are \"0\""));
  BOOST_CHECK_THROW(out[1], IndexError);
}

BOOST_AUTO_TEST_CASE(a_program_inside_a_compiled_function_runs_as_always) {
  TempFolder folder;
  NoGrad guard;
  auto f = compile([](const Tensor& x) { return x + 1.0; });
  for (int i = 0; i < 3; ++i) f(randn({2, 3}));
  f.save(folder / "f.tenon");
  auto program = Program::load(folder / "f.tenon");
  auto outer = compile([&](const Tensor& x) { return program.run({{"0", x * 2.0}})[0] * 3.0; });
  for (int i = 0; i < 4; ++i)
    BOOST_TEST(outer(full({2, 3}, 1.0 * i)).to_vector<float>()[0] == 3.0f * (2.0f * i + 1));
  BOOST_TEST(test::says(outer, "it runs a program of a file"));
}

BOOST_AUTO_TEST_SUITE_END()
