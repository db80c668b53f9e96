#include <limits>

#include <tenon/core/base/module_path.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/grad_mode.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/ops/sort.h>
#include <tenon/modules/metrics.h>

namespace tenon::metrics {

namespace {

bool is_whole(const Tensor& t) { return !is_floating_point(t.dtype()) && t.dtype() != boolean; }

void require_classes(const char* metric, const char* what, const Tensor& t) {
  if (!t.defined())
    throw ValueError(fmt::format("{}: the {} is an undefined tensor", metric, what));
  if (!is_whole(t))
    throw DTypeError(
        fmt::format("{}: the {} is of type {}; classes are whole numbers, so convert "
                    "it with .to(tenon::i64)",
                    metric, what, t.dtype()));
}

void require_shape(const char* metric, const Tensor& input, const Tensor& target, bool scores) {
  if (!input.defined())
    throw ValueError(fmt::format("{}: the input is an undefined tensor", metric));
  if (target.dim() != 1 || input.dim() != (scores ? 2 : 1) || input.size(0) != target.size(0))
    throw ShapeError(
        fmt::format("{}: an input of shape {} and a target of shape {} do not fit; "
                    "they have to have shapes {} and (n,)",
                    metric, input.shape(), target.shape(), scores ? "(n, classes)" : "(n,)"));
}

// How many rows are right, as i64.
Tensor hits_of(const char* metric, const Tensor& input, const Tensor& target, int64_t k) {
  require_classes(metric, "target", target);
  require_shape(metric, input, target, true);
  if (k < 1 || k > input.size(1))
    throw ValueError(
        fmt::format("{}: k is {}; it has to be at least 1 and at most {}, the number "
                    "of classes",
                    metric, k, input.size(1)));
  if (k == 1) return eq(argmax(input.detach(), 1), target.to(i64)).sum();
  const Tensor best = topk(input.detach(), k, 1).indices;
  return eq(best, target.to(i64).unsqueeze(1)).sum();
}

Tensor share(const Tensor& hits, int64_t count) {
  return hits.to(f64) / static_cast<double>(count);  // NaN if there are none
}

Tensor unmeasured(const Tensor& like) {
  return full({}, std::numeric_limits<double>::quiet_NaN(),
              {.dtype = f64, .device = like.defined() ? like.device() : default_device()});
}

Tensor f1_of(const Tensor& matrix, std::string_view average) {
  const int64_t n = matrix.size(0);
  const Tensor m = matrix.to(f64);
  const Tensor hits = m.reshape({n * n}).slice(0, 0, n * n, n + 1), of_target = m.sum(1),
               both = m.sum(0) + of_target;
  if (average == "micro") return hits.sum() * 2.0 / both.sum();
  const Tensor scores = hits * 2.0 / both;  // NaN where a class does not occur
  if (average == "none") return scores;
  const Tensor seen = both > 0, known = where(seen, scores, 0);
  if (average == "macro") return known.sum() / seen.sum().to(f64);
  if (average == "weighted") return (known * of_target).sum() / of_target.sum();
  throw ValueError(fmt::format(
      "f1_score: average is \"{}\"; it has to be \"macro\", \"weighted\", \"micro\" or \"none\"",
      average));
}

}  // namespace

Tensor accuracy(const Tensor& input, const Tensor& target) {
  const NoGrad guard;
  return share(hits_of("accuracy", input, target, 1), target.numel());
}

Tensor top_k_accuracy(const Tensor& input, const Tensor& target, int64_t k) {
  const NoGrad guard;
  return share(hits_of("top_k_accuracy", input, target, k), target.numel());
}

namespace {
// `name`: what the user called, which errors of the queued work tell too.
Tensor count_pairs(const char* name, const Tensor& input, const Tensor& target,
                   int64_t num_classes) {
  const NoGrad guard;
  const ModulePath place(name);
  if (num_classes < 1)
    throw ValueError(
        fmt::format("{}: num_classes is {}; it has to be at least 1", name, num_classes));
  require_classes(name, "target", target);
  const bool scores = input.defined() && input.dim() == 2;
  if (!scores) require_classes(name, "input", input);
  require_shape(name, input, target, scores);
  // A negative index would count from the end.
  auto checked = [&](const Tensor& classes) {
    const Tensor c = classes.to(i64);
    return where(c < 0, num_classes, c);
  };
  const Tensor predicted = scores ? argmax(input.detach(), 1) : input;
  const TensorOptions options = {.dtype = i64, .device = input.device()};
  return index_put(zeros({num_classes, num_classes}, options),
                   {checked(target), checked(predicted)}, ones({}, options), true);
}
}  // namespace

Tensor confusion_matrix(const Tensor& input, const Tensor& target, int64_t num_classes) {
  return count_pairs("confusion_matrix", input, target, num_classes);
}

Tensor f1_score(const Tensor& input, const Tensor& target, int64_t num_classes,
                std::string_view average) {
  const NoGrad guard;
  return f1_of(count_pairs("f1_score", input, target, num_classes), average);
}

Tensor auroc(const Tensor& input, const Tensor& target) {
  const NoGrad guard;
  require_classes("auroc", "target", target);
  require_shape("auroc", input, target, false);
  if (input.numel() == 0) return unmeasured(input);
  // The sum of the ranks of the ones (Mann and Whitney 1947), where equal scores share the mean of
  // their ranks.
  const Tensor scores = input.detach(), sorted = sort(scores).values;
  const Tensor below = searchsorted(sorted, scores).to(f64),
               up_to = searchsorted(sorted, scores, SearchOptions{.right = true}).to(f64);
  const Tensor rank = (below + up_to + 1) / 2.0, is_one = eq(target, 1).to(f64);
  const Tensor ones = is_one.sum(), others = static_cast<double>(target.numel()) - ones;
  return ((rank * is_one).sum() - ones * (ones + 1) / 2.0) / (ones * others);
}

// ---- over batches

Metric::~Metric() = default;

void Metric::add_to(Tensor& sum, const Tensor& value) {
  const NoGrad guard;
  sum = sum.defined() ? sum + value.to(sum.device()) : value;
}

void Mean::update(const Tensor& values) {
  add_to(sum_, values.detach().to(f64).sum());
  weight_ += static_cast<double>(values.numel());
}
void Mean::update(const Tensor& value, double weight) {
  if (value.numel() != 1)
    throw ShapeError(fmt::format(
        "Mean: a value with a weight has one element; found one of shape {}", value.shape()));
  add_to(sum_, value.detach().to(f64).reshape({}) * weight);
  weight_ += weight;
}
void Mean::update(Number value, double weight) {
  update(scalar(value, {.dtype = f64, .device = sum_.defined() ? sum_.device() : default_device()}),
         weight);
}
Tensor Mean::compute() const { return sum_.defined() ? sum_ / weight_ : unmeasured(sum_); }
void Mean::reset() { sum_ = Tensor(), weight_ = 0; }

Accuracy::Accuracy(const AccuracyOptions& options) : k_(options.k) {
  if (k_ < 1) throw ValueError(fmt::format("Accuracy: k is {}; it has to be at least 1", k_));
}
void Accuracy::update(const Tensor& input, const Tensor& target) {
  const NoGrad guard;
  add_to(hits_, hits_of("Accuracy", input, target, k_));
  count_ += target.numel();
}
Tensor Accuracy::compute() const {
  return hits_.defined() ? share(hits_, count_) : unmeasured(hits_);
}
void Accuracy::reset() { hits_ = Tensor(), count_ = 0; }

ConfusionMatrix::ConfusionMatrix(int64_t num_classes) : num_classes_(num_classes) {
  if (num_classes < 1)
    throw ValueError(
        fmt::format("ConfusionMatrix: num_classes is {}; it has to be at least 1", num_classes));
}
void ConfusionMatrix::update(const Tensor& input, const Tensor& target) {
  add_to(matrix_, count_pairs("ConfusionMatrix", input, target, num_classes_));
}
Tensor ConfusionMatrix::compute() const {
  return matrix_.defined() ? matrix_ : zeros({num_classes_, num_classes_}, {.dtype = i64});
}
Tensor ConfusionMatrix::f1_score(std::string_view average) const {
  const NoGrad guard;
  return f1_of(compute(), average);
}
void ConfusionMatrix::reset() { matrix_ = Tensor(); }

F1Score::F1Score(int64_t num_classes, std::string average)
    : matrix_(num_classes), average_(std::move(average)) {
  matrix_.f1_score(average_);  // which refuses a word that it does not know
}

void AUROC::update(const Tensor& input, const Tensor& target) {
  require_classes("AUROC", "target", target);
  require_shape("AUROC", input, target, false);
  scores_.push_back(input.detach());
  targets_.push_back(target.detach());
}
Tensor AUROC::compute() const {
  const NoGrad guard;
  if (scores_.empty()) return unmeasured(Tensor());
  std::vector<Tensor> scores, targets;
  for (size_t i = 0; i < scores_.size(); ++i) {
    scores.push_back(scores_[i].to(scores_[0].device()).to(scores_[0].dtype()));
    targets.push_back(targets_[i].to(scores_[0].device()).to(i64));
  }
  return auroc(cat(scores), cat(targets));
}
void AUROC::reset() { scores_.clear(), targets_.clear(); }

}  // namespace tenon::metrics
