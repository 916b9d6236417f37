/** The time of the cluster. All times on the page are compared with it: the clock of this machine may be wrong. */
import { skewOf } from '../model/page-health.ts';

let skewMs = 0;

export const clusterClock = {
  nowMs: (): number => Date.now() + skewMs,
  skewMs: (): number => skewMs,
  /** `date`: header of an answer that the API has just sent. */
  compare(date: string | null): void {
    const serverMs = date === null ? Number.NaN : Date.parse(date);
    if (!Number.isNaN(serverMs)) skewMs = skewOf(serverMs, Date.now());
  },
};
