import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

/** A link in its place must not make us write elsewhere. */
const FLAGS = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW;
const MODE = 0o600;

/** The file a wall writes to. */
export interface WallFile {
  /** On disk when this resolves. When it rejects, anything may be behind `offset` */
  write(bytes: Uint8Array, offset: number): Promise<void>;
  cut(size: number): Promise<void>;
  close(): Promise<void>;
}

export type OpenWallFile = (path: string) => Promise<WallFile>;

export const openWallFile: OpenWallFile = async (path) => {
  const handle: FileHandle = await open(path, FLAGS, MODE);
  return {
    async write(bytes, offset) {
      let count = 0;
      while (count < bytes.byteLength) {
        const { bytesWritten } = await handle.write(bytes, count, bytes.byteLength - count, offset + count);
        count += bytesWritten;
      }
      await handle.datasync();
    },
    async cut(size) {
      await handle.truncate(size);
      await handle.datasync();
    },
    close: () => handle.close(),
  };
};
