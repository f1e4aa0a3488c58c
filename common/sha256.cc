#include "common/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace solward {
namespace {

struct ContextDeleter {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

absl::Status FileError(const std::string& path, int error) {
  const absl::StatusCode code = error == ENOENT   ? absl::StatusCode::kNotFound
                                : error == EACCES ? absl::StatusCode::kPermissionDenied
                                                  : absl::StatusCode::kUnavailable;
  return MakeError(code, "FILE_UNREADABLE",
                   absl::StrCat(path, ": expected a readable file, found: ", std::strerror(error)));
}

}  // namespace

struct Sha256::State {
  std::unique_ptr<EVP_MD_CTX, ContextDeleter> context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  state_->context.reset(EVP_MD_CTX_new());
  EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(absl::string_view data) {
  EVP_DigestUpdate(state_->context.get(), data.data(), data.size());
}

std::string Sha256::HexDigest() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  EVP_DigestFinal_ex(state_->context.get(), digest.data(), &size);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), size));
}

std::string Sha256Hex(absl::string_view data) {
  Sha256 sha;
  sha.Update(data);
  return sha.HexDigest();
}

absl::StatusOr<std::string> Sha256OfFile(const std::string& path) {
  const std::unique_ptr<std::FILE, FileCloser> file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return FileError(path, errno);
  Sha256 sha;
  std::vector<char> buffer(1 << 16);
  while (const size_t got = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    sha.Update(absl::string_view(buffer.data(), got));
  }
  if (std::ferror(file.get()) != 0) return FileError(path, errno);
  return sha.HexDigest();
}

}  // namespace solward
