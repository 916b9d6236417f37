/** Facts about delayed messages, schedules and the ticks that rest on them. Pure. */
import { fact, holdsIf, unknown } from './verdict.ts';

const MINUTE_MS = 60_000;
/** A tick claims its slot when it comes up to two seconds before it (functions/node-monitor/chain.ts). */
const EARLY_MS_MAX = 500;
const DELAY_LATE_MS_MAX = 2_000;
const TICK_LATE_MS_MAX = 2_500;
/** Lambda stops a chain that it detects as a loop after about this many invocations. */
const CHAIN_INVOCATIONS = 16;

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

export interface ObservedTicks {
  /** Slots that were claimed while observed, with the time of the claim after the start of the slot. Milliseconds. */
  readonly latenessMs: readonly number[];
  /** Slots that passed without a claim. */
  readonly missed: number;
  /** Claims since the cluster exists. */
  readonly claims: number;
}

export const TIME_FACTS = {
  'sqs-delay': fact<{ readonly sent: number; readonly latenessMs: readonly number[] }>({
    sentence: 'A message with a delay becomes receivable not before it, and within 2 s after it',
    source: 'Amazon SQS Developer Guide, "Amazon SQS message timers"; AWS documents no bound',
    expected: 'at most 500 ms early and, in the median, at most 2,000 ms late',
    evaluate: ({ sent, latenessMs }) => {
      const { length } = latenessMs;
      if (length === 0 || length < sent / 2) return unknown(`${length} of ${sent} messages were received in time`);
      const [earliest, latest] = [Math.min(...latenessMs), Math.max(...latenessMs)];
      const reason = `${earliest} to ${latest} ms after the delay, median ${median(latenessMs)} ms, ${length} messages`;
      return holdsIf(earliest >= -EARLY_MS_MAX && median(latenessMs) <= DELAY_LATE_MS_MAX, reason);
    },
  }),
  'schedule-minute': fact<{ readonly firedAtMs: readonly number[] }>({
    sentence: 'A schedule of each minute fires in each minute, at any second of it',
    source: 'EventBridge Scheduler User Guide, "Schedule types in EventBridge Scheduler"',
    expected: 'no minute without a call between the first and the last one',
    evaluate: ({ firedAtMs }) => {
      const minutes = new Set(firedAtMs.map((atMs) => Math.floor(atMs / MINUTE_MS)));
      if (minutes.size < 3) return unknown(`${firedAtMs.length} calls in ${minutes.size} minutes: too few`);
      const [first, last] = [Math.min(...minutes), Math.max(...minutes)];
      const seconds = firedAtMs.map((atMs) => (atMs % MINUTE_MS) / 1_000);
      const spread = `at second ${Math.min(...seconds).toFixed(1)} to ${Math.max(...seconds).toFixed(1)}`;
      const missing = last - first + 1 - minutes.size;
      return holdsIf(missing === 0, `${firedAtMs.length} calls, ${missing} minutes without one, ${spread}`);
    },
  }),
  'tick-lateness': fact<ObservedTicks>({
    sentence: 'Ticks that start each other by delayed messages begin within half of their period',
    source: 'docs/decisions/0020',
    expected: 'a median of at most 2,500 ms, and at most one slot in ten missed',
    evaluate: ({ latenessMs, missed }) => {
      if (latenessMs.length === 0) return unknown('no tick was observed');
      const reason = `median ${median(latenessMs)} ms of ${latenessMs.length} ticks, ${missed} missed`;
      return holdsIf(median(latenessMs) <= TICK_LATE_MS_MAX && missed <= latenessMs.length / 10, reason);
    },
  }),
  'tick-chain': fact<ObservedTicks>({
    sentence: 'Lambda does not stop a chain of a queue and a function with RecursiveLoop Allow after 16 invocations',
    source: 'Lambda Developer Guide, "Use Lambda recursive loop detection to prevent infinite loops"',
    expected: 'more than 16 ticks, and no two slots in a row without one',
    evaluate: ({ latenessMs, missed, claims }) => {
      const reason = `${claims} ticks since the deployment; ${latenessMs.length} observed, ${missed} slots missed`;
      if (missed > Math.max(1, latenessMs.length / 4)) return holdsIf(false, reason);
      return claims > CHAIN_INVOCATIONS && latenessMs.length > 0 ? holdsIf(true, reason) : unknown(reason);
    },
  }),
};
