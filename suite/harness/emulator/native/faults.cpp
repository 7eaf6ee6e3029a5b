// What becomes of a signal that a program provokes: one line to a file descriptor, and the end of
// the process, which is one evaluation's own.
#include <signal.h>
#include <unistd.h>

#include "memory.hpp"
#include "scheduler.hpp"

namespace emu_core {

namespace {

constexpr int EXIT_CODE = 70;
int report_to = -1;

void append_cause(Line& line, int signal, const siginfo_t* info, const Worker& w) {
  const char* address = static_cast<const char*>(info->si_addr);
  const auto number = reinterpret_cast<unsigned long long>(info->si_addr);
  switch (signal) {
    case SIGFPE:
      line << "integer division by zero";
      return;
    case SIGABRT:
      line << "abort";
      return;
    case SIGILL:
      line << "misaligned address";
      return;  // the check that the compiler put in
    default:
      break;
  }
  if (info->si_code <= 0 || info->si_code == SI_KERNEL) {
    line << "misaligned address, or one beyond the address space";
  } else if (w.stacks.guards(address)) {
    line << "more than " << Stacks::LOCAL / 1024 << " KB of local memory in a thread";
  } else {
    (line << "address ").hex(number);
    if (number < 4096)
      line << " is a null pointer";
    else if (!describe(address, line))
      line << " belongs to no buffer";
  }
}

void on_signal(int signal, siginfo_t* info, void*) {
  Line line;
  if (const Worker* w = current_worker()) {
    line << "memory_fault kernel " << w->launch->name << ": ";
    append_cause(line, signal, info, *w);
    line << " ";
    append_place(line, true);
  } else {
    line << "infrastructure_error signal " << static_cast<unsigned>(signal)
         << " outside a kernel, in the emulator's host process";
  }
  line << "\n";
  const ssize_t written = write(report_to, line.text(), line.size());
  _exit(written < 0 ? EXIT_CODE + 1 : EXIT_CODE);
}

}  // namespace

void use_signal_stack(char* memory, size_t size) {
  if (report_to < 0) return;
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = size;
  sigaltstack(&stack, nullptr);
}

}  // namespace emu_core

extern "C" __attribute__((visibility("default"))) void emu_install_fault_handler(int fd) {
  static char stack[64 << 10];
  emu_core::report_to = fd;
  emu_core::use_signal_stack(stack, sizeof stack);
  struct sigaction action{};
  action.sa_sigaction = emu_core::on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  for (int signal : caught) sigaction(signal, &action, nullptr);
}
