/** What every PodRuntime must do. A runtime that refuses pods is held to refusing them. */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ContainerInputs, ContainerMount } from '../../agent/ports/container-inputs.ts';
import type {
  ContainerState,
  LogQuery,
  PodRuntime,
  RunningPod,
  StreamedCommand,
} from '../../agent/ports/pod-runtime.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { recordsOf } from '../../shared/kubernetes/normal-form.ts';
import { until } from '../support/until.ts';

export interface RuntimeUnderTest {
  readonly runtime: PodRuntime;
  /** The runtime of the next agent, after the first one was closed. */
  reopen(): PodRuntime;
  /** Ends everything that runs, and the runtime. @param last the runtime, if it was opened again */
  dispose(last?: PodRuntime): Promise<void>;
}

export interface ContractOptions {
  readonly open: () => Promise<RuntimeUnderTest>;
  /** Reason to skip the suite, decided before it is defined. */
  readonly skip?: string;
  /** Milliseconds until a container is seen to run; images may have to be fetched. */
  readonly patienceMs?: number;
  /** What container c0 of the pod has written so far. */
  readonly output: (pod: KubeObject, runtime: PodRuntime) => Promise<string>;
}

/** Has a shell, and the usual programs of busybox. */
export const IMAGE = 'docker.io/library/busybox:1';

let pods = 0;

/**
 * A pod of shell scripts, one per container; `container` is merged into each container. Its uid is unique on this
 * machine: a runtime kills every process with the uid of a pod that it stops, also one that another test file started.
 */
export function shellPod(
  scripts: readonly string[],
  spec: Record<string, unknown> = {},
  container: Record<string, unknown> = {},
): KubeObject {
  pods += 1;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `pod-${pods}`,
      namespace: 'default',
      uid: randomUUID(),
    },
    spec: {
      restartPolicy: 'Never',
      containers: scripts.map((script, index) => ({
        name: `c${index}`,
        image: IMAGE,
        imagePullPolicy: 'IfNotPresent',
        command: ['/bin/sh', '-c', script],
        ...container,
      })),
      ...spec,
    },
  };
}

export const uidOf = (pod: KubeObject): string => pod.metadata.uid ?? '';

export const podIn = async (runtime: PodRuntime, pod: KubeObject): Promise<RunningPod | undefined> =>
  (await runtime.pods()).find(({ uid }) => uid === uidOf(pod));

export const stateWithin = (
  runtime: PodRuntime,
  pod: KubeObject,
  kind: ContainerState['kind'],
  container = 'c0',
  patienceMs = 10_000,
): Promise<ContainerState> =>
  until(
    async () => {
      const found = await podIn(runtime, pod);
      const state = [...(found?.initContainers ?? []), ...(found?.containers ?? [])].find(
        ({ name }) => name === container,
      )?.state;
      return state?.kind === kind ? state : undefined;
    },
    { withinMs: patienceMs, everyMs: 20, what: `${container} ${kind}` },
  );

/** A script that runs until it is signalled, and exits at once then. */
export const OBEDIENT = 'trap "exit 0" TERM; echo ready; while true; do sleep 0.1; done';
/** One that has to be killed. */
export const STUBBORN = 'trap "" TERM; echo ready; while true; do sleep 0.1; done';

/** Whether a process of the machine has this command line, with NUL between its words. */
/** Rows and columns of the terminal that is named in a text. */
const sizeOf = (output: string): string => {
  const terminal = /\/dev\/pts\/\d+/.exec(output)?.[0] ?? '';
  return execFileSync('stty', ['-F', terminal, 'size'], { encoding: 'utf8' }).trim();
};

const runs = (commandLine: string): boolean =>
  readdirSync('/proc').some((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(commandLine);
    } catch {
      // It has exited.
      return false;
    }
  });

