// The examples, run as a user runs them. Only builds without sanitizers have them.
#include <boost/test/unit_test.hpp>

#include "cli/programs.h"

BOOST_AUTO_TEST_SUITE(examples_test)

using namespace tenon::test::programs;
using tenon::test::has;

namespace {

// The number that follows `label` in the last line that has it.
double number_after(const std::string& text, const std::string& label) {
  const size_t at = text.rfind(label);
  BOOST_REQUIRE_MESSAGE(at != std::string::npos, "no \"" << label << "\" in: " << text);
  return std::atof(text.c_str() + at + label.size());
}

Outcome run_well(const Folder& folder, const std::string& command) {
  Outcome outcome = run(folder, command);
  BOOST_REQUIRE_MESSAGE(outcome.status == 0, command << ": " << outcome.err);
  return outcome;
}

}  // namespace

BOOST_AUTO_TEST_CASE(linear_regression) {
  Folder folder;
  const auto outcome = run_well(folder, "linear_regression");
  BOOST_TEST(std::abs(number_after(outcome.out, "y = ") - 3) < 0.05);
  BOOST_TEST(std::abs(number_after(outcome.out, "x + ") - 2) < 0.05);
}

BOOST_AUTO_TEST_CASE(compile) {
  Folder folder;
  const std::string drawn = folder / "lenet";
  const auto outcome = run_well(folder, "compile 2 '" + drawn + "'");
  for (auto* line :
       {"512-256-128-2, forward of 1", "LeNet, training step of 64", "ResNet-18 of width 8",
        "softmax of rows", " us", "a compiled function", "a program of", "steps of optimizers"})
    BOOST_TEST(has(outcome.out, line), outcome.out);
  for (auto* part : {"-recorded.dot", "-program.dot"})
    BOOST_TEST(has(slurp(drawn + part), "[label=\"conv2d\""));
}

// How much overlaps depends on the machine, and on what else it does.
BOOST_AUTO_TEST_CASE(async) {
  Folder folder;
  const std::string trace = folder / "trace.json", common = "async --size 40 --times 5 --turns 2 ";
  const auto outcome = run_well(folder, common + "--trace '" + trace + "'");
  for (auto* line : {"queued", "done", "cpu:0 alone", "cpu:1 alone", "together", "computing",
                     "copying to cpu:1", "copying to cpu:0", "both, overlapped", " events"})
    BOOST_TEST(has(outcome.out, line), outcome.out);
  for (auto* part : {"\"cpu:0\"", "\"cpu:1\"", "\"devices together\"", "\"matmul\""})
    BOOST_TEST(has(slurp(trace), part));
  BOOST_TEST(has(run_well(folder, common + "--device cpu").out, "copying to cpu:0"));
  BOOST_TEST(has(run(folder, common + "--device cpu:0,nowhere:3").err, "nowhere"));
}

BOOST_AUTO_TEST_CASE(multi_device) {
  Folder folder;
  const std::string trace = folder / "trace.json";
  const auto outcome =
      run_well(folder,
               "multi_device --device cpu:0,cpu:1 --images 40 --width 4 --epochs 1 "
               "--batch-size 20 --balance --size 40 --times 3 --trace '" +
                   trace + "'");
  for (auto* line : {"speed-up", "LeNet            1 ", "LeNet            2 ",
                     "ResNet-18        2 ", "together", "copying to cpu:0", " events"})
    BOOST_TEST(has(outcome.out, line), outcome.out);
  BOOST_TEST(has(slurp(trace), "\"devices together\""));
}

BOOST_AUTO_TEST_CASE(vae) {
  Folder folder;
  const std::string model = folder / "vae.h5", sheet = folder / "sheet.pgm";
  const std::string common = "vae --synthetic --batch-size 500 ";
  const auto trained = run_well(folder, common + "--epochs 1 --device cpu:0,cpu:1 --save '" +
                                            model + "' --pictures '" + sheet + "'");
  BOOST_TEST(fs::file_size(sheet) == 15 + 224 * 224u);
  BOOST_TEST(slurp(sheet).substr(0, 15) == "P5 224 224 255\n");
  const auto loaded = run_well(folder, common + "--epochs 0 --load '" + model + "'");
  const double before = number_after(run_well(folder, common + "--epochs 0").out, "test loss "),
               after = number_after(loaded.out, "test loss ");
  BOOST_TEST(after < before - 100, before << " became " << after);
  // New noise is drawn, so the same model gives nearly the same.
  BOOST_TEST(std::abs(number_after(trained.out, "test loss ") - after) < 2);
}

