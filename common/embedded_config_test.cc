#include "common/embedded_config.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/status_matchers.h"

namespace solward {
namespace {

using ::solward::testing::IsOkAndHolds;
using ::solward::testing::StatusIs;
using ::testing::HasSubstr;

std::string SourceDir() {
  const char* dir = std::getenv("SOLWARD_SOURCE_DIR");
  return dir == nullptr ? "SOLWARD_SOURCE_DIR is not set" : dir;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// What a C++ compiler makes of the \xNN escapes of a generated literal.
std::string Unescape(const std::string& generated) {
  std::string out;
  for (size_t at = generated.find("\\x"); at != std::string::npos;
       at = generated.find("\\x", at + 2)) {
    out.push_back(static_cast<char>(std::stoi(generated.substr(at + 2, 2), nullptr, 16)));
  }
  return out;
}

TEST(EmbeddedConfigTest, IsTheFileOfTheSourceTreeByteForByte) {
  for (const char* name : {"metrics.yaml", "gpu_peaks.yaml", "classification.yaml"}) {
    const absl::StatusOr<absl::string_view> text = EmbeddedConfig(name);
    ASSERT_TRUE(text.ok()) << name;
    EXPECT_TRUE(*text == ReadFile(SourceDir() + "/config/" + name)) << name;
  }
}

TEST(EmbeddedConfigTest, AnUnknownNameIsNotFound) {
  EXPECT_THAT(EmbeddedConfig("nope.yaml"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("config/nope.yaml")));
}

// CMake's lists and C++'s raw strings each have characters that break them.
TEST(EmbeddedConfigTest, NoTextCanBreakTheGenerator) {
  const std::filesystem::path dir = std::filesystem::path(::testing::TempDir()) / "embed_test";
  std::filesystem::create_directories(dir);
  const std::string nasty =
      "a: [x; y] # ${HOME} @A@ )SOLWARD\" \\x41 \"q\" 'p' \\\n[[z]]; ;\tFin \xC3\xA9\xE2\x80\xAF\n"
      "no newline at the end, and longer than one line of the generated file";
  std::ofstream(dir / "nasty.yaml", std::ios::binary) << nasty;
  const std::string command = "cmake '-DOUTPUT=" + (dir / "out.cc").string() +
                              "' '-DROOT=" + dir.string() +
                              "' '-DFILES=" + (dir / "nasty.yaml").string() + "' -P '" +
                              SourceDir() + "/cmake/embed.cmake'";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const std::string generated = ReadFile(dir / "out.cc");
  EXPECT_EQ(Unescape(generated), nasty);
  EXPECT_THAT(generated, HasSubstr("{\"nasty.yaml\", kFile0, sizeof(kFile0) - 1}"));
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace solward
