// The gradient of scaled_dot_product_attention. The weights of a block are computed again from the
// largest score and the sum of each row.
#include "kernels/attention/attention.h"

namespace tenon::cpu {
namespace {

template <class T>
class AttentionBackward {
 public:
  explicit AttentionBackward(const sdk::AttentionRequest& request)
      : r_(request),
        queries_(r_.l, 64),
        keys_(r_.s, 128),
        scores_(r_, queries_, keys_),
        grad_by_value_(queries_, keys_,
                       [&](int64_t l, int64_t s) {
                         return GemmShape{
                             l, s, r_.ev, r_.ev, 1, stride(r_.value, 1), stride(r_.value, 0)};
                       }),
        weights_by_grad_(
            queries_, keys_,
            [&](int64_t l, int64_t s) { return GemmShape{s, r_.ev, l, 1, s, r_.ev, 1}; }),
        scores_by_query_(queries_, keys_,
                         [&](int64_t l, int64_t s) {
                           return GemmShape{
                               s, r_.e, l, 1, s, stride(r_.query, 0), stride(r_.query, 1)};
                         }),
        scores_by_key_(queries_, keys_,
                       [&](int64_t l, int64_t s) {
                         return GemmShape{l, r_.e, s, s, 1, stride(r_.key, 0), stride(r_.key, 1)};
                       }),
        scratch_({queries_.size * keys_.size, queries_.size * keys_.size,
                  std::max({queries_.size * r_.e, keys_.size * r_.e, keys_.size * r_.ev})},
                 std::max({scores_.product.workspace_bytes(), grad_by_value_.workspace_bytes(),
                           weights_by_grad_.workspace_bytes(), scores_by_query_.workspace_bytes(),
                           scores_by_key_.workspace_bytes()})) {}

  uint64_t workspace_bytes() const { return scratch_.workspace_bytes(); }

  void operator()(const tn_run& run) const {
    const int64_t elements[] = {r_.l * r_.e, r_.s * r_.e, r_.s * r_.ev};
    for (size_t i = 0; i < 3; ++i)
      if (run.outputs[i])
        std::memset(run.outputs[i], 0, static_cast<size_t>(r_.batch * elements[i]) * sizeof(T));
    const bool query = run.outputs[0], key = run.outputs[1], value = run.outputs[2];
    if (r_.batch >= thread_count()) {
      scratch_.each_task(run, r_.batch, [&](int64_t matrix, char* slot) {
        for (int64_t k = 0; k < keys_.count(); ++k)
          for (int64_t q = 0; q < queries_.count(); ++q)
            add_block(run, matrix, q, k, {query, key, value}, slot);
      });
      return;
    }
    // With fewer matrices than threads, the keys are shared out, and then the queries. Every sum
    // keeps its order.
    if (key || value)
      scratch_.each_task(run, r_.batch * keys_.count(), [&](int64_t task, char* slot) {
        for (int64_t q = 0; q < queries_.count(); ++q)
          add_block(run, task / keys_.count(), q, task % keys_.count(), {false, key, value}, slot);
      });
    if (query)
      scratch_.each_task(run, r_.batch * queries_.count(), [&](int64_t task, char* slot) {
        for (int64_t k = 0; k < keys_.count(); ++k)
          add_block(run, task / queries_.count(), task % queries_.count(), k, {true, false, false},
                    slot);
      });
  }

 private:
  struct Wanted {
    bool query, key, value;
  };

  static int64_t stride(const tn_tensor_desc& d, uint32_t k) { return d.strides[d.rank - 2 + k]; }

