import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { podIn, STUBBORN, shellPod, uidOf } from '../../../test/contract/pod-runtime.ts';
import { silentLog } from '../../../test/support/agent-api.ts';
import { realTime } from '../../../test/support/real-time.ts';
import { until } from '../../../test/support/until.ts';
import { ProcessEngine } from './process-engine.ts';
import { recordedRuntime } from './recorded-runtime.ts';

it('a container with a failed postStart hook is killed when its termination fails, and the agent lives', async () => {
  const rootDirectory = mkdtempSync(join(tmpdir(), 'nodekeeper-hook-'));
  let isFailing = false;
  let failures = 0;
  const { runtime } = recordedRuntime({
    rootDirectory,
    time: realTime,
    log: silentLog,
    hostIp: () => undefined,
    openEngine(processes, context, callbacks) {
      const engine = new ProcessEngine(processes, context, callbacks, { time: realTime, cgroups: undefined });
      const check = engine.check.bind(engine);
      engine.check = (container) => {
        if (isFailing) {
          failures += 1;
          throw new Error('EMFILE: too many open files, /proc');
        }
        check(container);
      };
      return engine;
    },
  });
  runtime.onEvent?.((_pod, { reason }) => {
    isFailing ||= reason === 'FailedPostStartHook';
  });
  const postStart = { exec: { command: ['/bin/sh', '-c', 'exit 1'] } };
  const pod = shellPod([STUBBORN], { restartPolicy: 'Never' }, { lifecycle: { postStart } });
  await runtime.start(pod);
  const isKilled = async (): Promise<boolean> => {
    const [container] = (await podIn(runtime as never, pod))?.containers ?? [];
    return container?.state.kind === 'terminated';
  };
  await until(isKilled, { withinMs: 30_000, everyMs: 20, what: 'the container was killed' });
  expect(failures).toBeGreaterThan(0);
  isFailing = false;
  await runtime.stop(uidOf(pod), 0);
  await runtime.close();
  rmSync(rootDirectory, { recursive: true, force: true });
});
