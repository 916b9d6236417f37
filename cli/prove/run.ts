/**
 * One run: create, measure, remove. What ends it early, an interruption, a fault or its time, ends the measuring only;
 * the removal follows in each case. After a killed process the journal is left, and `--remove` does the same.
 */
import { createHash, randomBytes } from 'node:crypto';
import { CommandError } from '../command.ts';
import type { Calls, Measuring, ProvedCluster } from './calls.ts';
import type { ListedFact } from './fact-list.ts';
import { type Creation, type Journal, type RunIdentity, startJournal } from './journal.ts';
import { planOf, type RunPlan } from './plan.ts';
import { noteLogGroups, removeAll } from './remove.ts';
import type { ProvedFact } from './report.ts';
import type { DescribedStack, StackResource, Stacks } from './stacks.ts';
import { unknown } from './verdict.ts';

export interface RunOptions extends RunIdentity {
  readonly journalPath: string;
  readonly facts: readonly ListedFact[];
  readonly windowSeconds: number;
}

export interface RunParts {
  readonly stacks: Stacks;
  /** @param token of the run's only user */
  readonly callsTo: (endpoint: string, token: string) => Calls;
  readonly print: (line: string) => void;
  readonly pause: (milliseconds: number) => Promise<void>;
  /** Aborted: nothing more is created or measured. Its reason is for the report. */
  readonly signal: AbortSignal;
}

export interface RunResult {
  readonly facts: readonly ProvedFact[];
  /** What could not be removed. */
  readonly left: readonly Creation[];
}

const LOOKS_MAX = 180;
const LOOK_MS = 5_000;
/** Of one fact, without its window. Milliseconds. */
const FACT_MS_MAX = 120_000;

/** @throws CommandError before anything is created, or when a process that deploys cannot be ended */
export async function runProof(options: RunOptions, parts: RunParts): Promise<RunResult> {
  const plan = planOf(options.suffix);
  for (const name of [plan.clusterStack, plan.probeStack]) {
    if ((await parts.stacks.describe(name)) === undefined) continue;
    throw new CommandError(`the stack ${name} exists`, 'run the command again: it chooses another name');
  }
  const { region, suffix, startedAtMs } = options;
  const journal = startJournal(options.journalPath, { region, suffix, startedAtMs });
  let facts: readonly ProvedFact[];
  let fault: unknown;
  try {
    facts = await proveAll(options, parts, await createAll(plan, journal, parts));
  } catch (error) {
    // Without its stacks nothing is measured. The report says why.
    const reason = parts.signal.aborted ? reasonOf(parts.signal) : (error as Error).message;
    parts.print(reason);
    facts = options.facts.map((fact) => notMeasured(fact, reason));
    if (!(error instanceof CommandError) && !parts.signal.aborted) fault = error;
  }
  const { stacks, print, pause } = parts;
  const left = await removeAll({ stacks, journal, print, pause });
  if (fault !== undefined) throw fault;
  return { facts, left };
}

const reasonOf = ({ reason }: AbortSignal): string => (reason instanceof Error ? reason.message : String(reason));

interface Created {
  readonly cluster: ProvedCluster;
  readonly endpoint: string;
  readonly token: string;
}

async function createAll(plan: RunPlan, journal: Journal, parts: RunParts): Promise<Created> {
  const { stacks, signal, print } = parts;
  const token = randomBytes(32).toString('base64url');
  const sha256 = createHash('sha256').update(token).digest('hex');
  const { probeStack, clusterStack, settings } = plan;
  print(`creating the stacks ${probeStack} and ${clusterStack}: some 5 minutes`);
  signal.throwIfAborted();
  journal.creating({ kind: 'stack', name: probeStack });
  await stacks.create(probeStack, plan.probe);
  signal.throwIfAborted();
  journal.creating({ kind: 'stack', name: clusterStack });
  const parameters = { StaticTokens: JSON.stringify([{ sha256, user: 'prove', groups: ['system:masters'] }]) };
  await stacks.deployCluster({ name: clusterStack, settings, parameters }, signal, (pid) =>
    journal.creating({ kind: 'stack', name: clusterStack, pid }),
  );
  // No process deploys any more.
  journal.creating({ kind: 'stack', name: clusterStack });
  const probe = await untilCreated(probeStack, parts);
  const deployed = await untilCreated(clusterStack, parts);
  await noteLogGroups(stacks, journal, clusterStack);
  const functions = functionsIn(await stacks.resources(clusterStack));
  const output = (stack: DescribedStack, name: string): string => {
    const value = stack.outputs.get(name);
    if (value !== undefined) return value;
    throw new CommandError(`a stack of the run has no output ${name}`, 'use the template of this release');
  };
  const cluster: ProvedCluster = {
    tables: {
      health: output(deployed, 'HealthTable'),
      objects: output(deployed, 'ObjectsTable'),
      control: output(deployed, 'ControlTable'),
    },
    functions: { api: functions('ClusterApiFunction'), watch: functions('ClusterWatchStreamWatchFunction') },
    queueUrl: output(probe, 'QueueUrl'),
    probes: {
      info: { functionName: output(probe, 'InfoFunction'), logGroup: output(probe, 'InfoLogs') },
      warn: { functionName: output(probe, 'WarnFunction'), logGroup: output(probe, 'WarnLogs') },
    },
  };
  return { cluster, endpoint: output(deployed, 'Endpoint'), token };
}

