import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execRuntime } from '../../agent/adapters/runtime-exec/runtime-exec.ts';
import { noRuntime } from '../../agent/adapters/runtime-none/runtime-none.ts';
import { podmanRuntime } from '../../agent/adapters/runtime-podman/runtime-podman.ts';
import { silentLog } from '../support/agent-api.ts';
import { realTime } from '../support/real-time.ts';
import { definePodRuntimeContract, uidOf } from './pod-runtime.ts';

definePodRuntimeContract('none', {
  open: async () => ({ runtime: noRuntime(), dispose: async () => {} }),
  output: async () => '',
});

let execDirectory = '';

definePodRuntimeContract('exec', {
  output: async (pod) => readFileSync(join(execDirectory, 'pods', uidOf(pod), 'c0.0.log'), 'utf8'),
  ...(process.platform === 'linux' ? {} : { skip: 'processes are identified by /proc' }),
  open: async () => {
    const rootDirectory = mkdtempSync(join(tmpdir(), 'nodekeeper-exec-'));
    execDirectory = rootDirectory;
    const runtime = execRuntime({ rootDirectory, time: realTime, log: silentLog, hostIp: () => '192.0.2.7' });
    return {
      runtime,
      async dispose() {
        await Promise.all((await runtime.pods()).map(({ uid }) => runtime.stop(uid, 0)));
        await runtime.close();
        rmSync(rootDirectory, { recursive: true, force: true });
      },
    };
  },
});

/** Why no container can be started here; undefined when one can. */
function podmanMissing(): string | undefined {
  const found = spawnSync('podman', ['run', '--rm', 'docker.io/library/busybox:1', 'true'], { timeout: 60_000 });
  if (found.error !== undefined) return `podman: ${found.error.message}`;
  return found.status === 0 ? undefined : `podman cannot run a container: ${found.stderr.toString().slice(0, 200)}`;
}

const skip = podmanMissing();
definePodRuntimeContract('podman', {
  ...(skip === undefined ? {} : { skip }),
  patienceMs: 60_000,
  output: async (pod) => String(spawnSync('podman', ['logs', `nodekeeper-${uidOf(pod)}-c0`]).stdout),
  open: async () => {
    const swap = { cgroupVersion: 2, controllerPresent: true, swapBehavior: '', memoryBytes: 0, swapBytes: 0 } as const;
    const limits = { swap, enforceCpuLimits: true, podPidsMax: undefined };
    const runtime = podmanRuntime({ time: realTime, log: silentLog, limits });
    return {
      runtime,
      async dispose() {
        for (const { uid } of await runtime.pods()) {
          await runtime.stop(uid, 0);
          await runtime.remove(uid);
        }
        await runtime.close();
      },
    };
  },
});
