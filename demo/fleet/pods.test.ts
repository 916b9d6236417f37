import { describe, expect, it } from 'vitest';
import { podRequests } from './pods.ts';

const nowMs = Date.UTC(2026, 0, 1);
const machine = { name: 'n', zone: 'a', zoneIndex: 0, index: 0 };
const pod = (more: { metadata?: object; status?: object }) => ({
  metadata: { name: 'p', namespace: 'default', uid: 'uid-1', ...more.metadata },
  spec: { containers: [{ name: 'main', image: 'web' }] },
  status: { phase: 'Pending', ...more.status },
});

describe('the pods of a simulated machine', () => {
  it('are said to run as soon as they are bound', () => {
    expect(podRequests([pod({})], machine, nowMs)).toMatchObject([
      {
        method: 'PATCH',
        path: '/api/v1/namespaces/default/pods/p/status',
        body: {
          status: {
            phase: 'Running',
            hostIP: '10.16.0.10',
            podIP: '10.128.0.1',
            containerStatuses: [{ name: 'main', ready: true }],
          },
        },
      },
      {
        method: 'POST',
        path: '/api/v1/namespaces/default/events',
        body: { reason: 'Started', source: { component: 'kubelet', host: 'n' }, involvedObject: { uid: 'uid-1' } },
      },
    ]);
  });

  it('wait for an image that cannot be pulled, and are reported once', () => {
    const absent = { ...pod({}), spec: { containers: [{ name: 'main', image: 'web:404' }] } };
    const [report, ...more] = podRequests([absent], machine, nowMs);
    expect(more).toEqual([]);
    const status = (report as { body: { status: Record<string, unknown> } }).body.status;
    expect(status).toMatchObject({
      phase: 'Pending',
      containerStatuses: [{ ready: false, state: { waiting: { reason: 'ErrImagePull' } } }],
    });
    expect(podRequests([{ ...absent, status }], machine, nowMs)).toEqual([]);
    const fixed = { ...absent, spec: { containers: [{ name: 'main', image: 'web' }] }, status };
    expect(podRequests([fixed], machine, nowMs)[0]).toMatchObject({ body: { status: { phase: 'Running' } } });
  });

  it('are left alone when they run, or have ended', () => {
    const running = pod({ status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } });
    expect(podRequests([running, pod({ status: { phase: 'Failed' } })], machine, nowMs)).toEqual([]);
  });

  it('are reported again after their spec changed', () => {
    const status = { phase: 'Running', observedGeneration: 1, conditions: [{ type: 'Ready', status: 'True' }] };
    const at = (generation: number) => podRequests([pod({ metadata: { generation }, status })], machine, nowMs);
    expect(at(1)).toEqual([]);
    const ready = { type: 'Ready', status: 'True', observedGeneration: 2 };
    const conditions = expect.arrayContaining([expect.objectContaining(ready)]);
    expect(at(2)).toMatchObject([{ method: 'PATCH', body: { status: { observedGeneration: 2, conditions } } }]);
  });

  it('are said to be ready again after their node was silent', () => {
    const marked = pod({ status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'False' }] } });
    expect(podRequests([marked], machine, nowMs)).toHaveLength(1);
  });

  it('keep the time at which their containers started', () => {
    const running = { startedAt: '2025-12-31T23:00:00Z' };
    const conditions = [{ type: 'Ready', status: 'False' }];
    const containerStatuses = [{ name: 'main', state: { running } }];
    const marked = pod({ status: { phase: 'Running', conditions, containerStatuses } });
    expect(podRequests([marked], machine, nowMs)).toMatchObject([
      { body: { status: { containerStatuses: [{ ready: true, state: { running } }] } } },
    ]);
  });

  it('are rejected if an earlier pod has their host port, and reserve no port then', () => {
    const onPort = (
      uid: string,
      created: string,
      more: { status?: object; hostIP?: string; protocol?: string } = {},
    ) => {
      const { status = {}, ...port } = more;
      return {
        ...pod({ metadata: { name: uid, uid, creationTimestamp: created }, status }),
        spec: { containers: [{ name: 'main', image: 'web', ports: [{ containerPort: 80, hostPort: 8080, ...port }] }] },
      };
    };
    const phases = (pods: Parameters<typeof podRequests>[0]) =>
      podRequests(pods, machine, nowMs).flatMap((request) => {
        const { status } = (request as { body?: { status?: { phase?: string; reason?: string } } }).body ?? {};
        return status === undefined ? [] : [[request.path?.split('/').at(-2), status.phase, status.reason]];
      });
    const [early, late] = [onPort('late', '2026-01-01T00:00:02Z'), onPort('early', '2026-01-01T00:00:01Z')];
    expect(phases([early, late, onPort('udp', '2026-01-01T00:00:03Z', { protocol: 'UDP' })])).toEqual([
      ['late', 'Failed', 'NodePorts'],
      ['early', 'Running', undefined],
      ['udp', 'Running', undefined],
    ]);
    const conditions = [{ type: 'Ready', status: 'True' }];
    const admitted = { phase: 'Running', startTime: '2026-01-01T00:00:09Z', conditions };
    const running = onPort('running', '2026-01-01T00:00:09Z', { status: admitted });
    expect(phases([onPort('p', '2026-01-01T00:00:01Z', { hostIP: '10.0.0.1' }), running])).toEqual([
      ['p', 'Failed', 'NodePorts'],
    ]);
    const over = onPort('over', '2026-01-01T00:00:01Z', { status: { phase: 'Succeeded', startTime: 'x' } });
    expect(phases([over, onPort('p', '2026-01-01T00:00:02Z')])).toEqual([['p', 'Running', undefined]]);
  });

  it('end when they are deleted, before their grace period is over', () => {
    const deleted = pod({ metadata: { deletionTimestamp: '2026-01-01T00:00:30Z' } });
    expect(podRequests([deleted], machine, nowMs)).toEqual([
      {
        method: 'DELETE',
        path: '/api/v1/namespaces/default/pods/p',
        body: {
          apiVersion: 'v1',
          kind: 'DeleteOptions',
          gracePeriodSeconds: 0,
          preconditions: { uid: 'uid-1' },
        },
      },
    ]);
  });

  it('have other resources as soon as the machine can allocate them', () => {
    const sized = (cpu: string, status = {}) => {
      const containers = [{ name: 'main', image: 'web', resources: { requests: { cpu } } }];
      return { ...pod({ metadata: { generation: 2 }, status }), spec: { containers } };
    };
    const statusIn = (requests: ReturnType<typeof podRequests>) =>
      (requests[0] as { body: { status: Record<string, unknown> } } | undefined)?.body.status;
    const small = statusIn(podRequests([sized('1')], machine, nowMs)) ?? {};
    expect(podRequests([sized('1', small)], machine, nowMs)).toEqual([]);
    expect(statusIn(podRequests([sized('2', small)], machine, nowMs))).toMatchObject({
      containerStatuses: [{ resources: { requests: { cpu: '2' } } }],
    });
    const other = { ...sized('3', small), metadata: { name: 'o', namespace: 'default', uid: 'uid-2' } };
    const full = [sized('2', small), { ...other, status: statusIn(podRequests([sized('3')], machine, nowMs)) ?? {} }];
    expect(statusIn(podRequests(full, machine, nowMs))).toMatchObject({ conditions: [{ reason: 'Deferred' }] });
    expect(statusIn(podRequests([sized('4', small)], machine, nowMs))).toMatchObject({
      conditions: [{ reason: 'Infeasible', message: expect.stringContaining('capacity: 3920') }],
    });
  });
});
