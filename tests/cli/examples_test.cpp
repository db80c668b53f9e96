// The examples that are not tried with the command: each learns something, for seconds.
#include <boost/test/unit_test.hpp>

#include "cli/programs.h"

BOOST_AUTO_TEST_SUITE(examples_test)

using namespace tenon::test::programs;
using tenon::test::has;

namespace {

// The number that follows `label` in the last line that has it.
double number_after(const std::string& text, const std::string& label) {
  const size_t at = text.rfind(label);
  BOOST_REQUIRE_MESSAGE(at != std::string::npos, "no \"" << label << "\" in: " << text);
  return std::atof(text.c_str() + at + label.size());
}

Outcome run_well(const Folder& folder, const std::string& command) {
  Outcome outcome = run(folder, command);
  BOOST_REQUIRE_MESSAGE(outcome.status == 0, command << ": " << outcome.err);
  return outcome;
}

}  // namespace

BOOST_AUTO_TEST_CASE(linear_regression) {
  Folder folder;
  const auto outcome = run_well(folder, "linear_regression");
  BOOST_TEST(std::abs(number_after(outcome.out, "y = ") - 3) < 0.05);
  BOOST_TEST(std::abs(number_after(outcome.out, "x + ") - 2) < 0.05);
}

BOOST_AUTO_TEST_CASE(vae) {
  Folder folder;
  const std::string model = folder / "vae.h5", sheet = folder / "sheet.pgm";
  const std::string common = "vae --synthetic --batch-size 500 ";
  const auto trained = run_well(folder, common + "--epochs 1 --device cpu:0,cpu:1 --save '" +
                                            model + "' --pictures '" + sheet + "'");
  BOOST_TEST(fs::file_size(sheet) == 15 + 224 * 224u);
  BOOST_TEST(slurp(sheet).substr(0, 15) == "P5 224 224 255\n");
  const auto loaded = run_well(folder, common + "--epochs 0 --load '" + model + "'");
  const double before = number_after(run_well(folder, common + "--epochs 0").out, "test loss "),
               after = number_after(loaded.out, "test loss ");
  BOOST_TEST(after < before - 100, before << " became " << after);
  // Noise is drawn anew, so the same model gives nearly the same.
  BOOST_TEST(std::abs(number_after(trained.out, "test loss ") - after) < 2);
}

BOOST_AUTO_TEST_SUITE_END()
