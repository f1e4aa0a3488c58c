#include "coordinator/report/messages.h"

#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <iostream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/embedded_config.h"
#include "common/status.h"

namespace solward::report {
namespace {

absl::Status Bad(absl::string_view id, absl::string_view what) {
  return MakeError(absl::StatusCode::kInvalidArgument, "MESSAGE_TABLE_INVALID",
                   absl::StrCat("message \"", id, "\": ", what));
}

std::set<std::string, std::less<>> PlaceholdersOf(absl::string_view text) {
  std::set<std::string, std::less<>> names;
  for (const TextPart& part : SplitText(text)) {
    if (part.is_placeholder) names.insert(part.text);
  }
  return names;
}

bool HasDigitOutsideCode(absl::string_view text) {
  bool in_code = false;
  for (const TextPart& part : SplitText(text)) {
    if (part.is_placeholder) continue;
    for (char c : part.text) {
      if (c == '`') in_code = !in_code;
      if (!in_code && absl::ascii_isdigit(static_cast<unsigned char>(c))) return true;
    }
  }
  return false;
}

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// yaml-cpp throws; nothing leaves this function but a Status.
absl::Status AddAll(const YAML::Node& root, Messages& messages) {
  if (!root.IsMap()) return Bad("", "expected a map of id to {en, fr}");
  for (const auto& entry : root) {
    const std::string id = entry.first.as<std::string>();
    const YAML::Node& text = entry.second;
    if (!text.IsMap() || !text["en"] || !text["fr"]) return Bad(id, "expected {en: ..., fr: ...}");
    RETURN_IF_ERROR(messages.Add(id, text["en"].as<std::string>(), text["fr"].as<std::string>()));
  }
  return absl::OkStatus();
}

absl::Status AddRecommendations(const YAML::Node& root, Messages& messages) {
  for (const YAML::Node& entry : root["recommendations"]) {
    const std::string id = entry["id"].as<std::string>();
    for (const char* part : {"action", "check", "verify"}) {
      const YAML::Node text = entry[part];
      if (!text) continue;
      RETURN_IF_ERROR(messages.Add(absl::StrCat("recommendation.", id, ".", part),
                                   text["en"].as<std::string>(), text["fr"].as<std::string>()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Messages> ParseBuiltIn() {
  ASSIGN_OR_RETURN(absl::string_view table, EmbeddedConfig("messages.yaml"));
  ASSIGN_OR_RETURN(absl::string_view recommendations, EmbeddedConfig("recommendations.yaml"));
  ASSIGN_OR_RETURN(Messages messages, Messages::Parse(table));
  try {
    RETURN_IF_ERROR(AddRecommendations(YAML::Load(std::string(recommendations)), messages));
  } catch (const YAML::Exception& error) {
    return Bad("recommendation.*", error.what());
  }
  return messages;
}

}  // namespace

std::vector<TextPart> SplitText(absl::string_view text) {
  std::vector<TextPart> parts;
  std::string literal;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (text[i] == '{') {
      while (end < text.size() && IsNameCharacter(text[end])) ++end;
      if (end < text.size() && text[end] == '}' && end > i + 1) {
        if (!literal.empty()) parts.push_back({std::move(literal), false});
        literal.clear();
        parts.push_back({std::string(text.substr(i + 1, end - i - 1)), true});
        i = end + 1;
        continue;
      }
    }
    literal += text[i++];
  }
  if (!literal.empty()) parts.push_back({std::move(literal), false});
  return parts;
}

std::string EnumTerm(absl::string_view group, absl::string_view prefix, absl::string_view name) {
  absl::ConsumePrefix(&name, prefix);
  return absl::StrCat(group, ".", absl::AsciiStrToLower(name));
}

std::string ClassTerm(v1::BottleneckClass bottleneck_class) {
  return EnumTerm("class", "BOTTLENECK_CLASS_", v1::BottleneckClass_Name(bottleneck_class));
}

absl::Status Messages::Add(absl::string_view id, absl::string_view en, absl::string_view fr) {
  if (en.empty() || fr.empty()) return Bad(id, "a language has no text");
  if (HasDigitOutsideCode(en) || HasDigitOutsideCode(fr)) {
    return Bad(id, "a number in the text: numbers enter a report only as metrics");
  }
  Message message{std::string(en), std::string(fr), PlaceholdersOf(en)};
  if (message.placeholders != PlaceholdersOf(fr)) {
    return Bad(id, "the placeholders of the two languages differ");
  }
  if (!messages_.emplace(std::string(id), std::move(message)).second) {
    return MakeError(absl::StatusCode::kAlreadyExists, "MESSAGE_TABLE_INVALID",
                     absl::StrCat("message \"", id, "\" is defined twice"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Messages> Messages::Parse(absl::string_view yaml) {
  Messages messages;
  try {
    RETURN_IF_ERROR(AddAll(YAML::Load(std::string(yaml)), messages));
  } catch (const YAML::Exception& error) {
    return Bad("", error.what());
  }
  return messages;
}

const Message* Messages::Find(absl::string_view id) const {
  auto it = messages_.find(id);
  return it == messages_.end() ? nullptr : &it->second;
}

const Messages& BuiltInMessages() {
  static const Messages* const messages = [] {
    absl::StatusOr<Messages> parsed = ParseBuiltIn();
    if (!parsed.ok()) {
      // The files are part of the program; a test parses them.
      std::cerr << "solward: embedded message table: " << parsed.status() << "\n";
      std::abort();
    }
    return new Messages(*std::move(parsed));
  }();
  return *messages;
}

}  // namespace solward::report
