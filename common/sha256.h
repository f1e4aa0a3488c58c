// SHA-256, incremental. Digests are lower-case hex.
#ifndef SOLWARD_COMMON_SHA256_H_
#define SOLWARD_COMMON_SHA256_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace solward {

// Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  void Update(absl::string_view data);
  // Ends the computation; call once.
  std::string HexDigest();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string Sha256Hex(absl::string_view data);
absl::StatusOr<std::string> Sha256OfFile(const std::string& path);

}  // namespace solward

#endif  // SOLWARD_COMMON_SHA256_H_
