/** What `nodekeeper explain deployment` and `explain job` print. */
import { describe, expect, it } from 'vitest';
import { CommandError } from '../../cli/command.ts';
import { explainCommand } from '../../cli/explain.ts';
import { passesWorkloadFilter } from '../../server/changes/change-filters.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import { ScheduledCluster } from '../support/scheduled-cluster.ts';

async function explained(on: ScheduledCluster, ...args: string[]): Promise<string> {
  const lines: string[] = [];
  const io = { environment: {}, nowMs: on.fleet.nowMs(), print: (line: string) => lines.push(line) };
  const access = ['--server', 'https://cluster.example', '--token', 'token'];
  await explainCommand([...args, ...access], io, async (_access, { method, path }) => {
    const { code, body, text } = await on.served.api.send(method, path);
    if (code === 404) throw new CommandError(`${path} not found`, '');
    if (code >= 300) throw new Error(text);
    return body;
  });
  return lines.join('\n');
}

/** The workload controllers and the scheduler, until nothing changes. */
async function settle(on: ScheduledCluster): Promise<void> {
  let seen = 0;
  for (let round = 0; round < 20; round += 1) {
    await on.settle();
    const changes = on.fleet.tables.changes('objects', seen);
    seen = changes.at(-1)?.sequence ?? seen;
    const records = changes.filter(passesWorkloadFilter);
    if (records.length === 0) return;
    await on.fleet.controllers.onWorkloadRecords(records);
  }
  throw new Error('the controllers do not settle');
}

type KubeObjectList = KubePod & { items?: KubePod[] };

const template = (requests: object, spec: object = {}) => ({
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'c', image: 'i', resources: { requests } }], ...spec },
});

describe('explain', () => {
  it('of a Deployment prints its numbers, its ReplicaSets, and why a pod does not run', async () => {
    const on = new ScheduledCluster();
    await on.node('n1');
    await on.send('POST', '/apis/apps/v1/namespaces/default/deployments', {
      body: {
        metadata: { name: 'web' },
        spec: { replicas: 2, selector: { matchLabels: { app: 'web' } }, template: template({ cpu: '3' }) },
      },
    });
    await settle(on);
    const text = await explained(on, 'deployment', 'default/web', '--verify');
    expect(text).toMatch(/^deployment default\/web \(uid \S+\), since /m);
    expect(text).toMatch(/^2 pods are wanted; 2 exist, 0 are Ready$/m);
    expect(text).toMatch(/^pod web-\S+: is not bound: 0\/1 nodes are available: 1 Insufficient cpu/m);
    expect(text).toMatch(/ReplicaSetMade +the pod template has no ReplicaSet: created web-/);
    expect(text).toMatch(/PodsCreated +\[replicaset default\/web-\S+\] 2 pods are wanted and 0 are active/);
    expect(text).toMatch(/ScalingReplicaSet +\[event\] Scaled up replica set web-/);
    expect(text).toMatch(/decisions replayed: same outcome/);
    const name = /replicaset default\/(web-[a-z0-9]+)/.exec(text)?.[1] ?? '';
    expect(await explained(on, 'replicaset', name)).toMatch(/PodsCreated +2 pods are wanted/);
  });

  it('of a Job prints its counts and how it ended', async () => {
    const on = new ScheduledCluster();
    await on.node('n1');
    await on.send('POST', '/apis/batch/v1/namespaces/default/jobs', {
      body: {
        metadata: { name: 'pi' },
        spec: { backoffLimit: 0, template: template({ cpu: '1' }, { restartPolicy: 'Never' }) },
      },
    });
    await settle(on);
    const { items } = (await on.send('GET', '/api/v1/namespaces/default/pods')) as KubeObjectList;
    await on.status(items?.[0]?.metadata.name ?? '', { phase: 'Failed' });
    await settle(on);
    const text = await explained(on, 'job', 'pi', '--verify');
    expect(text).toMatch(/^1 success is wanted: 0 succeeded, 1 failed; 1 exist, 0 are Ready$/m);
    expect(text).toMatch(/^Failed is True \(BackoffLimitExceeded\): Job has reached the specified backoff limit$/m);
    expect(text).toMatch(/JobFinished +BackoffLimitExceeded: 0 pods succeeded, 1 failed {2}= same/);
  });

  it('names the kinds that it supports', async () => {
    const on = new ScheduledCluster();
    await expect(explained(on, 'service', 'a')).rejects.toThrow(
      'explain does not support service, only node, pod, deployment, replicaset,',
    );
    await expect(explained(on, 'job', 'a/b/c')).rejects.toThrow('a/b/c is not NAMESPACE/NAME');
    await expect(explained(on, 'job', 'none')).rejects.toThrow('no decision about job default/none');
  });
});
