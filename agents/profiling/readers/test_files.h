// Files for reader tests: captures of the source tree and small temporary ones.
#ifndef SOLWARD_AGENTS_PROFILING_READERS_TEST_FILES_H_
#define SOLWARD_AGENTS_PROFILING_READERS_TEST_FILES_H_

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/string_view.h"

namespace solward::testing {

// Path below the source tree. The test fails when SOLWARD_SOURCE_DIR is unset.
inline std::string SourcePath(const std::string& relative) {
  const char* root = std::getenv("SOLWARD_SOURCE_DIR");
  EXPECT_NE(root, nullptr) << "set SOLWARD_SOURCE_DIR to the source tree (ctest does)";
  return std::string(root == nullptr ? "" : root) + "/" + relative;
}

inline std::string FileBytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

// A file with these bytes, gone at the end of the test.
class TempFile {
 public:
  explicit TempFile(const std::string& bytes, const std::string& name = "capture") {
    std::string folder = ::testing::TempDir() + "/solward-test-XXXXXX";
    folder_ = mkdtemp(folder.data());
    path_ = folder_ + "/" + name;
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  ~TempFile() {
    std::remove(path_.c_str());
    std::remove(folder_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  std::string folder_, path_;
};

inline std::string Gzip(const std::string& bytes) {
  std::string out(compressBound(bytes.size()) + 64, '\0');
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace solward::testing

#endif  // SOLWARD_AGENTS_PROFILING_READERS_TEST_FILES_H_
