// What a checkpoint of a training run holds, part by part, and what is refused.
#include <cmath>
#include <limits>
#include <random>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "serialization/training_run.h"

BOOST_AUTO_TEST_SUITE(training_checkpoint_test)

using namespace tenon;
using namespace tenon::test::training_run;
using test::require_error;
using Groups = std::vector<optim::ParamGroup<optim::AdamOptions>>;

// The checkpoint would keep a reference to a model that is gone.
static_assert(!std::is_constructible_v<CheckpointModel, nn::Linear>);
static_assert(std::is_constructible_v<CheckpointModel, nn::Linear&>);

BOOST_AUTO_TEST_CASE(values_of_users_are_kept_exactly) {
  TempFolder folder;
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               infinity = std::numeric_limits<double>::infinity();
  const std::string text = "\"Zeilen\"\nund\\ \x01 Umlaute: äöü ∞ {\"a\": [1, 2]}, </end>";
  Net net;
  const Checkpoint run{.model = net,
                       .epoch = 3,
                       .step = -4,
                       .user = {{"third", 1.0 / 3},
                                {"one", 1.0},
                                {"zero", -0.0},
                                {"tiny", 5e-324},
                                {"nan", nan},
                                {"down", -infinity},
                                {"up", infinity},
                                {"large", uint64_t{18446744073709551615u}},
                                {"least", std::numeric_limits<int64_t>::min()},
                                {"yes", true},
                                {"", "no name"},
                                {text, text},
                                {"order", arange(5)},
                                {"empty", zeros({0, 2}, {.dtype = f16})}}};
  save(folder / "x.h5", run);
  Checkpoint found{.model = net, .user = {{"gone", 1}}};
  load(folder / "x.h5", found);
  BOOST_TEST(found.epoch == 3);
  BOOST_TEST(found.step == -4);
  const CheckpointValues& user = found.user;
  BOOST_TEST(user.size() == run.user.size());
  BOOST_TEST(user.at("third").number() == 1.0 / 3);
  BOOST_TEST(user.at("one").str() == "1.0");
  BOOST_TEST(std::signbit(user.at("zero").number()));
  BOOST_TEST(user.at("tiny").number() == 5e-324);
  BOOST_TEST(std::isnan(user.at("nan").number()));
  BOOST_TEST(user.at("up").number() == infinity);
  BOOST_TEST(user.at("down").number() == -infinity);
  BOOST_TEST(user.at("large").natural() == 18446744073709551615u);
  BOOST_TEST(user.at("least").whole() == std::numeric_limits<int64_t>::min());
  BOOST_TEST(user.at("yes").whole() == 1);
  BOOST_TEST(user.at("").text() == "no name");
  BOOST_TEST(user.at(text).text() == text);
  BOOST_TEST(user.at("order").tensor().to_vector<int>().at(4) == 4);
  BOOST_TEST(user.at("empty").str() == "f16 (0, 2)");
  require_error<StateDictError>([&] { user.at("order").number(); }, "a tensor", "not a number");
  require_error<StateDictError>([&] { user.at("third").whole(); }, "0.3333333333333333",
                                "not a whole number");
  require_error<StateDictError>([&] { user.at("large").whole(); }, "not a whole number");
  require_error<StateDictError>([&] { user.at("least").natural(); }, "from 0 to 2^64 - 1");
  require_error<StateDictError>([&] { user.at("one").text(); }, "the number 1.0, not a text");
  require_error<StateDictError>([&] { user.at("nobody"); }, "no value \"nobody\" among the 14: ");
  require_error<CheckpointError>(
      [&] {
        save(folder / "y.h5", {.user = {{"a", "\xff"}}});
      },
      "cannot save checkpoint", "y.h5", "is not valid UTF-8");
  require_error<CheckpointError>(
      [&] {
        save(folder / "y.h5", Checkpoint{.user = {{"a/b", zeros({1})}}});
      },
      "cannot store a tensor under the key 'a/b'");
  BOOST_TEST(!std::filesystem::exists(folder / "y.h5"));
}

