// Matrix products: everything that decides how a library is called.
#pragma once

#include <limits>

#include <tenon/conformance/case.h>
#include <tenon/core/ops/creation.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/shape.h>

namespace tenon::conformance {

inline List call_linear(const json&, const List& in) { return {linear(in[0], in[1], at(in, 2))}; }
inline List call_linear_relu(const json&, const List& in) {
  return {linear_relu(in[0], in[1], at(in, 2))};
}
// Operands that are views in ways that matter to a library: "transposed", "heads", "batch_last",
// "cut".
inline List call_matmul_of_views(const json& a, const List& in) {
  const std::string view = a.at("view");
  if (view == "transposed") return {matmul(in[0].transpose(-1, -2), in[1].transpose(-1, -2))};
  if (view == "heads")
    return {matmul(in[0].transpose(1, 2), in[1].transpose(1, 2).transpose(2, 3))};
  if (view == "batch_last") return {matmul(permute(in[0], {2, 0, 1}), in[1])};
  return {matmul(in[0].select(2, 1), in[1].select(1, 0))};
}
inline List call_expanded_matmul(const json& a, const List& in) {
  const auto expanded = [&](const Tensor& x, const char* name) {
    return a.contains(name) ? x.expand(shape_of(a[name])) : x;
  };
  return {matmul(expanded(in[0], "left"), expanded(in[1], "right"))};
}

inline Number factor(const json& a, const char* name) {
  return a.contains(name) ? number_of(a[name]) : Number(1);
}
template <Tensor (*add_product)(const Tensor&, const Tensor&, const Tensor&, Number, Number)>
List call_add_product(const json& a, const List& in) {
  return {add_product(in[0], in[1], in[2], factor(a, "beta"), factor(a, "alpha"))};
}
inline List call_einsum(const json& a, const List& in) {
  return {einsum(a.at("equation").get<std::string>(), in)};
}
inline List call_tensordot(const json& a, const List& in) {
  const json& dims = a.at("dims");
  if (dims.is_number()) return {tensordot(in[0], in[1], dims.get<int64_t>())};
  return {tensordot(in[0], in[1], shape_of(dims.at(0)), shape_of(dims.at(1)))};
}
inline List call_cross(const json& a, const List& in) {
  if (!a.contains("dim")) return {cross(in[0], in[1])};
  return {cross(in[0], in[1], a["dim"].get<int64_t>())};
}
inline List call_matrix_power(const json& a, const List& in) {
  return {matrix_power(in[0], a.at("n"))};
}
// Calls matrix_power with matrices that are far from singular.
inline List call_inverse_power(const json& a, const List& in) {
  const Tensor unit = eye(in[0].size(-1), {.dtype = in[0].dtype(), .device = in[0].device()});
  return {matrix_power(in[0] + unit * (4 + in[0].size(-1)), a.at("n"))};
}
inline List call_multi_dot(const json&, const List& in) { return {multi_dot(in)}; }
inline List call_chain_matmul(const json&, const List& in) { return {chain_matmul(in)}; }
inline List call_vander(const json& a, const List& in) {
  if (!a.contains("N")) return {vander(in[0], std::nullopt, a.value("increasing", false))};
  return {vander(in[0], a["N"].get<int64_t>(), a.value("increasing", false))};
}
inline List call_cov(const json& a, const List& in) {
  return {cov(in[0], a.value("correction", int64_t{1}), at(in, 1), at(in, 2))};
}
inline double p_of(const json& a) {
  if (!a.contains("p")) return 2;
  return a["p"].is_string() ? std::numeric_limits<double>::infinity() : a["p"].get<double>();
}
inline List call_cdist(const json& a, const List& in) {
  return {cdist(in[0], in[1], p_of(a),
                a.value("compute_mode", std::string("use_mm_for_euclid_dist_if_necessary")))};
}
// By a product the distance of points that are close is less exact, so these are far away.
inline List call_cdist_by_product(const json&, const List& in) {
  return {cdist(in[0], in[1] + 8, 2, "use_mm_for_euclid_dist")};
}
inline List call_pairwise_distance(const json& a, const List& in) {
  return {pairwise_distance(in[0], in[1], p_of(a), a.value("eps", 1e-6), keeps_dims(a))};
}
inline List call_cosine_similarity(const json& a, const List& in) {
  return {cosine_similarity(in[0], in[1], a.value("dim", int64_t{1}), a.value("eps", 1e-8))};
}
inline List call_normalize(const json& a, const List& in) {
  return {normalize(in[0], p_of(a), a.contains("dim") ? shape_of(a["dim"]) : Shape{1},
                    a.value("eps", 1e-12))};
}

inline std::vector<Variant> products() {
  std::vector<Variant> variants;
  const auto add = [&](const Shape& a, const Shape& b) {
    variants.push_back({"", {In(a), In(b)}});
  };
  for (auto& [a, b] : std::initializer_list<std::pair<Shape, Shape>>{
           {{2, 3}, {3, 4}},
           {{5, 2, 3}, {3, 4}},
           {{2, 2, 3}, {2, 3, 4}},
           {{2, 3}, {2, 3, 4}},
           {{2, 1, 2, 3}, {2, 3, 1}},
           {{1, 3}, {3, 1}},
           {{2, 5, 1, 3}, {2, 1, 3, 2}},
           {{3}, {3}},
           {{3}, {3, 4}},
           {{4, 3}, {3}},
           {{2, 4, 3}, {3}},
           {{3}, {2, 3, 4}},
           // Sizes of one, primes, beyond a vector's width.
           {{1, 1}, {1, 1}},
           {{1, 9}, {9, 1}},
           {{6, 1}, {1, 4}},
           {{1, 8}, {8, 5}},
           {{5, 8}, {8, 1}},
           {{1, 1}, {1, 7}},
           {{7, 1}, {1, 1}},
           {{64, 33}, {33, 17}},
           {{9}, {9, 4}},
           {{2, 3, 4, 5}, {2, 3, 5, 6}},
           {{4, 5}, {6, 5, 3}},
           {{6, 4, 5}, {5, 3}},
           {{3, 1, 4, 5}, {2, 5, 6}},
           {{7, 1, 5}, {7, 5, 2}},
           // Nothing to add up, and no results.
           {{3, 0}, {0, 4}},
           {{2, 3, 0}, {2, 0, 4}},
           {{0, 3}, {3, 4}},
           {{2, 3}, {3, 0}},
           {{0, 2, 3}, {0, 3, 4}},
           {{129, 80}, {80, 131}}})
    add(a, b);
  return variants;
}
inline std::vector<Variant> layers() {
  return {{"", {{6, 5}, {4, 5}, {4}}},        {"", {{6, 5}, {4, 5}, absent()}},
          {"", {{2, 3, 5}, {4, 5}, {4}}},     {"", {{5}, {4, 5}, {4}}},
          {"", {{2, 1, 2, 3}, {4, 3}, {4}}},  {"", {{37, 33}, {65, 33}, {65}}},
          {"", {{3, 0}, {4, 0}, {4}}},        {"", {{0, 3}, {2, 3}, absent()}},
          {"", {{129, 80}, {131, 80}, {131}}}};
}
inline std::vector<Variant> views_of_factors() {
  std::vector<Variant> variants = {{"{'view': 'transposed'}", {{3, 5, 4}, {3, 6, 5}}},
                                   {"{'view': 'transposed'}", {{5, 4}, {6, 5}}},
                                   {"{'view': 'heads'}", {{2, 4, 3, 5}, {2, 4, 3, 5}}},
                                   {"{'view': 'heads'}", {{1, 2, 2, 3}, {1, 2, 2, 3}}},
                                   {"{'view': 'batch_last'}", {{4, 5, 3}, {3, 5, 2}}}};
  // A column and a row of larger tensors: strides that are no leading dimension of a size above 1.
  for (auto [m, k, n] : std::initializer_list<std::array<int64_t, 3>>{
           {1, 1, 1}, {1, 9, 1}, {6, 1, 4}, {1, 8, 5}, {5, 8, 1}, {7, 1, 1}, {64, 33, 17}})
    variants.push_back({"{'view': 'cut'}", {In(Shape{m, k, 3}), In(Shape{k, 2, n})}});
  return variants;
}

inline std::vector<Line> linalg_cases() {
  constexpr Tolerance tolerance = {2e-5, 1e-12, 4e-3, 3e-2};
  const char* const views = "the first line has it";
  // clang-format off
  return {
      {"matmul", two(matmul), kReals, products(), tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary, .matrix_product = true}},
      {"matmul", two(matmul), kReals, {{"", {{5, 7}, {7, 3}}}}, tolerance, {.difference = 0, .types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary, .no_reference = views, .every_layout = true, .matrix_product = true}},
      {"matmul", call_matmul_of_views, kReals, views_of_factors(), tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary, .no_reference = views, .matrix_product = true}},
      {"matmul", call_expanded_matmul, kReals,
       {{"{'right': [6, 5, 3]}", {{6, 4, 5}, {1, 5, 3}}}, {"{'left': [6, 4, 5]}", {{1, 4, 5}, {6, 5, 3}}},
        {"{'left': [2, 3, 4, 5]}", {{1, 3, 4, 5}, {2, 3, 5, 6}}}, {"{'left': [2, 3, 4, 5]}", {{2, 1, 4, 5}, {2, 3, 5, 6}}},
        {"{'left': [2, 2, 3]}", {{1, 2, 3}, {2, 3, 2}}}},
       tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary, .no_reference = views, .matrix_product = true}},
      {"mm", two(mm), kReals, {{"", {{2, 3}, {3, 4}}}, {"", {{31, 7}, {7, 17}}}, {"", {{129, 80}, {80, 131}}}}, tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary, .no_reference = "matmul of matrices", .matrix_product = true}},
      {"bmm", two(bmm), kReals, {{"", {{2, 2, 3}, {2, 3, 2}}}, {"", {{5, 7, 3}, {5, 3, 11}}}, {"", {{5, 65, 33}, {5, 33, 67}}}}, tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary, .matrix_product = true}},
      {"linear", call_linear, kReals, layers(), tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary, .matrix_product = true}},
      {"linear_relu", call_linear_relu, kReals, layers(), tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary, .no_reference = "relu of linear in one call; no function of PyTorch's", .matrix_product = true}},
      {"mv", two(mv), kReals, {{"", {{3, 4}, {4}}}, {"", {{31, 65}, {65}}}}, tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary}},
      {"matmul", two(matmul), kIntegers, {{"", {{5, 7}, {7, 3}}}, {"", {{2, 1, 3, 4}, {3, 4, 2}}}, {"", {{4}, {4, 3}}}, {"", {{0, 3}, {3, 2}}}, {"", {{2, 0}, {0, 3}}}}, {.difference = 0, .no_reference = views, .matrix_product = true}},
      {"mm", two(mm), kIntegers, {{"", {{31, 7}, {7, 17}}}}, {.difference = 0, .no_reference = views, .matrix_product = true}},
      {"bmm", two(bmm), kIntegers, {{"", {{5, 7, 3}, {5, 3, 11}}}}, {.difference = 0, .no_reference = views, .matrix_product = true}},
      {"mv", two(mv), kIntegers, {{"", {{3, 4}, {4}}}}, {.difference = 0, .no_reference = views}},
      {"addmm", call_add_product<addmm>, kIntegers, {{"", {{4}, {2, 3}, {3, 4}}}, {"{'beta': 3, 'alpha': 2}", {{2, 1}, {2, 3}, {3, 4}}}}, {.difference = 0, .no_reference = views, .matrix_product = true}},
      {"dot", two(dot), kReals, {{"", {{4}, {4}}}, {"", {{0}, {0}}}, {"", {{1031}, {1031}}}}, tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary}},
      {"dot", two(dot), kIntegers, {{"", {{31}, {31}}}}, {.difference = 0, .no_reference = views}},
      {"vdot", two(vdot), kReals, {{"", {{4}, {4}}}}, tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary, .no_reference = "dot"}},
      {"inner", two(inner), kReals, {{"", {{2, 3}, {4, 3}}}, {"", {{3}, {3}}}, {"", {{}, {2, 3}}}}, tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary}},
      {"outer", two(outer), kNumbers, {{"", {{3}, {4}}}, {"", {{65}, {31}}}}, kLongSums, {.values = Values::ordinary}},
      {"addmm", call_add_product<addmm>, kReals,
       {{"", {{4}, {2, 3}, {3, 4}}}, {"{'beta': 0.5, 'alpha': 2}", {{2, 1}, {2, 3}, {3, 4}}}, {"{'beta': 0}", {{2, 4}, {2, 3}, {3, 4}}}, {"{'beta': 2}", {{}, {31, 17}, {17, 65}}}},
       tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary, .matrix_product = true}},
      {"addmv", call_add_product<addmv>, kReals, {{"", {{2}, {2, 3}, {3}}}, {"{'beta': 0.5, 'alpha': 2}", {{}, {31, 17}, {17}}}}, tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary}},
      {"addbmm", call_add_product<addbmm>, kReals, {{"", {{2, 4}, {2, 2, 3}, {2, 3, 4}}}, {"{'beta': 0.5, 'alpha': 2}", {{17}, {3, 31, 5}, {3, 5, 17}}}}, tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary}},
      {"baddbmm", call_add_product<baddbmm>, kReals, {{"", {{2, 2, 4}, {2, 2, 3}, {2, 3, 4}}}, {"{'beta': 0.5, 'alpha': 2}", {{17}, {3, 31, 5}, {3, 5, 17}}}, {"{'beta': 0}", {{}, {2, 2, 3}, {2, 3, 4}}}}, tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary, .matrix_product = true}},
      {"einsum", call_einsum, kReals,
       {{"{'equation': 'ij,jk->ik'}", {{2, 3}, {3, 4}}}, {"{'equation': 'bij, bjk'}", {{2, 2, 3}, {2, 3, 4}}}, {"{'equation': 'ii->i'}", {{3, 3}}}, {"{'equation': 'ii'}", {{3, 3}}}, {"{'equation': 'ji'}", {{3, 4}}},
        {"{'equation': 'i,j->'}", {{3}, {4}}}, {"{'equation': '...ij,...jk'}", {{2, 1, 2, 3}, {2, 3, 2}}}, {"{'equation': '...i->i...'}", {{2, 3, 4}}}, {"{'equation': 'i...j->ij'}", {{2, 3, 4}}},
        {"{'equation': 'ij,kj,k->ikj'}", {{1, 3}, {4, 1}, {4}}}, {"{'equation': 'bij,bkj,bi->bk'}", {{2, 2, 3}, {2, 4, 3}, {2, 2}}}, {"{'equation': 'iij,jkk->ki'}", {{2, 2, 3}, {3, 2, 2}}},
        {"{'equation': 'bhld,bhmd->bhlm'}", {{2, 3, 17, 31}, {2, 3, 33, 31}}}, {"{'equation': 'aB,Bc'}", {{31, 17}, {17, 5}}}, {"{'equation': 'ijk->'}", {{3, 0, 2}}}},
       tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary, .growing = true}},
      {"einsum", call_einsum, kIntegers, {{"{'equation': 'ij,jk->ik'}", {{2, 3}, {3, 4}}}, {"{'equation': 'ii'}", {{3, 3}}}}, {.difference = 0, .no_reference = views}},
      {"tensordot", call_tensordot, kReals, {{"{'dims': 1}", {{2, 3}, {3, 4}}}, {"{'dims': 2}", {{2, 3, 4}, {3, 4}}}, {"{'dims': 0}", {{2}, {3}}}, {"{'dims': [[0, 2], [1, 0]]}", {{5, 31, 17}, {17, 5, 3}}}}, tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary, .growing = true}},
      {"kron", two(kron), kNumbers, {{"", {{2, 3}, {3, 2}}}, {"", {{3}, {2, 2}}}, {"", {{}, {2}}}, {"", {{5, 17}, {31, 3}}}}, kSums, {.values = Values::ordinary, .growing = true}},
      {"cross", call_cross, kNumbers, {{"", {{3, 4}, {3, 4}}}, {"{'dim': -1}", {{2, 3}, {3}}}, {"{'dim': 1}", {{31, 3, 17}, {31, 3, 17}}}}, kSums, {.values = Values::ordinary}},
      {"matrix_power", call_matrix_power, kReals, {{"{'n': 0}", {{3, 3}}}, {"{'n': 1}", {{3, 3}}}, {"{'n': 3}", {{2, 3, 3}}}, {"{'n': 6}", {{3, 3}}, kReals}}, kLongSums, {.types_elsewhere = kHalves, .values = Values::ordinary}},
      {"matrix_power", call_inverse_power, kReals, {{"{'n': -1}", {{3, 3}}}, {"{'n': -3}", {{2, 3, 3}}}, {"{'n': -1}", {{17, 17}}}, {"{'n': -2}", {{1, 1}}}}, kLongSums, {.values = Values::ordinary, .no_reference = "the line before has the cases"}},
      {"multi_dot", call_multi_dot, kReals, {{"", {{2, 3}, {3, 4}}}, {"", {{2}, {2, 3}, {3, 2}, {2}}}, {"", {{31, 5}, {5, 17}, {17, 33}, {33, 2}}}}, Tolerance{2e-3, 1e-9, 4e-3, 4e-2}, {.types_of_cpu = kHalves, .values = Values::ordinary, .no_reference = "matmul in another order"}},
      {"chain_matmul", call_chain_matmul, kReals, {{"", {{2, 3}}}, {"", {{2, 3}, {3, 4}, {4, 2}}}}, kLongSums, {.types_of_cpu = kHalves, .values = Values::ordinary, .no_reference = "matmul in another order"}},
      {"vander", call_vander, kNumbers, {{"", {{3}}}, {"{'N': 5}", {{4}}}, {"{'N': 3, 'increasing': true}", {{31}}}, {"{'N': 0}", {{3}}}, {"{'N': 1}", {{3}}}}, {.values = Values::near_one}},
      {"cov", call_cov, kReals, {{"", {{3, 4}}}, {"", {{7}}}, {"{'correction': 0}", {{5, 31}}}}, kLongSums, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary}},
      // Not in half types: of a few observations that lie close together, a correlation is rounding alone there.
      {"corrcoef", one(corrcoef), kReals, {{"", {{3, 4}}}, {"", {{5, 31}}}}, kLongSums, {.types_of_cpu = kHalves, .values = Values::ordinary, .distinct = true}},
      {"cdist", call_cdist, kReals,
       {{"", {{3, 4}, {2, 4}}}, {"{'p': 1}", {{3, 4}, {2, 4}}}, {"{'p': 3}", {{2, 1, 2, 3}, {2, 3, 3}}}, {"{'p': 'inf'}", {{3, 4}, {2, 4}}}, {"{'p': 0}", {{3, 4}, {2, 4}}}, {"{'p': 0.5}", {{3, 4}, {2, 4}}},
        {"", {{31, 17}, {33, 17}}}, {"", {{2, 0}, {3, 0}}}},
       kLongSums, {.types_of_cpu = kHalves, .values = Values::ordinary, .distinct = true, .growing = true}},
      {"cdist", call_cdist_by_product, kReals, {{"", {{3, 4}, {2, 4}}}, {"", {{31, 17}, {33, 17}}}}, kLongSums, {.types_of_cpu = kHalves, .values = Values::ordinary, .no_reference = "the first line has it", .distinct = true, .growing = true}},
      {"pairwise_distance", call_pairwise_distance, kReals, {{"", {{3, 4}, {3, 4}}}, {"{'p': 1, 'keepdim': true}", {{2, 3, 4}, {4}}}, {"{'p': 3}", {{31, 17}, {31, 17}}}}, kSums, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary}},
      {"cosine_similarity", call_cosine_similarity, kReals, {{"", {{3, 4}, {3, 4}}}, {"{'dim': -2}", {{2, 3, 4}, {3, 1}}}, {"", {{31, 17}, {31, 17}}}}, kLongSums, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary}},
      {"normalize", call_normalize, kReals, {{"", {{3, 4}}}, {"{'p': 1, 'dim': [0]}", {{3, 4}}}, {"{'p': 3, 'dim': [0, 1]}", {{3, 4}}}, {"{'dim': [-1]}", {{31, 17}}}}, kSums, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary}},
  };
  // clang-format on
}

}  // namespace tenon::conformance
