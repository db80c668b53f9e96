// `tenon conformance`, run as an author of a backend runs it: what is right passes, and each
// planted fault (tests/conformance/faulty.cpp) is found and named.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <boost/test/unit_test.hpp>
#include <hdf5.h>
#include <sys/stat.h>

#include "cli/conformance_run.h"
#include "fuzz.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(conformance_test)

namespace fs = std::filesystem;
using tenon::test::build_dir;
using tenon::test::fuzz_long;
using tenon::test::has;
using tenon::test::kSanitized;
using namespace tenon::test::conformance_run;

BOOST_AUTO_TEST_CASE(what_is_right_passes) {
  const Folder folder;
  require_line(run(folder, "--op relu --json '" + (folder / "all.json") + "'"), 0,
               {"cpu:0: cpu ", "compared with cpu:1", "relu", "cases ", "gradients ", "layouts ",
                "repeat ", "shapes ", " 0 failed"});
  require_line({0, slurp(folder / "all.json")}, 0, {"\"failed\": 0", "\"op\": \"relu\""});
  require_line(run(folder, faulty() + "--op relu --json '" + (folder / "all.json") + "'", "none"),
               0,
               {"with the overlay faulty 1.0 (", " 0 failed, ",
                "relu in bf16, f16, f64, i32, i64, u8: no plan of the overlay was used"});
  require_line({0, slurp(folder / "all.json")}, 0, {"\"device\": null", "libtenon_faulty.so\""});
  if (kSanitized) return;
  require_line(run(folder, "--section joint"), 0, {"joint ", " 0 failed"});
  require_line(run(folder, faulty() + "--section joint", "none"), 0,
               {"joint        19 passed, 0 failed"});
  // In checked mode, each run on a device with streams is waited for several times. All operators
  // of these run in tests/ops.
  require_line(run(folder, fuzz_long() ? "--no-check" : "--no-check --level required"), 0,
               {"0 failed"});
  require_line(run(folder, "--op dropout --section shapes --no-check --seed 4"), 0, {"0 failed"});
  for (const char* what : {"--op conv2d --section cases", "--op sum --no-check --seed 3"})
    require_line(run(folder, plugin("sim/libtenon_sim.so") + what), 0,
                 {"sim:0: sim 1.0", "0 failed"});
  for (const char* what : {"--op gelu --no-check", "--section joint"})
    require_line(run(folder, plugin("primitives/libtenon_primitives.so") + what), 0, {"0 failed"});
}

BOOST_AUTO_TEST_CASE(what_is_not_offered_does_not_pass) {
  const Folder folder;
  require_line(run(folder, poor() + "--op matmul --dtype f64"), 1,
               {"matmul in f64: matmul: poor: poor does not have it", " 0 passed, 0 failed, ",
                "Nothing passed"});
  require_line(run(folder, plugin("primitives/libtenon_primitives.so") + "--op normal --dtype f32"),
               1, {"primitives has no normal", "Nothing passed"});
}

// The plugin below computes it then, and may be as right as it wants.
BOOST_AUTO_TEST_CASE(an_overlay_passes_by_its_own_plans_alone) {
  const Folder folder;
  require_line(
      run(folder, faulty() + "--op relu --dtype f32"), 1,
      {"relu in f32: no plan of the overlay was used", " 0 passed, 0 failed, ", "Nothing passed"});
  require_line(run(folder, faulty() + "--section joint"), 1,
               {"joint: none of the operators abs, relu, ", " 0 passed, 0 failed, "});
  require_line(run(folder, faulty() + "--op relu --dtype f32", "42 at a great cost"), 1,
               {"FAILED cases: relu", "is 42, expected"});
  if (kSanitized) return;  // all operators
  const auto all = run(folder, faulty() + "--section repeat --dtype f64 --no-check");
  require_line(
      all, 1,
      {"\nNot offered:\n  no plan of the overlay was used, in any check, of (--json FILE "
       "has the reasons): ",
       ", add, ", "matmul, ", " 0 passed, 0 failed, ", "\nNothing passed, so nothing is shown.\n"});
  BOOST_TEST(!has(all.out, "\n  add in f64: "), all.out.substr(0, 4000));
}

