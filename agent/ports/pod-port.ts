/** A connection to a port of a pod on this machine. */
export interface PodPort {
  /** What the pod sends, until it sends no more. Never throws. */
  readonly received: AsyncIterable<Uint8Array>;
  /** Resolves when more may be written, or the pod reads nothing any more. */
  write(bytes: Uint8Array): Promise<void>;
  endInput(): void;
  close(): void;
}

/** @param address of the pod; absent: that of this machine. @throws Error */
export type ConnectPort = (port: number, address: string | undefined) => Promise<PodPort>;
