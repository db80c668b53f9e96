// The table of levels (conformance/levels.inc, docs/operators.md) says what a backend that offers
// simple operators only (tests/ops/primitives) is really asked. TENON_WRITE_LEVELS=1 writes both
// files again.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string_view>

#include <boost/test/unit_test.hpp>

#include <tenon/conformance/driver.h>
#include <tenon/conformance/levels.h>
#include <tenon/conformance/run.h>
#include <tenon/core/dispatch/op.h>
#include <tenon/core/ops/pointwise/fused.h>
#include <tenon/plugins/host/registry.h>
#include <tenon/tenon.h>

#include "ops/dtypes.h"
#include "ops/functions.h"
#include "ops/page.h"
#include "ops/primitives/asked.h"
#include "places.h"
#include "support/expect.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(levels)

using namespace tenon;
using conformance::Level;
using conformance::Line;

namespace {

using Names = std::set<std::string>;
constexpr const char* kModels[] = {"MLP", "LeNet", "ResNet", "transformer"};

Asked& asked() {
  static auto& backend = plugins::registry().load("primitives");
  return *const_cast<Asked*>(backend.extension<Asked>("primitives.asked", 1));
}
// A device that has no plans yet.
Device fresh_device() {
  static uint32_t index = 1;
  return Device("primitives", index++);
}

struct Record {
  Names refused, ran;
};
// What `work` asks of the device.
Record record(Device device, const std::function<void()>& work) {
  synchronize(device);
  {
    std::lock_guard lock(asked().mutex);
    asked().refused.clear(), asked().ran.clear();
  }
  work();
  synchronize(device);
  std::lock_guard lock(asked().mutex);
  return {asked().refused, asked().ran};
}

// ---- models

struct Block : nn::Module<Block> {
  nn::Conv2d conv1{4, 4, 3, {.padding = 1}}, conv2{4, 4, 3, {.padding = 1}};
  nn::BatchNorm2d norm1{4}, norm2{4};
  Tensor forward(const Tensor& x) { return relu(norm2(conv2(relu(norm1(conv1(x))))) + x); }
};
struct ResNet : nn::Module<ResNet> {
  nn::Conv2d stem{3, 4, 3, {.stride = 2, .padding = 1}};
  nn::BatchNorm2d norm{4};
  nn::MaxPool2d pool{3, {.stride = 2, .padding = 1}};
  Block block;
  nn::AdaptiveAvgPool2d average{1};
  nn::Linear output{4, 5};
  Tensor forward(const Tensor& x) {
    return output(flatten(average(block(pool(relu(norm(stem(x)))))), 1));
  }
};
struct LeNet : nn::Module<LeNet> {
  nn::Conv2d conv1{1, 2, 5, {.padding = 2}}, conv2{2, 3, 5};
  nn::MaxPool2d pool{2};
  nn::Linear fc1{27, 8}, fc2{8, 5};
  Tensor forward(const Tensor& x) {
    return fc2(relu(fc1(flatten(pool(relu(conv2(pool(relu(conv1(x)))))), 1))));
  }
};
struct MLP : nn::Module<MLP> {
  nn::Linear hidden{6, 8}, output{8, 5};
  nn::Dropout dropout{0.1};
  Tensor forward(const Tensor& x) { return output(dropout(relu(hidden(x)))); }
};
// One layer with attention of two heads of size 4.
struct Transformer : nn::Module<Transformer> {
  nn::Embedding tokens{7, 8}, places{5, 8};
  nn::LayerNorm norm1{8}, norm2{8};
  nn::Linear query{8, 8}, key{8, 8}, value{8, 8}, joined{8, 8}, wide{8, 16}, narrow{16, 8},
      output{8, 7};
  nn::Dropout dropout{0.1};
  Tensor heads(const Tensor& x) { return x.view({-1, 5, 2, 4}).transpose(1, 2); }
  Tensor forward(const Tensor& ids) {
    Tensor x = tokens(ids) + places(arange(0, 5, 1, {.dtype = i64, .device = ids.device()}));
    const Tensor y = norm1(x);
    const Tensor scores = matmul(heads(query(y)), heads(key(y)).transpose(2, 3)) * 0.5;
    const Tensor mixed = matmul(softmax(scores, -1), heads(value(y)));
    x = x + dropout(joined(mixed.transpose(1, 2).reshape({-1, 5, 8})));
    x = x + narrow(gelu(wide(norm2(x))));
    return output(x).view({-1, 7});
  }
};

template <class Model, class Optimizer>
void train(Device device, const Tensor& x, const Tensor& target, Optimizer&& make_optimizer) {
  Model model;
  model.to(device);
  auto optimizer = make_optimizer(model.parameters());
  for (int i = 0; i < 2; ++i) {
    optimizer.zero_grad();
    cross_entropy(model(x.to(device)), target.to(device)).backward();
    optimizer.step();
  }
  model.eval();
  model(x.to(device)).to("cpu");
}
auto sgd(const std::vector<Tensor>& p) {
  return optim::SGD(p, {.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-4});
}
auto adam(const std::vector<Tensor>& p) { return optim::Adam(p); }

void train_model(const std::string& name, Device device) {
  const Tensor classes = tensor(std::vector<int64_t>{0, 3}, {2});
  if (name == "MLP") train<MLP>(device, ones({2, 6}), classes, sgd);
  if (name == "LeNet") train<LeNet>(device, ones({2, 1, 20, 20}), classes, sgd);
  if (name == "ResNet") train<ResNet>(device, ones({2, 3, 16, 16}), classes, sgd);
  if (name == "transformer")
    train<Transformer>(device, zeros({2, 5}, {.dtype = i64}), zeros({10}, {.dtype = i64}), adam);
}

// ---- the table

struct Entry {
  Level level = Level::optional;
  Names parts;
  std::string models;
};
using Table = std::map<std::string, Entry>;

std::string words(const Names& names) {
  std::string text;
  for (auto& n : names) text += (text.empty() ? "" : " ") + n;
  return text;
}

// What ran for an operator that was refused.
void note(const std::string& op, const Record& record, Table& table) {
  if (record.refused.contains(op)) table.at(op).parts.insert(record.ran.begin(), record.ran.end());
}

// What the values of a line's variant ask, and its gradient.
void find_parts(const Line& line, const conformance::Variant& variant, const std::string& name,
                Table& table) {
  static const conformance::Layout contiguous = {"contiguous", conformance::layout::same,
                                                 conformance::layout::all};
  const conformance::Run run{
      &line, variant, f32, std::vector<const conformance::Layout*>(variant.in.size(), &contiguous),
      1};
  const Device device = fresh_device();
  conformance::List in = conformance::inputs_of(run, {device, "cpu"}, true, false).found;
  bool any = false;
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i].defined() && !conformance::is_fixed(conformance::kind_of(line, variant.in[i])))
      in[i].requires_grad_(), any = true;
  conformance::List out;
  note(name, record(device, [&] { out = line.call(conformance::parsed(variant), in); }), table);
  if (!any || !out[0].requires_grad()) return;
  const Tensor seed = ones_like(out[0]);
  note(name + "_backward", record(device, [&] { out[0].backward(seed); }), table);
}

