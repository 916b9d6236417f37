/**
 * nodekeeper doctor
 *
 * A smoke test of a cluster, in an AWS account or in local mode. Prints one line per check and fails if one fails.
 * `--limits` checks the limits of an account alone, before the first deployment.
 */
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { regionOfEnvironment } from '../shared/aws/cloudformation/stack-name.ts';
import { defined } from '../shared/defined.ts';
import { type FindCredentials, fromAws, regionOfProfile, requireCredentials, requireRegion } from './aws-account.ts';
import { CommandError, type CommandIo } from './command.ts';
import { checkAlarms } from './doctor/alarms-check.ts';
import type { AwsAccount } from './doctor/aws.ts';
import { awsDateMs } from './doctor/aws-date.ts';
import { type Check, type CheckResult, type Finding, lineOf, notApplicable, runChecks } from './doctor/check.ts';
import {
  type ClusterContext,
  type ClusterState,
  checkEndpoint,
  checkHeartbeat,
  checkProbe,
  checkSignIn,
  clockFinding,
  gateFinding,
  readState,
  ticksFinding,
  watchesFinding,
} from './doctor/cluster-checks.ts';
import { checkHub, checkHubs } from './doctor/hub-checks.ts';
import type { Load } from './doctor/limits.ts';
import { limitChecks } from './doctor/limits-check.ts';
import { checkLocalMetrics, checkMetrics } from './doctor/metrics-check.ts';
import { type ApiAccess, apiAccess } from './kubeconfig.ts';

export const DOCTOR_USAGE = [
  'nodekeeper doctor [--nodes N] [--beat SECONDS] [--watches W] [-o json]',
  '  with [--kubeconfig FILE] [--context NAME] or [--server URL --token TOKEN [--certificate-authority FILE]]',
  '  and [--region REGION --cluster-id ID] [--profile PROFILE] where the kubeconfig does not name them',
  'nodekeeper doctor --limits --region REGION [--profile PROFILE] [--nodes N] [--beat SECONDS] [--watches W] [-o json]',
].join('\n');

/** Without a cluster that has nodes. */
const NODES = 1_000;
const BEAT_SECONDS = 10;
const WATCHES = 10;
const NUMBER_MAX = 10_000_000;

export async function doctorCommand(
  args: readonly string[],
  io: CommandIo,
  find: FindCredentials = fromAws,
): Promise<void> {
  const values = parse(args);
  if (values.output !== undefined && values.output !== 'json') {
    throw new CommandError(`-o must be json, not ${values.output}`, DOCTOR_USAGE);
  }
  const load: GivenLoad = {
    nodes: values.nodes === undefined ? undefined : wholeNumber('nodes', values.nodes, NODES),
    beatSeconds: wholeNumber('beat', values.beat, BEAT_SECONDS),
    watches: wholeNumber('watches', values.watches, WATCHES),
  };
  const results =
    values.limits === true ? await limitResults(values, io, find, load) : await allResults(values, io, find, load);
  report(results, values.output === 'json', io.print);
}

type Values = ReturnType<typeof parse>;
/** `nodes` is undefined unless `--nodes` states it. */
type GivenLoad = Omit<Load, 'nodes'> & { readonly nodes: number | undefined };

const parse = (args: readonly string[]) =>
  parseArgs({
    args: [...args],
    options: {
      limits: { type: 'boolean' },
      output: { type: 'string', short: 'o' },
      nodes: { type: 'string' },
      beat: { type: 'string' },
      watches: { type: 'string' },
      region: { type: 'string' },
      profile: { type: 'string' },
      'cluster-id': { type: 'string' },
      kubeconfig: { type: 'string' },
      context: { type: 'string' },
      server: { type: 'string' },
      token: { type: 'string' },
      'certificate-authority': { type: 'string' },
    },
  }).values;

function wholeNumber(name: string, text: string | undefined, fallback: number): number {
  const value = text === undefined ? fallback : Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= NUMBER_MAX) return value;
  throw new CommandError(`--${name} must be a whole number from 1 to ${NUMBER_MAX}, not ${text}`, DOCTOR_USAGE);
}

async function limitResults(
  values: Values,
  { environment }: CommandIo,
  find: FindCredentials,
  { nodes = NODES, ...load }: GivenLoad,
): Promise<CheckResult[]> {
  const profile = values.profile ?? environment['AWS_PROFILE'];
  const region = requireRegion(
    values.region ?? regionOfEnvironment(environment) ?? regionOfProfile(profile, environment),
  );
  const credentials = await requireCredentials(profile, find);
  return runChecks(
    limitChecks({ region, credentials, environment }, async () => ({ nodes, ...load }), { isDeployed: false }),
  );
}

/** Where the AWS part of a cluster is. */
type Home =
  | { readonly kind: 'local'; readonly dataDirectory: string | undefined }
  | { readonly kind: 'aws'; readonly clusterId: string; readonly account: AwsAccount }
  | { readonly kind: 'unknown'; readonly error: CommandError };

