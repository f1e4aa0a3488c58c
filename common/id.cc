#include "common/id.h"

#include <openssl/rand.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <random>

namespace solward {
namespace {

constexpr char kCrockford[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
constexpr size_t kTimeBytes = 6;
constexpr size_t kRandomBytes = 10;
constexpr size_t kCharacters = 26;

void FillRandom(uint8_t* out, size_t size) {
  if (RAND_bytes(out, static_cast<int>(size)) == 1) return;
  std::random_device device;
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<uint8_t>(device());
}

}  // namespace

std::string NewId(absl::string_view prefix) {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  const auto milliseconds = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count());
  std::array<uint8_t, kTimeBytes + kRandomBytes> bytes;
  for (size_t i = 0; i < kTimeBytes; ++i) {
    bytes[i] = static_cast<uint8_t>(milliseconds >> (8 * (kTimeBytes - 1 - i)));
  }
  FillRandom(bytes.data() + kTimeBytes, kRandomBytes);

  // 26 groups of 5 bits are 130: the first group holds the top 3 of 128.
  std::string id(prefix);
  id.push_back('-');
  for (size_t i = 0; i < kCharacters; ++i) {
    unsigned group = 0;
    for (size_t b = 0; b < 5; ++b) {
      const int bit = static_cast<int>(i * 5 + b) - 2;
      const bool set = bit >= 0 && ((bytes[bit / 8] >> (7 - bit % 8)) & 1) != 0;
      group = group << 1 | (set ? 1 : 0);
    }
    id.push_back(kCrockford[group]);
  }
  return id;
}

}  // namespace solward
