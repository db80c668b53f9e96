// The process in which `tenon checkpoint` reads what others made: what it cannot do, and what is
// said when it dies. A script in the place of the program that reads HDF5 data tries both.
#include <filesystem>
#include <fstream>
#include <string>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include <tenon/core/tensor.h>
#include <tenon/serialization/checkpoint.h>

#include "cli/programs.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(confined_test)

using namespace tenon::test::programs;
using tenon::test::has;

std::string quoted(const std::string& word) { return "'" + word + "'"; }

std::string hdf5_of_others() { return tenon::test::reference_dir() + "/weights/net.h5"; }

// Runs `command` on a file of HDF5, which the script reads that is `folder`/reader/run.
Outcome run_with_reader(const Folder& folder, const std::string& command, const std::string& script,
                        const std::string& variables = "") {
  const std::string reader = folder / "reader";
  fs::create_directories(reader);
  std::ofstream(reader + "/run") << "#!/bin/sh\n" << script << "\n";
  fs::permissions(reader + "/run", fs::perms::owner_all);
  return run(folder, "tenon checkpoint " + command + " " + quoted(hdf5_of_others()),
             variables + " TENON_HDF5_READER=" + quoted(reader + "/run"));
}

BOOST_AUTO_TEST_CASE(a_file_is_read_without_privileges) {
  if (tenon::test::kThreadSanitized) return;
  Folder folder;
  const std::string mine = folder / "mine", secret = folder / "secret";
  std::ofstream(mine) << "mine";
  std::ofstream(secret) << "a secret";
  for (const std::string command : {"show", "verify", "stats"}) {
    const auto tried =
        run_with_reader(folder, command,
                        "{ ulimit -f; ulimit -c; echo new >" + quoted(folder / "new") +
                            "; echo more >>" + quoted(mine) + "; rm -f " + quoted(mine) +
                            "; kill -0 1; cat " + quoted(secret) + "; } >&2");
    BOOST_TEST(tried.status == 1);
    REQUIRE_HAS(tried.err, "has ended with the status ");

    REQUIRE_HAS(tried.err, "0\n0\n");  // the limits
    // A system without filters of system calls has no means against the rest.
    if (!has(tried.err, "not permitted")) continue;
    BOOST_TEST(!fs::exists(folder / "new"));
    BOOST_TEST(slurp(mine) == "mine");
    REQUIRE_HAS(tried.err, "kill");
    if (has(tried.err, "denied")) BOOST_TEST(!has(tried.err, "a secret"));
  }
}

BOOST_AUTO_TEST_CASE(a_process_that_dies_is_an_error_of_its_file) {
  Folder folder;
  // Ends the command's child, which waits for the script.
  const std::string reader = folder / "reader";
  fs::create_directories(reader);
  std::ofstream(reader + "/run") << "#!/bin/sh\nexec sleep 20\n";
  fs::permissions(reader + "/run", fs::perms::owner_all);
  std::ofstream(folder / "kill") << "'" << tenon::test::build_dir()
                                 << "/bin/tenon' checkpoint verify --json '" << hdf5_of_others()
                                 << "' & p=$!\n"
                                    "while kill -0 $p; do\n"
                                    "  read c rest </proc/$p/task/$p/children\n"
                                    "  [ -n \"$c\" ] && read r rest </proc/$c/task/$c/children\n"
                                    "  [ -n \"$r\" ] && break\n"
                                    "  sleep .05\n"
                                    "done\n"
                                    "kill -SEGV $c\nwait $p\n";
  const std::string command = "TENON_HDF5_READER=" + quoted(reader + "/run") + " sh " +
                              quoted(folder / "kill") + " >" + quoted(folder / "out") + " 2>" +
                              quoted(folder / "err");
  const int status = std::system(command.c_str());
  const std::string err = slurp(folder / "err");
  BOOST_TEST(WEXITSTATUS(status) == 1);
  if (!tenon::test::kSanitized) {  // a sanitizer answers the signal with a report of its own
    REQUIRE_HAS(err, "tenon: cannot read '" + hdf5_of_others() +
                         "': the process that reads it was ended by a signal: Segmentation fault. "
                         "The file is damaged, or made to do this\n");
    const auto said = nlohmann::json::parse(slurp(folder / "out"));
    BOOST_TEST(said["right"] == false);
    REQUIRE_HAS(said["error"].get<std::string>(), "was ended by a signal");
  }
  const auto late = run_with_reader(folder, "show", "exec sleep 20", "TENON_HDF5_TIMEOUT=1");
  BOOST_TEST(late.status == 1);
  REQUIRE_HAS(late.err, "net.h5': ");
  REQUIRE_HAS(late.err, "set TENON_HDF5_TIMEOUT to more seconds");
}

