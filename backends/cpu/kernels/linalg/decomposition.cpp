#include "kernels/linalg/decomposition.h"

#include <utility>

namespace tenon::cpu {

void require_fine(const std::string& op, const DecompositionRequest& r,
                  const std::vector<int64_t>& outcomes) {
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const int64_t outcome = outcomes[i];
    if (outcome == kFine) continue;
    std::string why = r.name_of(static_cast<int64_t>(i));
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

}  // namespace tenon::cpu
