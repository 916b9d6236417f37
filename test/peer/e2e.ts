/**
 * Runs Kubernetes' own end-to-end tests against local mode, each in a process of its own, and prints the outcomes by
 * area.
 */
import { accessSync, constants, mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { apiClientOf, readKubeconfig } from '../support/kubeconfig.ts';
import { runKubectl } from '../support/kubectl.ts';
import { startLocalForTest } from '../support/local.ts';
import { type Command, inFolder, UsageError, wholeNumber } from './command.ts';
import { TEST_LISTS, TESTS_OF_REMOVED_VERSIONS, type TestList } from './e2e/lists.ts';
import { startVersionProxy } from './e2e/renamed-versions.ts';
import { failureReason, focusOf, outcomeOf, summaryOf, type TestResult } from './e2e/results.ts';
import { withWebhookPods } from './e2e/webhook-pods.ts';

const USAGE = `npm run peer -- e2e --bin PATH [options]

The program is e2e.test of Kubernetes 1.20, built from the source: \`make WHAT=test/e2e/e2e.test\`, with the Go release
that the source names.

--bin PATH           e2e.test
--list NAME          ${Object.keys(TEST_LISTS).join(', ')}; repeatable (default: api)
--focus RE           only tests of the lists with a matching name
--kubeconfig PATH    a cluster that runs already (default: one of its own, with three machines)
--home serve|aws     its own cluster: nodekeeper serve, or the emulation of AWS (default: serve)
--agnhost PATH       agnhost of the same source, for --list webhooks: e2e/webhook-pods.ts
--kubectl PATH       kubectl 1.20 (default: the one on PATH)
--repo-root DIR      Kubernetes' source tree, which has the manifests of the kubectl tests
--content-type TYPE  of the test client (default: application/vnd.kubernetes.protobuf)
--rename-versions    runs the tests of removed API versions, in JSON, through a proxy that renames them to v1
                     (e2e/renamed-versions.ts); without it they fail or skip themselves
--seconds N          time of one test (default: 240, with controllers 360)
--keep DIR           writes the whole output of each test there

Exit code 1 when a test failed or skipped itself: a skipped test would look like one that passed.`;
const MACHINES = 3;
const SECONDS_PER_TEST = { api: 240, controllers: 360 };
const REMOVAL_MS_MAX = 30_000;
/** The taint of the tests of NoExecute. */
const EVICT_TAINT = 'kubernetes.io/e2e-evict-taint-key';
/** Machines look at their pods once per heartbeat. One test holds 100 watches as one user, who may hold half of all. */
const POLICY = { beatIntervalSeconds: 1, concurrentWatchesMax: 400 };

export const e2e: Command = { usage: USAGE, run };

interface Suite {
  readonly program: string;
  readonly kubectl: string;
  readonly repoRoot: string | undefined;
  readonly keep: string | undefined;
}

interface Test {
  readonly name: string;
  readonly secondsMax: number;
  readonly contentType: string;
  readonly kubeconfig: string;
}

async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      bin: { type: 'string' },
      list: { type: 'string', multiple: true, default: ['api'] },
      focus: { type: 'string', default: '' },
      kubeconfig: { type: 'string' },
      home: { type: 'string', default: 'serve' },
      agnhost: { type: 'string' },
      kubectl: { type: 'string', default: 'kubectl' },
      'repo-root': { type: 'string' },
      'content-type': { type: 'string', default: 'application/vnd.kubernetes.protobuf' },
      'rename-versions': { type: 'boolean', default: false },
      seconds: { type: 'string' },
      keep: { type: 'string' },
    },
  });
  const suite: Suite = {
    program: programOf(values.bin),
    kubectl: values.kubectl.includes('/') ? resolve(values.kubectl) : values.kubectl,
    repoRoot: values['repo-root'] && resolve(values['repo-root']),
    keep: values.keep,
  };
  const chosen = values.list.flatMap((list) => {
    if (!(list in TEST_LISTS)) {
      throw new UsageError(`--list must be one of ${Object.keys(TEST_LISTS).join(', ')}, not ${list}`);
    }
    const usual = SECONDS_PER_TEST[list.startsWith('api') ? 'api' : 'controllers'];
    const secondsMax = values.seconds === undefined ? usual : wholeNumber('seconds', values.seconds);
    const names = TEST_LISTS[list as TestList].filter((name) => new RegExp(values.focus).test(name));
    return names.map((name) => ({ name, secondsMax }));
  });
  if (chosen.length === 0) throw new UsageError('no test of the lists matches --focus');

  const { home, agnhost } = values;
  if (home !== 'serve' && home !== 'aws') throw new UsageError(`--home must be serve or aws, not ${home}`);
  const isRenamed = (name: string): boolean => values['rename-versions'] && TESTS_OF_REMOVED_VERSIONS.includes(name);
  return await withCluster({ kubeconfig: values.kubeconfig, home, agnhost }, (kubeconfig) =>
    withProxy(
      kubeconfig,
      chosen.some(({ name }) => isRenamed(name)),
      async (renamed) => {
        const tests = chosen.map(({ name, secondsMax }): Test => {
          const contentType = isRenamed(name) ? 'application/json' : values['content-type'];
          return { name, secondsMax, contentType, kubeconfig: isRenamed(name) ? renamed : kubeconfig };
        });
        return await runAll(suite, tests);
      },
    ),
  );
}