BOOST_AUTO_TEST_CASE(an_overlay_over_another_device_is_compared_with_the_cpu) {
  const Folder folder;
  setenv("TENON_PLUGIN_PATH", (build_dir() + "/tests/sim").c_str(), 1);
  const auto outcome = run(folder, plugin("conformance/libtenon_faulty_over_sim.so") + "--op relu");
  unsetenv("TENON_PLUGIN_PATH");
  require_line(outcome, 1,
               {"sim:0: sim 1.0 (", "with the overlay faulty_over_sim 1.0 (",
                ": no plan of the overlay was used", " 0 passed, 0 failed, "});
}

// Memory of sim is only copied, so that is how guards and patterns come there.
BOOST_AUTO_TEST_CASE(what_is_wrong_in_memory_that_is_only_copied_is_found) {
  if (kSanitized) return;
  const Folder folder;
  const auto over_sim = plugin("conformance/libtenon_faulty_over_sim.so");
  setenv("TENON_PLUGIN_PATH", (build_dir() + "/tests/sim").c_str(), 1);
  const auto behind = run(folder, over_sim + "--op neg --dtype f32 --section cases",
                          "writes a byte behind"),
             zeros =
                 run(folder, over_sim + "--op sum --dtype f32 --section cases", "relies on zeros");
  unsetenv("TENON_PLUGIN_PATH");
  require_line(behind, 1,
               {"FAILED cases: neg", "wrote outside of output 0: 1 byte behind the end"});
  require_line(zeros, 1, {"FAILED cases: sum", "or computed them with what was there"});
}

BOOST_AUTO_TEST_CASE(a_required_operator_has_to_be_offered) {
  const Folder folder;
  require_line(run(folder, "--level required --section cases --op add"), 0, {"add ", " 0 failed"});
  require_line(run(folder, "--level required --op gelu"), 1, {"Nothing passed"});
}

BOOST_AUTO_TEST_CASE(speed_is_a_table_and_no_failure) {
  const Folder folder;
  const auto outcome = run(folder, "--speed --op exp");
  require_line(outcome, 0, {"of copy", "\nexp ", "speed        1 passed, 0 failed"});
  require_line(run(folder, faulty() + "--speed --op tanh", "crashes"), 1,
               {"FAILED speed: tanh", "SIGSEGV"});
}

namespace {
struct Planted {
  const char *fault, *op;
  std::initializer_list<const char*> parts;
};
void require_found(std::initializer_list<Planted> all) {
  const Folder folder;
  for (auto& planted : all) {
    BOOST_TEST_CONTEXT(planted.fault)
    require_line(run(folder, faulty() + "--op " + planted.op, planted.fault), 1, planted.parts);
  }
}
}  // namespace

BOOST_AUTO_TEST_CASE(each_planted_fault_is_found) {
  if (kSanitized) return;  // results are compared, and these are what they are elsewhere
  require_found({
      {"wrong tail", "add", {"FAILED layouts: add of ", "FAILED cases: ", "1 of "}},
      {"wrong gradient", "sigmoid", {"FAILED layouts: sigmoid", "gradient 0: element"}},
      {"wrong label smoothing", "cross_entropy", {"label_smoothing", "output 0: element"}},
      {"relies on zeros", "sum", {"FAILED cases: sum", "or computed them with what was there"}},
      {"writes a byte behind",
       "neg --section cases",
       {"FAILED cases: neg", "wrote outside of output 0: 1 byte behind the end"}},
      {"changes its input", "floor --no-check", {"FAILED cases: floor", "input 0 was changed"}},
      {"forgets strides", "mul", {"FAILED layouts: mul ", "inputs not contiguous in f32"}},
      {"other bits", "exp --section repeat", {"FAILED repeat: exp of", " the first time and "}},
      {"keeps what was greater",
       "maximum --section repeat",
       {"FAILED repeat: maximum of", "or computed them with what was there"}},
      {"keeps what was smaller",
       "minimum --section repeat",
       {"FAILED repeat: minimum of", "or computed them with what was there"}},
      {"swallows NaN", "maximum", {"FAILED layouts: maximum ", "is 0, expected nan"}},
  });
}

// Its own requests, errors, plans and ends, on the memory of the cpu.
BOOST_AUTO_TEST_CASE(the_joint_of_an_overlay_is_looked_at) {
  if (kSanitized) return;  // allocators that do not tell how much is in use
  const Folder folder;
  const std::string onednn = build_dir() + "/lib/tenon/plugins/libtenon_onednn.so";
  if (fs::exists(onednn))
    require_line(run(folder, "--plugin '" + onednn + "' --section joint"), 0,
                 {"joint        19 passed, 0 failed"});
  require_line(run(folder, faulty() + "--section joint", "is careless with requests"), 1,
               {"supports of an operator that nobody knows failed with code ",
                "supports of an attribute that nobody knows reported success",
                "a refusal by supports leaves about ", "rounds otherwise"});
  require_line(run(folder, faulty() + "--section joint", "is careless with hosts"), 1,
               {"under a host of ABI 1.0, all of this is so: ", "not this host",
                "returns from main: at its end, it crashed: SIGSEGV",
                "calls exit: at its end, it crashed: SIGSEGV"});
}