// Lines of operators that decompose, or whose gradient does; a few variants, as each needs a
// device.
void find_parts(const Line& line, Table& table) {
  const std::string name = line.op ? line.op : line.name;
  if (name == "fused") return;  // find_members
  auto decomposes = [&](const std::string& op) {
    return table.contains(op) && table.at(op).level == Level::decomposes;
  };
  if (!decomposes(name) && !decomposes(name + "_backward")) return;
  const auto find = [&] {
    size_t left = 3;
    for (const auto& variant : line.variants)
      if (left > 0 && conformance::contains(line.types & variant.types, f32)) {
        find_parts(line, variant, name, table);
        --left;
      }
  };
  find();
  // A gradient that only a backend with the operator itself is asked for.
  if (!decomposes(name + "_backward") || !table.at(name + "_backward").parts.empty()) return;
  const auto offer = [](const Names& names) {
    std::lock_guard lock(asked().mutex);
    asked().offered = names;
  };
  offer({name});
  find();
  offer({});
}

// A program that is refused as a whole is asked for member by member, whichever it has.
void find_members(Table& table) {
  {
    std::lock_guard lock(asked().mutex);
    asked().withheld = {"fused"};
  }
  for (const Names& members : {Names{"exp", "mul"}, Names{"abs", "add", "sqrt"}}) {
    const Device device = fresh_device();
    const Tensor x = ones({3}, {.device = device});
    FusedBuilder builder;
    FusedValue value = builder.input(f32);
    for (auto& op : members) {
      const bool takes_two = op == "mul" || op == "add";
      std::vector<FusedValue> operands(takes_two ? 2 : 1, value);
      value = takes_two ? builder.step(op, operands, 0, "reverse", false)
                        : builder.step(op, operands, 0);
    }
    builder.output(value);
    const FusedProgram& program = builder.finish();
    const Tensor* const inputs[] = {&x};
    const Record r = record(device, [&] { run_fused(program, inputs); });
    BOOST_TEST(r.refused == Names{"fused"}, words(r.refused));
    BOOST_TEST(r.ran == members, words(r.ran));
    if (r.ran == members) table["fused"].parts = {"members"};
  }
  std::lock_guard lock(asked().mutex);
  asked().withheld.clear();
}