export function definePodRuntimeContract(name: string, options: ContractOptions): void {
  const title = `pod runtime: ${name}${options.skip === undefined ? '' : ` (skipped: ${options.skip})`}`;
  describe.skipIf(options.skip !== undefined)(title, () => {
    let under: RuntimeUnderTest;
    let runtime: PodRuntime;
    beforeEach(async () => {
      under = await options.open();
      runtime = under.runtime;
    });
    afterEach(async () => {
      await under.dispose(runtime);
    });
    const becomes = (pod: KubeObject, kind: ContainerState['kind'], container?: string) =>
      stateWithin(runtime, pod, kind, container, options.patienceMs);
    /** Its shell has set its traps. */
    const isReady = (pod: KubeObject) =>
      until(async () => (await options.output(pod, runtime)).includes('ready'), {
        withinMs: options.patienceMs ?? 10_000,
        everyMs: 20,
        what: 'a shell that is ready',
      });

    it('names itself and its version, and is ready', async () => {
      expect(runtime.version).toMatch(/^[a-z]+:\/\/.+/);
      expect(await runtime.health()).toEqual({ kind: 'ready' });
    });

    it('minds no stop and no removal of a pod that it does not know', async () => {
      await runtime.stop('11111111-0000-4000-8000-000000000000', 1);
      await runtime.remove('11111111-0000-4000-8000-000000000000');
      expect(await runtime.pods()).toEqual([]);
    });

    it('runs a pod to completion and reports its exit', async ({ skip }) => {
      const pod = shellPod(['exit 3', 'exit 0']);
      if (runtime.refusal !== undefined) {
        await expect(runtime.start(pod)).rejects.toThrow(runtime.refusal.message);
        expect(await runtime.pods()).toEqual([]);
        return skip(runtime.refusal.message);
      }
      await runtime.start(pod);
      expect(await becomes(pod, 'terminated')).toMatchObject({ exitCode: 3, reason: 'Error' });
      expect(await becomes(pod, 'terminated', 'c1')).toMatchObject({ exitCode: 0, reason: 'Completed' });
      expect(await podIn(runtime, pod)).toMatchObject({ name: pod.metadata.name, namespace: 'default' });
    });

    it('starts a running pod no second time', async ({ skip }) => {
      if (runtime.refusal !== undefined) return skip(runtime.refusal.message);
      const pod = shellPod([OBEDIENT]);
      await runtime.start(pod);
      await isReady(pod);
      const before = await becomes(pod, 'running');
      await runtime.start(pod);
      expect((await podIn(runtime, pod))?.containers).toMatchObject([{ state: before, restartCount: 0 }]);
    });

    it('terminates a pod that handles the signal, and forgets it on removal', async ({ skip }) => {
      if (runtime.refusal !== undefined) return skip(runtime.refusal.message);
      const pod = shellPod([OBEDIENT]);
      const told: string[] = [];
      runtime.onChange((uid) => told.push(uid));
      await runtime.start(pod);
      await isReady(pod);
      await runtime.stop(uidOf(pod), 20);
      expect((await podIn(runtime, pod))?.containers[0]?.state).toMatchObject({ kind: 'terminated', exitCode: 0 });
      expect(told).toContain(uidOf(pod));
      await runtime.remove(uidOf(pod));
      expect(await podIn(runtime, pod)).toBeUndefined();
    });

    it('kills what does not end in its grace period', async ({ skip }) => {
      if (runtime.refusal !== undefined) return skip(runtime.refusal.message);
      const pod = shellPod([STUBBORN]);
      await runtime.start(pod);
      await isReady(pod);
      await runtime.stop(uidOf(pod), 1);
      expect((await podIn(runtime, pod))?.containers[0]?.state).toMatchObject({ kind: 'terminated', exitCode: 137 });
    });

    it('applies the shorter of two grace periods', async ({ skip }) => {
      if (runtime.refusal !== undefined) return skip(runtime.refusal.message);
      const pod = shellPod([STUBBORN]);
      await runtime.start(pod);
      await isReady(pod);
      const first = runtime.stop(uidOf(pod), 300);
      await runtime.stop(uidOf(pod), 0);
      await first;
      expect((await podIn(runtime, pod))?.containers[0]?.state).toMatchObject({ kind: 'terminated' });
    });

    it('runs init containers one after the other before the others', async ({ skip }) => {
      if (runtime.refusal !== undefined) return skip(runtime.refusal.message);
      const shell = (script: string) => ({
        image: IMAGE,
        imagePullPolicy: 'IfNotPresent',
        command: ['/bin/sh', '-c', script],
      });
      const pod = shellPod(['exit 0'], { initContainers: [{ name: 'i0', ...shell('exit 0') }] });
      await runtime.start(pod);
      expect(await becomes(pod, 'terminated')).toMatchObject({ exitCode: 0 });
    });

    describe('with inputs', () => {
      let directory: string;
      beforeEach(({ skip }) => {
        if (runtime.refusal !== undefined) skip(runtime.refusal.message);
        directory = mkdtempSync(join(tmpdir(), 'nodekeeper-inputs-'));
      });
      afterEach(() => rmSync(directory, { recursive: true, force: true }));

      const give = (inputs: Partial<Extract<ContainerInputs, { kind: 'ready' }>>): void =>
        runtime.useInputs?.({
          inputsOf: () => ({ kind: 'ready', variables: {}, mounts: [], ...inputs }),
          readMissing: async () => undefined,
        });
      const mount = (target: string, more: Partial<ContainerMount> = {}): ContainerMount => ({
        source: directory,
        target,
        isFile: false,
        readOnly: false,
        ...more,
      });
      const ended = async (pod: KubeObject): Promise<string> => {
        await runtime.start(pod);
        await becomes(pod, 'terminated');
        return options.output(pod, runtime);
      };
      const logged = async (pod: KubeObject, more: Partial<LogQuery>): Promise<string> => {
        const query = { podUid: uidOf(pod), container: 'c0', previous: false, follow: false, timestamps: false };
        const pieces: Uint8Array[] = [];
        const stop = new AbortController().signal;
        for await (const piece of runtime.readLog?.({ ...query, ...more }, stop) ?? []) pieces.push(piece);
        return Buffer.concat(pieces).toString('utf8');
      };

      it('starts a container with its variables, whatever they are named and contain', async () => {
        const variables = {
          PLAIN: 'a "b" $c',
          LINES: 'one\ntwo',
          HOME: '/nowhere',
          TMPDIR: '/nowhere',
          HTTPS_PROXY: 'http://192.0.2.1:1',
          'odd.name-1': 'odd',
        };
        give({ variables });
        const script =
          'printf "%s|" "$PLAIN" "$LINES" "$HOME" "$TMPDIR" "$HTTPS_PROXY"; echo "$1"; cat /proc/$$$$/environ; true';
        const pod = shellPod([script], {}, { args: ['sh', '$(PLAIN) $$(PLAIN)'] });
        const output = await ended(pod);
        const shown = 'a "b" $c|one\ntwo|/nowhere|/nowhere|http://192.0.2.1:1|a "b" $c $(PLAIN)\n';
        expect(output).toContain(shown);
        expect(output.slice(shown.length).split('\0')).toContain('odd.name-1=odd');
      });

      it('shows directories and files of volumes, at paths with spaces too', async () => {
        writeFileSync(join(directory, 'file'), 'content\n');
        const spaced = '/tmp/nodekeeper volume with spaces';
        give({
          mounts: [
            mount('/tmp/nodekeeper-writable'),
            mount(spaced, { readOnly: true }),
            mount('/tmp/nodekeeper-file', { source: join(directory, 'file'), isFile: true, readOnly: true }),
          ],
        });
        const script = [
          'echo written > /tmp/nodekeeper-writable/new',
          `cat '${spaced}/new' /tmp/nodekeeper-file`,
          `( echo no > '${spaced}/refused' ) 2>/dev/null || echo read-only`,
        ].join('; ');
        expect(await ended(shellPod([script]))).toBe('written\ncontent\nread-only\n');
        expect(readFileSync(join(directory, 'new'), 'utf8')).toBe('written\n');
      });

      it('refuses a part of a volume that was replaced while it was mounted', async () => {
        give({ mounts: [mount('/tmp/nodekeeper-part', { identity: '1:1', isPart: true })] });
        const pod = shellPod(['cat /tmp/nodekeeper-part/*; echo ran']);
        await runtime.start(pod);
        const state = await until(
          async () => {
            const found = (await podIn(runtime, pod))?.containers[0]?.state;
            return found !== undefined && 'message' in found && found.message !== '' ? found : undefined;
          },
          { withinMs: options.patienceMs ?? 10_000, everyMs: 20, what: 'a refused mount' },
        );
        expect(state).toMatchObject({ message: expect.stringContaining('the volume changed while it was mounted') });
        expect(await options.output(pod, runtime)).toBe('');
      });

      it('runs as the user of its security context, with a read-only root', async () => {
        const pod = shellPod(
          ['id -u; id -G; ( echo no > /tmp/nodekeeper-refused ) 2>/dev/null || echo read-only'],
          { securityContext: { supplementalGroups: [2222] } },
          { securityContext: { runAsUser: 1234, runAsGroup: 4321, readOnlyRootFilesystem: true } },
        );
        expect(await ended(pod)).toBe('1234\n4321 2222\nread-only\n');
      });

      it('runs commands in a running container', async () => {
        give({ variables: { COLOR: 'green' }, mounts: [mount('/tmp/nodekeeper-commands')] });
        const pod = shellPod([OBEDIENT]);
        await runtime.start(pod);
        await isReady(pod);
        const execute = (script: string, timeoutMs: number) =>
          runtime.execute?.(uidOf(pod), 'c0', ['/bin/sh', '-c', script], timeoutMs);
        const script = 'echo $COLOR; touch /tmp/nodekeeper-commands/seen; echo error >&2; exit 3';
        const result = await execute(script, 30_000);
        expect(result).toMatchObject({ kind: 'exited', exitCode: 3 });
        expect(result?.kind === 'exited' && result.output.split('\n').sort()).toEqual(['', 'error', 'green']);
        expect(existsSync(join(directory, 'seen'))).toBe(true);

        const endless = 'echo $$ > /tmp/nodekeeper-commands/started; exec sleep 12345';
        expect(await execute(endless, 3_000)).toEqual({ kind: 'timedOut' });
        expect(existsSync(join(directory, 'started'))).toBe(true);
        await until(() => !runs('sleep\0' + '12345'), { withinMs: 5_000, everyMs: 50, what: 'no command' });
        expect(await execute('exit 0', 30_000)).toMatchObject({ kind: 'exited', exitCode: 0 });
      });

      describe('a command that somebody follows', () => {
        const follow = async (pod: KubeObject, script: string, more: Partial<StreamedCommand> = {}) => {
          const command = ['/bin/sh', '-c', script];
          const options = { container: 'c0', command, stdin: true, tty: false, ...more };
          const opened = await runtime.open?.(uidOf(pod), options);
          if (opened === undefined) throw new Error('this runtime opens no commands');
          return opened;
        };
        const running = async (): Promise<KubeObject> => {
          give({ variables: { COLOR: 'green' }, mounts: [mount('/tmp/nodekeeper-followed')] });
          const pod = shellPod([OBEDIENT]);
          await runtime.start(pod);
          await isReady(pod);
          return pod;
        };

        it('has its input, its output and its exit code', async () => {
          const script = 'echo $COLOR; cat; touch /tmp/nodekeeper-followed/seen; echo error >&2; exit 3';
          const command = await follow(await running(), script);
          await command.write(Buffer.from('input'));
          command.endInput();
          // Both at once: Node.js drops what has no reader when the command exits.
          const outputs = await Promise.all([text(command.stdout), text(command.stderr)]);
          expect(outputs).toEqual(['green\ninput', 'error\n']);
          expect(await command.exitCode).toBe(3);
          expect(existsSync(join(directory, 'seen'))).toBe(true);
        });

        it('has a terminal of its own, with a size', async () => {
          const script = 'echo $COLOR; tty; read line; stty size; exit 4';
          const command = await follow(await running(), script, { tty: true });
          command.resize({ columns: 101, rows: 33 });
          let output = '';
          for await (const bytes of command.stdout) {
            output += Buffer.from(bytes).toString('utf8');
            if (output.endsWith('\n') && output.includes('/dev/pts/') && !output.includes('go')) {
              // The size is set by another process.
              await until(() => sizeOf(output) === '33 101', { withinMs: 10_000, everyMs: 20, what: 'the size' });
              await command.write(Buffer.from('go\n'));
            }
          }
          expect(output).toMatch(/^green\r\n\/dev\/pts\/\d+\r\ngo\r\n33 101\r\n$/);
          expect(await command.exitCode).toBe(4);
        });

        it('is killed with all that it started', async () => {
          const command = await follow(await running(), 'setsid sleep 23456 & exec sleep 23456');
          await until(() => runs('sleep\0' + '23456'), { withinMs: 10_000, everyMs: 50, what: 'the command' });
          command.kill();
          await until(() => !runs('sleep\0' + '23456'), { withinMs: 10_000, everyMs: 50, what: 'no command' });
        });

        it('is refused in a container that does not run', async () => {
          const pod = shellPod(['exit 0']);
          await runtime.start(pod);
          await becomes(pod, 'terminated');
          await expect(follow(pod, 'true')).rejects.toThrow('container c0 is not running');
          await expect(follow(shellPod(['true']), 'true')).rejects.toThrow('is not known to this node');
        });
      });

      it('measures what a pod uses', async () => {
        const pod = shellPod([OBEDIENT]);
        await runtime.start(pod);
        await isReady(pod);
        const usage = await runtime.usage?.(uidOf(pod), true);
        expect(usage?.memoryBytes).toBeGreaterThan(10_000);
        expect(usage?.processes).toBeGreaterThan(0);
        expect(usage?.containers).toMatchObject([{ name: 'c0', storage: { inodes: expect.any(Number) } }]);
      });

      it('runs hooks after the start and before the stop', async () => {
        give({ mounts: [mount('/tmp/nodekeeper-hooks')] });
        const touch = (name: string) => ({
          exec: { command: ['/bin/sh', '-c', `echo >> /tmp/nodekeeper-hooks/${name}`] },
        });
        const lifecycle = { postStart: touch('started'), preStop: touch('stopping') };
        const pod = shellPod([OBEDIENT], {}, { lifecycle });
        await runtime.start(pod);
        await isReady(pod);
        await until(() => existsSync(join(directory, 'started')), { withinMs: 30_000, everyMs: 50, what: 'the hook' });
        expect(existsSync(join(directory, 'stopping'))).toBe(false);
        await runtime.stop(uidOf(pod), 30);
        expect(readFileSync(join(directory, 'stopping'), 'utf8')).toBe('\n');
      });

      it('restarts a container, with its last state, its termination message and its previous log', async () => {
        give({ mounts: [mount('/tmp/nodekeeper-runs')] });
        const script = [
          'echo >> /tmp/nodekeeper-runs/runs',
          'n=$(wc -l < /tmp/nodekeeper-runs/runs); echo run $n',
          'if [ $n = 1 ]; then echo the reason > "$NODEKEEPER_TERMINATION_LOG"; exit 7; fi',
          OBEDIENT,
        ].join('; ');
        const pod = shellPod([script], { restartPolicy: 'Always' });
        await runtime.start(pod);
        await until(async () => (await options.output(pod, runtime)).includes('ready'), {
          withinMs: 60_000,
          everyMs: 50,
          what: 'the second run',
        });
        const [container] = (await podIn(runtime, pod))?.containers ?? [];
        expect(container).toMatchObject({
          restartCount: 1,
          state: { kind: 'running' },
          lastState: { kind: 'terminated', exitCode: 7, reason: 'Error', message: 'the reason\n' },
        });
        expect(container?.lastContainerId).not.toBe(container?.containerId);
        expect(await logged(pod, { previous: true })).toBe('run 1\n');
        expect(await logged(pod, {})).toBe('run 2\nready\n');
      });

      it('restarts a container on request', async () => {
        const pod = shellPod([OBEDIENT], { restartPolicy: 'Always' });
        await runtime.start(pod);
        await isReady(pod);
        await runtime.restartContainer?.(uidOf(pod), 'c0', 20, 'restarted by the test');
        await until(async () => (await podIn(runtime, pod))?.containers[0]?.restartCount === 1, {
          withinMs: options.patienceMs ?? 10_000,
          everyMs: 50,
          what: 'the second run',
        });
        expect((await podIn(runtime, pod))?.containers[0]?.lastState).toMatchObject({ exitCode: 0 });
      });

      it('runs with the resources of a resize, by a restart if that is its policy, also for the next agent', async () => {
        const sized = (cpu: string, memory: string) => ({ requests: { cpu, memory }, limits: { cpu, memory } });
        const resizePolicy = [{ resourceName: 'memory', restartPolicy: 'RestartContainer' }];
        const pod = shellPod(
          [OBEDIENT],
          { restartPolicy: 'Always' },
          { resizePolicy, resources: sized('100m', '64Mi') },
        );
        const resize = async (cpu: string, memory: string) => {
          const containers = recordsOf(pod.spec?.['containers']).map((each) => ({
            ...each,
            resources: sized(cpu, memory),
          }));
          return runtime.resize?.({ ...pod, spec: { ...pod.spec, containers } });
        };
        const restarts = async () => (await podIn(runtime, pod))?.containers[0]?.restartCount;
        await runtime.start(pod);
        await isReady(pod);
        expect(await resize('200m', '64Mi')).toEqual({ kind: 'applied' });
        expect(await restarts()).toBe(0);
        expect(await resize('200m', '96Mi')).toEqual({ kind: 'applied' });
        const within = { withinMs: options.patienceMs ?? 10_000, everyMs: 50 };
        await until(async () => (await restarts()) === 1, { ...within, what: 'the restart' });
        await runtime.close();
        runtime = under.reopen();
        const found = await podIn(runtime, pod);
        expect(found?.pod?.spec?.containers).toMatchObject([{ resources: sized('200m', '96Mi') }]);
        expect(found?.containers[0]).not.toHaveProperty('resources');
      });

      it('logs with times, from a time on, and the last lines', async () => {
        const pod = shellPod(['echo one; echo two; echo three; printf unfinished']);
        await ended(pod);
        const day = new Date().toISOString().slice(0, 8);
        const lines = (await logged(pod, { timestamps: true })).split('\n');
        expect(lines.map((line) => line.slice(31))).toEqual(['one', 'two', 'three', 'unfinished']);
        for (const line of lines) expect(line).toMatch(new RegExp(`^${day}\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{9}Z `));
        expect(await logged(pod, { tailLines: 2 })).toBe('three\nunfinished');
        expect(await logged(pod, { sinceMs: Date.now() + 60_000 })).toBe('');
        expect(await logged(pod, { sinceMs: Date.now() - 600_000 })).toBe('one\ntwo\nthree\nunfinished');
        expect(await logged(pod, { limitBytes: 5 })).toBe('one\nt');
      });

      it('follows a log until the container has terminated', async () => {
        const pod = shellPod([`${OBEDIENT.replace('echo ready', 'echo ready; echo more')}`]);
        await runtime.start(pod);
        await isReady(pod);
        const followed = logged(pod, { follow: true });
        await runtime.stop(uidOf(pod), 30);
        expect(await followed).toMatch(/^ready\nmore\n/);
      });

      it('finds its pods again after a restart of the agent', async () => {
        const [kept, finished] = [shellPod([OBEDIENT]), shellPod(['sleep 2; exit 3'])];
        await runtime.start(kept);
        await runtime.start(finished);
        await isReady(kept);
        const before = await becomes(kept, 'running');
        await becomes(finished, 'running');
        await runtime.close();
        runtime = under.reopen();
        await runtime.start(kept);
        expect((await podIn(runtime, kept))?.containers).toMatchObject([{ state: before, restartCount: 0 }]);
        await becomes(finished, 'terminated');
        await runtime.stop(uidOf(kept), 20);
        expect((await podIn(runtime, kept))?.containers[0]?.state).toMatchObject({ kind: 'terminated' });
      });
    });
  });
}
