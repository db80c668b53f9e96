// Metrics over several batches and devices, and what their functions say of ties and of no
// elements. The values of single batches are among the reference cases
// (conformance/cases/reduction_metrics.h).
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include <tenon/tenon.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(metrics_test)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(equal_scores_are_no_hit_of_the_later) {
  const Tensor scores = zeros({3, 4}), target = ints({0, 1, 3}, {3});
  require_close({metrics::accuracy(scores, target).item()}, {1.0 / 3}, 1e-15, 0);
  require_close({metrics::top_k_accuracy(scores, target, 2).item()}, {2.0 / 3}, 1e-15, 0);
  BOOST_TEST(metrics::top_k_accuracy(scores, target, 4).item() == 1);
  BOOST_TEST(metrics::accuracy(scores, ints({0, -100, 7}, {3})).item() * 3 == 1);
}

BOOST_AUTO_TEST_CASE(averages_of_f1) {
  // Class 0: 2 hits of 3 predicted and 2 true; class 1: 1 of 1 and 2; class 2 does not occur.
  const Tensor predicted = ints({0, 0, 0, 1}, {4}), target = ints({0, 0, 1, 1}, {4});
  auto f1 = [&](const char* average) { return metrics::f1_score(predicted, target, 3, average); };
  require_close({f1("macro").item()}, {(0.8 + 2.0 / 3) / 2}, 1e-12, 0);
  require_close({f1("micro").item()}, {0.75}, 1e-12, 0);
  require_close({f1("weighted").item()}, {0.8 * 0.5 + 2.0 / 3 * 0.5}, 1e-12, 0);
  const auto each = f1("none").to_vector<double>();
  BOOST_TEST((each[0] == 0.8 && std::isnan(each[2])));
  require_error<ValueError>([&] { f1("median"); }, "f1_score: average is \"median\"");
  require_error<ValueError>([] { metrics::F1Score(3, "median"); }, "average is \"median\"");
}

BOOST_AUTO_TEST_CASE(confusion_of_scores_and_of_classes_outside) {
  const Tensor scores = tensor({0, 1, 3, 2, 5, 4}, {3, 2}), target = ints({1, 1, 0}, {3});
  require_equal(metrics::confusion_matrix(scores, target, 2), ints({1, 0, 1, 1}, {2, 2}));
  const Tensor classes = ints({0, 1}, {2});
  for (int64_t outside : {-1, 2}) {
    const Tensor wrong = ints({0, outside}, {2});
    const std::string text =
        "index " + std::to_string(outside) + " at position 1 is outside [0, 2)";
    require_error<IndexError>([&] { metrics::confusion_matrix(wrong, classes, 2).wait(); }, text,
                              "confusion_matrix.prediction");
    require_error<IndexError>([&] { metrics::f1_score(classes, wrong, 2).wait(); }, text,
                              "f1_score.target");
  }
}

BOOST_AUTO_TEST_CASE(the_first_class_outside_of_all_batches_is_named) {
  const Tensor good = ints({0, 1, 2}, {3}), scores = zeros({3, 3});
  auto refuses = [](const metrics::Metric& metric, const std::string& text) {
    require_error<IndexError>([&] { (void)metric.compute(); },
                              text + ", the classes; leave out rows that have no class");
  };
  metrics::ConfusionMatrix one(3);
  one.update(good, ints({-1, 7, 0}, {3}));
  refuses(one, "ConfusionMatrix: target -1 at position 0 is outside [0, 3)");
  require_error<IndexError>([&] { (void)one.f1_score(); }, "ConfusionMatrix: target -1");

  metrics::ConfusionMatrix confusion(3);
  metrics::F1Score f1(3);
  metrics::Accuracy right, best({.k = 2});
  for (const Tensor& target :
       {good, ints({}, {0}), ints({0, 0, 3}, {3}), ints({-1, 5, 6}, {3}), good}) {
    const Device device(target.numel() == 0 ? "cpu:1" : "cpu:0");
    const Tensor predicted = target.numel() ? good : target;
    confusion.update(target.to(device), predicted.to(device));
    f1.update(predicted.to(device), target.to(device));
    right.update(scores.narrow(0, 0, target.numel()).to(device), target.to(device));
    best.update(scores.narrow(0, 0, target.numel()).to(device), target.to(device));
  }
  const std::string where = " 3 at position 2 of batch 2 (of 5, counted from 0) is outside [0, 3)";
  refuses(confusion, "ConfusionMatrix: prediction" + where);
  refuses(f1, "F1Score: target" + where);
  refuses(right, "Accuracy: target" + where);
  refuses(best, "Accuracy: target" + where);
  confusion.reset(), f1.reset(), right.reset();
  confusion.update(good, good), f1.update(good, good), right.update(scores, good);
  BOOST_TEST(confusion.compute().sum().item<int>() == 3);
  BOOST_TEST(f1.compute().item() == 1);
  BOOST_TEST(right.compute().item() * 3 == 1);

  // More scores than classes: what is predicted may be none.
  metrics::ConfusionMatrix narrow(2);
  narrow.update(tensor({0, 0, 1}, {1, 3}), ints({1}, {1}));
  refuses(narrow, "ConfusionMatrix: prediction 2 at position 0 is outside [0, 2)");
}