Table measured() {
  Table table;
  for (const Op* op = all_ops(); op; op = op->next)
    if (!op->execute) table[op->name].level = op->decompose ? Level::decomposes : Level::optional;
  table["pow"].level = Level::optional;  // of whole numbers alone it is made of products
  for (const char* model : kModels) {
    const Device device = fresh_device();
    const Record r = record(device, [&] { train_model(model, device); });
    for (auto* names : {&r.refused, &r.ran})
      for (auto& n : *names) {
        auto& entry = table[n];
        if (entry.level == Level::optional) entry.level = Level::required;
        entry.models += (entry.models.empty() ? "" : " ") + std::string(model);
      }
  }
  for (auto& family : conformance::table())
    for (auto& line : family.lines) find_parts(line, table);
  for (auto& [name, entry] : Table(table))
    for (auto& part : entry.parts)
      if (table[part].level == Level::optional) table[part].level = Level::required;
  find_members(table);
  return table;
}

// The first line of levels.inc.
std::string title_of(const Table& table) {
  return "// Operator set " + std::to_string(conformance::kOperatorSet) + ": " +
         std::to_string(table.size()) + " operators.\n";
}

std::string as_source(const Table& table) {
  std::string text = title_of(table);
  for (auto& [name, e] : table)
    text += "{\"" + name + "\", Level::" + std::string(conformance::name_of(e.level)) + ", \"" +
            words(e.parts) + "\", \"" + e.models + "\"},\n";
  return text;
}

std::string as_markdown(const Table& table) {
  const auto count = [&](Level level) {
    return std::to_string(std::count_if(table.begin(), table.end(),
                                        [&](auto& e) { return e.second.level == level; }));
  };
  std::string text =
      "Operator set " + std::to_string(conformance::kOperatorSet) + ": " + count(Level::required) +
      " required operators, " + count(Level::decomposes) + " that decompose, and " +
      count(Level::optional) +
      " optional ones.\n\n| op | level | decomposes to | used by |\n|---|---|---|---|\n";
  for (auto& [name, e] : table)
    text += "| `" + name + "` | " + std::string(conformance::name_of(e.level)) + " | " +
            words(e.parts) + " | " + e.models + " |\n";
  return text;
}

