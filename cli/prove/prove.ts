/**
 * nodekeeper prove
 *
 * Measures what the documentation says of AWS, in an account of the user, with stacks of its own that it removes.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { isRegion, regionOfEnvironment } from '../../shared/aws/cloudformation/stack-name.ts';
import type { AwsCredentials } from '../../shared/aws/connection.ts';
import { NODEKEEPER_VERSION } from '../../shared/config/version.ts';
import { listenForSignals } from '../../shared/host/signals.ts';
import { type FindCredentials, fromAws, regionOfProfile, requireCredentials, requireRegion } from '../aws-account.ts';
import { CommandError, type CommandIo } from '../command.ts';
import { awsCalls, type ProveAccount } from './aws-calls.ts';
import { awsStacks, requireClone } from './aws-stacks.ts';
import { FACTS, type ListedFact } from './fact-list.ts';
import { type Creation, openJournal } from './journal.ts';
import { DOLLARS_MAX, MINUTES_MAX, planOf } from './plan.ts';
import { commandFor, removeAll } from './remove.ts';
import { readSigningKey, textOf, verifyReport } from './report.ts';
import { runProof } from './run.ts';
import { PROVE_USAGE } from './usage.ts';

/** What the tests replace. */
export interface ProveParts {
  readonly find: FindCredentials;
  readonly stacksOf: typeof awsStacks;
  readonly callsOf: typeof awsCalls;
  readonly directory: string;
  /** Between looks at a stack. */
  readonly sleep: (milliseconds: number) => Promise<unknown>;
  /** The first signal that ends the process. */
  readonly interrupted: () => Promise<unknown>;
}

const PARTS: ProveParts = {
  find: fromAws,
  stacksOf: awsStacks,
  callsOf: awsCalls,
  directory: process.cwd(),
  sleep,
  interrupted: () => listenForSignals().first,
};

/** Time that the removal needs of `--minutes`. */
const REMOVAL_MINUTES = 15;
const MINUTES = 45;
const WINDOW_SECONDS = 300;
const WINDOW_SECONDS_MAX = 900;
const MINUTE_MS = 60_000;

export async function proveCommand(args: readonly string[], io: CommandIo, parts: ProveParts = PARTS): Promise<void> {
  const values = parse(args);
  if (values.list === true) {
    for (const { id, sentence } of FACTS) io.print(`${id.padEnd(30)}  ${sentence}`);
  } else if (values.verify !== undefined) io.print(verifyReport(values.verify, values['public-key']));
  else if (values.remove !== undefined) await removeRun(values.remove, values, io, parts);
  else await run(values, io, parts);
}

type Values = ReturnType<typeof parse>;

const parse = (args: readonly string[]) =>
  parseArgs({
    args: [...args],
    options: {
      region: { type: 'string' },
      profile: { type: 'string' },
      yes: { type: 'boolean' },
      facts: { type: 'string' },
      minutes: { type: 'string' },
      window: { type: 'string' },
      key: { type: 'string' },
      output: { type: 'string' },
      list: { type: 'boolean' },
      remove: { type: 'string' },
      verify: { type: 'string' },
      'public-key': { type: 'string' },
    },
  }).values;

function wholeNumber(
  name: string,
  text: string | undefined,
  range: readonly [least: number, otherwise: number, most: number],
): number {
  const [least, otherwise, most] = range;
  if (text === undefined) return otherwise;
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new CommandError(`--${name} must be a whole number from ${least} to ${most}, not ${text}`, PROVE_USAGE);
}

/** @throws CommandError that names the first unknown id */
function factsNamed(text: string | undefined): readonly ListedFact[] {
  if (text === undefined) return FACTS;
  const ids = text.split(',');
  const unknown = ids.find((id) => !FACTS.some((fact) => fact.id === id));
  if (unknown !== undefined) {
    throw new CommandError(
      `--facts: there is no fact ${JSON.stringify(unknown)}`,
      'nodekeeper prove --list has their ids',
    );
  }
  return FACTS.filter(({ id }) => ids.includes(id));
}