// Where its halves are, and in how many parts a batch goes through them, changes nothing but
// rounding.
BOOST_AUTO_TEST_CASE(pipeline) {
  Folder folder;
  const std::string common = "pipeline --synthetic --batch-size 200 --epochs ";
  const auto reached = [&](const std::string& options) {
    return number_after(run_well(folder, common + options).out, "test accuracy ");
  };
  const double before = reached("0 --device cpu:0,cpu:1");
  const double one = reached("1 --parts 1"), two = reached("1 --device cpu:0,cpu:1 --parts 3");
  BOOST_TEST(one > before + 0.15, before << " became " << one);
  BOOST_TEST(std::abs(one - two) < 0.05, one << " and " << two);
  const auto refused = run(folder, common + "1 --parts 0");
  BOOST_TEST(refused.status != 0);
}

namespace {

// A text that is soon learned by heart.
std::string write_pangrams(const Folder& folder) {
  const std::string path = folder / "text.txt";
  std::ofstream file(path);
  for (int i = 0; i < 200; ++i) file << "the quick brown fox jumps over the lazy dog.\n";
  return path;
}

// Trains a model of characters, loads it again, and lets both write.
void learns_a_text(const std::string& name, const std::string& training, double loss) {
  Folder folder;
  const std::string model = folder / "model.h5";
  const std::string common =
      name + " --data '" + write_pangrams(folder) + "' --prompt 'the ' --length 20 ";
  const auto trained = run_well(folder, common + training + " --save '" + model + "'");
  const double reached = number_after(trained.out, "validation loss ");
  BOOST_TEST(reached < loss, reached);  // ln(28) = 3.3 before
  const std::string written = trained.out.substr(trained.out.find("\n\nthe ") + 1);
  BOOST_TEST(written.size() == 26u, written);
  const auto loaded = run_well(folder, common + "--epochs 0 --load '" + model + "'");
  BOOST_TEST(std::abs(number_after(loaded.out, "validation loss ") - reached) < 1e-3);
  const auto refused = run(folder, common + "--epochs 0 --prompt 'THE'");
  BOOST_TEST(refused.status == 1);
}

}  // namespace

BOOST_AUTO_TEST_CASE(chargpt) {
  learns_a_text("chargpt", "--epochs 4 --batch-size 8 --lr 0.01 --device cpu:0,cpu:1", 2);
  learns_a_text("chargpt", "--bf16 --epochs 4 --batch-size 8 --lr 0.01", 2);
  Folder folder;
  const auto nothing = run(folder, "chargpt", "TENON_DATA=");
  BOOST_TEST(nothing.status == 1);
  BOOST_TEST(has(nothing.err, "there is no text to learn: give --data FILE, or set TENON_DATA"));
}

BOOST_AUTO_TEST_CASE(lstm) { learns_a_text("lstm", "--epochs 4 --batch-size 8 --lr 0.01", 2.5); }

BOOST_AUTO_TEST_CASE(resnet18) {
  Folder folder;
  const std::string model = folder / "resnet.h5", common = "resnet18 --synthetic --width 2 ";
  const auto trained = run_well(
      folder, common + "--epochs 1 --batch-size 100 --device cpu:0,cpu:1 --save '" + model + "'");
  const double reached = number_after(trained.out, "test accuracy ");
  BOOST_TEST(reached > 0.15, reached);  // 0.1 before
  const auto loaded = run_well(folder, common + "--epochs 0 --load '" + model + "'");
  BOOST_TEST(std::abs(number_after(loaded.out, "test accuracy ") - reached) < 0.003);
  const auto show = run_well(folder, "tenon checkpoint show '" + model + "'");
  BOOST_TEST(has(show.out, "layer2.0.downsample.1.running_var"));
}