BOOST_AUTO_TEST_CASE(the_model_of_such_a_file_loads_alone) {
  TempFolder folder;
  Net net, other;
  optim::SGD sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  step(sgd, net, 0);
  save(folder / "x.h5", {.model = net, .optimizer = sgd, .user = {{"t", ones({2})}}});
  BOOST_TEST(load(folder / "x.h5", other).complete());
  BOOST_TEST((values_of(net.parameters()) == values_of(other.parameters())));
  BOOST_TEST(load(folder / "x.h5").size() == 4u);
  // A file with a model alone is no training.
  save(folder / "y.h5", net);
  require_error<StateDictError>([&] { load(folder / "y.h5", {.model = net, .optimizer = sgd}); },
                                "cannot load checkpoint '" + (folder / "y.h5").string() + "'",
                                "optimizer was asked for", "it has a model alone");
  load(folder / "y.h5", {.model = other, .random = false});
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_changes_nothing) {
  TempFolder folder;
  Run saved;
  step(saved.adam, saved.net, 0);
  saved.rate.step();
  saved.loader.set_state({2, 3});
  saved.all.epoch = 8;
  save(folder / "x.h5", saved.all);

  Run run;
  step(run.adam, run.net, 1);
  const std::string before = all_bits(folder / "before.h5", run.all);
  auto refuses = [&](Checkpoint asked, const auto&... parts) {
    asked.epoch = run.all.epoch, asked.user = run.all.user;
    require_error<StateDictError>(
        [&] { load(folder / "x.h5", asked); },
        "cannot load checkpoint '" + (folder / "x.h5").string() + "': ", parts...);
    BOOST_TEST((all_bits(folder / "after.h5", run.all) == before));
    BOOST_TEST(asked.epoch == 7);
    BOOST_TEST(asked.user.at("note").text() == "here");
  };
  auto with = [&](auto&& change) {
    Checkpoint asked = run.all;
    change(asked);
    return asked;
  };

  refuses(with([](Checkpoint& c) { c.optimizer = {}; }),
          "the file has parts that were not asked for: optimizer", ".strict = false");
  refuses(with([](Checkpoint& c) { c.model = {}; }), "the file has a model, and no .model");
  refuses(with([&](Checkpoint& c) { c.average = run.net; }),
          "average was asked for, and the file has no average; it has optimizer, "
          "scheduler, scaler, loader, random");
  optim::SGD sgd(run.net.parameters(), 0.1);
  refuses(with([&](Checkpoint& c) { c.optimizer = sgd; }),
          "optimizer: it is of type Adam in the file and SGD here. Make Adam to go on");
  optim::ExponentialLR decay(run.adam, 0.5);
  refuses(with([&](Checkpoint& c) { c.scheduler = decay; }),
          "scheduler: it is of type StepLR in the file and ExponentialLR here");
  optim::Adam some({run.net.fc1.weight, run.net.fc1.bias});
  refuses(with([&](Checkpoint& c) { c.optimizer = some; }),
          "optimizer: this optimizer does not have the parameters \"fc2.bias\", \"fc2.weight\" of "
          "the file. Give the optimizer the parameters that it had");
  optim::Adam split(
      Groups{{{run.net.fc1.weight, run.net.fc1.bias}}, {{run.net.fc2.weight, run.net.fc2.bias}}});
  refuses(with([&](Checkpoint& c) { c.optimizer = split; }),
          "optimizer: no group of the file has the parameters of group 0 here");
  optim::Adam foreign({zeros({2}).requires_grad_()});
  refuses(with([&](Checkpoint& c) { c.optimizer = foreign; }),
          "parameter 0 of group 0, of shape (2,), is not one of the model");
  data::DataLoader wide(run.loader.dataset().size()
                            ? data::TensorDataset(ones({10, 3}), zeros({10}))
                            : data::TensorDataset(ones({1}), ones({1})),
                        {.batch_size = 5});
  refuses(with([&](Checkpoint& c) { c.loader = wide; }),
          "loader: \"batch_size\" is 2 in the file and 5 here");
  data::DataLoader in_order(run.loader.dataset().size()
                                ? data::TensorDataset(ones({10, 3}), zeros({10}))
                                : data::TensorDataset(ones({1}), ones({1})),
                            {.batch_size = 2, .shuffle = false});
  refuses(with([&](Checkpoint& c) { c.loader = in_order; }),
          "loader: \"shuffle\" is 1 in the file and 0 here");
  refuses(with([&](Checkpoint& c) {
            c.optimizer = {{"generator", run.adam}};
          }),
          "optimizer \"generator\" was asked for");
  // The last part that is looked at fails, and those before it have not been changed.
  load(folder / "x.h5", run.all);
  BOOST_TEST(run.all.epoch == 8);
  BOOST_TEST((run.loader.state() == data::LoaderState{2, 3}));
  BOOST_TEST((all_bits(folder / "after.h5", run.all) == all_bits(folder / "b.h5", saved.all)));
}

