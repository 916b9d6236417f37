/** What a dead node ran, runs again: kubectl, local mode with scheduler and controllers, a machine that falls silent. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { KubePod } from '../../shared/kube/types.ts';
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
    policy: { nodeMonitorGracePeriodSeconds: 20, podEvictionTimeoutSeconds: 5, nodeEvictionRatePerSecond: 1 },
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

/** Pods that are not being deleted. */
async function pods(): Promise<readonly KubePod[]> {
  const { items } = JSON.parse(await run('get pods -o json')) as { items: readonly KubePod[] };
  return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
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
    what: 'three available pods in the status of the Deployment',
  });
  expect(await run('get decisions.nodekeeper.dev')).toMatch(/PodsCreated/);

  await run('set image deployment/web nginx=nginx:2');
  await run('rollout status deployment/web --timeout=150s');
  await run('rollout undo deployment/web');
  await run('rollout status deployment/web --timeout=150s');
  expect(await run('rollout history deployment/web')).toMatch(/^2 .*\n3 /m);

  await run('delete deployment web --wait=false');
  await until(async () => (await pods()).length === 0 && (await run('get rs -o name')) === '', {
    withinMs: STEP_MS_MAX,
    what: 'the pods and ReplicaSets of the Deployment to be collected',
  });
}, 600_000);