// A NumPy file of zeros, which deflate packs to a thousandth: blocks of 16 MiB, all of them equal.
void write_zeros(const std::string& path, uint64_t elements) {
  std::string header =
      "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(elements) + ",), }";
  header.resize(117, ' ');
  header += '\n';
  const std::string begin = std::string("\x93NUMPY\x01\x00", 8) + '\x76' + '\0' + header;
  z_stream z{};
  BOOST_REQUIRE(deflateInit2(&z, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed;
  uLong sum = crc32(0, nullptr, 0);
  auto pack = [&](const std::string& bytes, int flush) {
    std::string part(bytes.size() / 500 + 4096, '\0');
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    z.avail_in = static_cast<uInt>(bytes.size());
    z.next_out = reinterpret_cast<Bytef*>(part.data());
    z.avail_out = static_cast<uInt>(part.size());
    deflate(&z, flush);
    packed.append(part, 0, part.size() - z.avail_out);
    sum = crc32(sum, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
  };
  pack(begin, Z_NO_FLUSH);
  const std::string zeros(16 << 20, '\0');
  for (uint64_t left = elements; left > 0; left -= zeros.size()) pack(zeros, Z_NO_FLUSH);
  pack("", Z_FINISH);
  deflateEnd(&z);
  auto number = [](uint64_t value, int bytes) {
    return std::string(reinterpret_cast<const char*>(&value), static_cast<size_t>(bytes));
  };
  const std::string about = number(20, 2) + number(0, 2) + number(8, 2) + number(0, 4) +
                            number(sum, 4) + number(packed.size(), 4) +
                            number(begin.size() + elements, 4) + number(5, 2) + number(0, 2);
  const std::string local = "PK\x03\x04" + about + "a.npy" + packed;
  const std::string entry = "PK\x01\x02" + number(20, 2) + about + std::string(14, '\0') + "a.npy";
  std::ofstream(path, std::ios::binary)
      << local << entry << "PK\x05\x06" << number(0, 4) << number(1, 2) << number(1, 2)
      << number(entry.size(), 4) << number(local.size(), 4) << number(0, 2);
}

BOOST_AUTO_TEST_CASE(memory_is_limited_by_the_size_of_the_file) {
  if (tenon::test::kSanitized) return;  // the limit would be that of its own addresses
  Folder folder;
  const std::string zeros = folder / "zeros.npz";
  write_zeros(zeros, uint64_t{3} << 29);  // 1.5 GiB
  BOOST_TEST(run(folder, "tenon checkpoint show " + quoted(zeros)).status == 0);
  const auto refused = run(folder, "tenon checkpoint stats " + quoted(zeros));
  BOOST_TEST(refused.status == 1);
  REQUIRE_HAS(refused.err, "zeros.npz': ");
  REQUIRE_HAS(refused.err, "needs more memory than such a file may\n");
}

BOOST_AUTO_TEST_CASE(a_link_is_read_with_the_shards_beside_it_and_beside_its_target) {
  using namespace tenon;
  Folder folder;
  const std::string real = folder / "real", links = folder / "links";
  fs::create_directories(real);
  fs::create_directories(links);
  save(real + "/m.h5", nn::StateDict{{"a", ones({100})}, {"b", ones({100})}},
       {.max_shard_size = 400});
  for (const auto& file : fs::directory_iterator(real))
    fs::create_symlink(file.path(), fs::path(links) / file.path().filename());
  for (const std::string command : {"show", "verify", "stats"})
    for (const std::string& file : {real + "/m.h5", links + "/m.h5"}) {
      const auto read = run(folder, "tenon checkpoint " + command + " " + quoted(file));
      BOOST_TEST(read.status == 0, read.err);
    }
}

BOOST_AUTO_TEST_SUITE_END()
