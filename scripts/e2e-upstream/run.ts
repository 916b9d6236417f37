/**
 * npm run e2e:upstream -- --bin PATH [options]
 *
 * Runs Kubernetes' own end-to-end tests against local mode, each in a process of its own, and prints the outcomes by
 * area. Exit code 1 when a test failed or skipped itself: a skipped test would look like one that passed.
 *
 * The program is e2e.test of Kubernetes 1.20, which is not part of this repository. It is built from the source:
 * `make WHAT=test/e2e/e2e.test`, with the Go release that the source names.
 *
 * --bin PATH           e2e.test
 * --list NAME          api, api-more, controllers or controllers-more; repeatable (default: api)
 * --focus RE           only tests of the lists with a matching name
 * --kubeconfig PATH    a cluster that runs already (default: a local mode of its own, with three machines)
 * --kubectl PATH       kubectl 1.20 (default: the one on PATH)
 * --repo-root DIR      Kubernetes' source tree, which has the manifests of the kubectl tests
 * --content-type TYPE  of the test client (default: application/vnd.kubernetes.protobuf)
 * --rename-versions    runs the tests of removed API versions, in JSON, through a proxy that renames them to v1
 *                      (renamed-versions.ts); without it they fail or skip themselves
 * --seconds N          time of one test (default: 240, with controllers 360)
 * --keep DIR           writes the whole output of each test there
 */
import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { readKubeconfig } from '../../test/support/kubeconfig.ts';
import { TEST_LISTS, TESTS_OF_REMOVED_VERSIONS, type TestList } from './lists.ts';
import { startVersionProxy, type VersionProxy } from './renamed-versions.ts';
import { failureReason, focusOf, reportedIn, summaryOf, type TestResult } from './results.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MACHINES = 3;
const START_SECONDS_MAX = 120;
const SECONDS_PER_TEST = { api: 240, controllers: 360 };
const OUTPUT_CHARACTERS_MAX = 20_000_000;
const REMOVAL_SECONDS_MAX = 30;
/** The taint of the tests of NoExecute. */
const EVICT_TAINT = 'kubernetes.io/e2e-evict-taint-key';
/** Machines look at their pods once per heartbeat. One test holds 100 watches as one user, who may hold half of all. */
const POLICY = 'beatIntervalSeconds: 1\nconcurrentWatchesMax: 400\n';

const { values } = parseArgs({
  options: {
    bin: { type: 'string' },
    list: { type: 'string', multiple: true, default: ['api'] },
    focus: { type: 'string' },
    kubeconfig: { type: 'string' },
    kubectl: { type: 'string', default: 'kubectl' },
    'repo-root': { type: 'string' },
    'content-type': { type: 'string', default: 'application/vnd.kubernetes.protobuf' },
    'rename-versions': { type: 'boolean', default: false },
    seconds: { type: 'string' },
    keep: { type: 'string' },
  },
});

interface Chosen {
  readonly name: string;
  readonly secondsMax: number;
}

function chosenTests(): readonly Chosen[] {
  const focus = new RegExp(values.focus ?? '');
  return values.list.flatMap((list) => {
    if (!(list in TEST_LISTS)) fail(`--list must be one of ${Object.keys(TEST_LISTS).join(', ')}, not ${list}`);
    const secondsMax = Number(values.seconds ?? SECONDS_PER_TEST[list.startsWith('api') ? 'api' : 'controllers']);
    return TEST_LISTS[list as TestList].filter((name) => focus.test(name)).map((name) => ({ name, secondsMax }));
  });
}

function fail(message: string): never {
  console.error(message);
  process.exit(2);
}

function programOf(bin: string | undefined): string {
  if (bin === undefined) fail('--bin must be the path of e2e.test of Kubernetes 1.20');
  try {
    accessSync(bin, constants.X_OK);
  } catch {
    fail(`--bin: ${bin} is not a program`);
  }
  return bin;
}

interface Cluster {
  readonly kubeconfig: string;
  stop(): Promise<void>;
}

