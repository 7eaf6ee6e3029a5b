// One line of text, built without the heap and without locale, so that a signal handler may do it.
#pragma once

#include <stddef.h>
#include <string.h>

namespace emu_core {

class Line {
 public:
  Line& operator<<(const char* text) {
    for (; *text != 0; ++text) put(*text);
    return *this;
  }
  Line& operator<<(unsigned long long number) { return digits(number, 10); }
  Line& operator<<(unsigned long number) { return digits(number, 10); }
  Line& operator<<(unsigned number) { return digits(number, 10); }
  Line& hex(unsigned long long number) { return (*this << "0x").digits(number, 16); }

  const char* text() {
    text_[size_] = 0;
    return text_;
  }
  size_t size() const { return size_; }
  void copy_to(char* out, size_t capacity) {
    if (capacity == 0) return;
    size_t count = size_ < capacity - 1 ? size_ : capacity - 1;
    memcpy(out, text_, count);
    out[count] = 0;
  }

 private:
  void put(char c) {
    if (size_ + 1 < sizeof text_) text_[size_++] = c;
  }
  Line& digits(unsigned long long number, unsigned base) {
    char reversed[24];
    int count = 0;
    do reversed[count++] = "0123456789abcdef"[number % base];
    while ((number /= base) != 0);
    while (count > 0) put(reversed[--count]);
    return *this;
  }

  char text_[512];
  size_t size_ = 0;
};

}  // namespace emu_core
