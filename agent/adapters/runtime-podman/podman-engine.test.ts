/** Runs of a container, with processes of this machine in place of those of podman. */
import { randomUUID } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Container, KubePod } from '../../../shared/kinds/types.ts';
import { silentLog } from '../../../test/support/agent-api.ts';
import { scaledTime } from '../../../test/support/scaled-time.ts';
import { until } from '../../../test/support/until.ts';
import type { ContainerMount } from '../../ports/container-inputs.ts';
import type { ContainerState, PodRuntime, StreamedCommand } from '../../ports/pod-runtime.ts';
import { podmanRuntime } from './runtime-podman.ts';

const UID = randomUUID();
const NAME = `nodekeeper-${UID}-main`;
/** The 10 s in which killed processes must be away are 2 s of a busy machine. */
const TIME_FACTOR = 5;
const soon = { withinMs: 20_000, everyMs: 5 };
const podWith = (fields: Container = {}, spec: object = {}): KubePod => ({
  metadata: { name: 'web', namespace: 'shop', uid: UID },
  spec: {
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'main', image: 'registry.example/web:1', ...fields }],
    ...spec,
  },
});

let directory: string;
let runtime: PodRuntime;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'nodekeeper-podman-'));
});
afterEach(async () => {
  await runtime.stop(UID, 0);
  await runtime.close();
  rmSync(directory, { recursive: true, force: true });
});

/**
 * A podman: each of its containers is a process of `program`. `inspected` is what it says about a container, and may
 * change. `script` runs before its answer to a call.
 */
function open({
  script = '',
  program = 'exec sleep 300',
  image = {},
}: {
  readonly script?: string;
  readonly program?: string;
  readonly image?: object;
} = {}): PodRuntime {
  writeFileSync(join(directory, 'program'), program);
  inspected({ Status: 'running' });
  const text = `#!/bin/bash
echo "$@" >> ${directory}/calls
${script}
case "$1 $2" in
  'image inspect') echo '${JSON.stringify([{ Config: image }])}' ;;
  'container inspect') cat ${directory}/inspected-$3 2>/dev/null || cat ${directory}/inspected- ;;
  'create '*)
    for word; do
      if [ "$previous" = --pidfile ]; then
        /bin/bash ${directory}/program </dev/null >/dev/null 2>&1 &
        echo $! > "$word"
      fi
      previous=$word
    done
    echo " $(grep -c ^create ${directory}/calls)abcd " ;;
  'exec '*)
    while [ "\${1#${NAME}}" = "$1" ]; do
      if [ "$1" = --env ]; then shift; export "$1"; fi
      shift
    done
    shift
    exec "$@" ;;
esac`;
  const path = join(directory, 'podman');
  writeFileSync(path, text, { mode: 0o755 });
  runtime = podmanRuntime({
    rootDirectory: join(directory, 'root'),
    time: scaledTime(TIME_FACTOR),
    log: silentLog,
    hostIp: () => undefined,
    limits: {
      swap: { cgroupVersion: 2, controllerPresent: true, swapBehavior: 'NoSwap', memoryBytes: 8e9, swapBytes: 0 },
      enforceCpuLimits: true,
      podPidsMax: 64,
    },
    program: path,
  });
  return runtime;
}

const ownFile = (name: string): string => join(directory, 'root/pods', UID, name);
/** Written at once: podman reads it at any time. */
function inspected(state: object, name = ''): void {
  const text = JSON.stringify([{ State: state, NetworkSettings: { IPAddress: '10.88.0.7' } }]);
  writeFileSync(join(directory, 'next'), text);
  renameSync(join(directory, 'next'), join(directory, `inspected-${name}`));
}

const calls = (command: string): readonly string[] =>
  existsSync(join(directory, 'calls'))
    ? readFileSync(join(directory, 'calls'), 'utf8')
        .split('\n')
        .filter((line) => line.startsWith(command))
    : [];

const shown = async () => (await runtime.pods())[0]?.containers[0];
const stateOf = <Kind extends ContainerState['kind']>(kind: Kind): Promise<Extract<ContainerState, { kind: Kind }>> =>
  until(
    async () => {
      const state = (await shown())?.state;
      return state?.kind === kind ? (state as Extract<ContainerState, { kind: Kind }>) : undefined;
    },
    { ...soon, what: kind },
  );
const pid = (): number => Number.parseInt(readFileSync(ownFile('main.pid'), 'utf8'), 10);
const kill = (): boolean => process.kill(pid(), 'SIGKILL');