// Whenever the signal comes, before the training, in it or behind it.
BOOST_AUTO_TEST_CASE(an_interrupted_training_goes_on) {
  Folder folder;
  const std::string common = "mlp --synthetic --epochs 2 --seed 7 --batch-size 100 ",
                    whole = folder / "whole.h5", again = folder / "again.h5",
                    resume = common + "--resume '" + (folder / "runs") + "' --save '" + again + "'";
  run_well(folder, common + "--save '" + whole + "'");
  for (const char* seconds : {"0.6", "1.2"})
    run(folder, resume, std::string("timeout -s TERM ") + seconds);
  const auto ended = run_well(folder, resume);
  BOOST_TEST(last_line(ended.out).substr(0, 14) == "test accuracy ");
  BOOST_TEST((slurp(again) == slurp(whole)));
  const auto show = run_well(folder, "tenon checkpoint show '" + (folder / "runs/latest.h5") + "'");
  for (const char* part :
       {"\noptimizer: SGD, ", "\n  group 0: ", "\nloader: batch_size 100, batches 100, epoch 2, ",
        "\nrandom: offset ", "\nprogress: epoch 2, step 200\n"})
    BOOST_TEST(has(show.out, part), part << " is not in " << show.out);
  const auto verify =
      run_well(folder, "tenon checkpoint verify '" + (folder / "runs/latest.h5") + "'");
  BOOST_TEST(has(verify.out, "; with optimizer, loader, random, progress\n"), verify.out);
}

BOOST_AUTO_TEST_CASE(an_example_trains_saves_and_only_evaluates) {
  Folder folder;
  std::string model = folder / "mlp.h5", common = "mlp --synthetic --seed 3 ";
  auto trained = run(folder, common + "--epochs 1 --save '" + model + "'");
  BOOST_REQUIRE_MESSAGE(trained.status == 0, trained.err);
  REQUIRE_HAS(trained.out, "epoch 1/1");
  BOOST_TEST(last_line(trained.out).substr(0, 14) == "test accuracy ");
  BOOST_TEST(last_line(trained.out).size() == 20u);
  BOOST_TEST(!has(trained.out, "\r"));

  auto loaded = run(folder, common + "--epochs 0 --load '" + model + "'");
  BOOST_REQUIRE_MESSAGE(loaded.status == 0, loaded.err);
  BOOST_TEST(last_line(loaded.out) == last_line(trained.out));

  auto show = run(folder, "tenon checkpoint show '" + model + "'");
  BOOST_TEST(show.status == 0);
  REQUIRE_HAS(show.out, "hidden.weight");
  REQUIRE_HAS(show.out, "(256, 784)");
  REQUIRE_HAS(show.out, "f32");
  auto verify = run(folder, "tenon checkpoint verify '" + model + "'");
  BOOST_TEST(verify.status == 0);

  fs::resize_file(model, fs::file_size(model) - 1);
  for (std::string command : {"show", "verify"}) {
    auto truncated = run(folder, "tenon checkpoint " + command + " '" + model + "'");
    BOOST_TEST(truncated.status == 1);
    REQUIRE_HAS(truncated.err, model);
  }
}

BOOST_AUTO_TEST_CASE(a_model_trained_on_two_devices_loads_plain_with_the_same_accuracy) {
  Folder folder;
  std::string model = folder / "wrapped.h5", common = "mlp --synthetic --seed 4 ";
  auto trained = run(folder, common + "--epochs 1 --device cpu:0,cpu:1 --save '" + model + "'");
  BOOST_REQUIRE_MESSAGE(trained.status == 0, trained.err);
  auto plain = run(folder, common + "--epochs 0 --load '" + model + "'");
  BOOST_REQUIRE_MESSAGE(plain.status == 0, plain.err);
  BOOST_TEST(last_line(plain.out) == last_line(trained.out));
  auto show = run(folder, "tenon checkpoint show '" + model + "'");
  REQUIRE_HAS(show.out, "module.hidden.weight");
}

BOOST_AUTO_TEST_CASE(an_example_reports_mistakes_in_one_line) {
  Folder folder;
  struct Case {
    std::string arguments, message;
  };
  const Case cases[] = {
      {"--data /no/such/folder", "/no/such/folder"},
      {"--synthetic --epochs 0 --load /no/such/model.h5", "/no/such/model.h5"},
      {"--synthetic --device nonsense --epochs 0", "nonsense"},
      {"--synthetic --device cpu:x", "cpu:x"},
      {"--synthetic --epochs -1", "--epochs"},
      {"--synthetic --batch-size 0", "--batch-size"},
      {"--synthetic --batch-size -1", "\"-1\" is not a whole number from 1 to 1000000000"},
      {"--synthetic --batch-size 99999999999999999999",
       "\"99999999999999999999\" is not a whole number"},
      {"--synthetic --epochs x", "\"x\" is not a whole number from 0"},
      {"--synthetic --epochs 1e3", "\"1e3\" is not a whole number"},
      {"--synthetic --seed -1", "\"-1\" is not a whole number from 0 to 18446744073709551615"},
      {"--synthetic --seed 18446744073709551616", "--seed"},
      {"--synthetic --lr nan", "\"nan\" is not a number from 0"},
      {"--synthetic --lr -0.1", "--lr"},
      {"--synthetic --epochs 0 --save ''", "--save"},
      {"--synthetic --epochs 0 --load ''", "--load"},
      {"--data ''", "--data"},
      {"--synthetic --epochs 1000000 --save /no/such/folder/model.h5", "/no/such/folder"},
      {"--synthetic --epochs 0 --save /no/such/folder/model.h5", "/no/such/folder"}};
  for (auto& c : cases) {
    auto result = run(folder, "lenet " + c.arguments);
    BOOST_TEST(result.status == 1,
               c.arguments << " ended with " << result.status << ": " << result.err);
    BOOST_TEST((result.err.size() < 300 || has(c.arguments, "nonsense")),
               result.err);  // a load report may be longer
    REQUIRE_HAS(result.err, c.message);
  }
}