  // Adds what one block of queries and one of keys contribute to the gradients that are wanted.
  void add_block(const tn_run& run, int64_t matrix, int64_t q, int64_t k, Wanted wanted,
                 char* slot) const {
    const Block block{queries_.begin(q), queries_.length_of(q), keys_.begin(k), keys_.length_of(k)};
    if (unseen(r_, block)) return;
    T *weights = scratch_.array(slot, 0), *grads = scratch_.array(slot, 1),
      *part = scratch_.array(slot, 2);
    void* workspace = scratch_.products(slot);
    const T* query =
        matrix_of<T>(run.inputs[1], r_.query, matrix) + block.row * stride(r_.query, 0);
    const T* key = matrix_of<T>(run.inputs[2], r_.key, matrix) + block.col * stride(r_.key, 0);
    const T* value =
        matrix_of<T>(run.inputs[3], r_.value, matrix) + block.col * stride(r_.value, 0);
    const int64_t first_row = matrix * r_.l + block.row, first_key = matrix * r_.s + block.col;
    const T* g = static_cast<const T*>(run.inputs[0]) + first_row * r_.ev;

    compute_weights(run, matrix, block, weights, workspace);
    const Reach of_keys = scores_.reach(block, Reach::later_terms);
    if (wanted.value) {
      weights_by_grad_.run(block.rows, block.cols, weights, g, part, workspace, of_keys);
      add_to(block.cols * r_.ev, part, static_cast<T*>(run.outputs[2]) + first_key * r_.ev);
    }
    if (!wanted.query && !wanted.key) return;
    grad_by_value_.run(block.rows, block.cols, g, value, grads, workspace,
                       scores_.reach(block, Reach::columns));
    const T* y = static_cast<const T*>(run.inputs[4]) + first_row * r_.ev;
    for (int64_t i = 0; i < block.rows; ++i)
      grads_of_row(scores_.seen(block, i), dot(r_.ev, g + i * r_.ev, y + i * r_.ev),
                   grads + i * block.cols, weights + i * block.cols);
    if (wanted.key) {
      scores_by_query_.run(block.rows, block.cols, weights, query, part, workspace, of_keys);
      add_to(block.cols * r_.e, part, static_cast<T*>(run.outputs[1]) + first_key * r_.e);
    }
    if (wanted.query) {
      scores_by_key_.run(block.rows, block.cols, weights, key, part, workspace,
                         scores_.reach(block, Reach::terms));
      add_to(block.rows * r_.e, part, static_cast<T*>(run.outputs[0]) + first_row * r_.e);
    }
  }

  void compute_weights(const tn_run& run, int64_t matrix, const Block& block, T* weights,
                       void* workspace) const {
    scores_.multiply(block, matrix_of<T>(run.inputs[1], r_.query, matrix),
                     matrix_of<T>(run.inputs[2], r_.key, matrix), weights, workspace);
    const void* mask = r_.masked ? scores_.mask_of(run.inputs[7], matrix) : nullptr;
    const int64_t first = matrix * r_.l + block.row;
    auto *largest = static_cast<const T*>(run.inputs[5]) + first,
         *scales = static_cast<const T*>(run.inputs[6]) + first;
    for (int64_t i = 0; i < block.rows; ++i) {
      T* row = weights + i * block.cols;
      const int64_t cols = scores_.seen(block, i);
      scores_.finish_row(block, i, cols, mask, row);
      const T top = largest[i], scale = scales[i];
      for_lanes<T>(cols, [&](int64_t k, auto part) {
        store<T>(row + k, math::exp<T>(load(row + k, part) - top) * scale, part);
      });
      std::fill(row + cols, row + block.cols, T(0));
    }
  }

  // The gradient of the scores of a row, in the place of its weights; `along` is g · y.
  void grads_of_row(int64_t n, T along, const T* grads, T* weights) const {
    const T scale = static_cast<T>(r_.scale);
    for_lanes<T>(n, [&](int64_t k, auto p) {
      store<T>(weights + k, load(weights + k, p) * (load(grads + k, p) - along) * scale, p);
    });
  }

  static T dot(int64_t n, const T* a, const T* b) {
    return sum_row<T>(n, [&](int64_t i, auto p) { return load(a + i, p) * load(b + i, p); });
  }

  sdk::AttentionRequest r_;
  Blocks queries_, keys_;
  Scores<T> scores_;
  BlockProduct<T> grad_by_value_, weights_by_grad_, scores_by_query_, scores_by_key_;
  Scratch<T> scratch_;
};

tn_plan* make_attention_backward(tn_device*, const Request& request) {
  const auto r = sdk::AttentionRequest::from(request);
  const auto cost = attention_cost(r, 3, 2);
  return with_float(r.dtype, [&]<class T>(T) {
    AttentionBackward<T> backward(r);
    const uint64_t bytes = backward.workspace_bytes();
    return sdk::make_plan(std::move(backward), {bytes, 1000 + cost});
  });
}
const sdk::Kernel attention_backward({"scaled_dot_product_attention_backward"},
                                     make_attention_backward);

}  // namespace
}  // namespace tenon::cpu