/** Starts it, and waits until its first process is known: a mark of it is in the record. */
async function started(pod: KubePod): Promise<void> {
  await runtime.start(pod);
  await stateOf('running');
}

describe('a container that has exited', () => {
  const later = new Date(Date.now() + 3_600_000).toISOString();

  it('is terminated with its exit code, its signal, and the time of its end', async () => {
    const cases: readonly (readonly [object, object, number])[] = [
      [{ Status: 'exited', ExitCode: 0 }, { exitCode: 0, reason: 'Completed' }, 0],
      [{ Status: 'stopped', ExitCode: 3 }, { exitCode: 3, reason: 'Error' }, 0],
      [{ Status: 'exited', ExitCode: 128 }, { exitCode: 128, reason: 'Error' }, 0],
      [{ Status: 'removing', ExitCode: 129 }, { exitCode: 129, reason: 'Error', signal: 1 }, 0],
      [{ Status: 'exited' }, { exitCode: 137, reason: 'Error', signal: 9 }, 0],
      [{ Status: 'exited', ExitCode: 137, OOMKilled: true }, { exitCode: 137, reason: 'OOMKilled', signal: 9 }, 0],
      [{ Status: 'exited', ExitCode: 0, FinishedAt: later }, { exitCode: 0, reason: 'Completed' }, Date.parse(later)],
      [{ Status: 'exited', ExitCode: 0, FinishedAt: '2020-01-01T00:00:00Z' }, { exitCode: 0, reason: 'Completed' }, 0],
    ];
    open({ program: 'exit' });
    const containers = cases.map((_, index) => ({ name: `c${index}`, image: 'registry.example/web:1' }));
    for (const [index, [inspect]] of cases.entries()) inspected(inspect, `${NAME.replace(/main$/, `c${index}`)}-0`);
    await runtime.start(podWith({}, { containers }));
    const ended = await until(
      async () => {
        const found = (await runtime.pods())[0]?.containers.map(({ state }) => state) ?? [];
        return found.length > 0 && found.every(({ kind }) => kind === 'terminated') ? found : undefined;
      },
      { ...soon, what: 'ends' },
    );
    for (const [index, [, expected, finishedAtMs]] of cases.entries()) {
      const state = ended[index];
      const startedAtMs = state?.kind === 'terminated' ? state.startedAtMs : 0;
      const times = { startedAtMs, finishedAtMs: finishedAtMs === 0 ? startedAtMs : finishedAtMs };
      expect(state).toEqual({ kind: 'terminated', ...times, ...expected });
    }
  });

  it.each(['is not known to have exited', 'cannot be inspected'])(
    'but %s is terminated with an unknown exit, after 5 s',
    async (how) => {
      const script = `[ ! -e ${directory}/broken ] || [ "$1" != container ] || exit 125`;
      open({ script });
      await started(podWith());
      const { startedAtMs } = await stateOf('running');
      if (how.startsWith('cannot')) writeFileSync(join(directory, 'broken'), '');
      kill();
      const ended = await stateOf('terminated');
      expect(ended).toMatchObject({ exitCode: 137, reason: 'ContainerStatusUnknown', startedAtMs });
      // Two seconds of the agent may pass until it looks, and each look is a process.
      expect(ended.finishedAtMs - startedAtMs).toBeGreaterThanOrEqual(5_000);
      expect(calls('container inspect').length).toBeGreaterThan(2);
    },
  );

  it('has the end of its output as message when that is asked for', async () => {
    open();
    await started(podWith({ terminationMessagePolicy: 'FallbackToLogsOnError' }));
    const at = '2026-01-01T00:00:00.000000000+00:00';
    writeFileSync(ownFile('main.0.log'), `${at} stdout F one\n${at} stderr F ${'x'.repeat(3_000)} last\n`);
    inspected({ Status: 'exited', ExitCode: 1 });
    kill();
    const { message = '' } = await stateOf('terminated');
    expect([message.length, message.slice(-6)]).toEqual([2_048, ' last\n']);
  });

  it.each([
    ['/dev/termination-log', {}],
    ['/dev/termination-log', { terminationMessagePath: '' }],
    ['/dev/own', { terminationMessagePath: '/dev/own' }],
  ])('has the message that it wrote to %s', async (target, fields) => {
    const copy = `for word; do [ "$before" != --env-file ] || cp "$word" ${directory}/env; before=$word; done`;
    open({ script: copy });
    await started(podWith(fields));
    expect(calls('create')[0]).toContain(` --volume ${ownFile('main.termination-log')}:${target}:rw,rslave `);
    expect(readFileSync(join(directory, 'env'), 'utf8').split('\n').sort()).toEqual([
      ...['', `NODEKEEPER_CONTAINER=${UID}/main/0`, `NODEKEEPER_TERMINATION_LOG=${target}`],
    ]);
    writeFileSync(ownFile('main.termination-log'), 'out of paper');
    inspected({ Status: 'exited', ExitCode: 1 });
    kill();
    expect(await stateOf('terminated')).toMatchObject({ message: 'out of paper' });
  });

  it('starts again in a new container, and the one before is removed', async () => {
    open();
    await started(podWith({}, { restartPolicy: 'Always' }));
    expect(await shown()).toMatchObject({ restartCount: 0, containerId: 'podman://1abcd' });
    inspected({ Status: 'exited', ExitCode: 1 });
    kill();
    await until(async () => (await shown())?.restartCount === 1 && (await shown())?.state.kind === 'running', soon);
    expect(await shown()).toMatchObject({ containerId: 'podman://2abcd', lastState: { exitCode: 1 } });
    await until(() => calls('rm').length > 0, soon);
    expect([calls('rm'), calls('start').slice(1)]).toEqual([
      [`rm --force --ignore --time 0 ${NAME}-0`],
      [`start ${NAME}-0`, `start ${NAME}-1`],
    ]);
    expect(calls('create')).toHaveLength(2);
  });
});