// In checked mode memory is filled before each use, in the same way except in this section.
BOOST_AUTO_TEST_CASE(only_a_second_call_shows_what_depends_on_what_memory_held) {
  if (kSanitized) return;
  const Folder folder;
  for (const char* mode : {"", " --no-check"}) {
    const auto outcome =
        run(folder, faulty() + "--op abs --dtype f32" + mode, "depends on what memory held");
    require_line(outcome, 1, {"FAILED repeat: abs of", "output 0: element", " the second"});
    for (const char* section : {"cases", "layouts", "shapes", "gradients"})
      BOOST_TEST(!has(outcome.out, std::string("FAILED ") + section), outcome.out);
  }
}

BOOST_AUTO_TEST_CASE(the_end_of_the_process_is_found) {
  require_found(
      {{"crashes", "tanh --section cases", {"FAILED cases: tanh", "SIGSEGV"}},
       {"exits", "cos --section cases", {"FAILED cases: cos", "ended the process with status 3"}}});
}

// An overlay that has none of Tenon's operators is tried with one of its own.
BOOST_AUTO_TEST_CASE(the_joint_of_an_overlay_of_operators_of_users) {
  if (kSanitized) return;  // the joint takes long there
  const Folder folder;
  const auto mylib = plugin("plugins/fixtures/custom_op/mylib.tenon.json") + "--section joint";
  require_line(run(folder, mylib), 1, {"--try names an operator of the plugin's own library"});
  require_line(run(folder, mylib + " --try 'mylib::swish2(beta=1.5)'"), 0,
               {"joint        19 passed, 0 failed"});
  require_line(
      run(folder, mylib + " --try 'mylib::swish2(gamma=1.5)'"), 1,
      {"the operator mylib::swish2(gamma=1.5) of f32, with which plans are to be tried, is "
       "not offered:",
       "beta"});
  require_line(run(folder, mylib + " --try swish2"), 1, {"--try swish2: has the form"});
}

// Also those of the joint, which are started by the process that runs the checks.
BOOST_AUTO_TEST_CASE(each_process_is_told_of_checked_mode_and_of_the_limit) {
  const Folder folder;
  const std::string cases = "--op relu --dtype f32 --section cases";
  const char* const fault = "fails in checked mode";
  require_line(run(folder, faulty() + cases + " --limit 11", fault), 1, {"stuck after 5 s"});
  require_line(run(folder, faulty() + cases + " --limit 3", fault), 1, {"stuck after 1 s"});
  setenv("TENON_CHECK_TIMEOUT", "7", 1);
  const auto set = run(folder, faulty() + cases + " --limit 11", fault);
  unsetenv("TENON_CHECK_TIMEOUT");
  require_line(set, 1, {"stuck after 7 s"});
  require_line(run(folder, faulty() + cases + " --no-check", fault), 0, {" 0 failed"});
  if (kSanitized) return;  // the joint takes long there
  require_line(run(folder, faulty() + "--section joint --no-check", fault), 0,
               {"joint        19 passed, 0 failed"});
}

// Who starts the command may ignore SIGCHLD, which is inherited: waitpid knows no child then.
BOOST_AUTO_TEST_CASE(how_a_process_ends_is_known_although_its_starter_ignores_children) {
  const Folder folder;
  const std::string ignore = "--ignore-signal=CHLD",
                    cases = "--op cos --dtype f32 --section cases --limit 20";
  require_line(run(folder, cases, "", ignore), 0, {" 0 failed"});
  require_line(run(folder, faulty() + cases, "exits", ignore), 1,
               {"FAILED cases: cos", "ended the process with status 3"});
  if (kSanitized) return;  // the joint takes long there
  require_line(run(folder, faulty() + "--section joint", "ignores its children"), 0,
               {"joint        19 passed, 0 failed"});
}

BOOST_AUTO_TEST_CASE(a_check_that_hangs_is_ended_and_its_operator_left_out) {
  const Folder folder;
  require_line(run(folder, faulty() + "--op sin --limit 3", "hangs"), 1,
               {"FAILED cases: sin", "did not end within 3 s", "Skipped, because checks of these"});
}

