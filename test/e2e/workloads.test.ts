/**
 * What a dead node ran, runs again: kubectl, local mode with scheduler and controllers, a machine that falls silent.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { KubeObject, KubePod } from '../../shared/kinds/types.ts';
import { findKubectls, runKubectl } from '../support/kubectl.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { until } from '../support/until.ts';

const STEP_MS_MAX = 180_000;
const kubectl = findKubectls()
  .toSorted((a, b) => a.minor - b.minor)
  .at(-1);
let local: LocalForTest;

beforeAll(async () => {
  local = await startLocalForTest({
    nodes: 4,
    ec2Nodes: 0,
    policy: {
      beatIntervalSeconds: 3,
      leaseDurationSeconds: 12,
      nodeMonitorGracePeriodSeconds: 12,
      podEvictionTimeoutSeconds: 5,
      nodeEvictionRatePerSecond: 1,
    },
  });
}, 120_000);
afterAll(() => local?.stop());

async function run(args: string): Promise<string> {
  const { exitCode, stdout, stderr } = await runKubectl(kubectl!, args.split(' '), {
    kubeconfig: local.kubeconfig,
    timeoutMs: STEP_MS_MAX,
  });
  expect(exitCode, `${args}: ${stderr}`).toBe(0);
  return stdout;
}

const list = async <T = KubeObject>(path: string): Promise<readonly T[]> =>
  ((await local.read(path)) as { readonly items: readonly T[] }).items;
const NAMESPACE = '/api/v1/namespaces/default';
const SETS_OF_DEPLOYMENTS = '/apis/apps/v1/namespaces/default/replicasets';
const allPods = () => list<KubePod>(`${NAMESPACE}/pods`);

/** Pods that are not being deleted. */
async function pods(): Promise<readonly KubePod[]> {
  return (await allPods()).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
}

const nodesOf = (of: readonly KubePod[]) => of.map(({ spec }) => spec?.nodeName ?? '');
const areRunning = (of: readonly KubePod[]) => of.every(({ status }) => status?.phase === 'Running');

it('replaces the pods of a dead node, rolls out, and collects what a Deployment leaves behind', async () => {
  await run('create deployment web --image=nginx --replicas=3');
  await run('rollout status deployment/web --timeout=120s');
  const [dead = ''] = nodesOf(await pods());
  const lost = (await pods()).filter(({ spec }) => spec?.nodeName === dead).map(({ metadata }) => metadata.name);
  expect((await local.fleet('silence', dead)).exitCode).toBe(0);
  await until(
    async () => {
      const now = await pods();
      return now.length === 3 && areRunning(now) && !nodesOf(now).includes(dead);
    },
    { withinMs: STEP_MS_MAX, what: `three pods that run elsewhere than on ${dead}` },
  );
  expect((await pods()).map(({ metadata }) => metadata.name)).not.toEqual(expect.arrayContaining(lost));
  await until(async () => /web +3\/3 +3 +3 /.test(await run('get deployment web')), {
    withinMs: STEP_MS_MAX,
    everyMs: 500,
    what: 'three available pods in the status of the Deployment',
  });
  expect(await run('get decisions.nodekeeper.dev')).toMatch(/PodsCreated/);

  await run('set image deployment/web nginx=nginx:2');
  await run('rollout status deployment/web --timeout=150s');
  await run('rollout undo deployment/web');
  await run('rollout status deployment/web --timeout=150s');
  expect(await run('rollout history deployment/web')).toMatch(/^2 .*\n3 /m);

  await run('delete deployment web --wait=false');
  await until(async () => (await pods()).length === 0 && (await list(SETS_OF_DEPLOYMENTS)).length === 0, {
    withinMs: STEP_MS_MAX,
    what: 'the pods and ReplicaSets of the Deployment to be collected',
  });
}, 600_000);

const SETS = {
  kind: 'List',
  apiVersion: 'v1',
  items: (['StatefulSet', 'DaemonSet'] as const).map((kind) => ({
    apiVersion: 'apps/v1',
    kind,
    metadata: { name: kind === 'StatefulSet' ? 'db' : 'agent' },
    spec: {
      ...(kind === 'StatefulSet' && { serviceName: 'db', replicas: 2 }),
      selector: { matchLabels: { app: kind } },
      template: {
        metadata: { labels: { app: kind } },
        spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'main', image: 'app:1' }] },
      },
    },
  })),
};

it('replaces no pod of a StatefulSet or DaemonSet while the old one may run on a dead node', async () => {
  const applied = await runKubectl(kubectl!, ['apply', '-f', '-'], {
    kubeconfig: local.kubeconfig,
    stdin: JSON.stringify(SETS),
  });
  expect(applied.exitCode, applied.stderr).toBe(0);
  await run('rollout status statefulset/db --timeout=120s');
  await run('rollout status daemonset/agent --timeout=120s');
  const named = async (name: string) => (await allPods()).filter(({ metadata }) => metadata.name === name);
  const [old] = await named('db-1');
  const dead = old?.spec?.nodeName ?? '';
  const daemon = (await allPods()).find(
    ({ metadata, spec }) => metadata.labels?.['app'] === 'DaemonSet' && spec?.nodeName === dead,
  );
  const daemons = async () => (await pods()).filter(({ metadata }) => metadata.labels?.['app'] === 'DaemonSet');
  const before = (await daemons()).map(({ metadata }) => metadata.uid).toSorted();
  expect((await local.fleet('silence', dead)).exitCode).toBe(0);
  await until(async () => (await named('db-1'))[0]?.metadata.deletionTimestamp !== undefined, {
    withinMs: STEP_MS_MAX,
    what: `the eviction of db-1 from ${dead}`,
  });
  await until(
    async () => (await list(`${NAMESPACE}/events`)).some((event) => event['reason'] === 'StatefulPodAwaited'),
    {
      withinMs: STEP_MS_MAX,
      what: 'an event about the pod that is awaited',
    },
  );
  expect((await named('db-1')).map(({ metadata }) => metadata.uid)).toEqual([old?.metadata.uid]);
  expect((await daemons()).map(({ metadata }) => metadata.uid).toSorted()).toEqual(before);

  // The machine returns late: it ends its old pod, and only then another one gets the name.
  expect((await local.fleet('beat', dead)).exitCode).toBe(0);
  await until(
    async () => {
      const found = await named('db-1');
      expect(found.length).toBeLessThanOrEqual(1);
      return found[0] !== undefined && found[0].metadata.uid !== old?.metadata.uid && areRunning(found);
    },
    { withinMs: STEP_MS_MAX, what: 'another db-1 that runs' },
  );
  expect((await daemons()).map(({ metadata }) => metadata.uid)).toContain(daemon?.metadata.uid);

  // A person who knows that the machine is off removes the object.
  const [second] = await named('db-0');
  const off = second?.spec?.nodeName ?? '';
  expect((await local.fleet('silence', off)).exitCode).toBe(0);
  await until(async () => (await named('db-0'))[0]?.metadata.deletionTimestamp !== undefined, {
    withinMs: STEP_MS_MAX,
    what: `the eviction of db-0 from ${off}`,
  });
  await run('delete pod db-0 --force --grace-period=0');
  await until(
    async () => {
      const [found] = await named('db-0');
      return found !== undefined && found.metadata.uid !== second?.metadata.uid && found.spec?.nodeName !== off;
    },
    { withinMs: STEP_MS_MAX, what: 'another db-0 on another machine' },
  );
}, 600_000);
