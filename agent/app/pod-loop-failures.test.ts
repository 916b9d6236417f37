import { expect, it } from 'vitest';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { silentLog } from '../../test/support/agent-api.ts';
import { apiInMemory, NODES, node, pod, podsIn } from '../../test/support/api-in-memory.ts';
import { noHeartbeats } from '../../test/support/memory-heartbeat-file.ts';
import { memoryRuntime } from '../../test/support/memory-runtime.ts';
import { EDGE_1, sendAsEdge1 } from '../../test/support/node-api.ts';
import { podLoopParts } from '../../test/support/pod-loop-parts.ts';
import { SteppedTime, settle } from '../../test/support/stepped-time.ts';
import type { KubeAnswer, KubeRequest } from '../ports/kube-api.ts';
import { createPodLoop } from './pod-loop.ts';

it('failures of a pod are counted from one again after a success', async () => {
  const server = apiInMemory({
    users: EDGE_1,
  });
  const time = new SteppedTime(server.nowMs());
  const runtime = memoryRuntime(time);
  const attempts: unknown[] = [];
  let isAway = false;
  const send = async (request: KubeRequest): Promise<KubeAnswer> => {
    if (isAway && request.method === 'PATCH') return { kind: 'answered', status: 503, body: {} };
    return sendAsEdge1(server, request);
  };
  const loop = createPodLoop({
    ...podLoopParts,
    api: { send, reconnect() {} },
    runtime,
    heartbeats: noHeartbeats(time),
    time,
    log: { ...silentLog, warn: (_, fields) => void attempts.push(fields?.['attempt']) },
  });
  const pass = async (milliseconds: number): Promise<void> => {
    for (let passedMs = 0; passedMs < milliseconds; passedMs += 500) {
      await time.pass(500);
      for (let turn = 0; turn < 60; turn += 1) await settle();
    }
  };
  await server.send('POST', NODES, { body: node('edge-1') });
  await server.send('PATCH', `${NODES}/edge-1/status`, {
    contentType: 'application/merge-patch+json',
    body: { status: { allocatable: { cpu: '2', memory: '4Gi', pods: '3', 'ephemeral-storage': '10Gi' } } },
  });
  const made = await server.send('POST', podsIn('default'), {
    body: pod('web', { spec: { nodeName: 'edge-1', ...pod('web').spec } }),
  });
  expect(made.code).toBe(201);
  runtime.failStarts = 2;
  const stop = new AbortController();
  const running = loop.run(stop.signal);
  await pass(5_000);
  expect(attempts).toEqual([1, 2]);
  const web = async () => (await server.send('GET', `${podsIn('default')}/web`)).body as KubeObject;
  expect((await web()).status?.['phase']).toBe('Running');

  isAway = true;
  runtime.setState('web', 'main', {
    kind: 'terminated',
    exitCode: 1,
    reason: 'Error',
    startedAtMs: time.nowMs(),
    finishedAtMs: time.nowMs(),
  });
  await pass(500);
  expect(attempts).toEqual([1, 2, 1]);
  isAway = false;
  await pass(1_000);
  expect(attempts).toEqual([1, 2, 1]);
  expect((await web()).status).toMatchObject({ containerStatuses: [{ ready: false }] });
  stop.abort();
  await running;
});
