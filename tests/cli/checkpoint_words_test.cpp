// What `tenon checkpoint` says: of a training run, and where something is wrong.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/tensor.h>
#include <tenon/modules/linear.h>
#include <tenon/modules/optim/sgd.h>
#include <tenon/serialization/checkpoint.h>
#include <tenon/serialization/training_checkpoint.h>

#include "cli/programs.h"

BOOST_AUTO_TEST_SUITE(checkpoint_words_test)

using namespace tenon::test::programs;

BOOST_AUTO_TEST_CASE(patterns_that_match_nothing_are_told) {
  using namespace tenon;
  Folder folder;
  const std::string a = folder / "a.h5", b = folder / "b.h5";
  save(a, nn::StateDict{{"w", ones({2, 2})}, {"v", ones({1})}});
  auto command = [&](const std::vector<std::string>& words) {
    return run(folder, checkpoint_command(words));
  };
  const auto renamed =
      command({"rename", a, b, "--rule", "foo", "bar", "--permute", "none", "1,0"});
  BOOST_TEST(renamed.status == 0);
  BOOST_TEST(renamed.err == "tenon: warning: --permute 'none' matches no name of '" + a +
                                "'\ntenon: warning: --rule 'foo' matches no name of '" + a + "'\n");
  for (const auto& words : {std::vector<std::string>{"convert", a, folder / "c.h5", "--only", "no"},
                            std::vector<std::string>{"stats", a, "--only", "no"}}) {
    const auto refused = command(words);
    BOOST_TEST(refused.status == 1);
    REQUIRE_HAS(refused.err, "tenon: --only 'no' matches no name of the 2 tensors of '" + a +
                                 "', which are named like \"w\"");
  }
  BOOST_TEST(!fs::exists(folder / "c.h5"));
}

BOOST_AUTO_TEST_CASE(errors_name_the_options_of_the_command) {
  using namespace tenon;
  Folder folder;
  const std::string a = folder / "a.h5";
  save(a, nn::StateDict{{"w", ones({1000})}});
  auto command = [&](const std::vector<std::string>& words) {
    return run(folder, checkpoint_command(words));
  };
  const auto pattern = command({"stats", a, "--only", "("});
  BOOST_TEST(pattern.status == 1);
  BOOST_TEST(pattern.err.starts_with("tenon: --only '(' cannot be used as a regular expression"));
  const auto rule = command({"rename", a, folder / "b.h5", "--rule", "(", "x"});
  BOOST_TEST(rule.err.starts_with("tenon: the rule '(' cannot be used"));
  const auto section = command({"show", tenon::test::reference_dir() + "/weights/nested.pt"});
  BOOST_TEST(section.status == 1);
  REQUIRE_HAS(section.err, ". Read one of its parts with --section \"");
  const auto sections = command({"diff", a, tenon::test::reference_dir() + "/weights/nested.pt"});
  BOOST_TEST(sections.status == 2);
  REQUIRE_HAS(sections.err, "parts with --section-a or --section-b \"model\"");
  {
    std::fstream file(a, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(2000);
    file.put('x');
  }
  for (const char* name : {"show", "verify", "stats"}) {
    const auto changed = command({name, a});
    BOOST_TEST(changed.status == 1);
    REQUIRE_HAS(changed.err, "read it with --no-verify");
  }
  BOOST_TEST(command({"show", a, "--no-verify"}).status == 0);
}

BOOST_AUTO_TEST_CASE(a_folder_of_checkpoints_is_told_from_a_file) {
  Folder folder;
  const std::string runs = folder / "runs";
  auto refusal = [&] {
    const auto refused = run(folder, checkpoint_command({"show", runs}));
    BOOST_TEST(refused.status == 1);
    return refused.err;
  };
  fs::create_directories(runs);
  BOOST_TEST(refusal() == "tenon: cannot load checkpoint '" + runs + "': it is a folder\n");
  // The last name is none that a CheckpointManager gives.
  for (const char* name : {"step-000000000009.h5", "step-000000000010.h5", "step-11.h5"})
    tenon::save(runs + "/" + name, tenon::nn::StateDict{{"w", tenon::ones({1})}});
  REQUIRE_HAS(refusal(), "': it is a folder with checkpoints of a run: give one of them, '" + runs +
                             "/step-000000000010.h5'\n");
  fs::create_symlink("step-000000000009.h5", runs + "/latest.h5");
  REQUIRE_HAS(refusal(), "give one of them, '" + runs + "/latest.h5'\n");
}

BOOST_AUTO_TEST_CASE(optimizers_are_shown_by_group) {
  using namespace tenon;
  Folder folder;
  nn::Linear net(3, 2);
  optim::SGD sgd(std::vector<optim::ParamGroup<optim::SGDOptions>>{{{net.weight}, {.lr = 96}},
                                                                   {{net.bias}, {.lr = 0.5}}});
  save(folder / "run.h5", Checkpoint{.model = net, .optimizer = sgd});
  const auto shown = run(folder, checkpoint_command({"show", folder / "run.h5"}));
  REQUIRE_HAS(shown.out, "  group 0: 1 parameters, dampening 0, lr 96, maximize 0, momentum 0, ");
  REQUIRE_HAS(shown.out, "  group 1: 1 parameters, dampening 0, lr 0.5, maximize 0, momentum 0, ");
}

BOOST_AUTO_TEST_SUITE_END()
