#pragma once
#include <stdint.h>

/* Rate of the processor's time stamp counter in kHz, measured over 30 ms; 0 where there is none. */
uint32_t tsc_khz(void);
