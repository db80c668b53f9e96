// The line search of L-BFGS.
#pragma once

#include <functional>

#include <tenon/core/tensor.h>

namespace tenon::optim {

// A point on the line: the step, and there the loss, its slope along the line, and its gradient.
struct LinePoint {
  double t, f, gtd;
  Tensor g;
};

struct LineSearch {
  double d_norm;            // the largest element of the direction
  double tolerance_change;  // a bracket that is smaller is not divided
  int64_t max_ls;           // iterations
  double c1 = 1e-4, c2 = 0.9;
};

// Returns a point that fulfils the strong Wolfe conditions (Nocedal and Wright, Numerical
// Optimization, algorithms 3.5 and 3.6) or the best that was found, as PyTorch does. `start` is the
// point at 0, `t` the first step to try. Adds the number of calls of `evaluate` to `evaluations`.
LinePoint strong_wolfe(const std::function<LinePoint(double t)>& evaluate, const LinePoint& start,
                       double t, const LineSearch& search, int64_t& evaluations);

}  // namespace tenon::optim
