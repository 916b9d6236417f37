/** The options of the fleet benchmark. */
import { existsSync, readFileSync } from 'node:fs';
import { type KubeAccess, readKubeconfig } from '../test/support/kubeconfig.ts';
import { readOptions, UsageError, wholeNumber, wholeNumbers } from './benchmark.ts';

export interface FleetBenchOptions {
  /** URL of the API. undefined: a cluster that the benchmark starts. */
  readonly target: KubeAccess | undefined;
  /** `requests`: one kind of request at a time. `machines`: simulated machines with their own pace and silence. */
  readonly of: 'requests' | 'machines' | 'both';
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
  /** Heartbeats per second and their duration, and number of lists, where requests are measured. */
  readonly beatsPerSecond: number;
  readonly ratedSeconds: number;
  readonly lists: number;
  /** What the benchmark starts: `nodekeeper serve`, or the emulation of AWS. Not with a target. */
  readonly home: 'serve' | 'aws';
  /** Whether an emulation that the benchmark starts has the limits of AWS. */
  readonly awsLimits: boolean;
  /** Name of the server in the table. */
  readonly label: string;
  readonly peer: FleetPeer | undefined;
  /** Measured rounds of requests per server. */
  readonly rounds: number;
  /** Whether a round comes before them, with a column of its own. */
  readonly warmUp: boolean;
  /** Keeps the figures by label, and so the columns of the table. Undefined: not kept. */
  readonly figuresFile: string | undefined;
}

/** A second server, measured alternately with the first one. */
export interface FleetPeer {
  readonly access: KubeAccess;
  readonly pids: readonly number[];
  readonly label: string;
}

export const FLEET_USAGE =
  '[--kubeconfig FILE | --url URL (--token TEXT|--token-file FILE) [--ca FILE]] [--pids PID,…] ' +
  '[--home serve|aws] [--aws-limits on|off] [--of requests|machines|both] [--nodes 200] [--connections 32] ' +
  '[--rate 500] [--rated-seconds 20] [--lists 20] [--label TEXT] [--figures FILE] ' +
  '[--rounds 2] [--warm-up on|off] [--peer-kubeconfig FILE] [--peer-pids PID,…] [--peer-label TEXT] ' +
  '[--zones 3] [--seconds 60] [--silent N] [--wait 120] [--beat 10]';

const HOME_LABELS = { serve: 'nodekeeper serve', aws: 'local mode' };

/** @throws UsageError */
export function readFleetOptions(words: readonly string[]): FleetBenchOptions {
  const text = { type: 'string' } as const;
  const values = readOptions(words, {
    kubeconfig: text,
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
    home: text,
    'aws-limits': text,
    of: text,
    rate: text,
    'rated-seconds': text,
    lists: text,
    label: text,
    rounds: text,
    'warm-up': text,
    'peer-kubeconfig': text,
    'peer-pids': text,
    'peer-label': text,
    figures: text,
  });
  const whole = (name: keyof typeof values, least: number, most: number, otherwise: number): number =>
    wholeNumber(name, values[name], { least, most, otherwise });
  const nodes = whole('nodes', 1, 100_000, 200);
  const target = targetOf(values);
  const home = oneOf('home', values.home, ['serve', 'aws']);
  if (target !== undefined && values.home !== undefined) {
    throw new UsageError('--home is for the cluster that the benchmark starts');
  }
  if (values['aws-limits'] !== undefined && (target !== undefined || home !== 'aws')) {
    throw new UsageError('--aws-limits is for --home aws');
  }
  return {
    target,
    of: oneOf('of', values.of, ['both', 'requests', 'machines']),
    beatsPerSecond: whole('rate', 1, 10_000, 500),
    ratedSeconds: whole('rated-seconds', 1, 3_600, 20),
    lists: whole('lists', 0, 10_000, 20),
    home,
    awsLimits: oneOf('aws-limits', values['aws-limits'], ['on', 'off']) === 'on',
    label: values.label ?? (target === undefined ? HOME_LABELS[home] : new URL(target.url).host),
    peer: peerOf(values),
    rounds: whole('rounds', 1, 100, 2),
    warmUp: oneOf('warm-up', values['warm-up'], ['on', 'off']) === 'on',
    figuresFile: values.figures,
    nodes,
    zones: whole('zones', 1, 26, 3),
    seconds: whole('seconds', 1, 86_400, 60),
    silent: whole('silent', 0, nodes, Math.ceil(nodes / 20)),
    waitSeconds: whole('wait', 1, 3_600, 120),
    beatSeconds: whole('beat', 1, 300, 10),
    connections: whole('connections', 1, 1_024, 32),
    pids: pidsOf('pids', values.pids),
  };
}

function peerOf(values: {
  readonly 'peer-kubeconfig'?: string | undefined;
  readonly 'peer-pids'?: string | undefined;
  readonly 'peer-label'?: string | undefined;
}): FleetPeer | undefined {
  const { 'peer-kubeconfig': kubeconfig, 'peer-pids': pids, 'peer-label': label } = values;
  if (kubeconfig === undefined) {
    if (pids !== undefined || label !== undefined) {
      throw new UsageError('--peer-pids and --peer-label require --peer-kubeconfig');
    }
    return undefined;
  }
  const access = accessOf('peer-kubeconfig', kubeconfig);
  return { access, pids: pidsOf('peer-pids', pids), label: label ?? new URL(access.url).host };
}

const pidsOf = (name: string, text: string | undefined): readonly number[] =>
  text === undefined || text === '' ? [] : wholeNumbers(name, text, { least: 1, most: 4_194_304, otherwise: [] });

/** One of some words; the first when absent. @throws UsageError */
function oneOf<Word extends string>(name: string, text: string | undefined, words: readonly [Word, ...Word[]]): Word {
  const found = text === undefined ? words[0] : words.find((word) => word === text);
  if (found === undefined) throw new UsageError(`--${name} expects ${words.join(', ')}, not ${text}`);
  return found;
}

function targetOf(values: {
  readonly kubeconfig?: string | undefined;
  readonly url?: string | undefined;
  readonly token?: string | undefined;
  readonly 'token-file'?: string | undefined;
  readonly ca?: string | undefined;
}): FleetBenchOptions['target'] {
  const { kubeconfig, url, token, ca } = values;
  const file = values['token-file'];
  if (kubeconfig !== undefined) {
    if ([url, token, file, ca].some((value) => value !== undefined)) {
      throw new UsageError('--kubeconfig excludes --url, --token, --token-file and --ca');
    }
    return accessOf('kubeconfig', kubeconfig);
  }
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

/** The current context of a kubeconfig with a token. @throws UsageError */
function accessOf(option: string, path: string): KubeAccess {
  try {
    return readKubeconfig(path);
  } catch (cause) {
    throw new UsageError(`--${option} ${path}: ${(cause as Error).message}`, { cause });
  }
}
