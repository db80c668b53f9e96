// An LSTM over a whole sequence, and its gradient. Each thread has some sequences of the batch and
// takes all of their steps alone, so that no thread waits for another between two steps. The
// weights are packed once for all steps, into panels of four vectors: with a few rows of the batch,
// as many sums as the registers hold.
#include "kernels/linalg/tile.h"
#include "kernels/recurrent/lstm.h"

namespace tenon::cpu {
namespace {

using Sequence = sdk::RecurrentSequenceRequest;

// Weights larger than that are read from memory in every step. Then they should be shared out over
// the threads, unless a large batch makes up for it.
constexpr int64_t kMaxWeights = 1 << 19, kMaxWeightsOfRow = 1 << 16;
// Multiply-adds below which waking another thread costs more than it saves, and those of floats in
// a nanosecond.
constexpr double kSerialWork = 1 << 20, kSumsPerNs = kVectorBytes == 64 ? 45 : 20;

// body(begin, end) for the sequences of the batch, of which a thread has [begin, end).
template <class F>
void for_sequences(const Sequence& s, F&& body) {
  const double work = static_cast<double>(s.length) * static_cast<double>(s.weights());
  const auto grain = static_cast<int64_t>(kSerialWork / work) + 1;
  parallel_for(s.batch, grain, [&](int64_t begin, int64_t end, uint32_t) { body(begin, end); });
}

// All tensors of a run, by type.
template <class T>
T* output(const tn_run& run, size_t i) {
  return static_cast<T*>(run.outputs[i]);
}
template <class T>
const T* input(const tn_run& run, size_t i) {
  return static_cast<const T*>(run.inputs[i]);
}

template <class T>
class Forward {
 public:
  explicit Forward(const Sequence& s) : s_(s) {}
  uint64_t workspace_bytes() const {
    return static_cast<uint64_t>(panels() * panel_elements()) * sizeof(T);
  }
  void operator()(const tn_run& run) const {
    T* packed = static_cast<T*>(run.workspace);
    pack(input<T>(run, 1), packed);
    for_sequences(s_, [&](int64_t begin, int64_t end) { steps(run, packed, begin, end); });
  }

 private:
  int64_t panels() const { return (s_.hidden + kWidth<T> - 1) / kWidth<T>; }
  int64_t panel_elements() const { return s_.hidden * kPanel<T>; }

  // A panel has the four gates of a vector of hidden values.
  void pack(const T* weight, T* packed) const {
    const int64_t n = s_.hidden;
    parallel_for(panels(), std::max<int64_t>(1, kGrain / panel_elements()),
                 [&](int64_t begin, int64_t end, uint32_t) {
                   for (int64_t p = begin; p < end; ++p) {
                     T* panel = packed + p * panel_elements();
                     const int64_t first = p * kWidth<T>,
                                   lanes = std::min<int64_t>(kWidth<T>, n - first);
                     if (lanes < kWidth<T>) std::fill_n(panel, panel_elements(), T(0));
                     for (int64_t gate = 0; gate < 4; ++gate)
                       move_tile(sizeof(T), panel + gate * kWidth<T>, kPanel<T>, 1,
                                 weight + (gate * n + first) * n, 1, n, n, lanes);
                   }
                 });
  }

  // What a step reads and writes, each where the rows of the batch begin.
  struct Step {
    const T *gates, *bias, *h;
    T *y, *c, *cells, *sums;
  };

  void steps(const tn_run& run, const T* packed, int64_t begin, int64_t end) const {
    const int64_t row = s_.hidden, all = s_.batch * row;
    T *y = output<T>(run, 0), *h = output<T>(run, 1), *c = output<T>(run, 2),
      *cells = output<T>(run, 3), *sums = output<T>(run, 4);
    std::copy(input<T>(run, 4) + begin * row, input<T>(run, 4) + end * row, c + begin * row);
    const T* before = input<T>(run, 3);
    for (int64_t i = 0; i < s_.length; ++i) {
      const int64_t t = s_.time_of(i);
      const Step step{input<T>(run, 0) + 4 * t * all,
                      s_.has_bias ? input<T>(run, 2) : nullptr,
                      before,
                      y + t * all,
                      c,
                      cells ? cells + t * all : nullptr,
                      sums ? sums + 4 * t * all : nullptr};
      for (int64_t p = 0; p < panels(); ++p)
        for_tiles(begin, end, [&](int64_t first, auto rows) {
          const int64_t k = p * kWidth<T>;
          const T* panel = packed + p * panel_elements();
          if (k + kWidth<T> <= row)
            tile<rows()>(step, panel, first, k, Full{});
          else
            tile<rows()>(step, panel, first, k, Rest{row - k});
        });
      before = step.y;
    }
    std::copy(before + begin * row, before + end * row, h + begin * row);
  }

  template <int Rows, class Part>
  void tile(const Step& step, const T* panel, int64_t first, int64_t k, Part part) const {
    const int64_t n = s_.hidden;
    Tile<T, Rows> sum;
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
      for (int gate = 0; gate < 4; ++gate) {
        sum[r][gate] = load(step.gates + ((first + r) * 4 + gate) * n + k, part);
        if (step.bias) sum[r][gate] += load(step.bias + gate * n + k, part);
      }
    add_tile<T, Rows, 4>(n, step.h + first * n, n, 1, panel, kPanel<T>, sum);
    for (int r = 0; r < Rows; ++r) {
      const int64_t at = (first + r) * n + k;
      for (int64_t gate = 0; step.sums && gate < 4; ++gate)
        store<T>(step.sums + ((first + r) * 4 + gate) * n + k, sum[r][gate], part);
      const LstmGates<T> a(sum[r][0], sum[r][1], sum[r][2], sum[r][3]);
      const Vec<T> cell = a.cell(load(step.c + at, part));
      store<T>(step.c + at, cell, part);
      store_if<T>(step.cells, at, cell, part);
      store<T>(step.y + at, a.o * math::tanh<T>(cell), part);
    }
  }

