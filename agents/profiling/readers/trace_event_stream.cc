#include "agents/profiling/readers/trace_event_stream.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/text.h"

namespace solward::readers {
namespace {

constexpr size_t kBlock = 64;
constexpr size_t kFirstBuffer = 1 << 20;
constexpr size_t kMaxItem = 64 << 20;  // largest event, or other member that is kept
constexpr size_t kMaxKey = 4096;
// An event this large is looked through for another one inside.
constexpr size_t kUsualEvent = 4096;
// Each recovery reads a part of the file again.
constexpr uint32_t kMaxRecoveries = 64;
constexpr absl::string_view kSpace = " \t\r\n";

// One bit for each byte of a block.
struct Marks {
  uint64_t quote = 0;
  uint64_t backslash = 0;
  uint64_t open = 0;   // { [
  uint64_t close = 0;  // } ]
};

Marks MarkBlock(const char* bytes) {
  Marks marks;
#ifdef __SSE2__
  // Brackets of both kinds differ in one bit: '[' | 0x20 is '{'.
  const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
  const __m128i open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}'), bit = _mm_set1_epi8(0x20);
  for (size_t i = 0; i < 4; ++i) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 16 * i));
    const __m128i folded = _mm_or_si128(v, bit);
    auto mask = [&](__m128i a, __m128i b) {
      return static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(a, b))))
             << (16 * i);
    };
    marks.quote |= mask(v, quote);
    marks.backslash |= mask(v, backslash);
    marks.open |= mask(folded, open);
    marks.close |= mask(folded, close);
  }
#else
  for (size_t i = 0; i < kBlock; ++i) {
    const uint64_t bit = uint64_t{1} << i;
    const char c = bytes[i];
    if (c == '"') marks.quote |= bit;
    if (c == '\\') marks.backslash |= bit;
    if ((c | 0x20) == '{') marks.open |= bit;
    if ((c | 0x20) == '}') marks.close |= bit;
  }
#endif
  return marks;
}

// Bits that follow an odd run of backslashes; `carry` goes from block to block.
uint64_t EscapedBits(uint64_t backslash, bool* carry) {
  uint64_t escaped = *carry ? 1 : 0;
  *carry = false;
  backslash &= ~escaped;
  while (backslash != 0) {
    const int at = std::countr_zero(backslash);
    backslash &= backslash - 1;
    if (at == 63) {
      *carry = true;
      break;
    }
    const uint64_t next = uint64_t{1} << (at + 1);
    escaped |= next;
    backslash &= ~next;
  }
  return escaped;
}

// Bit i is the xor of bits 0 to i: from each opening quote up to its closing one.
uint64_t PrefixXor(uint64_t bits) {
  for (int shift = 1; shift < 64; shift *= 2) bits ^= bits << shift;
  return bits;
}

}  // namespace

TraceEventStream::TraceEventStream(InputFile& input, const ReaderLimits& limits,
                                   std::set<std::string> kept_members)
    : input_(input),
      limits_(limits),
      kept_members_(std::move(kept_members)),
      data_(kFirstBuffer + kPadding) {}

absl::StatusOr<bool> TraceEventStream::Fill(bool keep) {
  if (end_of_file_) return false;
  const size_t from = keep ? item_ : pos_;
  if (from > 0) {
    std::memmove(data_.data(), data_.data() + from, end_ - from);
    end_ -= from;
    pos_ -= from;
    item_ = 0;
  }
  if (end_ + kPadding == data_.size()) data_.resize(2 * end_ + kPadding);
  ASSIGN_OR_RETURN(const size_t read,
                   input_.Read(data_.data() + end_, data_.size() - kPadding - end_));
  end_ += read;
  // Blocks may reach behind the end; zeros mean nothing there.
  std::memset(data_.data() + end_, 0, kPadding);
  end_of_file_ = read == 0;
  return read > 0;
}

absl::StatusOr<bool> TraceEventStream::SkipAny(absl::string_view skipped) {
  while (true) {
    while (pos_ < end_ && skipped.find(data_[pos_]) != absl::string_view::npos) ++pos_;
    if (pos_ < end_) return true;
    ASSIGN_OR_RETURN(const bool more, Fill(/*keep=*/false));
    if (!more) return false;
  }
}

