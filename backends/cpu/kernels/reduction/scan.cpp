// Cumulative operators along one dimension. A line whose threads would be idle otherwise is cut
// into blocks: their totals first, then each block from what lies before it.
#include <vector>

#include <tenon/plugins/sdk/requests/order.h>
#include <tenon/plugins/sdk/scans.h>

#include "runtime/common.h"

namespace tenon::cpu {
namespace {

constexpr int64_t kScanColumns = 64;
constexpr int64_t kScanLines = 4;  // at once: each waits for its own last sum

template <class S>
class Scan {
  using T = typename S::Element;
  using State = typename S::State;

 public:
  explicit Scan(const sdk::ScanRequest& r) : r_(r), reverse_(r.reverse) {
    across_ = (r.inner + kScanColumns - 1) / kScanColumns;
    units_ = r.outer * across_;
  }

  void operator()(const tn_run& run) const {
    auto* x = static_cast<const T*>(run.inputs[0]);
    const sdk::ScanOut<T> out{
        static_cast<T*>(run.outputs[0]),
        run.num_outputs > 1 ? static_cast<int64_t*>(run.outputs[1]) : nullptr};
    const int64_t blocks = blocks_of_line();
    if (blocks == 1)
      return parallel_for(units_, std::max<int64_t>(1, kGrain / 2 / (r_.size * width_of(0))),
                          [&](int64_t begin, int64_t end, uint32_t) {
                            State states[kScanColumns];
                            int64_t unit = begin;
                            if (r_.inner == 1)
                              for (; unit + kScanLines <= end; unit += kScanLines)
                                lines(x, out, unit);
                            for (; unit < end; ++unit) {
                              std::fill_n(states, width_of(unit), S::init());
                              go<true>(x, out, unit, 0, r_.size, states);
                            }
                          });
    in_blocks(x, out, blocks);
  }

 private:
  // So many that each thread has one, where lines alone are not enough.
  int64_t blocks_of_line() const {
    const int64_t threads = thread_count(), elements = r_.size * width_of(0);
    if (units_ >= threads || elements < 2 * kGrain) return 1;
    return std::min(threads, elements / kGrain);
  }
  int64_t width_of(int64_t unit) const {
    return std::min(kScanColumns, r_.inner - unit % across_ * kScanColumns);
  }

  void in_blocks(const T* x, const sdk::ScanOut<T>& out, int64_t blocks) const {
    std::vector<State> states(static_cast<size_t>(units_ * blocks * kScanColumns), S::init());
    const auto of = [&](int64_t unit, int64_t block) {
      return states.data() + (unit * blocks + block) * kScanColumns;
    };
    const auto each = [&](auto&& f) {
      parallel_for(units_ * blocks, 1, [&](int64_t begin, int64_t end, uint32_t) {
        for (int64_t t = begin; t < end; ++t) {
          const int64_t block = t % blocks;
          f(t / blocks, block, r_.size * block / blocks, r_.size * (block + 1) / blocks);
        }
      });
    };
    each([&](int64_t unit, int64_t block, int64_t from, int64_t to) {
      go<false>(x, out, unit, from, to, of(unit, block));
    });
    for (int64_t unit = 0; unit < units_; ++unit)
      for (int64_t c = 0; c < width_of(unit); ++c) {
        State before = S::init();
        for (int64_t block = 0; block < blocks; ++block) {
          const State own = of(unit, block)[c];
          of(unit, block)[c] = before;
          before = S::merge(before, own);
        }
      }
    each([&](int64_t unit, int64_t block, int64_t from, int64_t to) {
      go<true>(x, out, unit, from, to, of(unit, block));
    });
  }

  // Elements [from, to) of the lines of a unit.
  template <bool write>
  void go(const T* x, const sdk::ScanOut<T>& out, int64_t unit, int64_t from, int64_t to,
          State* states) const {
    const int64_t width = width_of(unit), inner = r_.inner;
    const int64_t base = unit / across_ * r_.size * inner + unit % across_ * kScanColumns;
    if (width == 1) {
      State state = states[0];
      for (int64_t i = from; i < to; ++i) {
        const int64_t at = base + place(i) * inner;
        state = S::merge(state, S::of(x[at], i));
        if constexpr (write) S::write(out, at, state);
      }
      states[0] = state;
      return;
    }
    for (int64_t i = from; i < to; ++i) {
      const int64_t at = base + place(i) * inner;
      for (int64_t c = 0; c < width; ++c) {
        states[c] = S::merge(states[c], S::of(x[at + c], i));
        if constexpr (write) S::write(out, at + c, states[c]);
      }
    }
  }
  // Whole contiguous lines, from that of `unit` on.
  void lines(const T* x, const sdk::ScanOut<T>& out, int64_t unit) const {
    State states[kScanLines];
    std::fill_n(states, kScanLines, S::init());
    for (int64_t i = 0; i < r_.size; ++i)
      for (int64_t c = 0, at = unit * r_.size + place(i); c < kScanLines; ++c, at += r_.size) {
        states[c] = S::merge(states[c], S::of(x[at], i));
        S::write(out, at, states[c]);
      }
  }
  int64_t place(int64_t i) const { return reverse_ ? r_.size - 1 - i : i; }

  sdk::ScanRequest r_;
  bool reverse_;
  int64_t across_, units_;
};

template <class S>
tn_plan* scan_plan(const sdk::ScanRequest& r, double ns) {
  const auto elements = static_cast<double>(r.outer * r.size * r.inner);
  return sdk::make_plan(Scan<S>(r), {0, 30 + static_cast<uint64_t>(ns * elements)});
}

template <template <class> class S>
tn_plan* make_sum(const sdk::ScanRequest& r) {
  if (r.dtype == TN_I64) return scan_plan<S<int64_t>>(r, 1);
  return with_float(r.dtype, [&]<class T>(T) { return scan_plan<S<T>>(r, 1); });
}

tn_plan* make_scan(tn_device*, const Request& request) {
  const auto r = sdk::ScanRequest::from(request);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  if (request.op() == "cumsum") return make_sum<sdk::CumulativeSum>(r);
  if (request.op() == "cumprod") return make_sum<sdk::CumulativeProduct>(r);
  if (request.op() == "logcumsumexp")
    return with_float(r.dtype,
                      [&]<class T>(T) { return scan_plan<sdk::CumulativeLogSum<T>>(r, 10); });
  const bool largest = request.op() == "cummax";
  return with_number(sdk::byte_for_bool(r.dtype), [&]<class T>(T) {
    return largest ? scan_plan<sdk::CumulativeExtreme<T, true>>(r, 2)
                   : scan_plan<sdk::CumulativeExtreme<T, false>>(r, 2);
  });
}

const sdk::Kernel scans({"cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"}, make_scan);

}  // namespace
}  // namespace tenon::cpu