async function run(values: Values, io: CommandIo, parts: ProveParts): Promise<void> {
  const facts = factsNamed(values.facts);
  const minutes = wholeNumber('minutes', values.minutes, [REMOVAL_MINUTES + 5, MINUTES, MINUTES_MAX]);
  const windowSeconds = wholeNumber('window', values.window, [1, WINDOW_SECONDS, WINDOW_SECONDS_MAX]);
  const key = values.key === undefined ? undefined : readSigningKey(values.key);
  requireClone(parts.directory);
  const profile = values.profile ?? io.environment['AWS_PROFILE'];
  const region = requireRegion(
    values.region ?? regionOfEnvironment(io.environment) ?? regionOfProfile(profile, io.environment),
  );
  const account = await accountOf({ region, profile }, io, parts);
  const suffix = randomBytes(3).toString('hex');
  const output = values.output ?? `nodekeeper-prove-${suffix}.json`;
  const journalPath = join(parts.directory, `nodekeeper-prove-${suffix}.journal`);
  const { clusterStack, probeStack } = planOf(suffix);
  io.print(`${facts.length} facts, in ${region}. Creates the stacks ${clusterStack} and ${probeStack},`);
  io.print(`removes them within ${minutes} minutes, and costs at most $${DOLLARS_MAX.toFixed(2)}.`);
  if (values.yes !== true) throw new CommandError('nothing was created', 'pass --yes to create them');
  // A report that cannot be written is found before anything is created.
  const file = openReport(output);
  io.print(`If this process is killed: nodekeeper prove --remove ${journalPath}`);

  const abort = new AbortController();
  const timer = setTimeout(
    () => abort.abort(new Error('the time of the run is over')),
    (minutes - REMOVAL_MINUTES) * MINUTE_MS,
  );
  void parts.interrupted().then(() => abort.abort(new Error('interrupted')));
  const startedAtMs = Date.now();
  const { facts: proved, left } = await runProof(
    { region, suffix, startedAtMs, journalPath, facts, windowSeconds },
    {
      stacks: parts.stacksOf(account, {
        directory: parts.directory,
        profile,
        logFile: join(parts.directory, `nodekeeper-prove-${suffix}.cdk.log`),
      }),
      callsTo: (endpoint, token) =>
        parts.callsOf(account, { endpoint, token, pause: (ms) => sleep(ms, undefined, { signal: abort.signal }) }),
      print: io.print,
      pause: async (milliseconds) => void (await parts.sleep(milliseconds)),
      signal: abort.signal,
    },
  )
    .catch((cause: unknown) => {
      closeSync(file);
      rmSync(output);
      throw cause;
    })
    .finally(() => clearTimeout(timer));
  const report = {
    kind: 'ProveReport',
    version: NODEKEEPER_VERSION,
    region,
    startedTime: new Date(startedAtMs).toISOString(),
    endedTime: new Date().toISOString(),
    windowSeconds,
    facts: proved,
    left: left.map((creation) => commandFor(creation, region)),
  } as const;
  writeFileSync(file, textOf(report, key));
  closeSync(file);
  const count = (verdict: string): number => proved.filter((fact) => fact.verdict === verdict).length;
  io.print(`${count('true')} true, ${count('false')} false, ${count('unknown')} unknown: ${output}`);
  io.print(key === undefined ? 'The report is not signed: --key FILE signs it.' : 'The report is signed.');
  requireNothingLeft(left, region, journalPath);
  const wrong = proved.filter(({ verdict }) => verdict !== 'true').map(({ id }) => id);
  if (wrong.length > 0) throw new CommandError(`not true, or unknown: ${wrong.join(', ')}`, `read ${output}`);
}

/** @throws CommandError when it exists or cannot be written */
function openReport(path: string): number {
  try {
    return openSync(path, 'wx');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new CommandError(
      code === 'EEXIST' ? `${path} exists` : `${path} cannot be written: ${code}`,
      'pass another --output',
      { cause },
    );
  }
}

async function removeRun(path: string, values: Values, io: CommandIo, parts: ProveParts): Promise<void> {
  const journal = openJournal(path);
  const { region } = journal.run;
  if (!isRegion(region)) throw new CommandError(`${path}: ${region} is not a region`, 'pass the journal of a run');
  const profile = values.profile ?? io.environment['AWS_PROFILE'];
  const account = await accountOf({ region, profile }, io, parts);
  const stacks = parts.stacksOf(account, { directory: parts.directory, profile, logFile: `${path}.log` });
  const pause = async (milliseconds: number): Promise<void> => void (await parts.sleep(milliseconds));
  const left = await removeAll({ stacks, journal, print: io.print, pause });
  requireNothingLeft(left, region, path);
  io.print('everything that the run created is removed');
}

/** @throws CommandError that lists the commands */
function requireNothingLeft(left: readonly Creation[], region: string, journalPath: string): void {
  if (left.length === 0) return;
  throw new CommandError(
    `${left.length} resources are left: ${left.map(({ name }) => name).join(', ')}`,
    [`nodekeeper prove --remove ${journalPath}, or:`, ...left.map((creation) => commandFor(creation, region))].join(
      '\n',
    ),
  );
}

async function accountOf(
  { region, profile }: { readonly region: string; readonly profile: string | undefined },
  { environment }: CommandIo,
  { find }: ProveParts,
): Promise<ProveAccount> {
  let current: AwsCredentials = await requireCredentials(profile, find);
  let askedAtMs = Date.now();
  return {
    region,
    environment,
    async credentials() {
      // A session of the user may end before the run does.
      if (Date.now() - askedAtMs > MINUTE_MS) {
        current = await requireCredentials(profile, find);
        askedAtMs = Date.now();
      }
      return current;
    },
  };
}
