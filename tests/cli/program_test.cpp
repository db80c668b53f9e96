// The commands of `tenon program`, run as a user runs them.
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <tenon/serialization/tensor_copy.h>
#include <tenon/tenon.h>

#include "cli/programs.h"

BOOST_AUTO_TEST_SUITE(program_test)

using namespace tenon::test::programs;
using tenon::test::has;

namespace {

std::string program_command(const std::vector<std::string>& words) {
  std::string text = "tenon program";
  for (const std::string& word : words) text += " '" + word + "'";
  return text;
}

// Saves a step of training, with which the weight of a line goes towards 3.
void save_line(const std::string& path) {
  using namespace tenon;
  Tensor w = zeros({1, 1}).requires_grad_();
  optim::SGD optimizer({w}, {.lr = 0.5});
  auto step = compile([&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    Tensor loss = mse_loss(matmul(x, w), y);
    loss.backward();
    optimizer.step();
    return loss.detach();
  });
  for (int i = 0; i < 2; ++i) step(ones({1, 1}), full({1, 1}, 3.0));
  step.save(path, {.inputs = {"x", "y"}, .outputs = {"loss"}, .tensors = {{"w", w}}});
}

// Writes the program again as if it had been recorded on `device`.
void move_program(const std::string& path, const std::string& device) {
  using namespace tenon;
  TensorFile all = open_all_tensors(path, "", true);
  TensorSource source;
  std::vector<Tensor> values;
  for (size_t i = 0; i < all.tensors.size(); ++i) {
    values.push_back(all.read(i));
    if (all.tensors[i].key == "@program/graph") {
      const auto bytes = values[i].to_vector<uint8_t>();
      auto graph = nlohmann::json::parse(bytes.begin(), bytes.end());
      graph["device"] = device;
      const std::string text = graph.dump();
      values[i] = from_host(text.data(), u8, {static_cast<int64_t>(text.size())}, {.dtype = u8});
    }
    source.tensors.push_back({all.tensors[i].key, values[i].shape(), all.tensors[i].dtype});
  }
  source.read = [&](size_t i) { return values[i]; };
  write_tensors(path, FileFormat::tenon, source);
}

}  // namespace

BOOST_AUTO_TEST_CASE(programs_are_shown_run_and_verified) {
  Folder folder;
  const std::string file = folder / "line.tenon", later = folder / "later.tenon";
  save_line(file);
  const auto shown = run(folder, program_command({"show", file}));
  BOOST_TEST(shown.status == 0, shown.err);
  for (const char* text :
       {"program version 1, format 1", "recorded on cpu:0", "  x  f32  (1, 1)", "  loss  f32  ()",
        "  lr  0.5  may be set", "sgd_step", "  w  f32  (1, 1)"})
    BOOST_TEST(has(shown.out, text), "\"" << text << "\" expected in:\n" << shown.out);
  const auto described =
      nlohmann::json::parse(run(folder, program_command({"show", file, "--json"})).out);
  BOOST_TEST(described["inputs"][1]["name"] == "y");
  BOOST_TEST(described["numbers"][0]["value"] == 0.5);
  BOOST_TEST(described["operators"].size() > 3u);

  const auto verified = run(folder, program_command({"verify", file}));
  BOOST_TEST(verified.status == 0, verified.err);
  BOOST_TEST(has(verified.out, "right; "));
  BOOST_TEST(has(verified.out, "runs on cpu:0"));

  // With the rate 0, nothing changes: the loss of x = y = 1 is (w - 1)^2, and w is 3 by now.
  const auto outcome = run(
      folder,
      program_command({"run", file, "--input", "x=ones", "--input", "y=ones", "--set", "lr=0",
                       "--repeat", "3", "--save", later, "--output", folder / "out.safetensors"}));
  BOOST_TEST(outcome.status == 0, outcome.err);
  BOOST_TEST(has(outcome.out, "loss  f32  ()  4\n"), outcome.out);
  BOOST_TEST(has(outcome.out, "3 runs, "));
  BOOST_TEST(tenon::load(folder / "out.safetensors").at("loss").item() == 4.0);
  BOOST_TEST(tenon::Program::load(later).number("lr") == 0.0);
  const auto elsewhere =
      run(folder, program_command({"run", later, "--input", "x=random", "--input", "y=zeros",
                                   "--device", "cpu:1", "--json"}));
  BOOST_TEST(elsewhere.status == 0, elsewhere.err);
  BOOST_TEST(nlohmann::json::parse(elsewhere.out)["outputs"][0]["name"] == "loss");
}

BOOST_AUTO_TEST_CASE(what_cannot_be_run_is_said) {
  Folder folder;
  const std::string file = folder / "line.tenon";
  save_line(file);
  const auto refused = [&](const std::vector<std::string>& words, const char* why) {
    const auto outcome = run(folder, program_command(words));
    BOOST_TEST(outcome.status == 1);
    BOOST_TEST(has(outcome.err, why), "\"" << why << "\" expected in:\n" << outcome.err);
  };
  refused({"run", file, "--input", "x=ones"}, "input \"y\" of the program of");
  refused({"run", file, "--input", "z=ones"}, "has no input \"z\"; it has \"x\", \"y\"");
  refused({"run", file, "--input", "x"}, "--input \"x\" is not NAME=FILE.npy");
  refused({"run", file, "--set", "momentum=1"}, "has no number \"momentum\"; it has \"lr\"");
  refused({"run", file, "--device", "abacus:0"}, "abacus");
  for (const std::string option : {"--device", "--seed", "--output", "--save"}) {
    const auto outcome = run(folder, program_command({"run", file, option, ""}));
    BOOST_TEST(outcome.status != 0, option);
    BOOST_TEST(has(outcome.err, option + " is empty; give it a value, or leave it out"),
               outcome.err);
  }
  tenon::save(folder / "w.h5", tenon::nn::Linear(1, 1));
  refused({"show", folder / "w.h5"}, "it is a checkpoint without a program");
  std::string bytes = slurp(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  std::ofstream(folder / "damaged.tenon", std::ios::binary) << bytes;
  refused({"verify", folder / "damaged.tenon"}, "damaged");
  const auto json = run(folder, program_command({"verify", folder / "damaged.tenon", "--json"}));
  BOOST_TEST(json.status == 1);
  BOOST_TEST(nlohmann::json::parse(json.out)["right"] == false);
}

// A program without its device may be right. One that its device cannot run is not.
BOOST_AUTO_TEST_CASE(a_program_that_its_device_cannot_run_is_not_right) {
  Folder folder;
  const std::string file = folder / "line.tenon";
  save_line(file);
  move_program(file, "primitives:0");
  const std::string command = program_command({"verify", file});
  const auto without = run(folder, command);
  BOOST_TEST(without.status == 0, without.err);
  BOOST_TEST(has(without.out, "not tried on primitives:0"), without.out);
  const auto with =
      run(folder, command, "TENON_PLUGIN_PATH='" + tenon::test::build_dir() + "/tests/primitives'");
  BOOST_TEST(with.status == 1, with.out);
  BOOST_TEST(has(with.err, "primitives:0 cannot run it in one piece"), with.err);
}

BOOST_AUTO_TEST_SUITE_END()
