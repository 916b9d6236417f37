/** The options of the fleet benchmark. */
import { existsSync, readFileSync } from 'node:fs';
import { readOptions, UsageError, wholeNumber } from './benchmark.ts';

export interface FleetBenchOptions {
  /** URL of the API. undefined: a local mode started by the benchmark. */
  readonly target: { readonly url: string; readonly ca: string | undefined; readonly token: string } | undefined;
  readonly nodes: number;
  readonly zones: number;
  /** Length of the steady part. */
  readonly seconds: number;
  /** Machines that stop sending heartbeats. */
  readonly silent: number;
  /** Time limit for the server to mark and taint them, and to undo that. */
  readonly waitSeconds: number;
  readonly beatSeconds: number;
  readonly connections: number;
  /** Server processes with CPU to count, including their child processes. */
  readonly pids: readonly number[];
}

export const FLEET_USAGE =
  '[--url URL (--token TEXT|--token-file FILE) [--ca FILE]] [--nodes 200] [--zones 3] [--seconds 60] ' +
  '[--silent N] [--wait 120] [--beat 10] [--connections 32] [--pids PID,…]';

/** @throws UsageError */
export function readFleetOptions(words: readonly string[]): FleetBenchOptions {
  const text = { type: 'string' } as const;
  const values = readOptions(words, {
    url: text,
    token: text,
    'token-file': text,
    ca: text,
    nodes: text,
    zones: text,
    seconds: text,
    silent: text,
    wait: text,
    beat: text,
    connections: text,
    pids: text,
  });
  const whole = (name: keyof typeof values, least: number, most: number, otherwise: number): number =>
    wholeNumber(name, values[name], { least, most, otherwise });
  const nodes = whole('nodes', 1, 100_000, 200);
  return {
    target: targetOf(values),
    nodes,
    zones: whole('zones', 1, 26, 3),
    seconds: whole('seconds', 1, 86_400, 60),
    silent: whole('silent', 0, nodes, Math.ceil(nodes / 20)),
    waitSeconds: whole('wait', 1, 3_600, 120),
    beatSeconds: whole('beat', 1, 300, 10),
    connections: whole('connections', 1, 1_024, 32),
    pids: (values.pids ?? '')
      .split(',')
      .filter((pid) => pid !== '')
      .map((pid) => wholeNumber('pids', pid, { least: 1, most: 4_194_304, otherwise: 1 })),
  };
}

function targetOf(values: {
  readonly url?: string | undefined;
  readonly token?: string | undefined;
  readonly 'token-file'?: string | undefined;
  readonly ca?: string | undefined;
}): FleetBenchOptions['target'] {
  const { url, token, ca } = values;
  const file = values['token-file'];
  if (url === undefined) {
    if (token !== undefined || file !== undefined || ca !== undefined) {
      throw new UsageError('--token, --token-file and --ca require --url');
    }
    return undefined;
  }
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new UsageError(`--url expects an http or https URL, not ${url}`);
  }
  if ((token === undefined) === (file === undefined)) {
    throw new UsageError('--url requires one of --token and --token-file');
  }
  for (const path of [file, ca]) {
    if (path !== undefined && !existsSync(path)) throw new UsageError(`${path} does not exist`);
  }
  return { url, ca, token: token ?? readFileSync(file!, 'utf8').trim() };
}
