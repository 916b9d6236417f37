/** An hour of silences, as node-monitor counts it. */
import type { SilenceHour } from '../../shared/fleet/silences/silence-hour.ts';

const HOUR_MS = 3_600_000;

interface HourParts extends Partial<SilenceHour> {
  /** Hours since `firstMs`. */
  readonly index: number;
  /** Start of hour 0. Milliseconds since the Unix epoch; 0 by default. */
  readonly firstMs?: number;
}

/** An hour of 300 live machines with the default policy, without a silence. */
export const silenceHour = ({ index, firstMs = 0, nodes = 300, ...more }: HourParts): SilenceHour => ({
  hourStartMs: firstMs + index * HOUR_MS,
  zone: 'a',
  profile: 'default',
  slot: index,
  observedSeconds: 3_600,
  nodeSeconds: nodes * 3_600,
  nodes,
  beatIntervalSeconds: 10,
  graceSeconds: 40,
  periodSeconds: 5,
  counts: [],
  uncounted: 0,
  ...more,
});
