import { DEMO_OPTIONS, DEMO_USAGE, type DemoOptions, demoOptionsOf } from '../demo/options.ts';
import { oneOf, optionValues, wholeNumber } from '../shared/host/command-line.ts';
import { StartError } from '../shared/host/start-error.ts';
import { ACCOUNT_CONCURRENCY_DEFAULT } from './functions/account-concurrency.ts';
import { CHUNK_HOLD_DEFAULT, CHUNK_HOLDS, type ChunkHold, isChunkHold } from './http/held-chunks.ts';

/** What `npm run start:aws` was asked for. */
export interface StartOptions extends DemoOptions {
  readonly help: boolean;
  /** Undefined: nothing is kept. */
  readonly dataDirectory: string | undefined;
  readonly port: number;
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
  readonly quiet: boolean;
  readonly verbose: boolean;
}

const ACCOUNT_CONCURRENCY_MAX = 1_000_000;

/** Not that of `npm start`: a directory has the database of one of the two. */
const DEFAULT_DATA_DIRECTORY = '.nodekeeper-aws';

export const USAGE = `usage: npm run start:aws -- [options]

  --data DIR       where data, tokens and the kubeconfig are kept (.nodekeeper-aws)
  --ephemeral      keep nothing
  --port N         port of the API on 127.0.0.1 (6443; 0: any free one)
${DEMO_USAGE}
  --no-controllers no ticks, streams and queues: nothing changes by itself
  --policy FILE    YAML file of policy fields
  --synth WHEN     auto, always or never (auto: when the sources have changed)
  --aws-limits on|off  behave as AWS does where it allows less than this machine (on)
  --account-concurrency N  Lambda's limit of concurrent executions for the account (1000; a new account may have 10)
  --chunk-hold none|one-chunk|16-kb|100-kb  what must follow a small chunk of a watch until it is delivered (one-chunk)
  --record-calls FILE  write down every call a function makes to AWS, when stopped
  --quiet          errors only
  --verbose        say how long each part of the start took
  --help           this text`;

/** @throws StartError with one line on what is wrong */
export function parseStartOptions(args: readonly string[]): StartOptions {
  const values = parse(args);
  if (values.ephemeral === true && values.data !== undefined)
    throw new StartError('--ephemeral and --data exclude each other');
  const chunkHold = values['chunk-hold'] ?? CHUNK_HOLD_DEFAULT;
  if (!isChunkHold(chunkHold)) {
    throw new StartError(`--chunk-hold must be ${Object.keys(CHUNK_HOLDS).join(', ')}, not ${chunkHold}`);
  }
  return {
    help: values.help ?? false,
    dataDirectory: values.ephemeral === true ? undefined : (values.data ?? DEFAULT_DATA_DIRECTORY),
    port: wholeNumber('port', values.port, { otherwise: 6443, least: 0, most: 65_535 }),
    ...demoOptionsOf(values),
    controllers: values.controllers ?? true,
    policyFile: values.policy,
    synthesis: oneOf('synth', values.synth, ['auto', 'always', 'never']),
    recordCallsFile: values['record-calls'],
    awsLimits: oneOf('aws-limits', values['aws-limits'], ['on', 'off']) === 'on',
    accountConcurrency: wholeNumber('account-concurrency', values['account-concurrency'], {
      otherwise: ACCOUNT_CONCURRENCY_DEFAULT,
      least: 1,
      most: ACCOUNT_CONCURRENCY_MAX,
    }),
    chunkHold,
    quiet: values.quiet ?? false,
    verbose: values.verbose ?? false,
  };
}

const parse = (args: readonly string[]) =>
  optionValues(args, {
    help: { type: 'boolean', short: 'h' },
    ephemeral: { type: 'boolean' },
    data: { type: 'string' },
    port: { type: 'string' },
    controllers: { type: 'boolean' },
    policy: { type: 'string' },
    synth: { type: 'string' },
    'record-calls': { type: 'string' },
    'aws-limits': { type: 'string' },
    'account-concurrency': { type: 'string' },
    'chunk-hold': { type: 'string' },
    quiet: { type: 'boolean' },
    verbose: { type: 'boolean' },
    ...DEMO_OPTIONS,
  });