BOOST_AUTO_TEST_CASE(without_strict_what_fits_is_loaded) {
  TempFolder folder;
  Run saved;
  step(saved.adam, saved.net, 0);
  saved.loader.set_state({2, 3});
  save(folder / "x.h5", saved.all);

  Run run;
  optim::Adam some(Groups{{{run.net.fc1.weight}, {.lr = 3}}});
  data::DataLoader wide(data::TensorDataset(ones({10, 3}), zeros({10})), {.batch_size = 5});
  Checkpoint asked = run.all;
  asked.optimizer = some, asked.loader = wide, asked.scaler = {};
  const CheckpointReport report = load(folder / "x.h5", asked, {.strict = false});
  const std::string text = report.str();
  BOOST_TEST(has(text, "left as it was: "));
  BOOST_TEST(has(text, "optimizer: this optimizer does not have the parameters \"fc1.bias\""));
  BOOST_TEST(has(text, "its options stay"));
  BOOST_TEST(has(text, "loader: \"batch_size\" is 2 in the file and 5 here"));
  BOOST_TEST(has(text, "not used: scaler"));
  BOOST_TEST(some.lr() == 3);
  BOOST_TEST((values_of(run.net.parameters()) == values_of(saved.net.parameters())));
  BOOST_TEST((values_of({some.state_dict().tensors.at("state.0.exp_avg")}) ==
              values_of({saved.adam.state_dict().tensors.at("state.0.exp_avg")})));
}

BOOST_AUTO_TEST_CASE(an_average_that_does_not_fit_stays_as_it_is) {
  TempFolder folder;
  Net net, other;
  struct Twice : nn::Module<Twice> {
    nn::Linear first{2, 2}, second{2, 2};
  } apart, one;
  one.second = one.first;  // one tensor under two names, for which the file has different values
  save(folder / "x.h5", {.model = net, .average = apart});
  const auto before = values_of(one.parameters());
  const CheckpointReport report =
      load(folder / "x.h5", {.model = other, .average = one}, {.strict = false});
  BOOST_TEST(has(report.str(), "left as it was: average: "));
  BOOST_TEST(!report.average.has_value());
  BOOST_TEST((values_of(one.parameters()) == before));
  BOOST_TEST((values_of(other.parameters()) == values_of(net.parameters())));
}

BOOST_AUTO_TEST_CASE(several_parts_have_names) {
  TempFolder folder;
  Net net;
  optim::SGD one({net.fc1.weight}, {.lr = 0.1, .momentum = 0.9}), two({net.fc2.weight}, 0.2);
  const Checkpoint run{.model = net, .optimizer = {{"one", one}, {"two", two}}};
  save(folder / "x.h5", run);
  one.set_lr(5), two.set_lr(5);
  load(folder / "x.h5", {.model = net, .optimizer = {{"two", two}, {"one", one}}});
  BOOST_TEST(one.lr() == 0.1);
  BOOST_TEST(two.lr() == 0.2);
  require_error<StateDictError>(
      [&] {
        save(folder / "x.h5", {.model = net, .optimizer = {{"one", one}, {"one", two}}});
      },
      "cannot save checkpoint", "there are two parts of the name optimizer \"one\"");
  save(folder / "y.h5", {.model = net, .optimizer = {{"größer", one}}});
  load(folder / "y.h5", {.model = net, .optimizer = {{"größer", one}}});
  for (const auto& [name, why] :
       {std::pair("a/b", "HDF5 takes '/' for a folder"), {"a\xff", "it is not valid UTF-8"}})
    require_error<CheckpointError>(
        [&, name = name] {
          save(folder / "z.h5", {.model = net, .optimizer = {{name, one}}});
        },
        "cannot store the part optimizer \"a", why);
}