describe('a container that cannot be started', () => {
  it.each([
    [126, 126],
    [127, 127],
    [125, 128],
  ])('by exit code %i of podman has exit code %i', async (code, exitCode) => {
    open({ script: `case "$1 $2" in start*-main-0) exit ${code} ;; esac` });
    await runtime.start(podWith());
    const { startedAtMs, finishedAtMs, ...state } = await stateOf('terminated');
    expect(state).toEqual({
      kind: 'terminated',
      exitCode,
      reason: 'ContainerCannotRun',
      message: `${directory}/podman start ${NAME}-0: ${code}`,
    });
    expect(finishedAtMs).toBe(startedAtMs);
    expect(await shown()).toMatchObject({ restartCount: 0, containerId: 'podman://1abcd' });
  });

  it('waits when podman fails, and is tried again', async () => {
    open({ script: `[ "$1" != create ] || [ -e ${directory}/works ] || { echo "no space" >&2; exit 125; }` });
    await runtime.start(podWith());
    const waiting = await until(async () => {
      const state = (await shown())?.state;
      return state?.kind === 'waiting' && state.message !== undefined ? state : undefined;
    }, soon);
    expect(waiting).toMatchObject({ reason: 'CreateContainerError', message: expect.stringMatching(/no space$/) });
    writeFileSync(join(directory, 'works'), '');
    await stateOf('running');
    expect(calls('rm')).toEqual([]);
  });
});

it.each([
  ['SIGUSR1', 'SIGUSR1'],
  ['', 'SIGTERM'],
  ['SIGNONE', 'SIGTERM'],
])('an image with the stop signal "%s" is stopped by %s', async (StopSignal, name) => {
  const trap = (signal: string): string => `trap 'echo ${signal} > ${directory}/signal; exit' ${signal.slice(3)}\n`;
  const program = `${trap('SIGTERM')}${trap('SIGUSR1')}echo > ${directory}/trapped; while :; do sleep 0.01; done`;
  open({ program, image: { StopSignal } });
  await started(podWith());
  await until(() => existsSync(join(directory, 'trapped')), soon);
  inspected({ Status: 'exited', ExitCode: 0 });
  await runtime.stop(UID, 100);
  expect(readFileSync(join(directory, 'signal'), 'utf8')).toBe(`${name}\n`);
  expect(calls('pod stop')).toEqual([`pod stop --ignore --time 0 nodekeeper-${UID}`]);
});

it('a pod that is stopped while a container is created starts none, and leaves none', async () => {
  open({ script: `if [ "$1" = create ]; then while [ ! -e ${directory}/go ]; do sleep 0.01; done; fi` });
  await runtime.start(podWith());
  await until(() => calls('create').length > 0, soon);
  const stopped = runtime.stop(UID, 30);
  writeFileSync(join(directory, 'go'), '');
  await stopped;
  expect(calls('start')).toEqual([`start nodekeeper-${UID}-infra`]);
  expect((await shown())?.state.kind).toBe('waiting');
});

