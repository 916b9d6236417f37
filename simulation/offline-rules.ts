/** What an agent counts before the rules of offline stop apply (agent/rules/offline-stop.ts). Bugs are planted here. */
import type { ClockReading } from '../agent/rules/offline-stop.ts';

export interface OfflineRules {
  /** From when an answered heartbeat counts; undefined: it does not. */
  readonly counted: (heartbeat: {
    readonly sent: ClockReading;
    readonly received: ClockReading;
    readonly isRelayed: boolean;
  }) => ClockReading | undefined;
  /** The heartbeat that a list is after, of the newest ones before its request and before its answer. */
  readonly listedAfter: (
    beforeRequest: ClockReading | undefined,
    beforeAnswer: ClockReading | undefined,
  ) => ClockReading | undefined;
  /** Starts the pods that it remembers at once after a boot, and counts from there. */
  readonly startsRemembered: boolean;
  /** Pods that the hub of the site decides about: a list is their first permit. */
  readonly startsByList: boolean;
  /** … runs them on while the cluster answers heartbeats. */
  readonly countsBeats: boolean;
  /** … and reports their end without a release of the hub. */
  readonly skipsRelease: boolean;
}

export const offlineRules: OfflineRules = {
  counted: ({ sent, isRelayed }) => (isRelayed ? undefined : sent),
  listedAfter: (beforeRequest) => beforeRequest,
  startsRemembered: false,
  startsByList: false,
  countsBeats: false,
  skipsRelease: false,
};
