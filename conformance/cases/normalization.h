// Normalization and softmax: rows that registers, a warp or a block hold and longer ones, channels
// of every size.
#pragma once

#include <tenon/conformance/bytes.h>
#include <tenon/conformance/case.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/shape.h>

namespace tenon::conformance {

// The reference files give the running statistics as arguments; the table gives them as inputs and
// gets back what became of them.
inline List call_batch_norm(const json& a, const List& in) {
  Tensor mean, var;
  if (at(in, 3).defined()) mean = copied(in[3]), var = copied(in[4]);
  if (a.contains("running_mean"))
    mean = like(a.at("running_mean"), in[0]), var = like(a.at("running_var"), in[0]);
  List out = {batch_norm(in[0], mean, var, at(in, 1), at(in, 2), a.at("training"),
                         a.value("momentum", 0.3), a.value("eps", 1e-4))};
  if (at(in, 3).defined()) out.insert(out.end(), {mean, var});
  return out;
}
inline List call_layer_norm(const json& a, const List& in) {
  return {layer_norm(in[0], shape_of(a.at("normalized_shape")), at(in, 1), at(in, 2),
                     a.value("eps", 1e-5))};
}

inline List call_group_norm(const json& a, const List& in) {
  return {group_norm(in[0], a.at("num_groups"), at(in, 1), at(in, 2), a.value("eps", 1e-5))};
}
// As call_batch_norm.
inline List call_instance_norm(const json& a, const List& in) {
  Tensor mean, var;
  if (at(in, 3).defined()) mean = copied(in[3]), var = copied(in[4]);
  if (a.contains("running_mean"))
    mean = like(a.at("running_mean"), in[0]), var = like(a.at("running_var"), in[0]);
  List out = {instance_norm(in[0], mean, var, at(in, 1), at(in, 2),
                            a.value("use_input_stats", true), a.value("momentum", 0.3),
                            a.value("eps", 1e-5))};
  if (at(in, 3).defined()) out.insert(out.end(), {mean, var});
  return out;
}
inline List call_batch_norm_stats(const json& a, const List& in) {
  Tensor mean = like(a.at("running_mean"), in[0]), var = like(a.at("running_var"), in[0]);
  batch_norm(in[0], mean, var, Tensor(), Tensor(), true, a.at("momentum"), a.at("eps"));
  return {mean, var};
}
inline List call_rms_norm(const json& a, const List& in) {
  std::optional<double> eps;
  if (a.contains("eps") && !a.at("eps").is_null()) eps = a.at("eps").get<double>();
  return {rms_norm(in[0], shape_of(a.at("normalized_shape")), at(in, 1), eps)};
}
inline List call_local_response_norm(const json& a, const List& in) {
  return {local_response_norm(in[0], a.at("size"), a.value("alpha", 1e-4), a.value("beta", 0.75),
                              a.value("k", 1.0))};
}
inline List call_weight_norm(const json& a, const List& in) {
  return {weight_norm(in[0], in[1], a.value("dim", int64_t{0}))};
}

inline std::vector<Variant> lines_of_all_sizes() {
  std::vector<Variant> variants;
  const auto add = [&](const Shape& shape, int64_t dim, Types types = kFloats) {
    variants.push_back({"{'dim': " + std::to_string(dim) + "}", {In(shape)}, types});
  };
  for (int64_t dim : {0, 1, -1}) add({2, 3, 4}, dim);
  for (int64_t n : {1, 2, 5, 10, 32, 100, 128, 129, 500, 512, 513, 1000, 1024, 2047, 4096})
    add({n > 1000 ? 2 : 7, n}, 1);
  for (int64_t n : {9000, 17000, 20001}) add({2, n}, 1, n == 9000 ? kFloats : kF32);
  for (const Shape& shape : {Shape{0, 5}, Shape{5, 0}, Shape{1, 1}}) add(shape, 1);
  add({3000, 10}, 1, kF32);
  for (const Shape& shape : {Shape{4, 5, 6}, Shape{1, 3, 1}, Shape{2, 300, 3}, Shape{3, 2, 70},
                             Shape{2, 40, 33}, Shape{1000, 2}})
    for (size_t d = 0; d < shape.size(); ++d) add(shape, static_cast<int64_t>(d));
  add({}, 0);
  return variants;
}

inline std::vector<Variant> layers_of_all_sizes() {
  std::vector<Variant> variants = {
      {"{'normalized_shape': [4]}", {{2, 3, 4}, {4}, {4}}},
      {"{'normalized_shape': [3, 4]}", {{2, 3, 4}, {3, 4}, absent()}},
      {"{'normalized_shape': [2, 3, 4]}", {{2, 3, 4}}},
      {"{'normalized_shape': [3, 4], 'eps': 0.1}", {{5, 2, 3, 4}, {3, 4}, absent()}},
      {"{'normalized_shape': [5, 2, 3, 4]}", {{5, 2, 3, 4}}},
      {"{'normalized_shape': [6]}", {{5000, 6}, {6}, {6}}, kF32},
      {"{'normalized_shape': [4]}", {{0, 4}, {4}}}};
  for (int64_t n : {1, 3, 32, 100, 129, 512, 768, 1000, 4096, 17001, 20000}) {
    const Types types = n > 5000 ? kF32 : kFloats;
    const std::string args = "{'normalized_shape': [" + std::to_string(n) + "]}";
    const In x = Shape{n > 2000 ? 3 : 9, n};
    variants.push_back({args, {x, In(Shape{n}), In(Shape{n})}, types});
    variants.push_back({args, {x}, types});
  }
  return variants;
}

inline std::vector<Variant> channels_of_all_sizes() {
  std::vector<Variant> variants;
  for (const Shape& shape :
       {Shape{3, 2}, Shape{2, 2, 3}, Shape{2, 1}, Shape{7, 5}, Shape{64, 32}, Shape{4, 3, 5},
        Shape{2, 6, 8, 8}, Shape{3, 2, 7, 7}, Shape{1, 4, 2, 2, 3}, Shape{2, 2, 70, 80},
        // More than one part of a plane, and more rows than are under way at a time.
        Shape{1, 2, 99, 100}, Shape{9000, 3}, Shape{2, 5000}}) {
    const Shape c = {shape[1]};
    const Types types = shape.numel() > 15000 ? kF32 : kFloats;
    for (const char* training : {"{'training': true}", "{'training': false}"}) {
      variants.push_back({training, {In(shape), In(c), In(c), constant(c), constant(c)}, types});
      variants.push_back(
          {training, {In(shape), absent(), absent(), constant(c), constant(c)}, types});
    }
    variants.push_back({"{'training': true}", {In(shape), In(c), In(c)}, types});
  }
  variants.push_back(
      {"{'training': false}", {{0, 3, 4}, {3}, absent(), constant({3}), constant({3})}});
  return variants;
}

inline std::vector<Line> normalization_cases() {
  // clang-format off
  return {
      {"softmax", along(softmax), kReals, lines_of_all_sizes(), kSums, {.types_of_cpu = kHalves, .values = Values::ordinary}},
      {"log_softmax", along(log_softmax), kReals, lines_of_all_sizes(), kLongSums, {.types_of_cpu = kHalves, .values = Values::ordinary}},
      {"layer_norm", call_layer_norm, kReals, layers_of_all_sizes(), kLongSums, {.difference = 1e-5, .types_of_cpu = kHalves, .values = Values::ordinary, .distinct = true}},
      {"batch_norm", call_batch_norm, kReals, channels_of_all_sizes(), kLongSums, {.difference = 1e-5, .types_of_cpu = kHalves, .values = Values::ordinary, .distinct = true}},
      {"batch_norm_stats", call_batch_norm_stats, kReals, {{"{'running_mean': [0.5, 1, 2], 'running_var': [1, 2, 3], 'momentum': 0.2, 'eps': 1e-4}", {{4, 3, 5}}}}, kLongSums, {.difference = 0, .types_of_cpu = kHalves, .values = Values::ordinary}},
      {"group_norm", call_group_norm, kFloats,
          {{"{'num_groups': 2}", {{2, 4, 3}, {4}, {4}}}, {"{'num_groups': 1}", {{3, 5}}}, {"{'num_groups': 6}", {{2, 6, 5, 7}, {6}, absent()}}, {"{'num_groups': 2}", {{0, 4, 3}, {4}}}, {"{'num_groups': 32}", {{4, 64, 28, 28}, {64}, {64}}, kF32}, {"{'num_groups': 2}", {{3, 8}, {8}, {8}}}, {"{'num_groups': 3}", {{5, 111}, {111}, {111}}}, {"{'num_groups': 2}", {{3, 4, 5, 7}, absent(), {4}}}, {"{'num_groups': 5}", {{2, 5, 1}, {5}, {5}}}, {"{'num_groups': 2}", {{300, 6, 1, 9}, {6}, {6}}}},
          kLongSums, {.difference = 1e-5, .values = Values::ordinary, .distinct = true}},
      {"instance_norm", call_instance_norm, kFloats,
          {{"", {{2, 3, 4}, {3}, {3}}}, {"", {{1, 2, 3, 3}}}, {"", {{2, 3, 5}, absent(), absent(), constant({3}), constant({3})}}, {"", {{2, 1, 5}, absent(), absent(), constant({1}), constant({1})}}, {"{'use_input_stats': false}", {{2, 3, 5}, {3}, {3}, constant({3}), constant({3})}}, {"", {{0, 3, 4}}}, {"", {{4, 8, 40, 33}, {8}, {8}}, kF32}, {"", {{3, 20, 17}, absent(), {20}}}},
          kLongSums, {.difference = 1e-5, .values = Values::ordinary, .distinct = true}},
      {"rms_norm", call_rms_norm, kFloats,
          {{"{'normalized_shape': [4], 'eps': 1e-5}", {{2, 3, 4}, {4}}}, {"{'normalized_shape': [3, 4], 'eps': 0.1}", {{2, 3, 4}}}, {"{'normalized_shape': [4], 'eps': 1e-5}", {{0, 4}, {4}}}, {"{'normalized_shape': [768], 'eps': 1e-5}", {{70, 768}, {768}}, kF32}, {"{'normalized_shape': [1], 'eps': 1e-5}", {{5, 1}, {1}}}, {"{'normalized_shape': [2, 50]}", {{7, 2, 50}, {2, 50}}}, {"{'normalized_shape': [33], 'eps': 1e-5}", {{600, 33}, {33}}}, {"{'normalized_shape': [9001], 'eps': 1e-5}", {{3, 9001}, {9001}}, kF32}},
          kLongSums, {.difference = 1e-5, .values = Values::ordinary}},
      {"local_response_norm", call_local_response_norm, kFloats,
          {{"{'size': 2}", {{2, 5, 3}}}, {"{'size': 5, 'alpha': 0.1, 'beta': 0.5, 'k': 2.0}", {{1, 7, 2, 3}}}, {"{'size': 9}", {{2, 3, 4}}}, {"{'size': 1}", {{2, 1, 4}}}, {"{'size': 3}", {{0, 3, 4}}}},
          kSums, {.values = Values::ordinary}},
      {"weight_norm", call_weight_norm, kFloats,
          {{"", {{3, 4}, {3, 1}}}, {"{'dim': 1}", {{2, 3, 2}, {1, 3, 1}}}, {"{'dim': -1}", {{5, 2}, {}}}, {"", {{16, 8, 3, 3}, {16, 1, 1, 1}}}},
          kLongSums, {.difference = 1e-5, .values = Values::ordinary, .distinct = true}},
  };
  // clang-format on
}

}  // namespace tenon::conformance
