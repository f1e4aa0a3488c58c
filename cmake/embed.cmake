# Writes OUTPUT: a C++ array of {relative path, text, size} of FILES below ROOT.
#
# Every byte becomes a hexadecimal escape: quotes, brackets, semicolons and raw
# string delimiters in a file can break neither CMake's lists nor the literal.
set(arrays "")
set(entries "")
set(index 0)
foreach(file IN LISTS FILES)
  file(RELATIVE_PATH name "${ROOT}" "${file}")
  file(READ "${file}" text HEX)
  # A literal a line: an escape takes every hexadecimal digit that follows it.
  string(REGEX REPLACE "(................................................)" "\\1\"\n    \"" text "${text}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" text "${text}")
  string(APPEND arrays "constexpr char kFile${index}[] =\n    \"${text}\";\n")
  string(APPEND entries "    {\"${name}\", kFile${index}, sizeof(kFile${index}) - 1},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE "${OUTPUT}" "#include \"common/embedded_config.h\"

namespace solward::internal {
namespace {
${arrays}}  // namespace

const EmbeddedFile kEmbeddedFiles[] = {
${entries}};
const size_t kEmbeddedFileCount = sizeof(kEmbeddedFiles) / sizeof(kEmbeddedFiles[0]);
}  // namespace solward::internal
")
