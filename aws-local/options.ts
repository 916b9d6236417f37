import { parseArgs } from 'node:util';
import { StartError } from '../shared/host/start-error.ts';
import { ACCOUNT_CONCURRENCY_DEFAULT } from './functions/account-concurrency.ts';
import { CHUNK_HOLD_DEFAULT, CHUNK_HOLDS, type ChunkHold, isChunkHold } from './http/held-chunks.ts';

/** What `npm run start:aws` was asked for. */
export interface StartOptions {
  readonly help: boolean;
  /** Undefined: nothing is kept. */
  readonly dataDirectory: string | undefined;
  readonly port: number;
  /** Simulated machines; 0 for none. */
  readonly nodes: number;
  readonly zones: number;
  /** How many of them are EC2 instances. */
  readonly ec2Nodes: number;
  readonly controllers: boolean;
  readonly policyFile: string | undefined;
  readonly synthesis: 'auto' | 'always' | 'never';
  /** Where to write which calls the functions made to AWS. */
  readonly recordCallsFile: string | undefined;
  /** Whether local mode refuses what AWS would refuse (docs/local-mode.md). */
  readonly awsLimits: boolean;
  /** Concurrent executions of all functions. */
  readonly accountConcurrency: number;
  readonly chunkHold: ChunkHold;
  /** Whether the console is served. */
  readonly console: boolean;
  readonly quiet: boolean;
  readonly verbose: boolean;
}

const ZONES_MAX = 26;
const NODES_MAX = 100_000;
const ACCOUNT_CONCURRENCY_MAX = 1_000_000;
const EC2_NODES = 2;

/** Not that of `npm start`: a directory has the database of one of the two. */
const DEFAULT_DATA_DIRECTORY = '.nodekeeper-aws';

export const USAGE = `usage: npm run start:aws -- [options]

  --data DIR       where data, tokens and the kubeconfig are kept (.nodekeeper-aws)
  --ephemeral      keep nothing
  --port N         port of the API on 127.0.0.1 (6443; 0: any free one)
  --nodes N        simulated machines (6)
  --zones N        zones they are dealt to (3)
  --ec2-nodes N    machines that are instances in the local EC2 (2, or all when fewer)
  --no-fleet       no simulated machines
  --no-controllers no ticks, streams and queues: nothing changes by itself
  --policy FILE    YAML file of policy fields
  --synth WHEN     auto, always or never (auto: when the sources have changed)
  --aws-limits on|off  behave as AWS does where it allows less than this machine (on)
  --account-concurrency N  Lambda's limit of concurrent executions for the account (1000; a new account may have 10)
  --chunk-hold none|one-chunk|16-kb|100-kb  what must follow a small chunk of a watch until it is delivered (one-chunk)
  --record-calls FILE  write down every call a function makes to AWS, when stopped
  --no-console     no console (docs/console.md)
  --quiet          errors only
  --verbose        say how long each part of the start took
  --help           this text`;

/** @throws StartError with one line on what is wrong */
export function parseStartOptions(args: readonly string[]): StartOptions {
  const values = parse(args);
  if (values.ephemeral === true && values.data !== undefined)
    throw new StartError('--ephemeral and --data exclude each other');
  const synthesis = values.synth ?? 'auto';
  if (synthesis !== 'auto' && synthesis !== 'always' && synthesis !== 'never') {
    throw new StartError(`--synth must be auto, always or never, not ${synthesis}`);
  }
  const nodes = values.fleet === false ? 0 : wholeNumber('nodes', values.nodes, 6, 0, NODES_MAX);
  const ec2Nodes = wholeNumber('ec2-nodes', values['ec2-nodes'], Math.min(EC2_NODES, nodes), 0, NODES_MAX);
  if (ec2Nodes > nodes) throw new StartError(`--ec2-nodes ${ec2Nodes}: there are only ${nodes} machines`);
  const awsLimits = values['aws-limits'] ?? 'on';
  if (awsLimits !== 'on' && awsLimits !== 'off') {
    throw new StartError(`--aws-limits must be on or off, not ${awsLimits}`);
  }
  const chunkHold = values['chunk-hold'] ?? CHUNK_HOLD_DEFAULT;
  if (!isChunkHold(chunkHold)) {
    throw new StartError(`--chunk-hold must be ${Object.keys(CHUNK_HOLDS).join(', ')}, not ${chunkHold}`);
  }
  return {
    help: values.help ?? false,
    dataDirectory: values.ephemeral === true ? undefined : (values.data ?? DEFAULT_DATA_DIRECTORY),
    port: wholeNumber('port', values.port, 6443, 0, 65_535),
    nodes,
    zones: wholeNumber('zones', values.zones, 3, 1, ZONES_MAX),
    ec2Nodes,
    controllers: values.controllers ?? true,
    policyFile: values.policy,
    synthesis,
    recordCallsFile: values['record-calls'],
    awsLimits: awsLimits === 'on',
    accountConcurrency: wholeNumber(
      'account-concurrency',
      values['account-concurrency'],
      ACCOUNT_CONCURRENCY_DEFAULT,
      1,
      ACCOUNT_CONCURRENCY_MAX,
    ),
    chunkHold,
    console: values.console ?? true,
    quiet: values.quiet ?? false,
    verbose: values.verbose ?? false,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowNegative: true,
      options: {
        help: { type: 'boolean', short: 'h' },
        ephemeral: { type: 'boolean' },
        data: { type: 'string' },
        port: { type: 'string' },
        nodes: { type: 'string' },
        zones: { type: 'string' },
        'ec2-nodes': { type: 'string' },
        fleet: { type: 'boolean' },
        controllers: { type: 'boolean' },
        policy: { type: 'string' },
        synth: { type: 'string' },
        'record-calls': { type: 'string' },
        'aws-limits': { type: 'string' },
        'account-concurrency': { type: 'string' },
        'chunk-hold': { type: 'string' },
        console: { type: 'boolean' },
        quiet: { type: 'boolean' },
        verbose: { type: 'boolean' },
      },
    }).values;
  } catch (cause) {
    const [firstSentence] = (cause as Error).message.split(/\. |\n/);
    throw new StartError(`${firstSentence} (--help lists the options)`, { cause });
  }
}

function wholeNumber(name: string, text: string | undefined, fallback: number, least: number, most: number): number {
  if (text === undefined) return fallback;
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most)) {
    throw new StartError(`--${name} must be a whole number from ${least} to ${most}, not ${text}`);
  }
  return value;
}
