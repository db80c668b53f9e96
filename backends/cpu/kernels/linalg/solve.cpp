// Decompositions of matrices. Small ones of a batch are shared out over the threads; of large ones,
// the products within each are.
#include <cmath>
#include <vector>

#include <tenon/plugins/sdk/requests/decomposition.h>

#include "kernels/linalg/factor.h"
#include "kernels/linalg/orthogonal.h"
#include "runtime/common.h"

namespace tenon::cpu {
namespace {

using DecompositionRequest = sdk::DecompositionRequest;

template <class T>
MatrixView<T> rows_of(T* data, int64_t columns) {
  return {data, columns, 1};
}

// What may go wrong with a matrix: the number of a pivot, or one of these.
constexpr int64_t kFine = -1, kNotFinite = -2, kNoConvergence = -3;

// Throws for the first matrix that has failed.
void require_fine(const std::string& op, const DecompositionRequest& r,
                  const std::vector<int64_t>& outcomes) {
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const int64_t outcome = outcomes[i];
    if (outcome == kFine) continue;
    std::string why = DecompositionRequest::name_of(op, static_cast<int64_t>(i), r.batched);
    if (outcome == kNotFinite)
      why += " has NaN or infinities, for which the iteration does not converge";
    else if (outcome == kNoConvergence)
      why += " is too ill-conditioned: the iteration did not converge";
    else if (op == "cholesky")
      why += sdk::text(" is not positive definite: its leading minor of order {} is not positive",
                       outcome + 1);
    else
      why += sdk::text(" is singular: pivot {} of its LU decomposition is 0", outcome + 1);
    throw sdk::Error(TN_CODE_INVALID_ARGUMENT, std::move(why));
  }
}

// A plan that runs body(run, i, threads) for each matrix i, which takes about `work` multiply-adds
// and returns its outcome. Where the body has a use for threads, `threaded`, large matrices go one
// after the other.
template <class Body>
tn_plan* plan_matrices(const Request& request, const DecompositionRequest& r, double work,
                       bool threaded, Body body) {
  const auto ns = static_cast<uint64_t>(std::min(1e15, 0.5 * work * static_cast<double>(r.count)));
  return sdk::make_plan(
      [op = std::string(request.op()), r, work, threaded, body](const tn_run& run) {
        std::vector<int64_t> outcomes(static_cast<size_t>(r.count), kFine);
        const bool side_by_side = !threaded || (r.count >= thread_count() && work < (1 << 26));
        const auto part = [&](int64_t begin, int64_t end, uint32_t threads) {
          for (int64_t i = begin; i < end; ++i)
            outcomes[static_cast<size_t>(i)] = body(run, i, threads);
        };
        if (side_by_side) {
          const auto grain = std::max<int64_t>(1, static_cast<int64_t>((1 << 16) / (work + 1)));
          parallel_for(r.count, grain,
                       [&](int64_t begin, int64_t end, uint32_t) { part(begin, end, 1); });
        } else {
          part(0, r.count, thread_count());
        }
        require_fine(op, r, outcomes);
      },
      {0, 200 + ns});
}

template <class T>
const T* input_of(const tn_run& run, size_t i, int64_t begin) {
  return static_cast<const T*>(run.inputs[i]) + begin;
}
// NULL where nobody wants it.
template <class T>
T* output_of(const tn_run& run, size_t i, int64_t begin) {
  auto* const whole = static_cast<T*>(run.outputs[i]);
  return whole ? whole + begin : nullptr;
}

double cube(int64_t n) {
  const auto size = static_cast<double>(n);
  return size * size * size;
}
double volume(int64_t m, int64_t n, int64_t k) {
  return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

bool all_finite(auto* x, int64_t n) {
  return std::all_of(x, x + n, [](auto v) { return std::isfinite(v); });
}

// ---- triangular factors

template <class T>
tn_plan* cholesky_plan(const Request& request, const DecompositionRequest& r) {
  return plan_matrices(request, r, cube(r.n) / 6, true,
                       [n = r.n](const tn_run& run, int64_t i, uint32_t threads) {
                         const T* const x = input_of<T>(run, 0, i * n * n);
                         T* const l = output_of<T>(run, 0, i * n * n);
                         for (int64_t row = 0; row < n; ++row)
                           std::copy_n(x + row * n, row + 1, l + row * n);
                         const int64_t pivot = Factorizer<T>(threads).cholesky(rows_of(l, n), n);
                         for (int64_t row = 0; row < n; ++row)
                           std::fill(l + row * n + row + 1, l + (row + 1) * n, T(0));
                         return pivot;
                       });
}

template <class T>
tn_plan* lu_plan(const Request& request, const DecompositionRequest& r) {
  return plan_matrices(request, r, volume(r.m, r.n, r.k()) / 3, true,
                       [m = r.m, n = r.n, k = r.k(), spare = !request.has_output(1)](
                           const tn_run& run, int64_t i, uint32_t threads) {
                         T* const lu = output_of<T>(run, 0, i * m * n);
                         std::vector<int32_t> unwanted(static_cast<size_t>(spare ? k : 0));
                         int32_t* const pivots =
                             spare ? unwanted.data() : output_of<int32_t>(run, 1, i * k);
                         std::copy_n(input_of<T>(run, 0, i * m * n), m * n, lu);
                         Factorizer<T>(threads).lu(rows_of(lu, n), m, n, pivots);
                         for (int64_t p = 0; p < k; ++p) ++pivots[p];
                         return kFine;
                       });
}

// x (n, columns) = a^-1 x
template <class T>
int64_t solve_in_place(const T* a, int64_t n, T* x, int64_t columns, uint32_t threads) {
  std::vector<T> factors(a, a + n * n);
  std::vector<int32_t> pivots(static_cast<size_t>(n));
  const auto lu = rows_of(factors.data(), n), result = rows_of(x, columns);
  Factorizer<T> factorizer(threads);
  if (const int64_t zero = factorizer.lu(lu, n, n, pivots.data()); zero >= 0) return zero;
  Factorizer<T>::exchange(result, columns, pivots.data(), 0, n);
  factorizer.solve_triangular(lu, n, result, columns, false, true);
  factorizer.solve_triangular(lu, n, result, columns, true, false);
  return kFine;
}

template <class T>
tn_plan* solve_plan(const Request& request, const DecompositionRequest& r) {
  const double work = cube(r.n) / 3 + volume(r.n, r.n, r.columns);
  return plan_matrices(request, r, work, true,
                       [n = r.n, k = r.columns](const tn_run& run, int64_t i, uint32_t threads) {
                         T* const x = output_of<T>(run, 0, i * n * k);
                         std::copy_n(input_of<T>(run, 1, i * n * k), n * k, x);
                         return solve_in_place(input_of<T>(run, 0, i * n * n), n, x, k, threads);
                       });
}

template <class T>
tn_plan* inverse_plan(const Request& request, const DecompositionRequest& r) {
  return plan_matrices(request, r, cube(r.n) * 4 / 3, true,
                       [n = r.n](const tn_run& run, int64_t i, uint32_t threads) {
                         T* const x = output_of<T>(run, 0, i * n * n);
                         std::fill(x, x + n * n, T(0));
                         for (int64_t d = 0; d < n; ++d) x[d * n + d] = 1;
                         return solve_in_place(input_of<T>(run, 0, i * n * n), n, x, n, threads);
                       });
}

template <class T>
tn_plan* triangular_plan(const Request& request, const DecompositionRequest& r) {
  return plan_matrices(request, r, volume(r.n, r.n, r.columns) / 2, true,
                       [r](const tn_run& run, int64_t i, uint32_t threads) {
                         T* const x = output_of<T>(run, 0, i * r.n * r.columns);
                         std::copy_n(input_of<T>(run, 1, i * r.n * r.columns), r.n * r.columns, x);
                         Factorizer<T>(threads).solve_triangular(
                             rows_of(input_of<T>(run, 0, i * r.n * r.n), r.n), r.n,
                             rows_of(x, r.columns), r.columns, r.upper, r.unitriangular);
                         return kFine;
                       });
}

// ---- orthogonal factors

template <class T>
tn_plan* qr_plan(const Request& request, const DecompositionRequest& r) {
  return plan_matrices(
      request, r, 4 * volume(r.m, r.n, r.k()), false, [r](const tn_run& run, int64_t i, uint32_t) {
        const int64_t k = r.full ? r.m : r.k();
        decompose_qr<T>(input_of<T>(run, 0, i * r.m * r.n), r.m, r.n, k,
                        output_of<T>(run, 0, i * r.m * k), output_of<T>(run, 1, i * k * r.n));
        return kFine;
      });
}

template <class T>
tn_plan* svd_plan(const Request& request, const DecompositionRequest& r) {
  // U and V are made together.
  const bool vectors = request.has_output(0) || request.has_output(2),
             values = request.has_output(1);
  return plan_matrices(
      request, r, 20 * volume(r.m, r.n, r.k()), false,
      [r, vectors, values](const tn_run& run, int64_t i, uint32_t) {
        const int64_t m = r.m, n = r.n, k = r.k();
        const int64_t columns = r.full ? m : k, rows = r.full ? n : k;
        const T* const x = input_of<T>(run, 0, i * m * n);
        if (!all_finite(x, m * n)) return kNotFinite;
        T *u = output_of<T>(run, 0, i * m * columns), *vh = output_of<T>(run, 2, i * rows * n);
        std::vector<T> spare_u(static_cast<size_t>(vectors && !u ? m * columns : 0)),
            spare_s(static_cast<size_t>(values ? 0 : k)),
            spare_vh(static_cast<size_t>(vectors && !vh ? rows * n : 0));
        if (vectors && !u) u = spare_u.data();
        if (vectors && !vh) vh = spare_vh.data();
        T* const s = values ? output_of<T>(run, 1, i * k) : spare_s.data();
        const SvdParts parts = !vectors ? SvdParts::values
                               : r.full ? SvdParts::full
                                        : SvdParts::thin;
        return decompose_svd(x, m, n, parts, u, s, vh) ? kFine : kNoConvergence;
      });
}

template <class T>
tn_plan* eigh_plan(const Request& request, const DecompositionRequest& r) {
  return plan_matrices(
      request, r, 10 * cube(r.n), false,
      [n = r.n, spare = !request.has_output(0)](const tn_run& run, int64_t i, uint32_t) {
        const T* const x = input_of<T>(run, 0, i * n * n);
        for (int64_t row = 0; row < n; ++row)
          if (!all_finite(x + row * n, row + 1)) return kNotFinite;
        std::vector<T> unwanted(static_cast<size_t>(spare ? n : 0));
        T* const w = spare ? unwanted.data() : output_of<T>(run, 0, i * n);
        return decompose_eigh(x, n, w, output_of<T>(run, 1, i * n * n)) ? kFine : kNoConvergence;
      });
}

// ----

tn_plan* make_decomposition(tn_device*, const Request& request) {
  const auto r = DecompositionRequest::from(request);
  bool nothing = true;
  for (size_t i = 0; i < request.num_outputs(); ++i)
    nothing = nothing && (!request.has_output(i) || sdk::numel(request.output(i)) == 0);
  if (nothing) return empty_plan();
  return with_float(r.dtype, [&]<class T>(T) {
    const auto op = request.op();
    if (op == "cholesky") return cholesky_plan<T>(request, r);
    if (op == "inv") return inverse_plan<T>(request, r);
    if (op == "solve") return solve_plan<T>(request, r);
    if (op == "solve_triangular") return triangular_plan<T>(request, r);
    if (op == "lu_factor") return lu_plan<T>(request, r);
    if (op == "qr") return qr_plan<T>(request, r);
    return op == "svd" ? svd_plan<T>(request, r) : eigh_plan<T>(request, r);
  });
}
const sdk::Kernel decompositions({"cholesky", "inv", "solve", "solve_triangular", "lu_factor", "qr",
                                  "svd", "eigh"},
                                 make_decomposition);

// ---- the order of rows that pivots leave

tn_plan* make_permutation(tn_device*, const Request& request) {
  const auto r = sdk::PermutationRequest::from(request);
  if (r.count == 0) return empty_plan();
  return sdk::make_plan(
      [r](const tn_run& run) {
        for (int64_t i = 0; i < r.count; ++i) {
          const auto* const pivots = static_cast<const int32_t*>(run.inputs[0]) + i * r.k;
          auto* const places = static_cast<int64_t*>(run.outputs[0]) + i * r.rows;
          for (int64_t row = 0; row < r.rows; ++row) places[row] = row;
          for (int64_t p = 0; p < r.k; ++p) {
            if (pivots[p] < 1 || pivots[p] > r.rows)
              throw sdk::Error(TN_CODE_OUT_OF_RANGE,
                               sdk::text("lu_solve: pivot {} at position {} lies outside [1, {}]",
                                         pivots[p], i * r.k + p, r.rows));
            std::swap(places[p], places[pivots[p] - 1]);
          }
        }
      },
      {0, 50 + static_cast<uint64_t>(2 * r.count * r.rows)});
}
const sdk::Kernel permutations({"lu_permutation"}, make_permutation);

}  // namespace
}  // namespace tenon::cpu
