// Matrix products for this CPU: Eigen's kernels, shared out over the host's threads.
#pragma once

#include <cstdint>

#include "kernels/linalg/view.h"
#include "kernels/pointwise/finish.h"

namespace tenon::cpu {

// C(m,n) = A(m,k) B(k,n). Strides in elements; those of A and B may be anything, C is contiguous.
struct GemmShape {
  int64_t m, n, k;
  int64_t a_row, a_col;
  int64_t b_row, b_col;

  // Multiply-adds. Operands may be expanded, so they can be more than 64 bits count.
  double work() const {
    return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

// The way to one product, chosen once. `threads` 1 keeps it on the calling thread, for use inside a
// parallel loop. Results do not depend on the number of threads.
template <class T>
class Gemm {
 public:
  // `finish` is done at last to the rows of C.
  Gemm(const GemmShape& shape, uint32_t threads, const Finish& finish = {});

  // Scratch that run needs, aligned to 64.
  uint64_t workspace_bytes() const { return workspace_bytes_; }
  // On one core.
  uint64_t cost_ns() const;

  // bias(n) is added to every row; may be null. `with` is what the finish takes of the run.
  void run(const T* a, const T* b, const T* bias, T* c, void* workspace,
           const Finish::Run& with = {}) const;

 private:
  enum class Way { kVector, kDots, kOuter, kBlocked };

  void plan_blocks(uint32_t threads);
  void run_vector(const T* a, const T* b, const T* bias, T* c, const Finish::Run& with) const;
  void run_dots(const T* a, const T* b, const T* bias, T* c, const Finish::Run& with) const;
  void run_outer(const T* a, const T* b, const T* bias, T* c, const Finish::Run& with) const;
  void run_task(int64_t task, const T* a, const T* b, const T* bias, T* c, T* scratch,
                const Finish::Run& with) const;
  // What the finish takes, on one core.
  double finish_ns() const {
    return finish_.ns * static_cast<double>(s_.m) * static_cast<double>(s_.n);
  }

  GemmShape given_, s_;  // as asked for, and as Eigen gets to see it
  Finish finish_;
  Way way_ = Way::kBlocked;
  bool threaded_;
  bool copy_a_, copy_b_;                         // Eigen needs a unit stride in each operand
  int64_t m_tasks_ = 1, n_tasks_ = 1;            // the grid of tasks over C
  int64_t m_block_ = 0, n_block_ = 0, k_block_;  // what a task packs at a time
  int64_t copies_ = 0, slot_elements_ = 0;       // of the workspace: copies of operands, a task
  uint64_t workspace_bytes_ = 0;
};

// c (m, n) += factor a b and y (m) += factor a x on the calling thread. Rows or columns of each
// matrix are contiguous, and so are vectors.
template <class T>
void add_product(int64_t m, int64_t n, int64_t k, T factor, MatrixView<const T> a,
                 MatrixView<const T> b, MatrixView<T> c);
template <class T>
void add_product(int64_t m, int64_t k, T factor, MatrixView<const T> a, const T* x, T* y);

extern template class Gemm<float>;
extern template class Gemm<double>;

}  // namespace tenon::cpu