absl::StatusOr<TraceEventStream::Found> TraceEventStream::SkipBrackets(bool keep) {
  int64_t depth = 0;
  uint64_t in_string = 0;  // all ones inside a string
  bool escape = false;
  size_t scanned = pos_;
  while (true) {
    if (end_ < scanned + kBlock && !end_of_file_) {
      if (keep && end_ - item_ >= kMaxItem) return Found::kTooLarge;
      // What is not kept may go, up to what is scanned.
      if (!keep) pos_ = scanned;
      const size_t ahead = scanned - pos_;
      ASSIGN_OR_RETURN(const bool more, Fill(keep));
      (void)more;
      scanned = pos_ + ahead;
      continue;
    }
    if (scanned >= end_) return Found::kEndOfFile;
    const Marks marks = MarkBlock(data_.data() + scanned);
    uint64_t quotes = marks.quote;
    if (marks.backslash != 0 || escape) quotes &= ~EscapedBits(marks.backslash, &escape);
    const uint64_t strings = PrefixXor(quotes) ^ in_string;
    in_string = (strings >> 63) != 0 ? ~uint64_t{0} : 0;
    const uint64_t open = marks.open & ~strings, close = marks.close & ~strings;
    const int opened = std::popcount(open), closed = std::popcount(close);
    if (depth > closed && depth + opened <= limits_.max_depth) {
      depth += opened - closed;  // cannot reach either border in this block
      scanned += kBlock;
      continue;
    }
    for (uint64_t bits = open | close; bits != 0; bits &= bits - 1) {
      const int at = std::countr_zero(bits);
      depth += ((open >> at) & 1) != 0 ? 1 : -1;
      if (depth == 0) {
        pos_ = scanned + at + 1;
        return Found::kYes;
      }
      if (depth > limits_.max_depth) {
        return MakeError(absl::StatusCode::kResourceExhausted, "CAPTURE_TOO_DEEP",
                         absl::StrCat(input_.label(), ": expected values nested at most ",
                                      limits_.max_depth, " deep, found more in event ", elements_));
      }
    }
    scanned += kBlock;
  }
}

absl::StatusOr<TraceEventStream::Found> TraceEventStream::SkipString(bool keep) {
  size_t scanned = 1;  // behind the opening quote
  while (true) {
    while (pos_ + scanned < end_) {
      const char c = data_[pos_ + scanned];
      if (c == '\\') {
        scanned += 2;
        continue;
      }
      ++scanned;
      if (c != '"') continue;
      pos_ += scanned;
      return Found::kYes;
    }
    if (keep && end_ - item_ >= kMaxItem) return Found::kTooLarge;
    if (!keep) {
      const size_t gone = std::min(scanned, end_ - pos_);
      pos_ += gone;
      scanned -= gone;
    }
    ASSIGN_OR_RETURN(const bool more, Fill(keep));
    if (!more) return Found::kEndOfFile;
  }
}

absl::StatusOr<TraceEventStream::Found> TraceEventStream::SkipValue(bool keep) {
  const char first = data_[pos_];
  if (first == '{' || first == '[') return SkipBrackets(keep);
  if (first == '"') return SkipString(keep);
  while (true) {
    while (pos_ < end_ &&
           absl::string_view(",}] \t\r\n").find(data_[pos_]) == absl::string_view::npos) {
      ++pos_;
    }
    if (pos_ < end_) return Found::kYes;
    if (keep && end_ - item_ >= kMaxItem) return Found::kTooLarge;
    ASSIGN_OR_RETURN(const bool more, Fill(keep));
    if (!more) return Found::kEndOfFile;
  }
}

absl::Status TraceEventStream::NotATrace(absl::string_view found) const {
  return MakeError(absl::StatusCode::kInvalidArgument, "CAPTURE_KIND_MISMATCH",
                   absl::StrCat(input_.label(),
                                ": expected a torch.profiler trace, a JSON object with "
                                "\"traceEvents\"; found ",
                                found));
}

TraceEventStream::Item TraceEventStream::Truncated() {
  truncated_ = true;
  state_ = State::kEnd;
  return Item::kEnd;
}

absl::StatusOr<TraceEventStream::Item> TraceEventStream::Next() {
  while (true) {
    std::optional<Item> item;
    switch (state_) {
      case State::kStart: {
        RETURN_IF_ERROR(Start());
        break;
      }
      case State::kObject: {
        ASSIGN_OR_RETURN(item, NextMember());
        break;
      }
      case State::kArray: {
        ASSIGN_OR_RETURN(item, NextEvent());
        break;
      }
      case State::kEnd:
        return Item::kEnd;
    }
    if (item.has_value()) return *item;
  }
}

