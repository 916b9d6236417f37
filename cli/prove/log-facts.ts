/** Facts about what Lambda writes to CloudWatch Logs, and what its reports say about the bill. Pure. */
import { fact, holdsIf, unknown, type Verdict } from './verdict.ts';

/** Of platform.report. Milliseconds. */
export interface ReportedInvocation {
  readonly durationMs: number;
  readonly billedMs: number;
  /** Absent: its environment had been loaded for an earlier one. */
  readonly initMs?: number;
}

/**
 * Kinds of the lines that arrived: `info`, `warn` and `none` are those of the probe by their level; those of Lambda
 * have their type.
 */
export interface ObservedLogs {
  /** Of a function with the application and system log level INFO. */
  readonly atInfo: readonly string[];
  /** The same with WARN. */
  readonly atWarn: readonly string[];
  readonly reports: readonly ReportedInvocation[];
}

const isUnseen = ({ atInfo, atWarn }: ObservedLogs): boolean => !atInfo.includes('warn') || !atWarn.includes('warn');
const UNSEEN = 'the warnings of both functions have not arrived';

const arrivesFrom =
  (kind: string) =>
  (observed: ObservedLogs): Verdict => {
    if (isUnseen(observed)) return unknown(UNSEEN);
    const arrives = (kinds: readonly string[]): string => (kinds.includes(kind) ? 'arrives' : 'is dropped');
    const reason = `it ${arrives(observed.atInfo)} at INFO, and ${arrives(observed.atWarn)} at WARN`;
    return holdsIf(observed.atInfo.includes(kind) && !observed.atWarn.includes(kind), reason);
  };

/** Durations in reports are rounded, the billed ones are computed before that. */
const ROUNDING_MS = 1;

function billedAs(invocations: readonly ReportedInvocation[]): Verdict {
  if (invocations.length === 0) return unknown('no report of such an invocation has arrived');
  const isBilled = ({ durationMs, billedMs, initMs = 0 }: ReportedInvocation): boolean =>
    Number.isInteger(billedMs) && Math.abs(billedMs - Math.ceil(durationMs + initMs)) <= ROUNDING_MS;
  const shown = invocations.map(({ durationMs, billedMs, initMs }) =>
    initMs === undefined ? `${durationMs} as ${billedMs} ms` : `${durationMs} and ${initMs} as ${billedMs} ms`,
  );
  return holdsIf(invocations.every(isBilled), shown.join(', '));
}

const REPORT = 'platform.report';

export const LOG_FACTS = {
  'lambda-log-level': fact<ObservedLogs>({
    sentence: 'A line below the application log level of its function does not reach CloudWatch Logs',
    source: 'Lambda Developer Guide, "Log-level filtering"',
    expected: 'an INFO line arrives at the level INFO, and is dropped at WARN',
    evaluate: arrivesFrom('info'),
  }),
  'lambda-log-without-level': fact<ObservedLogs>({
    sentence: 'A line without a level, as those of metrics are, is filtered as INFO',
    source: 'Lambda Developer Guide, "Log-level filtering"',
    expected: 'it arrives at the level INFO, and is dropped at WARN',
    evaluate: arrivesFrom('none'),
  }),
  'lambda-system-log-level': fact<ObservedLogs>({
    sentence: 'At the system log level WARN Lambda writes no line of its own about an invocation that succeeds',
    source: 'Lambda Developer Guide, "Log-level filtering"',
    expected: 'reports at INFO, none and no other line of Lambda at WARN',
    evaluate: (observed) => {
      if (isUnseen(observed) || !observed.atInfo.includes(REPORT)) return unknown(`${UNSEEN}, or no report has`);
      const written = observed.atWarn.filter((kind) => kind === REPORT || kind === 'platform.start');
      return holdsIf(written.length === 0, `${written.length} lines at WARN`);
    },
  }),
  'lambda-billed-duration': fact<ObservedLogs>({
    sentence: 'An invocation is billed by its duration, rounded up to the next millisecond',
    source: 'AWS Lambda Pricing; Lambda Developer Guide, "Lambda Telemetry API Event schema reference"',
    expected: 'a whole number within 1 ms of the rounded duration',
    evaluate: ({ reports }) => billedAs(reports.filter(({ initMs }) => initMs === undefined)),
  }),
  'lambda-billed-init': fact<ObservedLogs>({
    sentence: 'The first invocation of an environment is billed with the time in which the environment was loaded',
    source: 'AWS Compute Blog, "AWS Lambda standardizes billing for INIT Phase" (since August 2025)',
    expected: 'a whole number within 1 ms of the rounded sum',
    evaluate: ({ reports }) => billedAs(reports.filter(({ initMs }) => initMs !== undefined)),
  }),
};
