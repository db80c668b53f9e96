// Formats tensors as PyTorch does.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>

#include <fmt/core.h>

#include <tenon/core/autograd/node.h>
#include <tenon/core/format.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

namespace {

constexpr int64_t kSummariseAbove = 1000, kEdge = 3, kLineWidth = 80;

struct Format {
  bool integral = false, scientific = false;
  int width = 0;
};

std::string print_number(double v, const Format& f) {
  char text[64];
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  if (f.scientific)
    std::snprintf(text, sizeof text, "%.4e", v);
  else
    std::snprintf(text, sizeof text, f.integral ? "%.0f." : "%.4f", v);
  return text;
}

// Chooses the format as PyTorch does: whole numbers without decimals, and powers of ten if the
// range is wide.
Format choose_format(const std::vector<double>& values) {
  Format f;
  double low = INFINITY, high = 0;
  f.integral = true;
  for (double v : values) {
    if (!std::isfinite(v)) continue;
    if (v != std::trunc(v)) f.integral = false;
    if (v != 0) low = std::min(low, std::fabs(v));
    high = std::max(high, std::fabs(v));
  }
  if (high > 0) f.scientific = high / low > 1000 || high > 1e8 || (!f.integral && low < 1e-4);
  if (f.integral && high / low > 1000 && high <= 1e8) f.scientific = false;
  for (double v : values)
    if (std::isfinite(v) && v != 0)
      f.width = std::max(f.width, static_cast<int>(print_number(v, f).size()));
  return f;
}

class Printer {
 public:
  explicit Printer(const Tensor& t)
      : t_(t), shape_(t.shape()), summarise_(t.numel() > kSummariseAbove) {
    const Tensor shown = summarise_ ? edges(t) : t;
    if (is_floating_point(t.dtype())) {
      format_ = choose_format(shown.to_vector<double>());
    } else {
      for (auto v : shown.to_vector<int64_t>())
        format_.width =
            std::max(format_.width, static_cast<int>(element(static_cast<double>(v), v).size()));
    }
  }

  std::string body() {
    if (t_.numel() == 0) return "[]";
    return part(t_, 0, 7);
  }

 private:
  // Narrows every dimension before anything is copied, because the tensor may be an expanded view
  // that would not fit into memory.
  static Tensor edges(const Tensor& t, int64_t d = 0) {
    if (d == t.dim()) return t;
    const int64_t n = t.size(d);
    if (n <= 2 * kEdge) return edges(t, d + 1);
    return cat({edges(t.narrow(d, 0, kEdge), d + 1), edges(t.narrow(d, n - kEdge, kEdge), d + 1)},
               d);
  }
  static Tensor cat(std::initializer_list<Tensor> parts, int64_t dim);

  std::string element(double v, int64_t i) const {
    if (t_.dtype() == boolean) return i ? "True" : "False";
    return is_floating_point(t_.dtype()) ? print_number(v, format_) : std::to_string(i);
  }

  std::string row(const Tensor& t, size_t indent) const {
    const int64_t n = t.numel();
    const bool cut = summarise_ && n > 2 * kEdge;
    std::vector<std::string> items;
    auto take = [&](const Tensor& piece) {
      const bool floating = is_floating_point(piece.dtype());
      auto doubles = floating ? piece.to_vector<double>() : std::vector<double>();
      auto ints = floating ? std::vector<int64_t>() : piece.to_vector<int64_t>();
      for (int64_t i = 0; i < piece.numel(); ++i) {
        auto text = floating ? element(doubles[i], 0) : element(0, ints[i]);
        items.push_back(
            std::string(std::max<int64_t>(0, format_.width - static_cast<int64_t>(text.size())),
                        ' ') +
            text);
      }
    };
    if (cut) {
      take(t.narrow(0, 0, kEdge));
      items.push_back("...");
      take(t.narrow(0, n - kEdge, kEdge));
    } else {
      take(t);
    }
    const int64_t per_line =
        std::max<int64_t>(1, (kLineWidth - static_cast<int64_t>(indent)) / (format_.width + 2));
    std::string text = "[";
    for (size_t i = 0; i < items.size(); ++i) {
      if (i) text += i % per_line ? ", " : ",\n" + std::string(indent + 1, ' ');
      text += items[i];
    }
    return text + "]";
  }

  std::string part(const Tensor& t, size_t depth, size_t indent) const {
    if (t.dim() == 0)
      return is_floating_point(t.dtype()) ? element(t.item<double>(), 0)
                                          : element(0, t.item<int64_t>());
    if (t.dim() == 1) return row(t, indent);
    const int64_t n = t.size(0);
    const bool cut = summarise_ && n > 2 * kEdge;
    const std::string between =
        "," + std::string(static_cast<size_t>(t.dim() - 1), '\n') + std::string(indent + 1, ' ');
    std::string text = "[";
    for (int64_t i = 0; i < n; ++i) {
      if (i) text += between;
      if (cut && i == kEdge) {
        text += "...";
        i = n - kEdge - 1;
        continue;
      }
      text += part(t[i], depth + 1, indent + 1);
    }
    return text + "]";
  }

  const Tensor& t_;
  const Shape shape_;
  const bool summarise_;
  Format format_;
};

Tensor Printer::cat(std::initializer_list<Tensor> parts, int64_t dim) {
  Shape shape = parts.begin()->shape();
  shape[static_cast<size_t>(dim)] = 0;
  for (auto& p : parts) shape[static_cast<size_t>(dim)] += p.size(dim);
  Tensor all = empty(shape, {.dtype = parts.begin()->dtype(), .device = parts.begin()->device()});
  int64_t at = 0;
  for (auto& p : parts) {
    all.narrow(dim, at, p.size(dim)).copy_(p);
    at += p.size(dim);
  }
  return all;
}

}  // namespace

std::string Tensor::str() const {
  if (!defined()) return "tensor(undefined)";
  NoGrad guard;
  std::string text = "tensor(" + Printer(detach()).body();
  if (numel() == 0 && dim() != 1) text += fmt::format(", size={}", shape());
  if (dtype() != f32 && dtype() != i64 && dtype() != boolean)
    text += fmt::format(", dtype={}", dtype());
  if (device() != Device()) text += fmt::format(", device='{}'", device());
  auto& t = impl_of(*this);
  if (t.autograd && t.autograd->node)
    text += fmt::format(", grad_fn=<{}>", t.autograd->node->name());
  else if (requires_grad())
    text += ", requires_grad=True";
  return text + ")";
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << tensor.str(); }

}  // namespace tenon