absl::Status TraceEventStream::Start() {
  // Space, or the byte order mark of UTF-8.
  ASSIGN_OR_RETURN(const bool any, SkipAny(absl::StrCat(kSpace, "\xEF\xBB\xBF")));
  if (!any) return NotATrace("only white space");
  const char first = data_[pos_];
  if (first != '{' && first != '[') {
    return NotATrace(
        absl::StrCat("a file that begins with \"",
                     CleanUtf8({data_.data() + pos_, std::min<size_t>(20, end_ - pos_)}), "\""));
  }
  ++pos_;
  root_is_array_ = first == '[';
  has_trace_events_ = root_is_array_;
  state_ = root_is_array_ ? State::kArray : State::kObject;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<TraceEventStream::Item>> TraceEventStream::NextMember() {
  ASSIGN_OR_RETURN(const bool any, SkipAny(absl::StrCat(kSpace, ",")));
  if (!any) return Truncated();
  if (data_[pos_] == '}') {
    state_ = State::kEnd;
    return Item::kEnd;
  }
  if (data_[pos_] != '"') {
    if (has_trace_events_) return Truncated();
    return NotATrace(absl::StrCat("\"", CleanUtf8({data_.data() + pos_, 1}),
                                  "\" where a member of the top-level object should begin"));
  }
  item_ = pos_;
  ASSIGN_OR_RETURN(const Found key_found, SkipString(/*keep=*/true));
  if (key_found != Found::kYes) return Truncated();
  key_.assign(data_.data() + item_ + 1, std::min(kMaxKey, pos_ - item_ - 2));
  ASSIGN_OR_RETURN(const bool colon, SkipAny(kSpace));
  if (!colon) return Truncated();
  if (data_[pos_] != ':') return NotATrace(absl::StrCat("no colon behind \"", key_, "\""));
  ++pos_;
  ASSIGN_OR_RETURN(const bool value, SkipAny(kSpace));
  if (!value) return Truncated();
  if (key_ == "traceEvents" && data_[pos_] == '[') {
    ++pos_;
    has_trace_events_ = true;
    state_ = State::kArray;
    return std::optional<Item>();
  }
  const bool keep = kept_members_.count(key_) > 0;
  item_ = pos_;
  ASSIGN_OR_RETURN(const Found found, SkipValue(keep));
  if (found == Found::kTooLarge) {
    return MakeError(absl::StatusCode::kResourceExhausted, "CAPTURE_TOO_LARGE",
                     absl::StrCat(input_.label(), ": expected \"", key_, "\" of at most ", kMaxItem,
                                  " bytes, found more"));
  }
  if (found == Found::kEndOfFile) return Truncated();
  if (!keep) return std::optional<Item>();
  item_end_ = pos_;
  return Item::kMember;
}

absl::StatusOr<std::optional<TraceEventStream::Item>> TraceEventStream::NextEvent() {
  ASSIGN_OR_RETURN(const bool any, SkipAny(absl::StrCat(kSpace, ",")));
  if (!any) return Truncated();
  switch (data_[pos_]) {
    case ']':
      ++pos_;
      state_ = root_is_array_ ? State::kEnd : State::kObject;
      return std::optional<Item>();
    case '}':
    case ':':
      ++pos_;
      ++stray_;
      return std::optional<Item>();
    case '{':
      break;
    default: {
      ++elements_;
      ++broken_;
      ASSIGN_OR_RETURN(const Found found, SkipValue(/*keep=*/false));
      if (found == Found::kEndOfFile) return Truncated();
      return std::optional<Item>();
    }
  }
  item_ = pos_;
  ++elements_;
  ASSIGN_OR_RETURN(const Found found, SkipBrackets(/*keep=*/true));
  if (found == Found::kYes) {
    item_end_ = pos_;
    if (data_[item_end_ - 1] == '}' && !HoldsAnother()) return Item::kEvent;
    RejectEvent();
    return std::optional<Item>();
  }
  item_end_ = end_;
  const size_t pos_before = pos_;
  RejectEvent();
  if (pos_ != pos_before) return std::optional<Item>();  // reading goes on inside
  if (found == Found::kEndOfFile) return Truncated();
  return MakeError(
      absl::StatusCode::kResourceExhausted, "CAPTURE_TOO_LARGE",
      absl::StrCat(input_.label(), ": expected events of at most ", kMaxItem,
                   " bytes, found a larger one at position ", index(), " of traceEvents"));
}

size_t TraceEventStream::FindEventStart(size_t from, size_t to) const {
  const absl::string_view text(data_.data(), to);
  for (size_t at = text.find("\"ph\"", from); at != absl::string_view::npos;
       at = text.find("\"ph\"", at + 1)) {
    size_t brace = at;
    while (brace > from && kSpace.find(text[brace - 1]) != absl::string_view::npos) --brace;
    if (brace > from && text[brace - 1] == '{') return brace - 1;
  }
  return absl::string_view::npos;
}

// An event whose brackets are missing swallows others: it is large, or reaches
// to the end of the file.
bool TraceEventStream::HoldsAnother() const {
  return (item_end_ - item_ > kUsualEvent || end_ - item_end_ < kBlock) &&
         FindEventStart(item_ + 1, item_end_) != absl::string_view::npos;
}

void TraceEventStream::RejectEvent() {
  ++broken_;
  if (recoveries_ >= kMaxRecoveries) return;
  const size_t start = FindEventStart(item_ + 1, item_end_);
  if (start == absl::string_view::npos) return;
  ++recoveries_;
  pos_ = start;
}

}  // namespace solward::readers
