// Lines on the console (stderr until there is one). Never a guest program's text.
#ifndef IGNITION_CONSOLE_H
#define IGNITION_CONSOLE_H

#include <stdnoreturn.h>

// From now on lines go to /dev/console; without one they stay on stderr.
void console_open(void);

// A marker the host waits for, alone on its line.
void console_marker(const char *marker);

// `ignition-agent: <what>`, `ignition-agent: <what>: <errno text>`.
__attribute__((format(printf, 1, 2))) void console_log(const char *format, ...);
void console_error(const char *what);

// As console_error, then exits: as PID 1 that panics the kernel, which ends the VM.
noreturn void console_fatal(const char *what);

#endif
