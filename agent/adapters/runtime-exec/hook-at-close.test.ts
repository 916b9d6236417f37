/**
 * An agent that ends (an update, a restart) leaves the pods as they are: it begins no hook and reports no failed one.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import type { KubePod } from '../../../shared/kinds/types.ts';
import { podIn, STUBBORN, shellPod, stateWithin, uidOf } from '../../../test/contract/pod-runtime.ts';
import { silentLog } from '../../../test/support/agent-api.ts';
import { realTime } from '../../../test/support/real-time.ts';
import { until } from '../../../test/support/until.ts';
import type { HttpResult } from '../../ports/probe-client.ts';
import { execRuntime } from './runtime-exec.ts';

const rootDirectory = mkdtempSync(join(tmpdir(), 'nodekeeper-hook-'));
const { promise: startAnswer, resolve: answerStart } = Promise.withResolvers<HttpResult>();
const requests: string[] = [];

const open = () =>
  execRuntime({
    rootDirectory,
    time: realTime,
    log: silentLog,
    hostIp: () => undefined,
    probeClient: {
      httpGet({ path }) {
        requests.push(path);
        return path === '/start' ? startAnswer : Promise.resolve({ kind: 'answered', status: 200, body: '' });
      },
      tcpConnect: async () => undefined,
    },
  });

const get = (path: string) => ({ httpGet: { path, port: 80 } });

/** The next agent ends what the pod has left. */
async function terminate(pod: KubePod): Promise<void> {
  const next = open();
  await next.stop(uidOf(pod), 0);
  await next.close();
}

afterEach(() => {
  requests.length = 0;
  rmSync(rootDirectory, { recursive: true, force: true });
});

it('while a postStart hook runs', async () => {
  const runtime = open();
  const events: string[] = [];
  runtime.onEvent?.((_pod, { reason }) => events.push(reason));
  const pod = shellPod([STUBBORN], {}, { lifecycle: { postStart: get('/start'), preStop: get('/stop') } });
  await runtime.start(pod);
  await until(() => requests.includes('/start'), { withinMs: 30_000, everyMs: 10, what: 'the hook' });
  await runtime.close();
  answerStart({ kind: 'failed', message: 'the connection was closed' });
  for (let turns = 0; turns < 10; turns += 1) await turn();
  expect(requests).toEqual(['/start']);
  expect(events).toEqual([]);
  await terminate(pod);
});

it('while a pod terminates: its sidecars keep running', async () => {
  const runtime = open();
  const sidecar = { name: 'side', command: ['/bin/sh', '-c', STUBBORN], restartPolicy: 'Always' };
  const pod = shellPod([STUBBORN], { initContainers: [{ ...sidecar, lifecycle: { preStop: get('/stop') } }] });
  await runtime.start(pod);
  await stateWithin(runtime, pod, 'running', 'side');
  await stateWithin(runtime, pod, 'running');
  const stopping = runtime.stop(uidOf(pod), 60);
  await runtime.close();
  await expect(stopping).rejects.toThrow('was released before it terminated');
  expect(requests).toEqual([]);
  expect((await podIn(runtime, pod))?.containers[0]?.state.kind).toBe('running');
  await terminate(pod);
});