async function allResults(
  values: Values,
  io: CommandIo,
  find: FindCredentials,
  load: GivenLoad,
): Promise<CheckResult[]> {
  const startedMs = performance.now();
  const access = apiAccess(values, io.environment);
  const context: ClusterContext = { access, clockMs: () => io.nowMs + performance.now() - startedMs };
  const home = await homeOf(values, io, find, access);
  const { finding, response } = await checkEndpoint(context);
  const receivedAtMs = context.clockMs();
  const endpoint: CheckResult = { check: 'endpoint', ...finding };
  const behind = (run: Check['run']): Check['run'] =>
    response === undefined ? async () => notApplicable('the endpoint check failed') : run;
  let reading: Promise<ClusterState | Finding> | undefined;
  const state = (): Promise<ClusterState | Finding> => {
    reading ??= readState(context);
    return reading;
  };
  const loadOfCluster = async (): Promise<Load> => ({ ...load, nodes: load.nodes ?? nodesOf(await state()) });
  const rest = await runChecks([
    { name: 'sign-in', run: behind(() => checkSignIn(context)) },
    {
      name: 'clock',
      run: behind(async () =>
        clockFinding(response!, {
          receivedAtMs,
          awsDateMs: home.kind === 'aws' ? await awsDateMs(home.account) : undefined,
        }),
      ),
    },
    { name: 'heartbeat', run: behind(() => checkHeartbeat(context)) },
    { name: 'probe', run: behind(() => checkProbe(context)) },
    { name: 'ticks', run: behind(async () => ofState(await state(), (read) => ticksFinding(context, read))) },
    { name: 'safety-gate', run: behind(async () => ofState(await state(), gateFinding)) },
    { name: 'watches', run: behind(async () => ofState(await state(), watchesFinding)) },
    { name: 'hub', run: behind(() => checkHub(context)) },
    { name: 'hubs', run: behind(() => checkHubs(context)) },
    ...accountChecks(home, context, loadOfCluster),
  ]);
  return [endpoint, ...rest];
}

/** The nodes that node-monitor counted at its last tick. */
const nodesOf = (state: ClusterState | Finding): number => {
  const { nodes = 0 } = 'outcome' in state ? {} : state.status;
  return nodes > 0 ? nodes : NODES;
};

const ofState = (state: ClusterState | Finding, evaluate: (state: ClusterState) => Finding): Finding =>
  'outcome' in state ? state : evaluate(state);

async function homeOf(
  values: Values,
  { environment }: CommandIo,
  find: FindCredentials,
  { url, kubeconfig }: ApiAccess,
): Promise<Home> {
  const named = (flag: 'cluster-id' | 'region' | 'profile'): string | undefined =>
    values[flag] ?? argumentAfter(kubeconfig?.execArgs ?? [], `--${flag}`);
  const clusterId = named('cluster-id');
  if (clusterId === undefined && isLoopback(new URL(url).hostname)) {
    return { kind: 'local', dataDirectory: kubeconfig === undefined ? undefined : dirname(kubeconfig.path) };
  }
  try {
    if (clusterId === undefined) {
      throw new CommandError(
        'the kubeconfig does not name the cluster id and the region',
        'pass --cluster-id and --region, or set up the context with `nodekeeper kubeconfig`',
      );
    }
    const region = requireRegion(named('region') ?? regionOfEnvironment(environment));
    const credentials = await requireCredentials(named('profile') ?? environment['AWS_PROFILE'], find);
    return { kind: 'aws', clusterId, account: { region, credentials, environment } };
  } catch (error) {
    if (error instanceof CommandError) return { kind: 'unknown', error };
    throw error;
  }
}

function argumentAfter(args: readonly string[], flag: string): string | undefined {
  const index = args.indexOf(flag);
  return index < 0 ? undefined : args[index + 1];
}

const isLoopback = (hostname: string): boolean =>
  hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname);

function accountChecks(home: Home, { clockMs }: ClusterContext, load: () => Promise<Load>): Check[] {
  switch (home.kind) {
    case 'local':
      return localChecks(home.dataDirectory, clockMs);
    case 'unknown': {
      const run = async (): Promise<never> => {
        throw home.error;
      };
      return ['metrics', 'alarms', 'limits'].map((name) => ({ name, run }));
    }
    case 'aws':
      return [
        { name: 'metrics', run: () => checkMetrics(home.account, home.clusterId, clockMs()) },
        { name: 'alarms', run: () => checkAlarms(home.account, home.clusterId) },
        ...limitChecks(home.account, load, { isDeployed: true }),
      ];
    default:
      return home satisfies never;
  }
}

const localChecks = (dataDirectory: string | undefined, clockMs: () => number): Check[] => [
  {
    name: 'metrics',
    run: async () =>
      dataDirectory === undefined
        ? notApplicable('local mode writes metrics beside its kubeconfig, and none is used')
        : checkLocalMetrics(dataDirectory, clockMs()),
  },
  { name: 'alarms', run: async () => notApplicable('local mode has no CloudWatch alarms') },
  {
    name: 'limits',
    run: async () => notApplicable('local mode has no AWS account: use doctor --limits --region REGION'),
  },
];

/** @throws CommandError when a check failed: exit code 1 */
function report(results: readonly CheckResult[], asJson: boolean, print: (line: string) => void): void {
  const failed = results.filter(({ outcome }) => outcome === 'fail').map(({ check }) => check);
  if (asJson) {
    const checks = results.map((result) => defined({ ...result }));
    print(JSON.stringify({ outcome: failed.length === 0 ? 'ok' : 'fail', checks }, undefined, 2));
  } else for (const result of results) print(lineOf(result));
  if (failed.length === 0) return;
  throw new CommandError(
    `${failed.length} of ${results.length} checks failed: ${failed.join(', ')}`,
    'each line of a failed check ends with what to do next',
  );
}
