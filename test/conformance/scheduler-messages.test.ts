/** SM: messages, conditions, events, binding. */
import { describe, expect, it } from 'vitest';
import { podsIn } from '../support/api-in-memory.ts';
import { ScheduledCluster } from '../support/scheduled-cluster.ts';

const cpu = (amount: string) => ({ requests: { cpu: amount } });

describe('SM messages, conditions, events, binding', () => {
  it('SM-01 no Node at all', async () => {
    const on = new ScheduledCluster();
    await on.pod('p');
    await on.settle();
    const message = 'no nodes available to schedule pods';
    expect(await on.scheduled('p')).toMatchObject({ status: 'False', reason: 'Unschedulable', message });
    expect(await on.events('FailedScheduling')).toMatchObject([{ type: 'Warning', message, action: 'Scheduling' }]);
    const attempts = () => on.fleet.metrics.filter(({ name }) => name === 'scheduler_schedule_attempts_total').length;
    const times: number[] = [];
    for (let seconds = 0.5; seconds <= 8; seconds += 0.5) {
      const before = attempts();
      await on.at(seconds);
      if (attempts() > before) times.push(seconds);
    }
    expect(times).toEqual([1, 3, 7]);
  });

  it('SM-03 reasons are sorted as texts', async () => {
    const on = new ScheduledCluster();
    for (let index = 0; index < 10; index += 1) await on.node(`full-${index}`, { allocatable: { cpu: '500m' } });
    for (let index = 0; index < 2; index += 1) await on.node(`cordoned-${index}`, { unschedulable: true });
    await on.pod('p', cpu('1'));
    await on.settle();
    expect((await on.scheduled('p'))?.message).toMatch(
      /^0\/12 nodes are available: 10 Insufficient cpu, 2 node\(s\) were unschedulable\. /,
    );
  });

  it('SM-05 only the first plugin that rejects is reported', async () => {
    const on = new ScheduledCluster();
    const taints = [{ key: 'k', value: 'v', effect: 'NoSchedule' }];
    await on.node('n1', { unschedulable: true, taints, allocatable: { cpu: '500m' } });
    await on.pod('p', cpu('1'));
    await on.settle();
    expect((await on.scheduled('p'))?.message).toMatch(/^0\/1 nodes are available: 1 node\(s\) were unschedulable\. /);
  });

  it('SM-07: a binding: event and condition', async () => {
    const on = new ScheduledCluster();
    await on.node('n1');
    await on.pod('p');
    await on.settle();
    expect(await on.events('Scheduled')).toMatchObject([
      {
        type: 'Normal',
        message: 'Successfully assigned default/p to n1',
        reportingComponent: 'default-scheduler',
        source: { component: 'default-scheduler' },
        action: 'Binding',
      },
    ]);
    const condition = await on.scheduled('p');
    expect(condition).toMatchObject({ status: 'True' });
    expect(condition).not.toHaveProperty('reason');
    expect(condition).not.toHaveProperty('message');
  });

  it('SM-09: an attempt that says nothing new does not write the pod', async () => {
    const on = new ScheduledCluster();
    await on.node('n1', { allocatable: { cpu: '500m' } });
    await on.pod('p', cpu('1'));
    await on.settle();
    const before = await on.get('p');
    for (let seconds = 301; seconds <= 1_300; seconds += 301) await on.at(seconds);
    expect(await on.get('p')).toEqual(before);
    const [event] = await on.events('FailedScheduling');
    expect(event?.count).toBe(5);
    // Errors are due earlier than every minute; their event is not counted then.
    const many = new ScheduledCluster();
    await many.pod('p');
    await many.settle();
    for (let seconds = 1; seconds <= 59; seconds += 1) await many.at(seconds);
    expect((await many.events('FailedScheduling'))[0]?.count).toBe(1);
    for (let seconds = 60; seconds <= 119; seconds += 1) await many.at(seconds);
    expect((await many.events('FailedScheduling'))[0]?.count).toBe(2);
  });

  it('SM-11 the note of an event is cut to 1,024 bytes', async () => {
    const on = new ScheduledCluster();
    await on.node('n1');
    const requests = Object.fromEntries(
      Array.from({ length: 40 }, (_, index) => [`example.com/a-rather-long-resource-name-${index}`, '1']),
    );
    const container = { name: 'c', image: 'i', resources: { requests, limits: requests } };
    await on.pod('p', { spec: { containers: [container] } });
    await on.settle();
    const [event] = await on.events('FailedScheduling');
    expect(event?.message).toHaveLength(1_024);
    expect(event?.message).toMatch(/ \.\.\.$/);
    expect((await on.scheduled('p'))?.message).toContain('resource-name-9');
  });

  it('SM-13: a pod that is deleted while it waits', async () => {
    const on = new ScheduledCluster();
    await on.node('n1', { allocatable: { cpu: '500m' } });
    await on.pod('p', cpu('1'));
    await on.settle();
    await on.send('PATCH', `${podsIn('default')}/p`, {
      body: { metadata: { finalizers: ['example.com/wait'] } },
      contentType: 'application/merge-patch+json',
    });
    await on.send('DELETE', `${podsIn('default')}/p`);
    await on.settle();
    await on.at(301);
    const events = await on.events('FailedScheduling');
    expect(events.map(({ message }) => message)).toContain('skip schedule deleting pod: default/p');
    const rows = await on.fleet.tables.query({
      table: 'control',
      pk: 'scheduler',
      consistent: true,
      beginsWith: 'pod#',
    });
    expect(rows.items).toEqual([]);
  });

  const bind = (on: ScheduledCluster, nodeName: string) =>
    on.served.api.send('POST', `${podsIn('default')}/p/binding`, {
      body: { metadata: { name: 'p' }, target: { kind: 'Node', name: nodeName } },
    });

  it('SM-15: a bound pod is not bound again', async () => {
    const on = new ScheduledCluster();
    await on.node('n1');
    await on.pod('p');
    await on.settle();
    const { code, body } = await bind(on, 'n2');
    expect(code).toBe(409);
    expect(body.message).toContain('pod p is already assigned to node "n1"');
  });

  it('SM-17 nor is a terminating one', async () => {
    const on = new ScheduledCluster();
    await on.pod('p');
    await on.send('PATCH', `${podsIn('default')}/p`, {
      body: { metadata: { finalizers: ['example.com/wait'] } },
      contentType: 'application/merge-patch+json',
    });
    await on.send('DELETE', `${podsIn('default')}/p`);
    const { code, body } = await bind(on, 'n2');
    expect(code).toBe(409);
    expect(body.message).toContain('pod p is being deleted, cannot be assigned to a host');
  });

  it('SM-19 several plugins and reasons', async () => {
    const on = new ScheduledCluster();
    const key = { topologyKey: 'rack', labelSelector: { matchLabels: { app: 'x' } } };
    await on.node('n1');
    await on.node('n2', { labels: { rack: 'r2' } });
    await on.node('n3', { labels: { rack: 'r3' } });
    await on.running('a', 'n2', { labels: { app: 'x' } });
    await on.running('b', 'n3', { labels: { other: 'y' } });
    await on.pod('p', {
      labels: { app: 'x' },
      spec: {
        topologySpreadConstraints: [{ ...key, maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule' }],
        affinity: {
          podAntiAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: [
              { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { other: 'y' } } },
            ],
          },
        },
      },
    });
    await on.settle();
    expect((await on.scheduled('p'))?.message).toMatch(
      /^0\/3 nodes are available: 1 node\(s\) didn't match pod anti-affinity rules, 1 node\(s\) didn't match pod topology spread constraints, 1 node\(s\) didn't match pod topology spread constraints \(missing required label\)\. /,
    );
  });

  it('SM-21 what kubectl describe shows', async () => {
    const on = new ScheduledCluster();
    await on.node('n1', { allocatable: { cpu: '500m' } });
    await on.pod('p', cpu('1'));
    await on.settle();
    const { status, metadata } = await on.get('p');
    expect(status?.phase).toBe('Pending');
    expect(await on.scheduled('p')).toMatchObject({ status: 'False' });
    // describe selects the events of the object by these fields.
    const { uid } = metadata;
    const selector = `involvedObject.name=p,involvedObject.namespace=default,involvedObject.uid=${uid}`;
    const path = `/api/v1/namespaces/default/events?fieldSelector=${encodeURIComponent(selector)}`;
    const { items } = (await on.send('GET', path)) as unknown as { items: object[] };
    expect(items).toMatchObject([
      {
        reason: 'FailedScheduling',
        source: { component: 'default-scheduler' },
        count: 1,
        message: (await on.scheduled('p'))?.message,
      },
    ]);
  });
});
