// Device memory: every buffer alone between inaccessible pages.
#pragma once

#include "text.hpp"

namespace emu_core {

// Appends where `address` lies relative to the buffer whose surroundings hold it; false if none
// does.
bool describe(const char* address, Line& line);

// Appends which buffer was written outside its bytes, and repairs it; false if none was.
bool find_stray_write(Line& line);

}  // namespace emu_core