BOOST_AUTO_TEST_CASE(a_name_that_the_file_needs_itself_is_refused_before_anything_is_written) {
  TempFolder folder;
  for (const CheckpointValue& value : {CheckpointValue(1), CheckpointValue(ones({2}))})
    require_error<CheckpointError>(
        [&] {
          save(folder / "x.h5", Checkpoint{.user = {{"@values", value}}});
        },
        "x.h5", "the part user", "\"@values\"", "Rename it");
  BOOST_TEST(folder.count() == 0u);
  // Every other text is a name for a number.
  const CheckpointValues odd{{"", 1}, {".", 2}, {"a/b", 3}, {"@x", 4}, {std::string("\0\n", 2), 5}};
  save(folder / "x.h5", Checkpoint{.user = odd});
  Checkpoint run;
  load(folder / "x.h5", run);
  for (const auto& [name, value] : odd) BOOST_TEST(run.user.at(name).whole() == value.whole());
}

BOOST_AUTO_TEST_CASE(numbers_of_parameters_have_no_gaps) {
  TempFolder folder;
  Net net;
  optim::SGD optimizer(net.parameters(), {.lr = 0.5});
  const Checkpoint saved{.optimizer = optimizer};
  save(folder / "x.h5", saved);
  const std::string good = read_bytes(folder / "x.h5");
  Checkpoint run{.optimizer = optimizer};
  for (const auto& [place, digit] :
       {std::pair("_groups.0.params.0\"", 17), {"_groups.0.params.2\"", 8}}) {
    std::string bytes = good;
    const size_t at = bytes.find(place);
    BOOST_REQUIRE(at != bytes.npos);
    bytes[at + digit] = '9';
    seal(bytes);
    write_bytes(folder / "y.h5", bytes);
    require_error<StateDictError>([&] { load(folder / "y.h5", run); }, "y.h5': optimizer",
                                  "group 0 has no parameter");
  }
}

BOOST_AUTO_TEST_CASE(values_that_nobody_would_write_are_refused) {
  TempFolder folder;
  const std::string note(40, '#');
  save(folder / "x.h5", Checkpoint{.user = {{"n", 1.5}, {"note", note}}});
  const std::string good = read_bytes(folder / "x.h5"),
                    text = "{\n\"n\": 1.5,\n\"note\": \"" + note + "\"\n}";
  const size_t at = good.find(text);
  BOOST_REQUIRE(at != good.npos);
  // The file with other values of the same length.
  auto with = [&](std::string other) {
    BOOST_REQUIRE(other.size() <= text.size());
    std::string bytes = good;
    bytes.replace(at, text.size(), other + std::string(text.size() - other.size(), ' '));
    seal(bytes);
    write_bytes(folder / "y.h5", bytes);
    return folder / "y.h5";
  };
  Checkpoint run;
  load(with("{}"), run);
  BOOST_TEST(run.user.empty());
  load(with(" { \"a\\u000a\\/\" :\t-5e-1 , \"b\":18446744073709551615}"), run);
  BOOST_TEST(run.user.at("a\n/").number() == -0.5);
  BOOST_TEST(run.user.at("b").natural() == UINT64_MAX);
  for (const auto& [other, why] : {std::pair("", "'{' is missing"),
                                   {"[1]", "'{' is missing"},
                                   {"{", "'\"' is missing"},
                                   {"{\"a\"", "':' is missing"},
                                   {"{\"a\": 1", "'}' is missing"},
                                   {"{\"a\": 1,}", "'\"' is missing"},
                                   {"{\"a\": }", "\"\" is neither a number nor a text"},
                                   {"{\"a\": [1]}", "\"[1]\" is neither"},
                                   {"{\"a\": true}", "\"true\" is neither"},
                                   {"{\"a\": 1e999}", "\"1e999\" is neither"},
                                   {"{\"a\": -nan}", "\"-nan\" is neither"},
                                   {"{\"a\": infinity}", "\"infinity\" is neither"},
                                   {"{\"a\": 0x10}", "\"0x10\" is neither"},
                                   {"{\"a\": 1 2}", "'}' is missing"},
                                   {"{\"a\": 1}{", "there is something behind the values"},
                                   {"{\"a\": 1, \"a\": 2}", "it has \"a\" twice"},
                                   {"{\"a\": \"b", "a text does not end"},
                                   {"{\"a\": \"\n\"}", "control character"},
                                   {"{\"a\": \"\\x\"}", "escape sequence"},
                                   {"{\"a\": \"\\u00e4\"}", "escape sequence"},
                                   {"{\"a\": \"\xff\"}", "not valid UTF-8"}}) {
    require_error<CheckpointError>([&, other = other] { load(with(other), run); },
                                   "cannot load checkpoint", "the part user", why);
    BOOST_TEST(has(error_of<CheckpointError>([&] { inspect(folder / "y.h5"); }), why));
  }
  // Any other bytes are refused or read, and nothing else happens.
  std::mt19937 random(4);
  for (int i = 0; i < 300; ++i) {
    std::string other = text;
    for (int k = 0; k < 3; ++k)
      other[random() % other.size()] = "{}\"\\:,u0-.eNI\xc3 "[random() % 16];
    try {
      load(with(other), run);
    } catch (const CheckpointError&) {
    }
  }
}

