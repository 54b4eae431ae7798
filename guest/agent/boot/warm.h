// Touches what sessions use first, so that its pages are in memory when the VM becomes a base.
#ifndef IGNITION_WARM_H
#define IGNITION_WARM_H

void warm_tools(void);

#endif
