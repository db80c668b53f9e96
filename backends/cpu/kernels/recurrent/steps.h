// What the steps of recurrent networks share: each works on a row of each sequence at a time.
#pragma once

#include <algorithm>

#include <tenon/plugins/sdk/requests/recurrent.h>

#include "runtime/common.h"
#include "simd/math.h"

namespace tenon::cpu {

using RecurrentStep = sdk::RecurrentStepRequest;

// body(row) for the rows of the batch.
template <class F>
void for_rows_of_batch(const RecurrentStep& s, F&& body) {
  parallel_for(s.batch, std::max<int64_t>(1, kGrain / 16 / std::max<int64_t>(1, s.hidden)),
               [&](int64_t begin, int64_t end, uint32_t) {
                 for (int64_t row = begin; row < end; ++row) body(row);
               });
}

// The tensor's row, of so many values for each hidden one; NULL where there is no tensor.
template <class T, class P>
T* row_of(P* data, const RecurrentStep& s, int64_t row, int64_t gates = 1) {
  return data ? static_cast<T*>(data) + row * gates * s.hidden : nullptr;
}

template <class T, class Part>
void store_if(T* p, int64_t i, Vec<T> v, Part part) {
  if (p) store<T>(p + i, v, part);
}

// The plan of a step whose functions make() returns for a type.
template <class Make>
tn_plan* plan_step(const Request& request, Make make) {
  const auto s = RecurrentStep::from(request);
  if (s.batch * s.hidden == 0) return empty_plan();
  const auto cost = 50 + static_cast<uint64_t>(4 * s.batch * s.hidden);
  return with_float(s.dtype, [&]<class T>(T) {
    void (*run)(const RecurrentStep&, const tn_run&) = make(T());
    return sdk::make_plan([s, run](const tn_run& r) { run(s, r); }, {0, cost});
  });
}

}  // namespace tenon::cpu