BOOST_AUTO_TEST_CASE(a_schedule_is_stored_with_its_optimizer) {
  TempFolder folder;
  Run run;
  require_error<StateDictError>(
      [&] { save(folder / "x.h5", {.model = run.net, .scheduler = run.rate}); },
      "cannot store scheduler: its optimizer", "Give it as .optimizer");
  optim::SGD other(run.net.parameters(), {.lr = 0.1});
  require_error<StateDictError>(
      [&] {
        save(folder / "x.h5",
             {.model = run.net, .optimizer = other, .scheduler = {{"warm up", run.rate}}});
      },
      "cannot store scheduler \"warm up\": its optimizer");
}

BOOST_AUTO_TEST_CASE(loaders_of_another_order_do_not_fit) {
  TempFolder folder;
  const data::TensorDataset ten(ones({10, 3}), zeros({10}));
  data::DataLoader plain(ten, {.batch_size = 2}),
      sampled(ten, {.batch_size = 2, .sampler = data::SequentialSampler(10)}),
      random(ten, {.batch_size = 2, .sampler = data::RandomSampler(10)});
  save(folder / "plain.h5", Checkpoint{.loader = plain});
  save(folder / "sampled.h5", Checkpoint{.loader = sampled});
  load(folder / "sampled.h5", Checkpoint{.loader = sampled});
  const std::string here = "SequentialSampler here, so that its place in the epoch means nothing";
  require_error<StateDictError>([&] { load(folder / "plain.h5", Checkpoint{.loader = sampled}); },
                                "loader: the sampler is none in the file and ", here);
  require_error<StateDictError>([&] { load(folder / "sampled.h5", Checkpoint{.loader = plain}); },
                                "SequentialSampler in the file and none here");
  require_error<StateDictError>([&] { load(folder / "sampled.h5", Checkpoint{.loader = random}); },
                                "SequentialSampler in the file and ", "RandomSampler here");
}

BOOST_AUTO_TEST_CASE(a_tensor_of_a_model_and_its_average_has_one_value) {
  TempFolder folder;
  nn::Linear model(2, 2), average(2, 2), shared = model;
  save(folder / "x.h5", Checkpoint{.model = model, .average = average});
  const auto before = model.bias.to_vector<float>();
  require_error<StateDictError>(
      [&] { load(folder / "x.h5", Checkpoint{.model = model, .average = shared}); },
      "\"weight\" of the model and \"weight\" of its average are one tensor here");
  BOOST_TEST(model.bias.to_vector<float>() == before);
}

BOOST_AUTO_TEST_SUITE_END()
