import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execRuntime } from '../../agent/adapters/runtime-exec/runtime-exec.ts';
import { noRuntime } from '../../agent/adapters/runtime-none/runtime-none.ts';
import { podmanRuntime } from '../../agent/adapters/runtime-podman/runtime-podman.ts';
import { LogUnavailableError, type PodRuntime } from '../../agent/ports/pod-runtime.ts';
import { silentLog } from '../support/agent-api.ts';
import { realTime } from '../support/real-time.ts';
import { definePodRuntimeContract, IMAGE, type RuntimeUnderTest, uidOf } from './pod-runtime.ts';

definePodRuntimeContract('none', {
  open: async () => ({ runtime: noRuntime(), reopen: noRuntime, dispose: async () => {} }),
  output: async () => '',
});

/** What a container has written. */
async function logOf(runtime: PodRuntime | undefined, podUid: string): Promise<string> {
  const query = { podUid, container: 'c0', previous: false, follow: false, timestamps: false };
  const pieces: Uint8Array[] = [];
  try {
    for await (const piece of runtime?.readLog?.(query, new AbortController().signal) ?? []) pieces.push(piece);
  } catch (cause) {
    if (!(cause instanceof LogUnavailableError)) throw cause;
  }
  return Buffer.concat(pieces).toString('utf8');
}

/** Opens a runtime in a directory of its own, which is removed with its pods. */
function openIn(prefix: string, make: (rootDirectory: string) => PodRuntime): () => Promise<RuntimeUnderTest> {
  return async () => {
    const rootDirectory = mkdtempSync(join(tmpdir(), prefix));
    const runtime = make(rootDirectory);
    return {
      runtime,
      reopen: () => make(rootDirectory),
      async dispose(last = runtime) {
        const pods = await last.pods();
        await Promise.all(pods.map(({ uid }) => last.stop(uid, 0)));
        await Promise.all(pods.map(({ uid }) => last.remove(uid)));
        await last.close();
        rmSync(rootDirectory, { recursive: true, force: true });
      },
    };
  };
}

definePodRuntimeContract('exec', {
  output: (pod, runtime) => logOf(runtime, uidOf(pod)),
  ...(process.platform === 'linux' ? {} : { skip: 'processes are identified by /proc' }),
  open: openIn('nodekeeper-exec-', (rootDirectory) =>
    execRuntime({ rootDirectory, time: realTime, log: silentLog, hostIp: () => '192.0.2.7' }),
  ),
});

/** Why no container can be started here; undefined when one can. */
function podmanMissing(): string | undefined {
  const found = spawnSync('podman', ['run', '--rm', '--pull', 'never', IMAGE, 'true'], { timeout: 60_000 });
  if (found.error !== undefined) return `podman: ${found.error.message}`;
  return found.status === 0 ? undefined : `podman cannot run a container: ${found.stderr.toString().slice(0, 200)}`;
}

const skip = podmanMissing();
definePodRuntimeContract('podman', {
  ...(skip === undefined ? {} : { skip }),
  patienceMs: 60_000,
  output: (pod, runtime) => logOf(runtime, uidOf(pod)),
  open: openIn('nodekeeper-podman-', (rootDirectory) => {
    const swap = {
      cgroupVersion: 2,
      controllerPresent: false,
      swapBehavior: '',
      memoryBytes: 0,
      swapBytes: 0,
    } as const;
    const limits = { swap, enforceCpuLimits: true, podPidsMax: undefined };
    return podmanRuntime({ rootDirectory, time: realTime, log: silentLog, hostIp: () => '192.0.2.7', limits });
  }),
});
