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
import { durationMs, PAGE_ITEMS, PAGES_MAX, readDecisions } from './read-decisions.ts';

export const DECISIONS_USAGE = [
  'nodekeeper decisions [-f] [--node NAME | --pod NAMESPACE/NAME | --zone KEY] [--since 1h]',
  '  -f: until Ctrl-C; every 2 s about one object, every 10 s about all of them',
  '  about all of them, it reads 20,000 records at most, whatever their time, and says when there are more',
  '  with [--kubeconfig FILE] [--context NAME] or [--server URL --token TOKEN [--certificate-authority FILE]]',
].join('\n');

/** Between two looks with -f. All decisions are many reads. Milliseconds. */
const PAUSE_MS = { one: 2_000, all: 10_000 };
/** A decision may become visible after a later one. Milliseconds. */
const LATE_MS = 30_000;

export async function decisionsCommand(
  args: readonly string[],
  { environment, nowMs, print, note = () => {} }: CommandIo,
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
  const sinceMs = nowMs - durationMs(values.since ?? '1h', DECISIONS_USAGE);
  let fromMs = sinceMs;
  /** Names of what was printed and may be read again. */
  let printed = new Map<string, number>();
  let isAnyFound = false;
  do {
    const { found, isCut } = await readDecisions({ access, send, sinceMs: fromMs }, selector);
    const fresh = found
      .filter(({ name }) => !printed.has(name))
      .toSorted((one, other) => one.record.atMs - other.record.atMs);
    const rows = fresh.map(({ record }) => [
      formatTime(record.atMs),
      subjectText(record.about),
      record.act,
      record.reason,
    ]);
    for (const line of rows.length === 0 ? [] : columns(rows, '  ')) print(line);
    if (isCut)
      note(`${PAGE_ITEMS * PAGES_MAX} records were read and there are more: name one of --node, --pod and --zone`);
    isAnyFound ||= fresh.length > 0;
    fromMs = Math.max(fromMs, (fresh.at(-1)?.record.atMs ?? 0) - LATE_MS);
    for (const { name, record } of fresh) printed.set(name, record.atMs);
    printed = new Map([...printed].filter(([, atMs]) => atMs >= fromMs));
  } while (values.follow === true && (await pause(selector === undefined ? PAUSE_MS.all : PAUSE_MS.one)));
  if (!isAnyFound) throw nothingFound(about === undefined ? '' : `${about} ${values[about]}`, formatTime(sinceMs));
}

function nothingFound(subject: string, since: string): CommandError {
  return subject === ''
    ? new CommandError(`no decision since ${since}`, 'try a longer time, up to --since 30d')
    : new CommandError(
        `no decision about ${subject} since ${since}`,
        'check the name, or try a longer time, up to --since 30d; without an object all decisions are listed',
      );
}

const subjectText = ({ kind, namespace, name }: DecisionAbout): string => {
  if (kind === 'Fleet') return 'fleet';
  if (kind === 'Zone' && name === '') return 'nodes without a zone';
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
