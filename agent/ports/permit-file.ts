import type { KeptPermits } from '../rules/offline-stop.ts';

/** The last permits, for an agent that starts again within the same boot. */
export interface PermitFile {
  /** Undefined: there is none of this boot. @throws Error of the file system */
  read(nowUptimeMs: number): Promise<KeptPermits | undefined>;
  /** As a whole. @throws Error of the file system */
  write(kept: KeptPermits): Promise<void>;
}
