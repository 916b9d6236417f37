/**
 * nodekeeper decisions [-f] [--node NAME] [--pod NAMESPACE/NAME] [--zone KEY] [--since 1h]
 *
 * What the controllers decided, as a log: in order of time, one line each, with the whole reason.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { DecisionAbout } from '../shared/decisions/decision-record.ts';
import { formatTime } from '../shared/kubernetes/time.ts';
import { columns } from '../shared/text-columns.ts';
import { type SendToApi, sendToApi } from './api-request.ts';
import { CommandError, type CommandIo } from './command.ts';
import { apiAccess } from './kubeconfig.ts';
import { durationMs, readDecisions } from './read-decisions.ts';

export const DECISIONS_USAGE = [
  'nodekeeper decisions [-f] [--node NAME | --pod NAMESPACE/NAME | --zone KEY] [--since 1h]',
  '  -f: until Ctrl-C; every 2 s about one object, every 10 s about all of them',
  '  with [--kubeconfig FILE] [--context NAME] or [--server URL --token TOKEN [--certificate-authority FILE]]',
].join('\n');

/** Between two looks with -f. All decisions are many reads. Milliseconds. */
const PAUSE_MS = { one: 2_000, all: 10_000 };
/** A decision may become visible after a later one. Milliseconds. */
const LATE_MS = 30_000;

export async function decisionsCommand(
  args: readonly string[],
  { environment, nowMs, print }: CommandIo,
  send: SendToApi = sendToApi,
  /** Waits between two looks; false: no more. */
  pause: (milliseconds: number) => Promise<boolean> = (milliseconds) => wait(milliseconds, true),
): Promise<void> {
  const { values } = parse(args);
  const named = (['node', 'pod', 'zone'] as const).filter((each) => values[each] !== undefined);
  if (named.length > 1) throw new CommandError('name one of --node, --pod and --zone', DECISIONS_USAGE);
  const [about] = named;
  const selector = about === undefined ? undefined : `${about}=${values[about]}`;
  const access = apiAccess(values, environment);
  let sinceMs = nowMs - durationMs(values.since ?? '1h', DECISIONS_USAGE);
  const printed = new Set<string>();
  do {
    const found = (await readDecisions({ access, send, sinceMs }, selector)).filter(({ name }) => !printed.has(name));
    found.sort((one, other) => one.record.atMs - other.record.atMs);
    const rows = found.map(({ record }) => [
      formatTime(record.atMs),
      subjectText(record.about),
      record.act,
      record.reason,
    ]);
    for (const line of rows.length === 0 ? [] : columns(rows, '  ')) print(line);
    for (const { name } of found) printed.add(name);
    sinceMs = Math.max(sinceMs, (found.at(-1)?.record.atMs ?? 0) - LATE_MS);
  } while (values.follow === true && (await pause(selector === undefined ? PAUSE_MS.all : PAUSE_MS.one)));
  if (printed.size === 0) {
    throw new CommandError(`no decision since ${formatTime(sinceMs)}`, 'try a longer time with --since 24h');
  }
}

const subjectText = ({ kind, namespace, name }: DecisionAbout): string => {
  if (kind === 'Fleet') return 'fleet';
  return `${kind.toLowerCase()}/${namespace === undefined ? '' : `${namespace}/`}${name}`;
};

const parse = (args: readonly string[]) =>
  parseArgs({
    args: [...args],
    options: {
      follow: { type: 'boolean', short: 'f' },
      node: { type: 'string' },
      pod: { type: 'string' },
      zone: { type: 'string' },
      since: { type: 'string' },
      kubeconfig: { type: 'string' },
      context: { type: 'string' },
      server: { type: 'string' },
      token: { type: 'string' },
      'certificate-authority': { type: 'string' },
    },
  });
