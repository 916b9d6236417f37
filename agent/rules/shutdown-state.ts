/**
 * The file with the times of the last shutdown, for the metrics after the next start.
 * Source: pkg/kubelet/nodeshutdown/storage.go.
 */
import { parseRfc3339, rfc3339 } from '../../shared/kubernetes/rfc3339.ts';

export const SHUTDOWN_STATE_FILE = 'graceful_node_shutdown_state';
export const SHUTDOWN_START_METRIC = 'kubelet_graceful_shutdown_start_time_seconds';
export const SHUTDOWN_END_METRIC = 'kubelet_graceful_shutdown_end_time_seconds';

export interface ShutdownTimes {
  /** Milliseconds since the Unix epoch; undefined if there was none. */
  readonly startedAtMs: number | undefined;
  readonly endedAtMs: number | undefined;
}

/** Go's zero time. */
const UNSET = '0001-01-01T00:00:00Z';

function timeText(epochMs: number | undefined): string {
  if (epochMs === undefined) return UNSET;
  const fraction = String(Math.trunc(epochMs) % 1_000)
    .padStart(3, '0')
    .replace(/0+$/, '');
  return fraction === '' ? rfc3339(epochMs) : rfc3339(epochMs).replace('Z', `.${fraction}Z`);
}

export const shutdownStateText = ({ startedAtMs, endedAtMs }: ShutdownTimes): string =>
  JSON.stringify({ startTime: timeText(startedAtMs), endTime: timeText(endedAtMs) });

function timeOf(text: unknown): number | undefined | 'malformed' {
  if (text === undefined || text === UNSET) return undefined;
  const epochMs = typeof text === 'string' ? parseRfc3339(text) : undefined;
  return epochMs ?? 'malformed';
}

/** Undefined if the text is malformed. */
export function readShutdownState(text: string): ShutdownTimes | undefined {
  let state: unknown;
  try {
    state = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof state !== 'object' || state === null) return undefined;
  const startedAtMs = timeOf((state as { startTime?: unknown }).startTime);
  const endedAtMs = timeOf((state as { endTime?: unknown }).endTime);
  return startedAtMs === 'malformed' || endedAtMs === 'malformed' ? undefined : { startedAtMs, endedAtMs };
}

/** The gauges show whole seconds since the Unix epoch; 0 while there is no end yet. */
export const gaugeSeconds = (epochMs: number): number => Math.floor(epochMs / 1_000);