/** Functions by the beginning of their logical id: CDK adds a hash. */
const functionsIn =
  (resources: readonly StackResource[]) =>
  (logicalId: string): string => {
    const found = resources.find(
      ({ type, logicalId: id }) => type === 'AWS::Lambda::Function' && id.startsWith(logicalId),
    );
    if (found?.physicalId !== undefined) return found.physicalId;
    throw new CommandError(`the stack has no function ${logicalId}`, 'use the template of this release');
  };

async function untilCreated(name: string, { stacks, signal, pause }: RunParts): Promise<DescribedStack> {
  for (let look = 0; look < LOOKS_MAX; look += 1) {
    signal.throwIfAborted();
    const stack = await stacks.describe(name);
    if (stack?.status === 'CREATE_COMPLETE' || stack?.status === 'UPDATE_COMPLETE') return stack;
    if (stack === undefined || !stack.status.endsWith('_IN_PROGRESS') || stack.status.startsWith('ROLLBACK')) {
      throw new CommandError(
        `the stack ${name} was not created: ${stack?.statusReason ?? stack?.status ?? 'it does not exist'}`,
        'read its events in the console of CloudFormation',
      );
    }
    await pause(LOOK_MS);
  }
  throw new CommandError(
    `the stack ${name} was not created in time`,
    'read its events in the console of CloudFormation',
  );
}

/** Facts that observe run at the same time; the others one by one, because they would disturb each other. */
async function proveAll(
  { facts, suffix, windowSeconds }: RunOptions,
  { callsTo, print, signal }: RunParts,
  { cluster, endpoint, token }: Created,
): Promise<readonly ProvedFact[]> {
  const measuring: Measuring = { calls: callsTo(endpoint, token), cluster, suffix, windowSeconds };
  const proved = new Map<string, ProvedFact>();
  const one = async (fact: ListedFact): Promise<void> => {
    const result = await proveOne(fact, measuring, signal);
    proved.set(fact.id, result);
    print(`${result.verdict.padEnd(7)}  ${fact.id.padEnd(30)}  ${result.reason}`);
  };
  const observing = Promise.all(facts.filter(({ observes }) => observes).map(one));
  for (const fact of facts.filter(({ observes, disturbs }) => !observes && !disturbs)) await one(fact);
  await observing;
  for (const fact of facts.filter(({ disturbs }) => disturbs)) await one(fact);
  return facts.map(({ id }) => proved.get(id)!);
}

async function proveOne(fact: ListedFact, measuring: Measuring, signal: AbortSignal): Promise<ProvedFact> {
  if (signal.aborted) return notMeasured(fact, reasonOf(signal));
  const boundMs = FACT_MS_MAX + measuring.windowSeconds * 1_000;
  const late = AbortSignal.any([signal, AbortSignal.timeout(boundMs)]);
  const ended = Promise.withResolvers<never>();
  const end = (): void =>
    ended.reject(new Error(signal.aborted ? reasonOf(signal) : `not measured within ${boundMs / 1_000} s`));
  late.addEventListener('abort', end, { once: true });
  try {
    const { measured, verdict, reason } = await Promise.race([fact.prove(measuring), ended.promise]);
    return { ...described(fact), measured, verdict, reason };
  } catch (error) {
    // A fact that cannot be measured is unknown, with the reason. The others are still measured.
    return notMeasured(fact, error instanceof Error ? error.message : String(error));
  } finally {
    late.removeEventListener('abort', end);
  }
}

const described = ({ id, sentence, source, expected }: ListedFact) => ({ id, sentence, source, expected });

const notMeasured = (fact: ListedFact, reason: string): ProvedFact => ({ ...described(fact), ...unknown(reason) });
