cmake_minimum_required(VERSION 3.25)
# Run at build time: writes OUTPUT, a header with the commit that is being built and whether the tree differs from it.
# A source tree without git (a release archive) leaves the commit empty.
execute_process(COMMAND git rev-parse HEAD WORKING_DIRECTORY ${SOURCE_DIR}
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
set(dirty false)
if(failed)
  set(commit "")
else()
  execute_process(COMMAND git status --porcelain --untracked-files=no WORKING_DIRECTORY ${SOURCE_DIR}
    OUTPUT_VARIABLE changes OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(changes)
    set(dirty true)
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT
"#pragma once
#define PLUMBLINE_COMMIT \"@commit@\"
#define PLUMBLINE_DIRTY @dirty@
" @ONLY)
