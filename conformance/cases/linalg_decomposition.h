// Decompositions of matrices. Where a result is unique up to signs or rotations, what is looked at
// is not: products of the factors, and functions of the matrix.
#pragma once

#include <limits>
#include <string>

#include <tenon/conformance/case.h>
#include <tenon/core/ops/creation.h>
#include <tenon/core/ops/decomposition.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/shape.h>

namespace tenon::conformance {

// ---- matrices of the table are made of any numbers; those of the files are taken as they are

// What is no matrix goes to the function as it is.
inline bool is_made(const json& a, const Tensor& x) {
  return a.value("made", false) && x.defined() && x.dim() >= 2;
}
inline Tensor ramp(const Tensor& x, double first, double step) {
  const int64_t m = x.size(-2), n = x.size(-1);
  const TensorOptions options{.dtype = x.dtype(), .device = x.device()};
  return eye(m, n, options) * (arange(0, n, 1, options) * step + first);
}
// Far from singular, or from less than full rank.
inline Tensor regular(const json& a, const Tensor& x) {
  if (!is_made(a, x)) return x;
  return x * 0.3 + ramp(x, 4 + static_cast<double>(x.size(-1)), 0);
}
// Symmetric, with singular values of which no two are close.
inline Tensor spread(const json& a, const Tensor& x) {
  return is_made(a, x) ? x * 0.3 + ramp(x, 8, 8) : x;
}
inline Tensor symmetric(const json& a, const Tensor& x) {
  const Tensor y = spread(a, x);
  return is_made(a, x) ? (y + y.transpose(-2, -1)) * 0.5 : x;
}
inline Tensor positive_definite(const json& a, const Tensor& x) {
  return is_made(a, x) ? matmul(x, x.transpose(-2, -1)) * 0.1 + ramp(x, 1, 0) : x;
}

// ---- calls

inline List call_cholesky(const json& a, const List& in) {
  return {cholesky(positive_definite(a, in[0]), a.value("upper", false))};
}
inline List call_cholesky_solve(const json& a, const List& in) {
  return {cholesky_solve(in[0], regular(a, in[1]), a.value("upper", false))};
}
inline List call_solve(const json& a, const List& in) {
  return {solve(regular(a, in[0]), in[1], a.value("left", true))};
}
inline List call_solve_triangular(const json& a, const List& in) {
  return {solve_triangular(regular(a, in[0]), in[1], a.at("upper"), a.value("left", true),
                           a.value("unitriangular", false))};
}
inline List call_inv(const json& a, const List& in) { return {inv(regular(a, in[0]))}; }
inline List call_inverse(const json& a, const List& in) { return {inverse(regular(a, in[0]))}; }
inline List call_lu_factor(const json& a, const List& in) {
  return {lu_factor(regular(a, in[0])).LU};
}
inline List call_lu_solve(const json& a, const List& in) {
  const auto [lu, pivots] = lu_factor(regular(a, in[0]));
  return {lu_solve(lu, pivots, in[1], a.value("left", true), a.value("adjoint", false))};
}
inline List call_det(const json& a, const List& in) { return {det(regular(a, in[0]))}; }
inline List call_slogdet(const json& a, const List& in) {
  const auto [sign, logabsdet] = slogdet(regular(a, in[0]));
  return {sign, logabsdet};
}
inline List call_logdet(const json& a, const List& in) {
  return {logdet(positive_definite(a, in[0]))};
}
// With a positive diagonal of R.
inline List call_qr(const json& a, const List& in) {
  // Mode "complete" has no gradient for more rows than columns, which random shapes may have.
  const bool refused = in[0].defined() && in[0].requires_grad() && in[0].size(-2) > in[0].size(-1);
  const auto [q, r] =
      qr(regular(a, in[0]), refused ? "reduced" : a.value("mode", std::string("reduced")));
  const Tensor signs = sign(diagonal(r, 0, -2, -1)).detach();
  return {q * unsqueeze(signs, -2), r * unsqueeze(signs, -1)};
}
// U V^T, which no choice of signs changes, U S V^T and S.
inline List call_svd(const json& a, const List& in) {
  const Tensor x = spread(a, in[0]);
  const auto [u, s, vh] = svd(x, a.value("full_matrices", true));
  const int64_t k = s.size(-1);
  const Tensor left = u.narrow(-1, 0, k), right = vh.narrow(-2, 0, k);
  return {matmul(left, right), matmul(left * unsqueeze(s, -2), right), s};
}
inline List call_svdvals(const json& a, const List& in) { return {svdvals(spread(a, in[0]))}; }
// The logistic function of the matrix, and the eigenvalues.
inline List call_eigh(const json& a, const List& in) {
  const auto [w, v] = eigh(symmetric(a, in[0]) * 0.1, a.value("UPLO", std::string("L")));
  return {matmul(v * unsqueeze(sigmoid(w), -2), v.transpose(-2, -1)), w};
}
inline List call_eigvalsh(const json& a, const List& in) {
  return {eigvalsh(symmetric(a, in[0]), a.value("UPLO", std::string("L")))};
}

inline RankOptions rank_options(const json& a) {
  RankOptions options{.hermitian = a.value("hermitian", false)};
  if (a.contains("atol")) options.atol = a["atol"].get<double>();
  if (a.contains("rtol")) options.rtol = a["rtol"].get<double>();
  return options;
}
inline List call_pinv(const json& a, const List& in) {
  const RankOptions options = rank_options(a);
  return {pinv(options.hermitian ? symmetric(a, in[0]) : regular(a, in[0]), options)};
}
inline List call_matrix_rank(const json& a, const List& in) {
  return {matrix_rank(regular(a, in[0]), rank_options(a))};
}
inline List call_lstsq(const json& a, const List& in) {
  return {lstsq(regular(a, in[0]), in[1]).solution};
}
// A number, "inf" or "-inf".
inline double order_of(const json& value) {
  return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>();
}
inline bool is_word(const json& value) {
  return value.is_string() && value.get<std::string>().find("inf") == std::string::npos;
}
inline List call_matrix_norm(const json& a, const List& in) {
  const Tensor x = spread(a, in[0]);
  const json ord = a.value("ord", json("fro"));
  const Shape dims = a.contains("dim") ? shape_of(a["dim"]) : Shape{-2, -1};
  return {is_word(ord) ? matrix_norm(x, ord.get<std::string>(), dims, keeps_dims(a))
                       : matrix_norm(x, order_of(ord), dims, keeps_dims(a))};
}
inline List call_cond(const json& a, const List& in) {
  const Tensor x = spread(a, in[0]);
  const json p = a.value("p", json());
  if (p.is_null()) return {cond(x)};
  return {is_word(p) ? cond(x, p.get<std::string>()) : cond(x, order_of(p))};
}

// ---- the lines

// One square matrix, several, and some for which threads have work.
inline std::vector<Variant> squares(const std::string& more = "") {
  const std::string args = "{'made': true" + more + "}";
  return {{args, {{3, 3}}},    {args, {{2, 2, 2}}},
          {args, {{1, 1}}},    {args, {{17, 17}}},
          {args, {{67, 67}}},  {args, {{0, 3, 3}}},
          {args, {{2, 0, 0}}}, {args, {{1250, 3, 3}}, kAll, true}};
}
inline std::vector<Variant> rectangles(const std::string& more = "") {
  const std::string args = "{'made': true" + more + "}";
  return {{args, {{3, 3}}},    {args, {{4, 2}}},
          {args, {{2, 2, 4}}}, {args, {{1, 5}}},
          {args, {{31, 17}}},  {args, {{17, 41}}},
          {args, {{0, 3, 2}}}, {args, {{3, 0}}},
          {args, {{2, 0, 3}}}, {args, {{1250, 4, 3}}, kAll, true}};
}
inline std::vector<Variant> and_more(std::vector<Variant> variants,
                                     const std::vector<Variant>& more) {
  variants.insert(variants.end(), more.begin(), more.end());
  return variants;
}
inline std::vector<Variant> systems(const std::string& args) {
  const std::string from_left = "{'made': true" + args + "}",
                    from_right = "{'made': true, 'left': false" + args + "}";
  return {{from_left, {{3, 3}, {3, 2}}},
          {from_right, {{3, 3}, {2, 3}}},
          {from_left, {{2, 2, 2}, {2, 2, 3}}},
          {from_left, {{2, 2}, {3, 2, 2}}},
          {from_left, {{2, 1, 3, 3}, {3, 3, 1}}},
          {from_right, {{2, 2, 2}, {1, 2}}},
          {from_left, {{1, 1}, {1, 1}}},
          {from_left, {{41, 41}, {41, 19}}},
          {from_left, {{101, 101}, {101, 1}}},
          {from_right, {{65, 65}, {70, 65}}},
          {from_left, {{0, 0}, {0, 3}}},
          {from_left, {{3, 3}, {3, 0}}},
          {from_left, {{0, 2, 2}, {2, 1}}},
          {from_left, {{1250, 3, 3}, {1250, 3, 2}}, kAll, true}};
}

inline std::vector<Line> decomposition_cases() {
  constexpr Tolerance tolerance = {2e-4, 1e-10, 4e-3, 4e-2};
  constexpr Values values = Values::positive;
  const std::vector<Variant> vectors = {{"{'made': true}", {{3, 3}, {3}}},
                                        {"{'made': true}", {{2, 3, 3}, {2, 3}}}};
  // clang-format off
  return {
      {"cholesky", call_cholesky, kReals, and_more(squares(), squares(", 'upper': true")), tolerance, {.values = values}},
      {"cholesky_solve", call_cholesky_solve, kReals, {{"{'made': true}", {{3, 2}, {3, 3}}}, {"{'made': true, 'upper': true}", {{2, 2, 3}, {2, 2}}}, {"{'made': true}", {{41, 19}, {41, 41}}}, {"{'made': true}", {{1250, 3, 2}, {3, 3}}, kAll, true}}, tolerance, {.values = values}},
      {"solve", call_solve, kReals, and_more(systems(""), vectors), tolerance, {.values = values}},
      {"solve_triangular", call_solve_triangular, kReals,
       and_more(and_more(systems(", 'upper': true"), systems(", 'upper': false")), and_more(systems(", 'upper': true, 'unitriangular': true"), systems(", 'upper': false, 'unitriangular': true"))),
       tolerance, {.values = Values::positive}},
      {"inv", call_inv, kReals, squares(), tolerance, {.values = values}},
      {"inverse", call_inverse, kReals, {{"{'made': true}", {{3, 3}}}, {"{'made': true}", {{1250, 3, 3}}, kAll, true}}, tolerance, {.values = values, .no_reference = "inv"}},
      {"lu_factor", call_lu_factor, kReals, rectangles(), tolerance, {.values = values}},
      {"lu_solve", call_lu_solve, kReals, and_more(systems(""), systems(", 'adjoint': true")), tolerance, {.values = values, .op = "lu_permutation"}},
      {"det", call_det, kReals, {{"{'made': true}", {{3, 3}}}, {"{'made': true}", {{2, 2, 2}}}, {"{'made': true}", {{1, 1}}}, {"{'made': true}", {{0, 0}}}, {"{'made': true}", {{9, 9}}}, {"{'made': true}", {{1250, 3, 3}}, kAll, true}}, tolerance, {.values = values}},
      {"slogdet", call_slogdet, kReals, squares(), tolerance, {.values = values}},
      {"logdet", call_logdet, kReals, squares(), tolerance, {.values = values}},
      {"qr", call_qr, kReals, and_more(rectangles(), {{"{'made': true, 'mode': 'complete'}", {{2, 3}}}, {"{'made': true, 'mode': 'complete'}", {{3, 3}}}}), tolerance, {.values = values}},
      {"svd", call_svd, kReals, and_more(rectangles(), rectangles(", 'full_matrices': false")), tolerance, {.values = values, .no_reference = "its vectors are unique up to signs; svdvals and pinv have cases"}},
      {"svdvals", call_svdvals, kReals, rectangles(), tolerance, {.values = values}},
      {"eigh", call_eigh, kReals, and_more(squares(), squares(", 'UPLO': 'U'")), tolerance, {.values = values, .no_reference = "its vectors are unique up to signs; eigvalsh has cases"}},
      {"eigvalsh", call_eigvalsh, kReals, and_more(squares(), squares(", 'UPLO': 'U'")), tolerance, {.values = values}},
      {"pinv", call_pinv, kReals, and_more(rectangles(), squares(", 'hermitian': true")), tolerance, {.values = values}},
      {"matrix_rank", call_matrix_rank, kReals, rectangles(), kExact, {.difference = 0, .values = values}},
      {"lstsq", call_lstsq, kReals,
       {{"{'made': true}", {{4, 2}, {4, 3}}}, {"{'made': true}", {{2, 4}, {2, 1}}}, {"{'made': true}", {{2, 3, 2}, {2, 3}}}, {"{'made': true}", {{3, 2}, {3}}}, {"{'made': true}", {{31, 17}, {31, 5}}}, {"{'made': true}", {{1250, 4, 3}, {1250, 4, 2}}, kAll, true}},
       tolerance, {.values = values}},
      {"matrix_norm", call_matrix_norm, kReals,
       {{"{'made': true}", {{3, 4}}}, {"{'made': true, 'ord': 'nuc'}", {{2, 3, 2}}}, {"{'made': true, 'ord': 2, 'keepdim': true}", {{2, 2, 3}}}, {"{'made': true, 'ord': -2}", {{3, 3}}}, {"{'made': true, 'ord': 1}", {{2, 3, 2}}}, {"{'made': true, 'ord': 'inf'}", {{4, 3}}}, {"{'made': true, 'ord': 'nuc', 'keepdim': true}", {{1250, 3, 4}}, kAll, true}},
       tolerance, {.values = values}},
      {"cond", call_cond, kReals,
       {{"{'made': true}", {{3, 4}}}, {"{'made': true, 'p': -2}", {{2, 2, 2}}}, {"{'made': true, 'p': 'fro'}", {{2, 2, 2}}}, {"{'made': true, 'p': 'nuc'}", {{3, 3}}}, {"{'made': true, 'p': 1}", {{3, 3}}}, {"{'made': true}", {{1250, 3, 4}}, kAll, true}},
       tolerance, {.values = values}},
  };
  // clang-format on
}

}  // namespace tenon::conformance
