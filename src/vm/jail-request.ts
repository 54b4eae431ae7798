/** What one VMM needs of its jail. */
export interface JailRequest {
  /** Paths the VMM may read, besides what the program itself needs */
  readOnlyPaths: string[];
  /** Directories the VMM may write */
  writablePaths: string[];
  /** Devices it needs, such as "/dev/kvm" */
  devicePaths: string[];
  /** Reach the host's network: only for a machine with a network card */
  net: boolean;
  /** The VMM goes on when this process ends; its next owner finds it again */
  outlives?: boolean;
  /** The guest's RAM; the VMM may map that and a fixed amount more */
  memoryBytes: number;
}
