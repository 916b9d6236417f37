/** kubectl drain against an idle local mode: the test plays the kubelet that terminates evicted pods. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiMethod } from '../../demo/fleet/api-client.ts';
import { type KubectlPlace, kubectlOf, makePlace, startKubectl } from '../support/kubectl.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { until } from '../support/until.ts';

const tested = kubectlOf(33);
const PLAIN = Array.from({ length: 17 }, (_, at) => `plain-${String(at).padStart(2, '0')}`);
const GUARDED = ['guarded-0', 'guarded-1'];
const REFUSED =
  /error when evicting pods\/"(guarded-\d)" .*Cannot evict pod as it would violate the pod's disruption budget/;

interface PodSeen {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
}

describe.skipIf(tested === undefined)('kubectl drain', { timeout: 60_000 }, () => {
  let local: LocalForTest;
  let place: KubectlPlace;

  beforeAll(async () => {
    place = makePlace();
    local = await startLocalForTest({ nodes: 0, controllers: false });
  }, 90_000);
  afterAll(async () => {
    await local?.stop();
    place?.remove();
  });

  async function call(method: ApiMethod, path: string, body?: unknown, contentType = 'application/json') {
    const request = body === undefined ? { method, path } : { method, path, body, contentType };
    const answer = await local.client.send(request);
    if (answer.kind !== 'answered' || answer.status >= 300) {
      throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`);
    }
    return answer.body as { readonly items: readonly PodSeen[]; readonly metadata: { readonly uid: string } };
  }

  const PODS = '/api/v1/namespaces/default/pods';
  const podsOf = async (node: string): Promise<readonly PodSeen[]> =>
    (await call('GET', `${PODS}?fieldSelector=spec.nodeName%3D${node}`)).items;

  async function startPod(
    name: string,
    node: string,
    owner: { kind: string; uid: string },
    labels = {},
  ): Promise<void> {
    const ownerReferences = [
      { apiVersion: 'apps/v1', kind: owner.kind, name: 'owner', uid: owner.uid, controller: true },
    ];
    const spec = { nodeName: node, containers: [{ name: 'main', image: 'pause' }] };
    await call('POST', PODS, { apiVersion: 'v1', kind: 'Pod', metadata: { name, labels, ownerReferences }, spec });
    const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
    await call('PATCH', `${PODS}/${name}/status`, { status }, 'application/merge-patch+json');
  }

  it('evicts the allowed pods, waits for the budget, leaves the daemon, and succeeds', async () => {
    for (const name of ['drained', 'other']) {
      await call('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name } });
    }
    const daemonSet = await call('POST', '/apis/apps/v1/namespaces/default/daemonsets', {
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { name: 'owner' },
      spec: {
        selector: { matchLabels: { app: 'daemon' } },
        template: { metadata: { labels: { app: 'daemon' } }, spec: { containers: [{ name: 'main', image: 'pause' }] } },
      },
    });
    await call('POST', '/apis/policy/v1/namespaces/default/poddisruptionbudgets', {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'guard' },
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'guarded' } } },
    });
    const replicas = { kind: 'ReplicaSet', uid: '11111111-1111-4111-8111-111111111111' };
    for (const name of PLAIN) await startPod(name, 'drained', replicas);
    for (const name of GUARDED) await startPod(name, 'drained', replicas, { app: 'guarded' });
    await startPod('daemon', 'drained', { kind: 'DaemonSet', uid: daemonSet.metadata.uid }, { app: 'daemon' });
    expect(await podsOf('drained')).toHaveLength(20);

    const drain = startKubectl(tested!, ['drain', 'drained', '--ignore-daemonsets', '--timeout=40s'], {
      kubeconfig: local.kubeconfig,
      place,
      timeoutMs: 45_000,
    });
    let over = false;
    const ended = drain.ended.finally(() => {
      over = true;
    });
    const gone: string[] = [];
    let refused: string | undefined;
    await until(
      async () => {
        for (const { metadata } of await podsOf('drained')) {
          if (metadata.deletionTimestamp === undefined) continue;
          await call('DELETE', `${PODS}/${metadata.name}?gracePeriodSeconds=0`);
          gone.push(metadata.name);
        }
        if (refused === undefined) {
          refused = REFUSED.exec(drain.stderr())?.[1];
          // All other pods are deleted or terminating by then. The refused one stays until its replacement is Ready.
          if (refused !== undefined) {
            expect((await podsOf('drained')).map(({ metadata }) => metadata.name)).toContain(refused);
            expect(gone).not.toContain(refused);
            await startPod('guarded-2', 'other', replicas, { app: 'guarded' });
          }
        }
        return over;
      },
      { withinMs: 45_000, everyMs: 100, what: 'the end of the drain' },
    );

    expect(await ended).toMatchObject({ exitCode: 0, timedOut: false });
    expect(drain.stdout()).toMatch(/^node\/drained cordoned\n/);
    expect(drain.stdout()).toMatch(/\nnode\/drained drained\n$/);
    expect(drain.stderr()).toMatch(/^Warning: ignoring DaemonSet-managed Pods: default\/daemon\n/);
    expect(GUARDED).toContain(refused);
    expect(gone.at(-1)).toBe(refused);
    expect([...gone].sort()).toEqual([...GUARDED, ...PLAIN]);
    expect((await podsOf('drained')).map(({ metadata }) => metadata.name)).toEqual(['daemon']);
    expect((await podsOf('other')).map(({ metadata }) => metadata.name)).toEqual(['guarded-2']);
  });
});