BOOST_AUTO_TEST_CASE(an_example_that_diverges_says_so_and_fails) {
  Folder folder;
  const std::string model = folder / "lost.h5";
  auto result =
      run(folder, "mlp --synthetic --epochs 3 --batch-size 500 --lr 1e9 --save '" + model + "'");
  BOOST_TEST(result.status == 1);
  REQUIRE_HAS(result.err, "nan in epoch");
  REQUIRE_HAS(result.err, "--lr");
  BOOST_TEST(!fs::exists(model));
}

// What decides which backend runs a program is the machine that it starts on.
BOOST_AUTO_TEST_CASE(the_example_binary_names_no_backend) {
  Folder folder;
  std::string out = folder / "needed";
  BOOST_REQUIRE(
      std::system(
          ("readelf -d '" + tenon::test::build_dir() + "/bin/lenet' >'" + out + "'").c_str()) == 0);
  std::string text = slurp(out);
  REQUIRE_HAS(text, "libtenon.so");
  BOOST_TEST(!has(text, "libtenon_cpu"));
}

BOOST_AUTO_TEST_CASE(without_the_cpu_plugin_the_example_stops_with_the_load_report) {
  Folder folder;
  fs::create_directories(folder.path / "lib");
  fs::create_directories(folder.path / "bin");
  fs::copy(tenon::test::build_dir() + "/bin/lenet", folder.path / "bin");
  for (auto& entry : fs::directory_iterator(tenon::test::build_dir() + "/lib")) {
    if (!entry.is_directory())
      fs::copy(entry.path(), folder.path / "lib" / entry.path().filename(),
               fs::copy_options::copy_symlinks);
  }
  std::string err = folder / "stderr";
  int status = std::system(("LD_LIBRARY_PATH='" + (folder / "lib") + "' '" +
                            (folder / "bin/lenet") + "' --synthetic >/dev/null 2>'" + err + "'")
                               .c_str());
  std::string text = slurp(err);
  BOOST_TEST(WIFEXITED(status));
  BOOST_TEST(WEXITSTATUS(status) == 1, text);
  REQUIRE_HAS(text, "cpu");
  REQUIRE_HAS(text, "searched:");
  REQUIRE_HAS(text, folder / "lib");
}

// A name of a file may hold what a terminal obeys.
BOOST_AUTO_TEST_CASE(an_example_shows_names_from_outside_and_does_not_obey_them) {
  Folder folder;
  auto missing = run(folder, "lenet --synthetic --load '" + (folder / "red\x1b[31m") + "/none'");
  BOOST_TEST(missing.status == 1);
  REQUIRE_HAS(missing.err, "/red\\x1b[31m/none");
  BOOST_TEST(!has(missing.err + missing.out, "\x1b"));
}

BOOST_AUTO_TEST_CASE(output_of_an_example_that_cannot_be_written_is_a_failure) {
  if (!fs::exists("/dev/full")) return;  // not on every machine
  Folder folder;
  const std::string model = folder / "kept.h5";
  for (const std::string& command :
       {"mlp --synthetic --epochs 1 --batch-size 500 --save '" + model + "'",
        std::string("lenet --help")}) {
    auto result = run(folder, command, "", "/dev/full");
    BOOST_TEST(result.status == 1,
               command << " ended with " << result.status << ": " << result.err);
  }
  BOOST_TEST(fs::exists(model));  // what was learned is not lost with the text
}

BOOST_AUTO_TEST_SUITE_END()
