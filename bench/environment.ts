import type { Config } from "../src/config/config.ts";
import { loadConfig } from "../src/config/load-config.ts";
import { IMAGE_PATH, type TestHome } from "../test/support/real-vm.ts";

/** The configuration a server started with this home's environment has. */
export function configFromEnvironment(home: TestHome): Config {
  return loadConfig({
    ...home.env(),
    IGN_MCP_KERNEL: `${IMAGE_PATH}/vmlinuz`,
    IGN_MCP_ROOTFS: `${IMAGE_PATH}/rootfs-tools.ext4`,
  });
}
