/** Hardware acceleration QEMU can run a guest with. `tcg` is software emulation and works everywhere. */
export type Acceleration = "kvm" | "hvf" | "tcg";

/** Everything about a machine that a clone must share with its base. */
export interface MachineSpec {
  acceleration: Acceleration;
  /** Guest RAM; the size of memory.bin */
  memoryBytes: number;
  cpus: number;
  /** A user-mode network card exists in the guest */
  net: boolean;
  /** Raw ext4 image, attached read-only */
  rootfsPath: string;
}

/** What only the first boot of a base needs. */
export interface BootSource {
  kernelPath: string;
  initramfsPath: string;
  /** The host's TSC rate for an emulated guest, which cannot calibrate it; 0 when unknown */
  tscKhz: number;
}

/** Socket names inside a VM's directory. */
export const QMP_SOCKET = "qmp.sock";
export const CONSOLE_SOCKET = "console.sock";
export const AGENT_SOCKET = "vsock.sock";
export const MEMORY_FILE = "memory.bin";
export const STATE_FILE = "state.bin";
/** Name of the virtio-serial port the agent looks for */
export const AGENT_PORT_NAME = "ignition.agent";
