import type { ClockReading } from '../rules/offline-stop.ts';

/** The last answered heartbeat, for an agent that starts again within the same boot. */
export interface HeartbeatFile {
  /** Undefined: there is none of this boot. @throws Error of the file system */
  read(nowUptimeMs: number): Promise<ClockReading | undefined>;
  /** As a whole. @throws Error of the file system */
  write(heartbeat: ClockReading): Promise<void>;
}
