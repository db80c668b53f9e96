// Files of other programs, changed at random where it hurts: in the numbers, names and instructions
// of a header or a pickle, with checksums that are right. Each is refused with an error that names
// it, or loaded. The long form (tests/fuzz.h) goes on until its time is over.
#include <functional>

#include <sys/resource.h>
#include <zlib.h>

#include "fuzz.h"
#include "serialization/weights.h"

using namespace tenon;
using namespace tenon::test;

namespace {

std::string number(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// An archive of stored members.
std::string archive_of(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string file, directory;
  for (const auto& [name, bytes] : members) {
    const auto crc =
        crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
    const std::string common = std::string(8, '\0') + number(crc, 4) + number(bytes.size(), 4) +
                               number(bytes.size(), 4) + number(name.size(), 2) + number(0, 2);
    directory += "PK\1\2" + number(0x140014, 4) + common + std::string(10, '\0') +
                 number(file.size(), 4) + name;
    file += "PK\3\4" + number(0x14, 2) + common + name + bytes;
  }
  return file + directory + "PK\5\6" + number(0, 4) + number(members.size(), 2) +
         number(members.size(), 2) + number(directory.size(), 4) + number(file.size(), 4) +
         number(0, 2);
}

std::string npy_of(const std::string& header) {
  return "\x93NUMPY" + number(1, 2) + number(header.size(), 2) + header + std::string(48, '\0');
}

class Changes {
 public:
  explicit Changes(std::vector<std::string> words) : words_(std::move(words)) {}

  std::string apply(std::string text) {
    for (size_t n = below(3) + 1; n-- > 0;) {
      const size_t at = below(text.size() + 1),
                   count = below(std::min<size_t>(text.size() - at, 24) + 1);
      switch (below(6)) {
        case 0:
          text.erase(at, count);
          break;
        case 1:
          text.insert(at, text.substr(below(text.size() + 1), 24));
          break;
        case 2:
          text.insert(at, words_[below(words_.size())]);
          break;
        case 3:
          text.replace(at, count, words_[below(words_.size())]);
          break;
        case 4:
          if (at < text.size()) text[at] = static_cast<char>(random_());
          break;
        default: {
          const size_t bytes = size_t{1} << below(4);
          const uint64_t shifted = uint64_t{1} << below(64);
          if (at + bytes <= text.size())
            text.replace(at, bytes, number(shifted - below(2) * (below(2) + 1), bytes));
        }
      }
    }
    return text;
  }

 private:
  size_t below(size_t count) { return random_() % count; }
  std::mt19937_64 random_{7};
  std::vector<std::string> words_;
};

// Tries what `file_of` makes of changed texts.
void try_changes(const std::vector<std::string>& texts, const std::vector<std::string>& words,
                 const std::function<std::string(const std::string&)>& file_of) {
  BytesFile file;
  for (const std::string& text : texts) {
    file.set(file_of(text));
    BOOST_TEST(!is_refused_cleanly(file.path()));
  }
  Changes changes(words);
  const Deadline deadline;
  const size_t most = fuzz_long() ? SIZE_MAX : kSanitized ? 200 : 1000;
  size_t tried = 0, refused = 0;
  for (; tried < most && !deadline.over(); ++tried) {
    file.set(file_of(changes.apply(texts[tried % texts.size()])));
    refused += is_refused_cleanly(file.path());
  }
  BOOST_TEST_MESSAGE(tried << " files, " << refused << " refused");
  BOOST_TEST(refused > tried / 2);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  if (!kSanitized) BOOST_TEST(usage.ru_maxrss < 1 << 20);  // KiB: no number in a file asks for more
}

std::string text(const std::string& value) { return "X" + number(value.size(), 4) + value; }
std::string integers(const std::vector<uint64_t>& values) {
  std::string code = "(";
  for (uint64_t value : values) code += "\x8a\x08" + number(value, 8);
  return code + "t";
}
std::string tensor(const std::string& name) {
  return text(name) + "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") +
         "ctorch\nFloatStorage\n" + text("0") + text("cpu") +
         "K\x0c"
         "tQ" +
         std::string("K\0", 2) + integers({2, 3}) + integers({3, 1}) +
         "\x89"
         "ccollections\nOrderedDict\n)RtR";
}

}  // namespace

BOOST_AUTO_TEST_CASE(pickles) {
  const std::string own = "\x80\x02}q\1(" + tensor("weight") + tensor("bias") + "u.";
  try_changes({own},
              {"ctorch\nBoolStorage\n",
               "ctorch\nUntypedStorage\n",
               "ctorch\nFloatStorage\n",
               "ctorch._utils\n_rebuild_tensor_v3\n",
               ")R",
               "tQ",
               "tR",
               "}(",
               "](e",
               "u.",
               "h\1",
               "q\2",
               "\x94",
               "\x85",
               "\x86",
               tensor("other"),
               integers({INT64_MAX, 2}),
               integers({uint64_t{1} << 63}),
               integers({0, 0}),
               integers({})},
              [](const std::string& pickle) {
                return archive_of({{"a/data.pkl", pickle}, {"a/data/0", std::string(48, '\1')}});
              });
}

BOOST_AUTO_TEST_CASE(headers_of_safetensors) {
  try_changes(
      {R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
       R"("b":{"dtype":"BOOL","shape":[24],"data_offsets":[24,48]}})"},
      {"\"dtype\":", "\"shape\":", "\"data_offsets\":", "\"F64\"", "\"F4\"", "[", "]", "{", "}",
       ",", "-", "0", "1e5", "9223372036854775808", "\"__metadata__\":{}", "\\u0000", "\"a\""},
      [](const std::string& header) {
        return number(header.size(), 8) + header + std::string(48, '\1');
      });
}

BOOST_AUTO_TEST_CASE(headers_of_numpy) {
  const std::vector<std::string> words = {"'descr': ", "'<f8'", "'|b1'",     "'>f4'",
                                          "'|O'",      "(",     ")",         ",",
                                          "True",      "False", "'shape': ", "9223372036854775807",
                                          "0",         "{",     "}"};
  const std::vector<std::string> headers = {
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }\n",
      "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4), }\n"};
  try_changes(headers, words, npy_of);
  try_changes(headers, words, [](const std::string& header) {
    return archive_of({{"a.npy", npy_of(header)}});
  });
}

BOOST_AUTO_TEST_CASE(archives) {
  const std::string array = npy_of("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }\n");
  try_changes({archive_of({{"a.npy", array}, {"b.npy", array}})},
              {"PK\1\2", "PK\3\4", "PK\5\6", "PK\6\6", "PK\6\7", number(UINT32_MAX, 4),
               number(1, 2) + number(24, 2) + number(UINT64_MAX, 8)},
              [](const std::string& bytes) { return bytes; });
}
