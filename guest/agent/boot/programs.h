// Programs of ours in the guest's PATH.
#ifndef IGNITION_PROGRAMS_H
#define IGNITION_PROGRAMS_H

// Copies what is in one directory into another. They come with the initramfs, not with the image,
// so that they fit the agent. One that cannot be copied is told on the console, and missed by who
// wants it.
void programs_install(const char *from_directory, const char *to_directory);

#endif