async function startedCluster(): Promise<Cluster> {
  if (values.kubeconfig !== undefined) return { kubeconfig: values.kubeconfig, stop: async () => {} };
  const dir = mkdtempSync(join(tmpdir(), 'nodekeeper-e2e-'));
  const policy = join(dir, 'policy.yaml');
  writeFileSync(policy, POLICY);
  const machines = ['--nodes', String(MACHINES), '--zones', '1', '--ec2-nodes', '0'];
  const options = ['--data', join(dir, 'data'), '--policy', policy, '--port', '0', ...machines];
  const child = spawn(process.execPath, [join(ROOT, 'local/bin/start.mjs'), ...options, '--quiet'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await exited;
    rmSync(dir, { recursive: true, force: true });
  };
  const kubeconfig = join(dir, 'data', 'kubeconfig');
  for (let waited = 0; !existsSync(kubeconfig); waited += 1) {
    if (waited >= START_SECONDS_MAX || child.exitCode !== null) {
      await stop();
      fail(`local mode did not start within ${START_SECONDS_MAX} s`);
    }
    await pause(1_000);
  }
  return { kubeconfig, stop };
}

/** The cluster with the removed versions, if a test needs them. */
async function startedProxy(chosen: readonly Chosen[], { kubeconfig }: Cluster): Promise<Cluster> {
  if (!chosen.some(({ name }) => isRenamed(name))) return { kubeconfig, stop: async () => {} };
  const proxy: VersionProxy = await startVersionProxy(readKubeconfig(kubeconfig));
  const dir = mkdtempSync(join(tmpdir(), 'nodekeeper-e2e-'));
  const path = join(dir, 'kubeconfig');
  writeFileSync(path, proxy.kubeconfig);
  const stop = async (): Promise<void> => {
    await proxy.close();
    rmSync(dir, { recursive: true, force: true });
  };
  return { kubeconfig: path, stop };
}

async function runTest(program: string, kubeconfig: string, { name, secondsMax }: Chosen): Promise<TestResult> {
  const startedMs = performance.now();
  const { output, timedOut } = await outputOf(program, argumentsFor(kubeconfig, name), secondsMax);
  if (timedOut) await removeRemains(kubeconfig);
  if (values.keep !== undefined) {
    mkdirSync(values.keep, { recursive: true });
    writeFileSync(join(values.keep, `${name.replace(/[^\w.-]+/g, '_').slice(0, 150)}.txt`), output);
  }
  const seconds = Math.round((performance.now() - startedMs) / 1_000);
  const outcome = timedOut ? 'failed' : (reportedIn(output).get(name) ?? unreported(output));
  if (outcome !== 'failed') return { name, outcome, seconds };
  const reason = timedOut ? `no result within ${secondsMax} s\n${failureReason(output)}` : failureReason(output);
  return { name, outcome, seconds, reason };
}

/** A test that was stopped leaves its namespaces and taints. Other tests would wait for their end. */
async function removeRemains(kubeconfig: string): Promise<void> {
  const commands = [
    ['delete', 'namespaces', '-l', 'e2e-run', '--wait=false'],
    ['taint', 'nodes', '--all', `${EVICT_TAINT}-`],
  ];
  for (const words of commands) {
    await outputOf(values.kubectl, ['--kubeconfig', kubeconfig, ...words], REMOVAL_SECONDS_MAX);
  }
}

/** Before the first spec the suite waits for nodes and system pods. When that fails, no spec is reported. */
const unreported = (output: string): 'failed' | 'skipped' =>
  /\[SKIPPING\]|Ran 0 of \d+ Specs/.test(output) && !/BeforeSuite\].*Fail|FAIL!/.test(output) ? 'skipped' : 'failed';

const isRenamed = (name: string): boolean => values['rename-versions'] && TESTS_OF_REMOVED_VERSIONS.includes(name);

const argumentsFor = (kubeconfig: string, name: string): readonly string[] => [
  '-provider=skeleton',
  `-kubeconfig=${kubeconfig}`,
  `-kubectl-path=${values.kubectl}`,
  ...(values['repo-root'] === undefined ? [] : [`-repo-root=${values['repo-root']}`]),
  `-num-nodes=${MACHINES}`,
  // 1.20 waits for a token Secret per account, which no release makes since 1.24.
  '-e2e-verify-service-account=false',
  `-kube-api-content-type=${isRenamed(name) ? 'application/json' : values['content-type']}`,
  '-disable-log-dump',
  '-dump-logs-on-failure=false',
  '-node-schedulable-timeout=1m',
  '-system-pods-startup-timeout=1m',
  '-ginkgo.noColor',
  `-ginkgo.focus=${focusOf(name)}`,
];

function outputOf(
  program: string,
  argv: readonly string[],
  secondsMax: number,
): Promise<{ output: string; timedOut: boolean }> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, argv, { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      child.kill('SIGKILL');
    }, secondsMax * 1_000);
    const add = (chunk: Buffer): void => {
      if (output.length < OUTPUT_CHARACTERS_MAX) output += chunk.toString('utf8');
    };
    child.stdout.on('data', add);
    child.stderr.on('data', add);
    child.once('error', reject);
    child.once('close', () => {
      clearTimeout(timer);
      resolve({ output, timedOut });
    });
  });
}

const program = programOf(values.bin);
const tests = chosenTests();
if (tests.length === 0) fail('no test of the lists matches --focus');
const cluster = await startedCluster();
const renamed = await startedProxy(tests, cluster);
const results: TestResult[] = [];
try {
  for (const test of tests) {
    const result = await runTest(program, isRenamed(test.name) ? renamed.kubeconfig : cluster.kubeconfig, test);
    results.push(result);
    console.log(`${result.outcome.padEnd(7)} ${String(result.seconds).padStart(4)} s  ${result.name}`);
    if (result.reason !== undefined) console.log(result.reason.replace(/^/gm, '        '));
  }
} finally {
  await renamed.stop();
  await cluster.stop();
}
console.log(['', ...summaryOf(results)].join('\n'));
process.exitCode = results.every(({ outcome }) => outcome === 'passed') ? 0 : 1;
