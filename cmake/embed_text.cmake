# embed_text(FILE HEADER NAME OUT): a source file that defines the string_view sinew::NAME, which
# HEADER declares, with the text of FILE.
function(embed_text file header name out)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${file})
  file(READ ${PROJECT_SOURCE_DIR}/${file} text)
  string(MAKE_C_IDENTIFIER ${name} identifier)
  set(source ${PROJECT_BINARY_DIR}/embedded/${identifier}.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT "// Out of @file@.
#include \"@header@\"

namespace sinew {

const std::string_view @name@ = R\"embedded(@text@)embedded\";

}  // namespace sinew
")
  set(${out} ${source} PARENT_SCOPE)
endfunction()