describe('a command in a container', () => {
  it('has its output and its exit code', async () => {
    open();
    await started(podWith());
    const run = (script: string, timeoutMs = 200_000) =>
      runtime.execute!(UID, 'main', ['/bin/sh', '-c', script], timeoutMs);
    expect(await run('echo out; echo err >&2; exit 3')).toEqual({ kind: 'exited', exitCode: 3, output: 'out\nerr\n' });
    expect(await run('echo " no such container " >&2; exit 125')).toEqual({
      kind: 'failed',
      message: 'no such container',
    });
    expect(await run(`(sleep 300 & echo $! > ${directory}/child); exec sleep 300`, 10_000)).toEqual({
      kind: 'timedOut',
    });
    const child = readFileSync(join(directory, 'child'), 'utf8').trim();
    await until(
      () => !existsSync(`/proc/${child}`) || /\nState:\tZ/.test(readFileSync(`/proc/${child}/status`, 'utf8')),
      soon,
    );
  });

  it.each<[Partial<StreamedCommand>, string, string]>([
    [{}, 'exec', ''],
    [{ tty: true, stdin: true }, 'exec --interactive --tty', 'typed'],
  ])('that somebody follows with %j', async (more, call, input) => {
    open();
    await started(podWith());
    const command = ['/bin/sh', '-c', 'read line; echo "got <$line>"'];
    const running = await runtime.open!(UID, { container: 'main', command, stdin: false, tty: false, ...more });
    if (more.stdin === true) await running.write(Buffer.from('typed\n'));
    const pieces: Uint8Array[] = [];
    for await (const piece of running.stdout) pieces.push(piece);
    expect(Buffer.concat(pieces).toString()).toContain(`got <${input}>`);
    expect(await running.exitCode).toBe(0);
    expect(calls('exec')[0]).toMatch(new RegExp(`^${call} --env NODEKEEPER_COMMAND=[-0-9a-f]{36} ${NAME}-0 /bin/sh `));
  });
});

describe('a part of a volume', () => {
  const mountOf = (target: string, more: Partial<ContainerMount> = {}): ContainerMount => {
    const { dev, ino } = lstatSync(join(directory, 'volume'), { bigint: true });
    return {
      source: directory,
      target,
      isFile: false,
      readOnly: false,
      isPart: true,
      identity: `${dev}:${ino}`,
      ...more,
    };
  };
  const inputs = (...mounts: readonly ContainerMount[]) =>
    runtime.useInputs?.({
      inputsOf: () => ({ kind: 'ready', variables: {}, mounts }),
      readMissing: async () => undefined,
    });

  beforeEach(() => {
    mkdirSync(join(directory, 'volume'));
    symlinkSync(join(directory, 'volume'), join(directory, 'absolute'));
    symlinkSync('./x/../../volume', join(directory, 'loopless'));
    mkdirSync(join(directory, 'x'));
    symlinkSync('../volume', join(directory, 'x/relative'));
    symlinkSync('endless', join(directory, 'endless'));
    mkdirSync(join(directory, 'other'));
  });

  it('is mounted when the container sees it there', async () => {
    open();
    const paths = ['volume', 'absolute', 'x/relative', 'x/../volume', './volume/'];
    inputs(...paths.map((path) => mountOf(`${directory}/${path}`)));
    await started(podWith());
    expect([calls('init'), calls('rm')]).toEqual([[`init ${NAME}-0`], []]);
  });

  it.each(['other', 'endless', 'none'])('that became %s keeps the container from starting', async (path) => {
    open();
    inputs(mountOf(`${directory}/${path}`));
    await runtime.start(podWith());
    const waiting = await until(async () => {
      const state = (await shown())?.state;
      return state?.kind === 'waiting' && state.message !== undefined ? state : undefined;
    }, soon);
    expect(waiting).toEqual({
      kind: 'waiting',
      reason: 'CreateContainerConfigError',
      message: `volumeMount ${directory}/${path}: the volume changed while it was mounted`,
    });
    expect(calls('rm')[0]).toBe(`rm --force --ignore --time 0 ${NAME}-0`);
    expect(calls('start')).toEqual([`start nodekeeper-${UID}-infra`]);
  });

  it('needs no check as a whole volume, or as a path of the machine', async () => {
    open();
    const { identity: _, ...ofMachine } = mountOf(`${directory}/none`);
    inputs(ofMachine, mountOf(`${directory}/none`, { isPart: false }));
    await started(podWith());
    expect(calls('init')).toEqual([]);
  });
});
