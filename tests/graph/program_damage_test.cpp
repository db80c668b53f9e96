// Files of programs that are damaged, or that somebody made to do harm: each is refused with a
// clear error, or is a program that stays inside its memory.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <malloc.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <tenon/tenon.h>

#include "../files.h"
#include "crafted.h"
#include "fuzz.h"

extern "C" __attribute__((weak)) size_t __sanitizer_get_current_allocated_bytes();

BOOST_AUTO_TEST_SUITE(program_damage_test)

using namespace tenon;
using namespace tenon::test::crafted;
using nlohmann::json;

namespace {

NamedTensors small_inputs() { return {{"x", ones({2, 1, 8, 8})}, {"y", zeros({2}, i64)}}; }

// All places of a description, as JSON pointers.
void collect(const json& value, const json::json_pointer& at,
             std::vector<json::json_pointer>& places) {
  places.push_back(at);
  if (value.is_object())
    for (auto& [key, item] : value.items()) collect(item, at / key, places);
  if (value.is_array())
    for (size_t i = 0; i < value.size(); ++i) collect(value[i], at / i, places);
}

json some_value(std::mt19937& random, const json& before) {
  const int64_t small = static_cast<int64_t>(random() % 9) - 1;
  switch (random() % 12) {
    case 0:
      return nullptr;
    case 1:
      return small < 0 ? json(small) : json(static_cast<uint64_t>(small));
    case 2:
      return -1;
    case 3:
      return uint64_t{1} << (random() % 64);
    case 4:
      return std::numeric_limits<int64_t>::min();
    case 5:
      return json::array();
    case 6:
      return "x";
    case 7:
      return true;
    case 8:  // twice as much
      if (before.is_array() && !before.empty()) {
        json longer = before;
        for (auto& item : before) longer.push_back(item);
        return longer;
      }
      return before.is_number_unsigned() ? json(before.get<uint64_t>() * 2) : json(0.5);
    case 9:  // less
      if (before.is_array() && !before.empty()) {
        json shorter = before;
        shorter.erase(random() % shorter.size());
        return shorter;
      }
      return json::object();
    case 10:
      return before.is_number_unsigned() ? json(before.get<uint64_t>() + 1) : json("f64");
    default:
      return before.is_number_unsigned() && before.get<uint64_t>() > 0
                 ? json(before.get<uint64_t>() - 1)
                 : json("i64");
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_truncation_and_flipped_bit_is_refused) {
  TempFolder folder;
  save_small_program(folder / "small.tenon");
  const std::string whole = read_bytes(folder / "small.tenon");
  const std::string path = folder / "damaged.tenon";
  write_bytes(path, whole);
  const int file = open(path.c_str(), O_RDWR);
  BOOST_REQUIRE(file >= 0);
  std::mt19937 random(1);
  size_t believed = 0;
  for (int i = 0; i < 3000; ++i) {
    const size_t at = random() % whole.size();
    const char flipped = static_cast<char>(whole[at] ^ (1 << random() % 8));
    BOOST_REQUIRE(pwrite(file, &flipped, 1, static_cast<off_t>(at)) == 1);
    believed += !is_refused(path);
    BOOST_REQUIRE(pwrite(file, &whole[at], 1, static_cast<off_t>(at)) == 1);
  }
  BOOST_TEST(!is_refused(path));  // as it was
  for (size_t length = whole.size(); length > 0;) {
    length -= std::min<size_t>(length, length > 1024 ? 37 : 1);
    BOOST_REQUIRE(ftruncate(file, static_cast<off_t>(length)) == 0);
    believed += !is_refused(path);
  }
  close(file);
  BOOST_TEST(believed == 0u);
}

BOOST_AUTO_TEST_CASE(other_files_are_named_for_what_they_are) {
  TempFolder folder;
  save(folder / "weights.h5", nn::Linear(2, 2));
  const auto refusal = [&](const std::filesystem::path& path) {
    return error_of<CheckpointError>([&] { Program::load(path); });
  };
  BOOST_TEST(has(refusal(folder / "weights.h5"), "it is a checkpoint without a program"));
  BOOST_TEST(has(refusal(folder / "none"), "there is no such file"));
  write_bytes(folder / "text", "hello");
  BOOST_TEST(has(refusal(folder / "text"), "it does not start like a checkpoint"));
}

BOOST_AUTO_TEST_CASE(crafted_programs_are_refused) {
  Crafted crafted;
  const auto refused = [&](const char* why, const std::function<void(Crafted&)>& change) {
    const std::string text = crafted.refusal(change);
    BOOST_TEST(has(text, why), "\"" << why << "\" expected in: " << text);
  };
  BOOST_TEST(!is_refused(crafted.write(crafted.graph)));
  refused("its program has version 2, and this build reads version 1",
          [](Crafted& c) { c.graph["program_version"] = 2; });
  refused("has the operator \"conv9d\", which this build does not have",
          [](Crafted& c) { c.node("conv2d")["op"] = "conv9d"; });
  refused("it is no operator that runs", [](Crafted& c) { c.node("conv2d")["op"] = "select"; });
  refused("there is no value of such a number",
          [](Crafted& c) { c.node("conv2d")["at"][0][0] = 100'000; });
  refused("a number is not a whole one", [](Crafted& c) { c.node("conv2d")["at"][0][0] = -1; });
  refused("leads out of its value", [](Crafted& c) { c.node("conv2d")["at"][0][1] = 4; });
  refused("leads out of its value",
          [](Crafted& c) { c.node("conv2d")["at"][0][1] = uint64_t{1} << 61; });
  refused("it lies between two elements", [](Crafted& c) {
    c.graph["values"].push_back({"inside", 0, 4096});
    c.node("conv2d")["at"][0] = {c.graph["values"].size() - 1, 2};
  });
  refused("it reads a value that no operator before it has computed", [](Crafted& c) {
    c.graph["values"].push_back({"inside", 0, 4096});
    c.node("conv2d")["at"][0] = {c.graph["values"].size() - 1, 0};
  });
  refused("before it has computed", [](Crafted& c) {
    auto& nodes = c.graph["nodes"];
    std::swap(nodes[0], nodes[nodes.size() - 1]);
  });
  refused("lies over another of its tensors", [](Crafted& c) {
    json& at = c.node("relu")["at"];
    at[1] = at[0];
  });
  refused("a shape or strides are no list of up to 8 numbers",
          [](Crafted& c) { c.node("conv2d")["inputs"][0][1] = std::vector<int>(9, 1); });
  refused("is one that no tensor has",
          [](Crafted& c) { c.node("conv2d")["inputs"][0][1][0] = -2; });
  refused("is one that no tensor has",
          [](Crafted& c) { c.node("conv2d")["inputs"][0][1][0] = int64_t{1} << 62; });
  refused("lead out of memory", [](Crafted& c) { c.node("conv2d")["inputs"][0][2][0] = -4; });
  refused("lead out of memory",
          [](Crafted& c) { c.node("conv2d")["inputs"][0][2][0] = int64_t{1} << 61; });
  refused("unknown dtype", [](Crafted& c) { c.node("conv2d")["inputs"][0][0] = "f12"; });
  refused("are incomplete", [](Crafted& c) { c.node("conv2d")["at"].erase(0); });
  refused("an attribute is of the unknown kind",
          [](Crafted& c) { c.node("conv2d")["attributes"][0][1] = "tensor"; });
  refused("its results are others",
          [](Crafted& c) { c.node("conv2d")["outputs"][0][1][1][1] = 3; });
  refused("there is no number of such a place",
          [](Crafted& c) { c.node("adam_step")["numbers"][0][1] = 9; });
  refused("there is no draw of such a number", [](Crafted& c) { c.node("dropout")["draw"] = 7; });
  refused("against its kind", [](Crafted& c) { c.node("conv2d")["draw"] = 0; });
  refused("draws more numbers", [](Crafted& c) { c.graph["draws"] = 1'000'000; });
  refused("the number \"lr\" is nan", [](Crafted& c) {
    for (auto& n : c.graph["numbers"])
      if (n["name"] == "lr") n["value"] = int64_t{0x7ff8} << 48;
  });
  refused("larger than the memory of the device", [](Crafted& c) {
    c.graph["values"].push_back({"inside", 0, uint64_t{1} << 62});
    c.graph["values"].push_back({"inside", 0, uint64_t{1} << 62});
  });
  refused("a value is of no input or tensor", [](Crafted& c) {
    c.graph["values"].push_back({"input", 0, 512});
  });
  refused("of no tensor", [](Crafted& c) { c.graph["values"].push_back({"tensor", 500, 512}); });
  refused("its program has", [](Crafted& c) { c.graph["tensors"].push_back("more"); });
  refused("there is no tensor 'other'", [](Crafted& c) { c.graph["tensors"][0] = "other"; });
  refused("two tensors have the name",
          [](Crafted& c) { c.graph["tensors"][0] = c.graph["tensors"][1]; });
  refused("a result leads out of its value",
          [](Crafted& c) { c.graph["results"][0]["at"][1] = 1000; });
  refused("a result has no value", [](Crafted& c) { c.graph["results"][0]["at"][0] = 1'000'000; });
  refused("a result is no input", [](Crafted& c) {
    c.graph["results"][0] = {{"name", "loss"}, {"input", 5}};
  });
  refused("it has no operator", [](Crafted& c) { c.graph["nodes"] = json::array(); });
  refused("it has no \"values\"", [](Crafted& c) { c.graph.erase("values"); });
  refused("no plugin of that name", [](Crafted& c) { c.graph["device"] = "abacus:0"; });
  const auto text_refused = [&](const std::string& text) {
    return error_of<CheckpointError>([&] { Program::load(crafted.write_text(text)); });
  };
  BOOST_TEST(has(text_refused("{"), "it is no JSON object"));
  BOOST_TEST(has(text_refused(std::string(200'000, '[')), "it is no JSON object"));
}

// Or a leaf would be changed behind the back of autograd.
BOOST_AUTO_TEST_CASE(an_input_that_is_changed_and_not_said_to_be_is_refused) {
  Crafted crafted(+[](const std::filesystem::path& path) {
    const NoGrad guard;
    auto f = compile([](const Tensor& x) { return Tensor(x).add_(1.0); });
    for (int i = 0; i < 3; ++i) f(randn({3}));
    f.save(path);
  });
  const auto text = crafted.refusal([](Crafted& c) { c.graph["inputs"][0]["changed"] = false; });
  BOOST_TEST(has(text, "operator 1: it changes input 0, of which the file says that it does not"),
             text);
  BOOST_TEST(!is_refused(crafted.write(crafted.graph)));
}

// Whatever is changed in a description: it is refused, or what it says can be run.
BOOST_AUTO_TEST_CASE(no_change_of_a_description_does_harm) {
  Crafted crafted;
  const json whole = crafted.graph;
  std::vector<json::json_pointer> places;
  collect(whole, json::json_pointer(), places);
  const test::Deadline deadline;
  size_t refused = 0, run = 0;
  test::each_point(20'000, 400, deadline, [&](int64_t n) {
    std::mt19937 random(static_cast<uint32_t>(n));
    json changed = whole;
    for (size_t i = 0, count = 1 + random() % 2; i < count; ++i) {
      const auto& at = places[random() % places.size()];
      if (changed.contains(at)) changed[at] = some_value(random, changed[at]);
    }
    BOOST_TEST_CONTEXT("change " << n) {
      try {
        Program program = Program::load(crafted.write(changed));
        program.run(small_inputs())[0].wait();
        ++run;
      } catch (const Error&) {
        ++refused;
      }
    }
    return n < 20'000;
  });
  BOOST_TEST(refused > run);
  BOOST_TEST(!is_refused(crafted.write(whole)));
}

namespace {

int64_t bytes_in_use() {
  if (__sanitizer_get_current_allocated_bytes)
    return static_cast<int64_t>(__sanitizer_get_current_allocated_bytes());
  const auto info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

// Gives each operator more attributes, whose texts no other file has.
json with_own_texts(json graph, int file, const char* kind) {
  int count = 0;
  const auto text = [&] {
    return std::string(50, 'a') + std::to_string(file) + "_" + std::to_string(count++);
  };
  for (auto& node : graph["nodes"])
    while (node["attributes"].size() < 7) node["attributes"].push_back({text(), kind, text()});
  return graph;
}

}  // namespace

// A process that looks at many files keeps nothing of those that it has let go.
BOOST_AUTO_TEST_CASE(texts_of_files_are_let_go_with_them) {
  Crafted crafted;
  const json whole = crafted.graph;
  int loaded = 0;
  const auto load = [&](int file) {
    try {  // plugins leave out hints that they do not know, and refuse other attributes
      const auto& path =
          crafted.write(with_own_texts(whole, file, file % 10 == 0 ? "hint" : "text"));
      auto program = Program::load(path);
      program.run(small_inputs())[0].wait();
      ++loaded;
    } catch (const Error&) {
    }
  };
  int file = 0;
  for (; file < 50; ++file) load(file);
  const int64_t before = bytes_in_use();
  for (; file < 350; ++file) load(file);
  BOOST_TEST(loaded >= 30);
  BOOST_TEST(bytes_in_use() < before + (2 << 20));  // their texts take four times as much
}

BOOST_AUTO_TEST_SUITE_END()
