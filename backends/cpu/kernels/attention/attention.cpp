// scaled_dot_product_attention: a block of queries goes over the keys block by block and keeps the
// largest score and the sum of each row so far ("online softmax", Milakov and Gimelshein,
// arXiv:1805.02867).
#include "kernels/attention/attention.h"

namespace tenon::cpu {
namespace {

template <class T>
class Attention {
 public:
  explicit Attention(const sdk::AttentionRequest& request)
      : r_(request),
        queries_(r_.l, 64),
        keys_(r_.s, 256),
        scores_(r_, queries_, keys_),
        times_value_(queries_, keys_,
                     [&](int64_t l, int64_t s) {
                       const uint32_t d = r_.value.rank - 2;
                       return GemmShape{
                           l, r_.ev, s, s, 1, r_.value.strides[d], r_.value.strides[d + 1]};
                     }),
        scratch_({queries_.size * keys_.size, queries_.size * r_.ev},
                 std::max(scores_.product.workspace_bytes(), times_value_.workspace_bytes())) {}

  uint64_t workspace_bytes() const { return scratch_.workspace_bytes(); }

  void operator()(const tn_run& run) const {
    scratch_.each_task(run, r_.batch * queries_.count(), [&](int64_t task, char* slot) {
      attend(run, task / queries_.count(), task % queries_.count(), slot);
    });
  }

 private:
  // The state of each query in a block.
  struct Rows {
    T top[64], sum[64];
  };

  void attend(const tn_run& run, int64_t matrix, int64_t block_of_queries, char* slot) const {
    auto* query = matrix_of<T>(run.inputs[0], r_.query, matrix);
    auto* key = matrix_of<T>(run.inputs[1], r_.key, matrix);
    auto* value = matrix_of<T>(run.inputs[2], r_.value, matrix);
    const void* mask = r_.masked ? scores_.mask_of(run.inputs[3], matrix) : nullptr;
    T *scores = scratch_.array(slot, 0), *part = scratch_.array(slot, 1);
    void* workspace = scratch_.products(slot);
    const int64_t row = queries_.begin(block_of_queries);
    const int64_t rows = queries_.length_of(block_of_queries);
    T* y = static_cast<T*>(run.outputs[0]) + (matrix * r_.l + row) * r_.ev;
    Rows state;
    std::fill_n(state.top, rows, -std::numeric_limits<T>::infinity());
    std::fill_n(state.sum, rows, T(0));
    for (int64_t k = 0; k < keys_.count(); ++k) {
      const Block block{row, rows, keys_.begin(k), keys_.length_of(k)};
      if (unseen(r_, block)) break;
      scores_.multiply(block, query, key, scores, workspace);
      for (int64_t i = 0; i < rows; ++i)
        weigh(block, i, mask, scores + i * block.cols, state, y + i * r_.ev);
      T* product = k == 0 ? y : part;
      times_value_.run(rows, block.cols, scores, value + block.col * value_step(), product,
                       workspace, scores_.reach(block, Reach::terms));
      if (k > 0) add_to(rows * r_.ev, part, y);
    }
    finish(state, rows, y, static_cast<T*>(run.outputs[1]), static_cast<T*>(run.outputs[2]),
           matrix * r_.l + row);
  }

  // The scores of a row become weights relative to the largest so far, and what was summed before
  // is brought to that, too.
  void weigh(const Block& block, int64_t i, const void* mask, T* scores, Rows& state, T* y) const {
    const int64_t cols = scores_.seen(block, i);
    scores_.finish_row(block, i, cols, mask, scores);
    const T before = state.top[i], top = std::max(before, max_row(cols, scores));
    // Where all is -inf, nothing is subtracted: the weights are 0, or NaN where a score is.
    const T shift = top == -std::numeric_limits<T>::infinity() ? T(0) : top;
    const T sum = sum_row<T>(cols, [&](int64_t k, auto part) {
      const Vec<T> e = math::exp<T>(load(scores + k, part) - shift);
      store(scores + k, e, part);
      return keep<T>(e, part);
    });
    std::fill(scores + cols, scores + block.cols, T(0));
    const T factor = std::exp(before - shift);
    state.top[i] = top;
    state.sum[i] = state.sum[i] * factor + sum;
    if (block.col > 0 && factor != T(1)) scale(r_.ev, factor, y);
  }

  // `first`: the number of the first row among those of all matrices.
  void finish(const Rows& state, int64_t rows, T* y, T* largest, T* scales, int64_t first) const {
    for (int64_t i = 0; i < rows; ++i) {
      const bool dead = state.sum[i] == T(0);  // a row without any pair
      const T factor = dead ? T(0) : T(1) / state.sum[i];
      if (dead) {
        std::fill_n(y + i * r_.ev, r_.ev, T(0));
      } else {
        scale(r_.ev, factor, y + i * r_.ev);
      }
      if (largest) largest[first + i] = dead ? T(0) : state.top[i];
      if (scales) scales[first + i] = factor;
    }
  }

  static void scale(int64_t n, T factor, T* y) {
    for_lanes<T>(n, [&](int64_t i, auto p) { store<T>(y + i, load(y + i, p) * factor, p); });
  }
  int64_t value_step() const { return r_.value.strides[r_.value.rank - 2]; }

  sdk::AttentionRequest r_;
  Blocks queries_, keys_;
  Scores<T> scores_;
  BlockProduct<T> times_value_;
  Scratch<T> scratch_;
};

tn_plan* make_attention(tn_device*, const Request& request) {
  const auto r = sdk::AttentionRequest::from(request);
  const auto cost = attention_cost(r, 1, 1);
  return with_float(r.dtype, [&]<class T>(T) {
    Attention<T> attention(r);
    const uint64_t bytes = attention.workspace_bytes();
    return sdk::make_plan(std::move(attention), {bytes, 500 + cost});
  });
}
const sdk::Kernel attention({"scaled_dot_product_attention"}, make_attention);

}  // namespace
}  // namespace tenon::cpu