function programOf(bin: string | undefined): string {
  if (bin === undefined) throw new UsageError('--bin must be the path of e2e.test of Kubernetes 1.20');
  try {
    accessSync(bin, constants.X_OK);
  } catch (cause) {
    throw new UsageError(`--bin: ${bin} is not a program`, { cause });
  }
  return resolve(bin);
}

interface ClusterOptions {
  readonly kubeconfig: string | undefined;
  readonly home: 'serve' | 'aws';
  readonly agnhost: string | undefined;
}

async function withCluster(
  { kubeconfig, home, agnhost }: ClusterOptions,
  work: (kubeconfig: string) => Promise<number>,
): Promise<number> {
  if (kubeconfig !== undefined) return await withPods(resolve(kubeconfig), agnhost, work);
  const local = await startLocalForTest({ home, nodes: MACHINES, zones: 1, ec2Nodes: 0, policy: POLICY });
  try {
    return await withPods(local.kubeconfig, agnhost, work);
  } finally {
    await local.stop();
  }
}

async function withPods(
  kubeconfig: string,
  agnhost: string | undefined,
  work: (kubeconfig: string) => Promise<number>,
): Promise<number> {
  if (agnhost === undefined) return await work(kubeconfig);
  const client = apiClientOf(readKubeconfig(kubeconfig), { connectionsMax: 1, timeoutMs: 30_000 });
  try {
    return await withWebhookPods(resolve(agnhost), client, () => work(kubeconfig));
  } finally {
    client.close();
  }
}

/** With the kubeconfig of a proxy that serves the removed versions, if a test needs them. */
async function withProxy(
  kubeconfig: string,
  isNeeded: boolean,
  work: (kubeconfig: string) => Promise<number>,
): Promise<number> {
  if (!isNeeded) return await work(kubeconfig);
  const proxy = await startVersionProxy(readKubeconfig(kubeconfig));
  try {
    return await inFolder(undefined, async (dir) => {
      const path = join(dir, 'kubeconfig');
      writeFileSync(path, proxy.kubeconfig);
      return await work(path);
    });
  } finally {
    await proxy.close();
  }
}

async function runAll(suite: Suite, tests: readonly Test[]): Promise<number> {
  const results: TestResult[] = [];
  for (const test of tests) {
    const result = await runTest(suite, test);
    results.push(result);
    console.log(`${result.outcome.padEnd(7)} ${String(result.seconds).padStart(4)} s  ${result.name}`);
    if (result.reason !== undefined) console.log(result.reason.replace(/^/gm, '        '));
  }
  console.log(['', ...summaryOf(results)].join('\n'));
  return results.every(({ outcome }) => outcome === 'passed') ? 0 : 1;
}

async function runTest(suite: Suite, { name, secondsMax, contentType, kubeconfig }: Test): Promise<TestResult> {
  const startedMs = performance.now();
  const options = [
    '-provider=skeleton',
    `-kubeconfig=${kubeconfig}`,
    `-kubectl-path=${suite.kubectl}`,
    ...(suite.repoRoot === undefined ? [] : [`-repo-root=${suite.repoRoot}`]),
    `-num-nodes=${MACHINES}`,
    // 1.20 waits for a token Secret per account, which no release makes since 1.24.
    '-e2e-verify-service-account=false',
    `-kube-api-content-type=${contentType}`,
    '-disable-log-dump',
    '-dump-logs-on-failure=false',
    '-node-schedulable-timeout=1m',
    '-system-pods-startup-timeout=1m',
    '-ginkgo.noColor',
    `-ginkgo.focus=${focusOf(name)}`,
  ];
  const { stdout, stderr, timedOut } = await runIsolated(suite.program, options, kubeconfig, secondsMax * 1_000);
  const output = `${stderr}${stdout}`;
  if (timedOut) await removeRemains(suite.kubectl, kubeconfig);
  if (suite.keep !== undefined) {
    mkdirSync(suite.keep, { recursive: true });
    writeFileSync(join(suite.keep, `${name.replace(/[^\w.-]+/g, '_').slice(0, 150)}.txt`), output);
  }
  const seconds = Math.round((performance.now() - startedMs) / 1_000);
  const outcome = timedOut ? 'failed' : outcomeOf(name, output);
  if (outcome !== 'failed') return { name, outcome, seconds };
  const reason = timedOut ? `no result within ${secondsMax} s\n${failureReason(output)}` : failureReason(output);
  return { name, outcome, seconds, reason };
}

/** A test that was stopped leaves its namespaces and taints. Other tests would wait for their end. */
async function removeRemains(kubectl: string, kubeconfig: string): Promise<void> {
  const commands = [
    ['delete', 'namespaces', '-l', 'e2e-run', '--wait=false'],
    ['taint', 'nodes', '--all', `${EVICT_TAINT}-`],
  ];
  for (const words of commands) await runIsolated(kubectl, words, kubeconfig, REMOVAL_MS_MAX);
}

/** With a home folder of its own, as kubectl in other tests. */
const runIsolated = (path: string, args: readonly string[], kubeconfig: string, timeoutMs: number) =>
  runKubectl({ name: path, path, minor: 20 }, args, { kubeconfig, timeoutMs });