// Operators at their levels, by which versions of the set differ.
std::string set_of(const Table& table) {
  std::string text;
  for (auto& [name, e] : table)
    text += name + ":" + std::string(conformance::name_of(e.level)) + " ";
  return text;
}
// The same of a levels.inc.
std::string set_in(const std::string& source) {
  std::string text;
  std::istringstream lines(source);
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find("{\""), end = line.find("\", Level::"),
                 after = line.find(',', end == line.npos ? end : end + 2);
    if (begin == line.npos || after == line.npos) continue;
    const size_t level = end + 10;
    text += line.substr(begin + 2, end - begin - 2) + ":" + line.substr(level, after - level) + " ";
  }
  return text;
}
// A table of other operators, or with others required, is another set.
void require_another_number(const Table& table, const std::string& before) {
  const std::string number = "// Operator set " + std::to_string(conformance::kOperatorSet) + ":";
  BOOST_REQUIRE_MESSAGE(
      set_of(table) == set_in(before) || !before.starts_with(number),
      "operators were added, removed or put at another level, but conformance/levels.h still says "
      "that this is operator set "
          << conformance::kOperatorSet
          << "; raise kOperatorSet there by one, and write the table again");
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_table_of_levels_is_what_is_asked) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(test::reference_dir()) / "../..";
  const fs::path source = root / "conformance/levels.inc", document = root / "docs/operators.md";
  const Table table = measured();
  for (auto& [name, e] : table)
    if (e.level == Level::decomposes)
      BOOST_CHECK_MESSAGE(!e.parts.empty(), name
                                                << " is not refused by tests/ops/primitives, or no "
                                                   "line of the table asks it alone");
  const std::string before = page::read(source);
  if (fs::exists(source)) require_another_number(table, before);
  if (fs::exists(document))  // it is not where the tests are carried to another machine
    page::require(document, "levels: written by tests/ops/levels_test.cpp", "end of levels",
                  as_markdown(table));
  if (page::writes()) {
    std::ofstream(source) << as_source(table);
    return;
  }
  constexpr const char* remedy = "; TENON_WRITE_LEVELS=1 and this test write it again";
  if (fs::exists(source))
    BOOST_CHECK_MESSAGE(before.starts_with(title_of(table)),
                        "conformance/levels.inc does not begin with " << title_of(table) << remedy);
  for (auto& [name, e] : table) {
    const auto* known = conformance::level_of(name);
    BOOST_REQUIRE_MESSAGE(known, name << " is missing in conformance/levels.inc" << remedy);
    BOOST_CHECK_MESSAGE(
        known->level == e.level && known->parts == words(e.parts) && known->models == e.models,
        name << " is otherwise in conformance/levels.inc" << remedy);
  }
  BOOST_TEST(conformance::operator_levels().size() == table.size());
}

BOOST_AUTO_TEST_CASE(the_tables_of_functions_are_what_runs) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(test::reference_dir()) / "../..";
  // The same without a sanitizer; sources are not carried to other machines.
  if (test::kSanitized || !fs::exists(root / "docs/operators.md")) return;
  const test::SimFolder sim;
  count_dispatch();
  const std::string tables = functions::as_markdown(root / "backends");
  count_dispatch(false);
  page::require(root / "docs/operators.md", "functions: written by tests/ops/functions.h",
                "end of functions", tables);
}

// On sim, the kernels of the cpu without an overlay; with TENON_PREFER=onednn, those of the
// overlay; and those of cuda where it is the device, on a GPU or emulated.
BOOST_AUTO_TEST_CASE(the_table_of_dtypes_is_what_runs) {
  namespace fs = std::filesystem;
  const fs::path document = fs::path(test::reference_dir()) / "../../docs/operators.md";
  if (!fs::exists(document)) return;  // it is not carried to other machines
  const char* preferred = std::getenv("TENON_PREFER");
  if (default_device().type() == "cuda") {
    dtypes::require(document, "cuda", default_device(), "cuda");
  } else if (preferred && preferred == std::string_view("onednn")) {
    const bool built = !plugins::registry().overlays("cpu").empty();
    const bool bf16 = __builtin_cpu_supports("avx512bw") && !std::getenv("ONEDNN_MAX_CPU_ISA");
    if (built && bf16) dtypes::require(document, "onednn", "cpu", "onednn");
  } else if (!test::kSanitized) {  // the same with one
    const test::SimFolder sim;
    dtypes::require(document, "cpu", Device("sim", 0), "sim");
  }
}

BOOST_AUTO_TEST_SUITE_END()
