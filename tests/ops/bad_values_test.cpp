// Wrong numbers, lists, texts and indices to every function of the table. Each call either computes
// or throws a tenon::Error that names the function and the argument.
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "ops/bad_arguments.h"

BOOST_AUTO_TEST_SUITE(bad_arguments)

using namespace tenon;
using namespace tenon::test::bad_arguments;
using conformance::json;

namespace {

constexpr int64_t kFar = int64_t{1} << 40;

bool is_dim(const std::string& name) {
  for (const char* beginning : {"dim", "axis", "start_dim", "end_dim", "source", "destination"})
    if (name.starts_with(beginning)) return true;
  return false;
}

// Sizes that C++ takes as a Pair or a Triple, which have their length from the type.
bool has_fixed_length(const std::string& name) {
  for (const char* size :
       {"stride", "dilation", "padding", "output_padding", "kernel_size", "output_size"})
    if (name == size) return true;
  return false;
}

// Values for a number called `name`, beside a tensor of `rank` dimensions.
std::vector<json> wrong_numbers(const json& good, const std::string& name, int64_t rank) {
  constexpr auto limits = std::numeric_limits<int64_t>();
  std::vector<json> wrong = {-7, kFar, -kFar, limits.min(), limits.max()};
  if (is_dim(name)) wrong.insert(wrong.end(), {rank + 5, -rank - 6});
  if (good.is_number_integer()) return wrong;
  return {-7.0, 1e300, -1e300, std::numeric_limits<double>::infinity(), std::nan("")};
}

std::vector<json> wrong_values(const json& good, const std::string& name, int64_t rank) {
  if (good.is_number()) return wrong_numbers(good, name, rank);
  // A reduction is an enumeration, of which there is no other value.
  if (good.is_string() && name != "reduction") return {"nonsense", ""};
  if (!good.is_array()) return {};
  std::vector<json> wrong;
  if (!has_fixed_length(name)) wrong.push_back(json::array());
  if (good.empty()) return wrong;
  if (!has_fixed_length(name)) {
    json shorter = good, longer = good;
    shorter.erase(0);
    longer.push_back(good.back());
    wrong.insert(wrong.end(), {shorter, longer});
  }
  if (!good.back().is_number()) return wrong;
  for (size_t i : {size_t{0}, good.size() - 1})
    for (auto& number : wrong_numbers(good[i], name, rank)) {
      wrong.push_back(good);
      wrong.back()[i] = number;
    }
  return wrong;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_function_refuses_values_or_computes) {
  size_t count = 0;
  for_each_call([&](const Line& line, const Good& good, bool asked_before) {
    int64_t rank = 0;
    for (auto& x : good.in)
      if (x.defined()) rank = std::max(rank, x.dim());
    for (auto& [name, value] : good.args.items())
      for (auto& wrong : wrong_values(value, name, rank)) {
        json args = good.args;
        args[name] = wrong;
        ++count;
        try_call(line, args, good.fresh(), asked_before,
                 std::string(line.name) + " with " + args.dump());
      }
  });
  BOOST_TEST(count > 3000u);
}

BOOST_AUTO_TEST_CASE(every_function_refuses_indices_or_computes) {
  // A device with streams tells some of these failures to whoever comes next.
  if (zeros({1}).device().type() != "cpu") return;
  size_t count = 0;
  for_each_call([&](const Line& line, const Good& good, bool asked_before) {
    for (size_t i = 0; i < good.in.size(); ++i) {
      const auto& in = good.variant->in[i];
      if (conformance::kind_of(line, in) != conformance::Values::index || in.bound == 0) continue;
      if (good.in[i].numel() == 0) continue;
      for (int64_t index : {in.bound, -in.bound - 1, kFar, std::numeric_limits<int64_t>::min(),
                            std::numeric_limits<int64_t>::max()}) {
        List all = good.fresh();
        auto values = all[i].to_vector<int64_t>();
        values.back() = index;
        all[i] = tensor(values, all[i].shape());
        ++count;
        try_call(line, good.args, all, asked_before,
                 std::string(line.name) + " " + good.variant->args + " with index " +
                     std::to_string(index) + " in input " + std::to_string(i));
      }
    }
  });
  BOOST_TEST(count > 200u);
}

BOOST_AUTO_TEST_SUITE_END()