BOOST_AUTO_TEST_CASE(what_a_plugin_starts_does_not_hide_its_end) {
  const Folder folder;
  for (auto* fault : {"leaves a process behind", "leaves a program behind"})
    require_line(run(folder, faulty() + "--op cos --dtype f32 --section cases", fault), 1,
                 {"FAILED cases: cos", "ended the process with status 3"});
}

BOOST_AUTO_TEST_CASE(lines_of_others_on_the_pipe_do_not_lose_the_report) {
  const Folder folder;
  const std::string cases = "--op relu --dtype f32 --section cases";
  const char* const failed =
      "FAILED start: relu the results in f32: somebody else has written to the pipe";
  require_line(run(folder, faulty() + cases, "writes to the pipe"), 1,
               {failed, "no result of a check: ", "{\"end\": 1}", "cases        4 passed, 0 failed",
                "start        0 passed, 1 failed"});
  require_line(run(folder, faulty() + cases, "writes half a line"), 1,
               {failed, "half a line", "cases        4 passed, 0 failed",
                "start        0 passed, 1 failed"});
  if (kSanitized) return;  // the joint takes long there
  require_line(run(folder, faulty() + "--section joint", "writes half a line"), 1,
               {"under a host of ABI 1.0, all of this is so: somebody else has written to the pipe",
                "\ntotal "});
}

BOOST_AUTO_TEST_CASE(requests_that_make_no_sense_are_refused) {
  const Folder folder;
  require_line(run(folder, "--op nothing"), 1,
               {"no operator is called \"nothing\"; --list-ops prints the names of all "});
  const auto mistyped = run(folder, "--op relo");
  require_line(mistyped, 1, {"no operator is called \"relo\"; did you mean relu?; --list-ops "});
  BOOST_TEST(mistyped.out.size() < 200u, mistyped.out);
  require_line(run(folder, "--list-ops"), 0, {"\nrelu\n", "\nadd\n"});
  require_line(run(folder, "--dtype f33"), 1, {"--dtype f33: there are f32, f64"});
  require_line(run(folder, "--plugin /nowhere.so"), 1, {"/nowhere.so: No such file"});
  require_line(run(folder, "--device nothing:0"), 1, {"backend \"nothing\" cannot be used"});
  require_line(run(folder, "--cases /nowhere"), 1, {"/nowhere: cannot be read"});
  require_line(run(folder, "--plugin '" + build_dir() + "/bin/tenon'"), 1, {"no manifest"});
}

// Files come from anybody.
namespace {

struct File {
  hid_t file;
  explicit File(const std::string& path)
      : file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) {}
  ~File() { H5Fclose(file); }

