/**
 * Every call of the agent to its disk may fail. Each run of a scenario makes the next one fail, until a run has none
 * left that could; and what cannot be written now is written when the disk works again. An unhandled error fails the
 * test by itself.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createNodeIdentity } from '../../agent/adapters/identity/node-identity.ts';
import { markedProcesses } from '../../agent/adapters/runtime-exec/process-table.ts';
import { execRuntime } from '../../agent/adapters/runtime-exec/runtime-exec.ts';
import type { PodRuntime } from '../../agent/ports/pod-runtime.ts';
import type { NodePublicKey } from '../../shared/access/node-identity.ts';
import { thumbprintOf } from '../../shared/access/public-keys.ts';
import { podIn, shellPod, uidOf } from '../contract/pod-runtime.ts';
import { answered, scriptedApi, silentLog } from '../support/agent-api.ts';
import { DISK_FAULTS, diskFaults, eachCall } from '../support/disk-faults.ts';
import { scaledTime } from '../support/scaled-time.ts';
import { until } from '../support/until.ts';

vi.mock('node:fs', async (original) => (await import('../support/disk-faults.ts')).faultyFs(original));

const soon = { withinMs: 30_000, everyMs: 5 };

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'nodekeeper-faults-'));
});
afterEach(() => {
  diskFaults.release();
  rmSync(root, { recursive: true, force: true });
});

async function startedAtLast(runtime: PodRuntime, pod: ReturnType<typeof shellPod>): Promise<void> {
  for (let number = 0; ; number += 1) {
    try {
      await runtime.start(pod);
      return;
    } catch (cause) {
      // The pod loop does the same; a fault that lasts ends here.
      if (number === 2) diskFaults.release();
      if (number > 20) throw cause;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

/** A container that crashes and is started again, a stop, a removal, and the next agent. */
const lifeOfAPod = (n: number): Promise<void> =>
  life(n, shellPod(['exit 1'], { restartPolicy: 'Always' }), (container) => {
    return container?.state.kind === 'waiting' && container.state.reason === 'CrashLoopBackOff';
  });

/** The same with a failed postStart hook. The container is terminated for it, after its preStop hook. */
function lifeWithHooks(n: number): Promise<void> {
  const hook = (script: string) => ({ exec: { command: ['/bin/sh', '-c', script] } });
  const pod = shellPod(['while :; do sleep 0.05; done'], { restartPolicy: 'Never', terminationGracePeriodSeconds: 1 });
  const lifecycle = { postStart: hook('echo hook; exit 1'), preStop: hook('echo ending') };
  const { containers } = pod.spec as { readonly containers: readonly object[] };
  const hooked = { ...pod, spec: { ...pod.spec, containers: containers.map((each) => ({ ...each, lifecycle })) } };
  return life(n, hooked, (container) => container?.state.kind === 'terminated');
}

type Container = NonNullable<Awaited<ReturnType<typeof podIn>>>['containers'][number];

async function life(
  n: number,
  pod: ReturnType<typeof shellPod>,
  isLived: (container: Container | undefined) => boolean | undefined,
): Promise<void> {
  // The 10 s in which killed processes must be away are 250 ms of a busy machine.
  const time = scaledTime(40);
  const options = { rootDirectory: root, time, log: silentLog, hostIp: () => undefined };
  const runtime = execRuntime(options);
  const what = `call ${n}`;
  await startedAtLast(runtime, pod);
  await until(async () => isLived((await podIn(runtime, pod))?.containers[0]), soon).catch(() => undefined);
  // Where /proc cannot be read, the answer is that nothing is known.
  const stopped = await runtime.stop(uidOf(pod), 1).then(
    () => 'stopped',
    (error: Error) => error.message,
  );
  expect(stopped, what).toMatch(/^stopped$|EMFILE/);
  const failed = diskFaults.release();
  await runtime.stop(uidOf(pod), 1);
  await until(() => runtime.complaint?.() === undefined, { ...soon, what: `${what}: no complaint` });
  await runtime.remove(uidOf(pod));
  expect(existsSync(join(root, 'pods', uidOf(pod))), what).toBe(false);
  await until(() => markedProcesses().every(({ mark }) => !mark.startsWith(uidOf(pod))), { ...soon, what });
  await runtime.close();
  const next = execRuntime(options);
  expect(await next.pods(), what).toEqual([]);
  expect(next.complaint?.()).toBeUndefined();
  await next.close();
  diskFaults.failed = failed;
}

describe('pods as processes', () => {
  // A life costs several processes, so each call fails once, with one of the codes.
  it('live and end though a call fails', { timeout: 120_000 }, async () => {
    expect(await eachCall(root, ['ENOSPC', 'EMFILE', 'EIO'], lifeOfAPod)).toBeGreaterThan(10);
  });

  it('end after a failed hook though a call fails', { timeout: 120_000 }, async () => {
    expect(await eachCall(root, ['ENOSPC', 'EMFILE', 'EIO'], lifeWithHooks)).toBeGreaterThan(10);
  });
});

describe('the identity of the machine', () => {
  const addedAt = '2026-01-01T00:00:00Z';

  it.each(DISK_FAULTS)('is never one that the disk does not have, though a call fails with %s', async (code) => {
    const calls = await eachCall(root, [code], async (n) => {
      const rootDirectory = join(root, String(n));
      const api = scriptedApi(({ body }) => {
        const keyId = thumbprintOf((body as { spec: { publicKey: NodePublicKey } }).spec.publicKey);
        return answered(200, { metadata: {}, spec: { keys: [{ keyId, addedAt }] } });
      });
      const time = scaledTime(1_000);
      const config = { nodeName: 'edge-7', clusterId: 'c1', rootDirectory, bootstrapToken: 'abc.secret' };
      const start = () => createNodeIdentity(config, { time, log: silentLog, bootstrapApi: api });
      const identity = start();
      const bearer = () => identity.bearer({ kind: 'all' });
      await until(() => bearer().then(() => true), soon);
      await until(() => identity.keys?.makeNext().then(() => true), soon);
      identity.keys?.signWithNext();
      // The check follows the rotation: the disk has the last word on what was done.
      await until(async () => {
        const held = await identity.keys?.held();
        if (held?.next !== undefined) await identity.keys?.adoptNext();
        return true;
      }, soon);
      const signing = identity.keys?.signingKeyId();
      const failed = diskFaults.release();
      await until(() => bearer().then(() => identity.complaint() === undefined), soon);
      const next = start();
      await next.bearer({ kind: 'all' });
      expect(next.keys?.signingKeyId(), `${code} at call ${n}`).toBe(signing);
      diskFaults.failed = failed;
    });
    expect(calls).toBeGreaterThan(10);
  });
});
