/**
 * Observation of what two functions with one code and different log levels write to CloudWatch Logs. Their log groups
 * are those of the run: all of their lines are read. Source: CloudWatch Logs API Reference, "FilterLogEvents".
 */
import type { Calls, Measuring, ProbeFunction } from '../calls.ts';
import type { LOG_FACTS, ObservedLogs, ReportedInvocation } from '../log-facts.ts';
import type { MeasuresOf } from '../measures.ts';
import { once } from './once.ts';

/** The first one of a function loads its environment, the second one uses it. */
const INVOCATIONS = 2;
/** Lines arrive some seconds after they are written. Of each invocation. */
const LOOKING_MS_MAX = 45_000;
const LOOK_MS = 2_000;
/** Then lines that were to be dropped would have arrived too. */
const SETTLING_MS = 10_000;
/** A page may be empty and not the last one. */
const PAGES_MAX = 20;

interface Line {
  readonly kind: string;
  readonly report?: ReportedInvocation;
}

async function linesOf({ json }: Calls, { logGroup }: ProbeFunction): Promise<readonly Line[]> {
  const lines: Line[] = [];
  let nextToken: unknown;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const from = nextToken === undefined ? {} : { nextToken };
    const { status, body } = await json('logs', 'FilterLogEvents', { logGroupName: logGroup, ...from });
    if (status >= 300) throw new Error(`no log can be read: ${String(body['__type'] ?? status)}`);
    const events = (body['events'] ?? []) as readonly { readonly message?: string }[];
    lines.push(...events.map(({ message = '' }) => lineOf(message)));
    ({ nextToken } = body);
    if (nextToken === undefined) return lines;
  }
  throw new Error(`a log has more than ${PAGES_MAX} pages`);
}

interface SystemEvent {
  readonly type?: string;
  readonly record?: {
    readonly status?: string;
    readonly metrics?: {
      readonly durationMs?: number;
      readonly billedDurationMs?: number;
      readonly initDurationMs?: number;
    };
  };
}

/** The lines of the probe are found in any form in which Lambda may write them. */
function lineOf(message: string): Line {
  const own = /prove-line-(info|warn|none)/.exec(message)?.[1];
  if (own !== undefined) return { kind: own };
  const { type, record } = systemEventOf(message);
  if (type === undefined) return { kind: 'other' };
  const { status = 'success', metrics } = record ?? {};
  if (status !== 'success') return { kind: `${type} of ${status}` };
  const { durationMs, billedDurationMs: billedMs, initDurationMs: initMs } = metrics ?? {};
  if (durationMs === undefined || billedMs === undefined) return { kind: type };
  return { kind: type, report: { durationMs, billedMs, ...(initMs === undefined ? {} : { initMs }) } };
}

function systemEventOf(message: string): SystemEvent {
  try {
    return JSON.parse(message) as SystemEvent;
  } catch {
    return {};
  }
}

const observedLogs = once(async ({ calls, cluster }: Measuring): Promise<ObservedLogs> => {
  const { info, warn } = cluster.probes;
  const read = async (): Promise<ObservedLogs> => {
    const [atInfo, atWarn] = [await linesOf(calls, info), await linesOf(calls, warn)];
    const kinds = (lines: readonly Line[]): string[] => lines.map(({ kind }) => kind);
    const reports = atInfo.flatMap(({ report = [] }) => report);
    return { atInfo: kinds(atInfo), atWarn: kinds(atWarn), reports };
  };
  for (let count = 1; count <= INVOCATIONS; count += 1) {
    for (const { functionName } of [info, warn]) {
      const refused = await calls.invoke(functionName);
      if (refused !== undefined) throw new Error(`a function cannot be invoked: ${refused}`);
    }
    const hasArrived = ({ reports, atWarn }: ObservedLogs): boolean =>
      reports.length >= count && atWarn.filter((kind) => kind === 'warn').length >= count;
    const endMs = calls.nowMs() + LOOKING_MS_MAX;
    do await calls.pause(LOOK_MS);
    while (!hasArrived(await read()) && calls.nowMs() < endMs);
  }
  await calls.pause(SETTLING_MS);
  return read();
});

export const MEASURE_LOGS: MeasuresOf<typeof LOG_FACTS> = {
  'lambda-log-level': observedLogs,
  'lambda-log-without-level': observedLogs,
  'lambda-system-log-level': observedLogs,
  'lambda-billed-duration': observedLogs,
  'lambda-billed-init': observedLogs,
};
