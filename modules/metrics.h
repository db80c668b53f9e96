// Measures of the quality of predictions: functions of one batch, and classes that collect batches.
//
//   metrics::Accuracy right;
//   for (auto& [x, y] : loader) right.update(net(x), y);
//   double share = right.compute().item();
//
// Scores have shape (n, classes), the highest being the prediction; targets and classes are whole
// numbers of shape (n). Results are f64 scalars on the device of the inputs, and NaN where nothing
// was measured. Functions throw a ShapeError or a DTypeError for inputs that do not fit, and a
// ValueError for an undefined tensor; update() throws the same. The classes take batches from any
// device and add up on that of the first; update() waits for nothing. A target or a predicted class
// that does not exist is found on the device, so it is an IndexError of compute(), which names the
// first one and waits for it. Nothing is recorded for autograd.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tenon/core/number.h>
#include <tenon/core/tensor.h>

namespace tenon::metrics {

// Returns the share of rows whose target has the highest score; of equal scores the first counts. A
// target that is no class, such as -100, is never right; it counts as a row nevertheless.
TENON_API Tensor accuracy(const Tensor& input, const Tensor& target);

// Returns the share of rows whose target is among the k highest scores; of equal scores the first
// count.
// Throws a ValueError unless k is in [1, classes].
TENON_API Tensor top_k_accuracy(const Tensor& input, const Tensor& target, int64_t k);

// Returns how often each class was predicted for each target, in i64 of shape (num_classes,
// num_classes): the row is the target, the column the prediction. `input` are predicted classes, or
// scores. Throws a ValueError for num_classes below 1. A class outside [0, num_classes) is an
// IndexError of the queued work, which reading the values throws.
TENON_API Tensor confusion_matrix(const Tensor& input, const Tensor& target, int64_t num_classes);

// Returns the F1 score, the harmonic mean of precision and recall: 2 hits / (predicted + true).
// `average` is "macro", the mean over the classes that occur among predictions or targets;
// "weighted", the same weighted by how often they are targets; "micro", of all classes together; or
// "none", which gives shape (num_classes), NaN where a class does not occur. Inputs and errors are
// those of confusion_matrix; throws a ValueError for another `average`, too.
TENON_API Tensor f1_score(const Tensor& input, const Tensor& target, int64_t num_classes,
                          std::string_view average = "macro");

// Returns the area under the receiver operating characteristic: the share of pairs of a target 1
// and a target 0 in which the 1 has the higher score, where equal scores count half. Scores have
// shape (n).
TENON_API Tensor auroc(const Tensor& input, const Tensor& target);

// The base of all classes.
class TENON_API Metric {
 public:
  virtual ~Metric();
  // Returns the value for all batches since the start or the last reset.
  virtual Tensor compute() const = 0;
  // Forgets all batches.
  virtual void reset() = 0;

 protected:
  // Adds a value to a sum, which may still be undefined, on the device of the sum.
  static void add_to(Tensor& sum, const Tensor& value);
};

namespace detail {
// The first class of all batches that does not exist. It is looked for on the device.
class FirstOutside {
 public:
  // Looks at a batch whose classes have to be in [0, num_classes), in i64 of shape (n).
  void look(const Tensor& classes, int64_t num_classes);
  // Throws an IndexError for what was found; `what` is "target" or "prediction". Waits.
  void require_none(const char* metric, const char* what) const;

 private:
  Tensor first_;  // i64 (4): the class, how many there are, its position, its batch
  int64_t batches_ = 0;
};
}  // namespace detail

// Computes the mean of numbers, or of the elements of tensors, such as a loss over an epoch.
class TENON_API Mean final : public Metric {
 public:
  // Takes all elements of a tensor of any shape, each with the weight 1.
  void update(const Tensor& values);
  // Takes a value of one element with a weight, such as the size of the batch whose mean it is.
  // Throws a ShapeError for a tensor of another size.
  void update(const Tensor& value, double weight);
  // Takes a number with a weight.
  void update(Number value, double weight = 1);
  // Returns the sum of the values times their weights, divided by the sum of the weights.
  Tensor compute() const override;
  // Forgets all batches.
  void reset() override;

 private:
  Tensor sum_;
  double weight_ = 0;
};

struct AccuracyOptions {
  int64_t k = 1;  // a row is right if its target is among the k highest scores
};
// Computes accuracy, or top_k_accuracy, over batches: Accuracy(), Accuracy({.k = 5}). The number of
// classes is that of the scores. Leave out rows whose target is no class, such as -100, before
// update().
class TENON_API Accuracy final : public Metric {
 public:
  // Throws a ValueError unless k is at least 1.
  explicit Accuracy(const AccuracyOptions& options = {});
  // Takes a batch of scores (n, classes) and targets (n). Throws a ValueError if k is above the
  // number of classes.
  void update(const Tensor& input, const Tensor& target);
  // Returns the share of rows that were right. Throws an IndexError for a target that is no class.
  Tensor compute() const override;
  // Forgets all batches.
  void reset() override;

 private:
  int64_t k_, count_ = 0;
  Tensor hits_;
  detail::FirstOutside targets_;
};

// Computes confusion_matrix over batches, and f1_score of it.
class TENON_API ConfusionMatrix final : public Metric {
 public:
  // Throws a ValueError unless num_classes is at least 1.
  explicit ConfusionMatrix(int64_t num_classes);
  // Takes a batch of predicted classes (n), or of scores (n, classes), and targets (n).
  void update(const Tensor& input, const Tensor& target);
  // Returns the matrix, i64 of shape (num_classes, num_classes): the row is the target, the column
  // the prediction. Throws an IndexError for a target or prediction that is no class.
  Tensor compute() const override;
  // Returns the F1 score of the matrix as the function f1_score does, with its `average`. Throws
  // the errors of compute(), and a ValueError for another `average`.
  Tensor f1_score(std::string_view average = "macro") const;
  // Forgets all batches.
  void reset() override;

 private:
  friend class F1Score;
  ConfusionMatrix(const char* name, int64_t num_classes);

  const char* name_;  // of the metric, which errors tell
  int64_t num_classes_;
  Tensor matrix_;
  detail::FirstOutside targets_, predictions_;
};

// Computes f1_score over batches.
class TENON_API F1Score final : public Metric {
 public:
  // Throws a ValueError unless num_classes is at least 1, and for another `average` than those of
  // f1_score.
  explicit F1Score(int64_t num_classes, std::string average = "macro");
  // Takes a batch of predicted classes (n), or of scores (n, classes), and targets (n).
  void update(const Tensor& input, const Tensor& target) { matrix_.update(input, target); }
  // Returns a scalar, or (num_classes) for the average "none". Throws an IndexError for a target or
  // prediction that is no class.
  Tensor compute() const override { return matrix_.f1_score(average_); }
  // Forgets all batches.
  void reset() override { matrix_.reset(); }

 private:
  ConfusionMatrix matrix_;
  std::string average_;
};

// Computes auroc over batches. It keeps all scores, because a pair may be of two batches.
class TENON_API AUROC final : public Metric {
 public:
  // Takes a batch of scores (n) and targets (n), of which 1 is one class and all others the other.
  void update(const Tensor& input, const Tensor& target);
  // Returns the area under the curve; NaN unless there are targets of both kinds.
  Tensor compute() const override;
  // Forgets all batches.
  void reset() override;

 private:
  std::vector<Tensor> scores_, targets_;
};

}  // namespace tenon::metrics
