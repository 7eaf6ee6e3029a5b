// Buffers end, rounded up to 16 bytes, at an inaccessible page, and start a multiple of 16 bytes
// after another. The guards are wide, so that an index that is far off still lands in them. What
// lies between the guards beside the buffer's own bytes may be read by accident, and holds 0xFF (a
// NaN, an index of -1); that nothing wrote there is checked after each launch.
#include "memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr size_t CAPACITY = 4096;
constexpr unsigned char SLACK = 0xFF;
// Any int32 index into 8-byte elements; less where the address space is limited.
constexpr size_t GUARDS[] = {size_t{1} << 34, size_t{1} << 30, size_t{1} << 24, 0};

struct Region {
  char* mapping;  // null where the entry is free
  size_t length;  // of the mapping
  char* open;     // first accessible byte
  size_t opened;  // accessible bytes
  char* start;    // the buffer
  size_t nbytes;
  char name[64];
};

Region regions[CAPACITY];

Region* find(const char* start) {
  for (Region& r : regions)
    if (r.mapping != nullptr && r.start == start) return &r;
  return nullptr;
}

const char* name_of(const Region& r) { return r.name[0] != 0 ? r.name : "(unnamed)"; }

bool intact(const char* from, const char* to) {
  if (from == to) return true;
  // The first byte is right, and every other one is like the one before it.
  return static_cast<unsigned char>(*from) == SLACK &&
         memcmp(from, from + 1, static_cast<size_t>(to - from) - 1) == 0;
}

}  // namespace

// A buffer of `nbytes`, or null when there is no memory left.
EXPORT char* emu_allocate(size_t nbytes) {
  Region* entry = nullptr;
  for (Region& r : regions)
    if (r.mapping == nullptr) {
      entry = &r;
      break;
    }
  if (entry == nullptr || nbytes > (size_t{1} << 46)) return nullptr;
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t rounded = (nbytes + 15) / 16 * 16;
  const size_t opened = (rounded + page - 1) / page * page;
  for (size_t wide : GUARDS) {
    const size_t guard = wide != 0 ? wide : page;
    void* at = mmap(nullptr, opened + 2 * guard, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) continue;
    char* open = static_cast<char*>(at) + guard;
    if (opened != 0 && mprotect(open, opened, PROT_READ | PROT_WRITE) != 0) {
      munmap(at, opened + 2 * guard);
      return nullptr;
    }
    *entry = Region{static_cast<char*>(at),
                    opened + 2 * guard,
                    open,
                    opened,
                    open + opened - rounded,
                    nbytes,
                    {}};
    memset(open, SLACK, opened - rounded);
    memset(entry->start + nbytes, SLACK, rounded - nbytes);
    return entry->start;
  }
  return nullptr;
}

EXPORT void emu_free(char* start) {
  if (Region* r = find(start)) {
    munmap(r->mapping, r->length);
    r->mapping = nullptr;
  }
}

// What messages call the buffer.
EXPORT void emu_name(char* start, const char* name) {
  if (Region* r = find(start)) {
    strncpy(r->name, name, sizeof r->name - 1);
    r->name[sizeof r->name - 1] = 0;
  }
}

bool emu_core::describe(const char* address, Line& line) {
  for (const Region& r : regions) {
    if (r.mapping == nullptr || address < r.mapping || address >= r.mapping + r.length) continue;
    line << " is ";
    if (address < r.start)
      line << static_cast<unsigned long>(r.start - address) << " bytes before the start";
    else if (address >= r.start + r.nbytes)
      line << static_cast<unsigned long>(address - r.start - static_cast<long>(r.nbytes))
           << " bytes past the end";
    else
      line << static_cast<unsigned long>(address - r.start) << " bytes from the start";
    line << " of buffer " << name_of(r) << " (" << r.nbytes << " bytes)";
    return true;
  }
  return false;
}

bool emu_core::find_stray_write(Line& line) {
  for (Region& r : regions) {
    if (r.mapping == nullptr) continue;
    char* end = r.start + r.nbytes;
    char* limit = r.open + r.opened;
    const bool before = !intact(r.open, r.start);
    if (!before && intact(end, limit)) continue;
    line << "wrote " << (before ? "before the start" : "past the end") << " of buffer "
         << name_of(r) << " (" << r.nbytes << " bytes)";
    memset(r.open, SLACK, static_cast<size_t>(r.start - r.open));
    memset(end, SLACK, static_cast<size_t>(limit - end));
    return true;
  }
  return false;
}