BOOST_AUTO_TEST_CASE(classes_that_lie_at_the_ends_of_their_dtype) {
  const Tensor bytes = ints({0, 1}, {2}).to(u8), words = ints({1, 1}, {2}).to(i32);
  metrics::ConfusionMatrix confusion(2);
  confusion.update(bytes, words);
  require_equal(confusion.compute(), ints({0, 0, 1, 1}, {2, 2}));
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  confusion.update(ints({0}, {1}), ints({kMin}, {1}));
  require_error<IndexError>([&] { (void)confusion.compute(); }, std::to_string(kMin));
}

BOOST_AUTO_TEST_CASE(areas_under_the_curve) {
  auto area = [](const std::vector<float>& scores, const std::vector<int64_t>& target) {
    return metrics::auroc(tensor(scores), ints(target, {static_cast<int64_t>(target.size())}))
        .item();
  };
  BOOST_TEST(area({0.1F, 0.4F, 0.35F, 0.8F}, {0, 0, 1, 1}) == 0.75);
  BOOST_TEST(area({1, 1, 1, 1}, {0, 1, 1, 0}) == 0.5);
  BOOST_TEST(std::isnan(area({1, 2}, {1, 1})));
  BOOST_TEST(std::isnan(area({}, {})));
}

BOOST_AUTO_TEST_CASE(a_batch_of_halves_makes_no_ties) {
  metrics::AUROC area;
  area.update(tensor({0.5f, 0.6f}).to(f16), ints({0, 1}, {2}));
  area.update(tensor({0.5001f, 0.5f}), ints({1, 0}, {2}));
  BOOST_TEST(area.compute().item<double>() == 1.0);
}

BOOST_AUTO_TEST_CASE(batches_from_several_devices_add_up) {
  metrics::Accuracy right, best({.k = 2});
  metrics::ConfusionMatrix confusion(3);
  metrics::F1Score f1(3);
  metrics::AUROC area;
  metrics::Mean mean;
  std::vector<Tensor> all_scores, all_targets;
  for (int i = 0; i < 3; ++i) {
    const Device device(i == 1 ? "cpu:1" : "cpu:0");
    const Tensor scores = sample({5 + i, 3}, 0.3 + i).to(f32);
    const Tensor target = ints(std::vector<int64_t>{2, 0, 1, 1, 0, 2, 0}, {7}).narrow(0, 0, 5 + i);
    all_scores.push_back(scores), all_targets.push_back(target);
    const Tensor there = scores.to(device), target_there = target.to(device);
    right.update(there, target_there);
    best.update(there, target_there);
    confusion.update(there, target_there);
    f1.update(there, target_there);
    area.update(there.select(1, 0), eq(target_there, 2).to(i64));
    mean.update(there);
  }
  const Tensor scores = cat(all_scores), target = cat(all_targets);
  BOOST_TEST(right.compute().item() == metrics::accuracy(scores, target).item());
  BOOST_TEST(best.compute().item() == metrics::top_k_accuracy(scores, target, 2).item());
  require_equal(confusion.compute(), metrics::confusion_matrix(scores, target, 3));
  BOOST_TEST(f1.compute().item() == metrics::f1_score(argmax(scores, 1), target, 3).item());
  BOOST_TEST(area.compute().item() ==
             metrics::auroc(scores.select(1, 0), eq(target, 2).to(i64)).item());
  require_close({mean.compute().item()}, {scores.to(f64).mean().item()}, 1e-12, 1e-15);
  right.reset(), area.reset(), confusion.reset(), mean.reset();
  BOOST_TEST(std::isnan(right.compute().item()));
  BOOST_TEST(std::isnan(area.compute().item()));
  BOOST_TEST(confusion.compute().sum().item<int>() == 0);
  mean.update(2.0, 3);
  mean.update(scalar(6), 1);
  BOOST_TEST(mean.compute().item() == 3);
}

BOOST_AUTO_TEST_CASE(bad_input) {
  const Tensor scores = zeros({2, 3}), target = ints({0, 1}, {2});
  require_error<ShapeError>(
      [&] {
        metrics::accuracy(scores, ints({0, 1, 2}, {3}));
      },
      "accuracy: an input of shape (2, 3) and a target of shape (3,)");
  require_error<DTypeError>([&] { metrics::accuracy(scores, zeros({2})); },
                            "accuracy: the target is of type f32");
  require_error<ValueError>([&] { metrics::top_k_accuracy(scores, target, 4); },
                            "top_k_accuracy: k is 4; it has to be at least 1 and at most 3");
  require_error<ValueError>([&] { metrics::confusion_matrix(target, target, 0); },
                            "num_classes is 0");
  require_error<DTypeError>([&] { metrics::confusion_matrix(zeros({2}), target, 2); },
                            "confusion_matrix: the input is of type f32");
  require_error<ShapeError>([&] { metrics::auroc(scores, target); }, "auroc: an input of shape");
  require_error<ValueError>([] { metrics::Accuracy({.k = 0}); }, "Accuracy: k is 0");
  // A bare number could be meant as the number of classes, with which every row would be right.
  static_assert(!std::is_constructible_v<metrics::Accuracy, int>);
}

BOOST_AUTO_TEST_SUITE_END()