  Sequence s_;
};

template <class T>
class Backward {
 public:
  explicit Backward(const Sequence& s) : s_(s), panels_{4 * s.hidden, s.hidden} {}
  uint64_t workspace_bytes() const {
    return static_cast<uint64_t>(panels_.elements() + 2 * s_.batch * s_.hidden) * sizeof(T);
  }
  void operator()(const tn_run& run) const {
    T* packed = static_cast<T*>(run.workspace);
    parallel_for(panels_.count(), std::max<int64_t>(1, kGrain / (panels_.depth * kPanel<T>)),
                 [&](int64_t begin, int64_t end, uint32_t) {
                   for (int64_t p = begin; p < end; ++p)
                     panels_.pack(p, input<T>(run, 6), s_.hidden, 1, packed);
                 });
    for_sequences(s_, [&](int64_t begin, int64_t end) { steps(run, packed, begin, end); });
  }

 private:
  // What a step reads and writes, each where the rows of the batch begin. `gh` and `gc` are the
  // gradients of its states, which become those of the states before; `h` is the state after it,
  // for the step that comes next.
  struct Step {
    const T *gy, *sums, *c;
    T *ggates, *gh, *gc, *h;
  };

  void steps(const tn_run& run, const T* packed, int64_t begin, int64_t end) const {
    const int64_t n = s_.hidden, all = s_.batch * n;
    T* spare = static_cast<T*>(run.workspace) + panels_.elements();
    T *gh = run.outputs[1] ? output<T>(run, 1) : spare,
      *gc = run.outputs[2] ? output<T>(run, 2) : spare + all;
    start(input<T>(run, 1), gh, begin, end);
    start(input<T>(run, 2), gc, begin, end);
    T* const hidden = output<T>(run, 3);
    if (hidden) start(input<T>(run, 7), hidden + s_.time_of(0) * all, begin, end);
    for (int64_t i = s_.length; i-- > 0;) {
      const int64_t t = s_.time_of(i);
      const T* before = i == 0 ? input<T>(run, 5) : input<T>(run, 4) + s_.time_of(i - 1) * all;
      const Step step{s_.has_gy ? input<T>(run, 0) + t * all : nullptr,
                      input<T>(run, 3) + 4 * t * all,
                      before,
                      output<T>(run, 0) + 4 * t * all,
                      gh,
                      gc,
                      hidden && i + 1 < s_.length ? hidden + s_.time_of(i + 1) * all : nullptr};
      for (int64_t row = begin; row < end; ++row) gates_of_row(step, row);
      if (i == 0 && !run.outputs[1]) break;
      // The gradient of the hidden state before the step.
      const T* ggates = step.ggates + 4 * begin * n;
      PanelProduct<T>{ggates, 4 * n, 1, panels_, packed, gh + begin * n, {}}.run(end - begin);
    }
  }

  void start(const T* from, T* to, int64_t begin, int64_t end) const {
    const int64_t first = begin * s_.hidden, last = end * s_.hidden;
    if (from)
      std::copy(from + first, from + last, to + first);
    else
      std::fill(to + first, to + last, T(0));
  }

  void gates_of_row(const Step& step, int64_t row) const {
    const int64_t n = s_.hidden;
    const T* gy = step.gy ? step.gy + row * n : nullptr;
    const T *gh = step.gh + row * n, *c = step.c + row * n, *sums = step.sums + 4 * row * n;
    T *ggates = step.ggates + 4 * row * n, *gc = step.gc + row * n,
      *h = step.h ? step.h + row * n : nullptr;
    for_lanes<T>(n, [&](int64_t k, auto part) {
      Vec<T> d = load(gh + k, part);
      if (gy) d += load(gy + k, part);
      const LstmGates<T> a(sums, n, k, part);
      const auto g = lstm_gradients<T>(a, load(c + k, part), d, load(gc + k, part));
      store<T>(ggates + k, g.i, part);
      store<T>(ggates + n + k, g.f, part);
      store<T>(ggates + 2 * n + k, g.g, part);
      store<T>(ggates + 3 * n + k, g.o, part);
      store<T>(gc + k, g.cell, part);
      store_if<T>(h, k, g.h, part);
    });
  }

  Sequence s_;
  Panels<T> panels_;
};

template <template <class> class Direction>
tn_plan* make_sequence(tn_device*, const Request& request) {
  const auto s = Sequence::from(request);
  if (s.length * s.batch * s.hidden == 0) sdk::unsupported("the sequence has no elements");
  if (s.weights() > std::max(kMaxWeights, kMaxWeightsOfRow * s.batch))
    sdk::unsupported("{} weights are too many for the batch of {}", s.weights(), s.batch);
  return with_float(s.dtype, [&]<class T>(T) {
    Direction<T> run(s);
    const double steps = static_cast<double>(s.length) * static_cast<double>(s.batch),
                 ns = steps *
                      (static_cast<double>(s.weights()) / kSumsPerNs +
                       2 * static_cast<double>(s.hidden)) *
                      sizeof(T) / sizeof(float);
    const uint64_t bytes = run.workspace_bytes();
    return sdk::make_plan(std::move(run),
                          {bytes, 1000 + static_cast<uint64_t>(std::min(ns, 1e15))});
  });
}
const sdk::Kernel sequence({"lstm_sequence"}, make_sequence<Forward>);
const sdk::Kernel sequence_backward({"lstm_sequence_backward"}, make_sequence<Backward>);

}  // namespace
}  // namespace tenon::cpu
