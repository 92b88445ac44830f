# Writes RESULT: the facts of the build in FACTS, and the constants that the worker PROGRAM carries as a text (see
# cpp/tilewise/worker/constants.cpp). The program is not run: it may be for another machine.
file(STRINGS "${PROGRAM}" constants REGEX "@\\(#\\)tilewise-constants {" LIMIT_COUNT 1)
string(REGEX REPLACE "^.*@\\(#\\)tilewise-constants " "" constants "${constants}")
file(READ "${FACTS}" facts)
string(JSON facts SET "${facts}" constants "${constants}")
file(WRITE "${RESULT}" "${facts}\n")