  hid_t add_group(const char* name) const {
    const hid_t group = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    for (const char* part : {"in", "out", "gout", "gin"})
      H5Gclose(H5Gcreate2(group, part, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    return group;
  }
};

void set_text(hid_t group, const char* name, const std::string& text) {
  const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
  H5Tset_size(type, text.size() + 1);
  const hid_t a = H5Acreate2(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(a, type, text.c_str());
  H5Aclose(a), H5Sclose(space), H5Tclose(type);
}

void add_case(const File& file, const char* name, const std::string& op, const std::string& args,
              const std::vector<double>& in, const std::vector<double>& out, hsize_t dim = 2,
              hid_t out_type = H5T_NATIVE_DOUBLE, const std::vector<double>& gradient = {}) {
  const hid_t group = file.add_group(name), space = H5Screate_simple(1, &dim, nullptr),
              scalar = H5Screate(H5S_SCALAR);
  set_text(group, "op", op);
  set_text(group, "args", args);
  const double tolerance = 1e-5;
  for (const char* key : {"rtol", "atol"}) {
    const hid_t a = H5Acreate2(group, key, H5T_NATIVE_DOUBLE, scalar, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(a, H5T_NATIVE_DOUBLE, &tolerance);
    H5Aclose(a);
  }
  const auto write = [&](const char* path, const std::vector<double>& values, hid_t type) {
    if (values.empty()) return;
    const hid_t d = H5Dcreate2(group, path, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (dim == values.size())
      H5Dwrite(d, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Dclose(d);
  };
  write("in/0", in, H5T_NATIVE_DOUBLE);
  write("out/0", out, out_type);
  write("gout/0", gradient.empty() ? gradient : std::vector<double>{1, 1}, H5T_NATIVE_DOUBLE);
  write("gin/0", gradient, H5T_NATIVE_DOUBLE);
  H5Sclose(space), H5Sclose(scalar), H5Gclose(group);
}

}  // namespace

BOOST_AUTO_TEST_CASE(case_files_may_hold_anything) {
  const Folder folder;
  fs::create_directory(folder.path / "cases");
  std::ofstream(folder / "cases/text.h5") << "no HDF5";
  {
    const File file(folder / "cases/odd.h5");
    add_case(file, "0_right", "relu", "{}", {-1, 2}, {0, 2});
    add_case(file, "1_wrong", "relu", "{}", {-1, 2}, {0, 3});
    add_case(file, "2_args", "relu", "no JSON", {-1, 2}, {0, 2});
    add_case(file, "3_empty", "relu", "{}", {}, {});
    add_case(file, "4_without_args", "transpose", "{}", {1, 2}, {1, 2});
    add_case(file, "5_of_another", "bessel_j0", "{}", {1, 2}, {1, 2});
    add_case(file, "6_huge", "relu", "{}", {1, 2}, {1, 2}, hsize_t{1} << 50);
    add_case(file, "8_of_whole_numbers", "relu", "{}", {-1, 2}, {0, 2}, 2, H5T_NATIVE_INT64);
    add_case(file, "9_wrong_twice", "relu", "{}", {-1, 2}, {5, 3}, 2, H5T_NATIVE_DOUBLE, {0, 7});
    H5Gclose(H5Gcreate2(file.file, "7_bare", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  }
  require_line(
      run(folder, "--section cases --cases '" + (folder / "cases") + "'"), 1,
      {"FAILED cases: text.h5: cannot be read", "odd.h5/2_args: cannot be read",
       "odd.h5/7_bare: cannot be read: HDF5 1.",
       "odd.h5/6_huge: cannot be read: the tensor 0 has more than",
       "relu odd.h5/1_wrong in f32: output 0: element (1,) is 2, expected 3 (off by 1",
       "relu odd.h5/8_of_whole_numbers in f64: output 0: dtype f64, expected i64",
       "relu odd.h5/9_wrong_twice in f32: output 0: element (0,) is 0, expected 5",
       "2 of 2 elements differ\n  gradient 0: element (1,) is 1, expected 7",
       "\n  gradient 0, composed: element (1,)", "\n  gradient 0, by backward(): element (1,)",
       "relu odd.h5/3_empty in f32: tensor 0 of 0", "transpose odd.h5/4_without_args in f32",
       "because Tenon has no such operator:\n  bessel_j0(1)"});
  const auto one = run(folder, "--section cases --op tanh --cases '" + (folder / "cases") + "'");
  require_line(one, 1, {"has no case of it:\n  tanh(1)", "Nothing passed"});
  BOOST_TEST(!has(one.out, "6_huge"));  // of another operator: it is not read
}

// Some crash HDF5, or keep it busy for ever. Each is named, and the others are read.
BOOST_AUTO_TEST_CASE(damaged_case_files_do_not_hide_the_others) {
  if (kSanitized) return;  // what is slow counts as stuck
  const Folder folder;
  fs::create_directory(folder.path / "cases");
  const auto make = [&](const char* name) {
    const File file(folder / name);
    add_case(file, "0_right", "relu", "{}", {-1, 2}, {0, 2});
  };
  for (auto* name : {"cases/flipped.h5", "cases/truncated.h5", "cases/whole.h5"}) make(name);
  {
    std::fstream file(folder / "cases/flipped.h5", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(728);  // HDF5 1.10.8 goes round in circles then
    file.put(16);
  }
  fs::resize_file(folder / "cases/truncated.h5", fs::file_size(folder / "cases/whole.h5") / 2);
  BOOST_REQUIRE(mkfifo((folder / "cases/endless.h5").c_str(), 0600) == 0);
  const auto outcome = run(folder, "--section cases --op relu --dtype f32 --limit 3 --cases '" +
                                       (folder / "cases") + "'");
  require_line(outcome, 1,
               {"FAILED cases: endless.h5: cannot be read: HDF5, which read it, did not end within "
                "3 s and was killed (--limit)",
                "FAILED cases: flipped.h5", "FAILED cases: truncated.h5: cannot be read: HDF5 1.",
                "cases        2 passed, 3 failed\n"});
}

BOOST_AUTO_TEST_SUITE_END()
