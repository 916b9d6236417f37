/** When the containers of a pod start, over an engine in memory. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Container, KubePod } from '../../../shared/kinds/types.ts';
import { MemoryEngine } from '../../../test/support/memory-engine.ts';
import { SteppedTime } from '../../../test/support/stepped-time.ts';
import type { PodRuntime } from '../../ports/pod-runtime.ts';
import type { RecordedRuntime } from './recorded-runtime.ts';

let rootDirectory: string;
let time: SteppedTime;
let engine: MemoryEngine;
let runtime: RecordedRuntime['runtime'];
let events: string[];
/** Pods for which missing objects were read again. */
let reads: string[];

beforeEach(() => {
  rootDirectory = mkdtempSync(join(tmpdir(), 'nodekeeper-pod-'));
  time = new SteppedTime(1_700_000_000_000);
  engine = new MemoryEngine(rootDirectory, time);
  events = [];
  reads = [];
  open();
});
afterEach(async () => {
  await runtime.close();
  rmSync(rootDirectory, { recursive: true, force: true });
});

function open(): void {
  ({ runtime } = engine.open());
  runtime.onEvent?.((_, { type, reason, message }) => events.push(`${type} ${reason}: ${message}`));
  runtime.useInputs?.({
    inputsOf: () => ({ kind: 'ready', variables: {}, mounts: [] }),
    readMissing: async (pod) => void reads.push(pod.metadata.name ?? ''),
  });
}
/** The next agent. @param boots whether the machine boots in between */
async function reopen({ boots = false } = {}): Promise<void> {
  await runtime.close();
  if (boots) engine.bootId = `${engine.bootId}+`;
  open();
}

const podOf = (
  restartPolicy: string,
  containers: readonly Container[] = [{ name: 'main' }],
  spec: object = {},
): KubePod => ({
  metadata: { name: 'web', namespace: 'shop', uid: 'u' },
  spec: { restartPolicy, containers: [...containers], ...spec } as KubePod['spec'] & object,
});
const shown = async (name = 'main') => {
  const [pod] = await runtime.pods();
  return [...(pod?.initContainers ?? []), ...(pod?.containers ?? [])].find((each) => each.name === name);
};
const stateOf = async (name?: string) => (await shown(name))?.state;
/** Starts of containers since the last question. */
const starts = (): readonly string[] =>
  engine.taken().flatMap((act) => (act.startsWith('start ') ? [act.slice(6)] : []));

describe('a container that terminates', () => {
  it.each([
    ['Always', 0, true],
    ['Always', 1, true],
    ['OnFailure', 0, false],
    ['OnFailure', 1, true],
    ['Never', 1, false],
  ])('with the policy %s and exit code %i starts again: %s', async (policy, exitCode, isRestarted) => {
    await runtime.start(podOf(policy));
    engine.exit('main', exitCode);
    await time.pass(0);
    expect(starts()).toEqual(isRestarted ? ['main', 'main'] : ['main']);
    expect(await shown()).toMatchObject({
      restartCount: isRestarted ? 1 : 0,
      state: { kind: isRestarted ? 'running' : 'terminated' },
    });
  });

  it('obeys its own policy and its rules before those of the pod', async () => {
    const restartPolicyRules = [{ action: 'Restart', exitCodes: { operator: 'In', values: [42] } }];
    await runtime.start(podOf('Always', [{ name: 'main', restartPolicy: 'Never', restartPolicyRules }]));
    engine.exit('main', 42);
    await time.pass(0);
    engine.exit('main', 1);
    await time.pass(600_000);
    expect(starts()).toEqual(['main', 'main']);
    expect(await shown()).toMatchObject({ restartCount: 1, state: { kind: 'terminated', exitCode: 1 } });
  });

  it('is an init container: its own policy decides whether the pod continues', async () => {
    const init = (restartPolicy: string) => ({ initContainers: [{ name: 'init', restartPolicy }] });
    await runtime.start(podOf('Never', undefined, init('OnFailure')));
    engine.exit('init', 1);
    await time.pass(0);
    engine.exit('init', 0);
    await time.pass(0);
    expect(starts()).toEqual(['init', 'init', 'main']);
  });

  it('waits longer each time, and at once again after a run of ten minutes', async () => {
    await runtime.start(podOf('Always'));
    engine.exit('main', 1);
    for (const waitSeconds of [10, 20, 40, 80, 160, 300, 300]) {
      expect(await stateOf()).toMatchObject({ kind: 'running' });
      engine.exit('main', 1);
      starts();
      const minutes = Math.floor(waitSeconds / 60);
      const text = minutes === 0 ? `${waitSeconds}s` : `${minutes}m${waitSeconds % 60}s`;
      expect(await stateOf()).toEqual({
        kind: 'waiting',
        reason: 'CrashLoopBackOff',
        message: `back-off ${text} restarting failed container=main pod=web_shop(u)`,
      });
      expect(await shown()).toMatchObject({
        lastState: { exitCode: 1 },
        lastContainerId: expect.stringMatching(/^test/),
      });
      await time.pass(waitSeconds * 1_000 - 1);
      expect(starts()).toEqual([]);
      await time.pass(1);
      expect(starts()).toEqual(['main']);
    }
    await time.pass(600_000);
    engine.exit('main', 1);
    expect(await stateOf()).toMatchObject({ kind: 'running' });
  });

  it('waits on with the next agent, and not after a boot', async () => {
    await runtime.start(podOf('Always'));
    engine.exit('main', 1);
    engine.exit('main', 1);
    await time.pass(4_000);
    await reopen();
    await runtime.start(podOf('Always'));
    starts();
    await time.pass(5_999);
    expect(starts()).toEqual([]);
    await time.pass(1);
    expect(starts()).toEqual(['main']);
    engine.exit('main', 1);
    await reopen({ boots: true });
    starts();
    await runtime.start(podOf('Always'));
    expect(await stateOf()).toMatchObject({ kind: 'running' });
  });

  it('is not started by a pod that has stopped, until that is started again', async () => {
    await runtime.start(podOf('Always'));
    engine.exit('main', 1);
    engine.exit('main', 1);
    starts();
    await runtime.stop('u', 10);
    expect(await stateOf()).toMatchObject({ kind: 'terminated', exitCode: 1 });
    await time.pass(60_000);
    expect(starts()).toEqual([]);
    await runtime.start(podOf('Always'));
    expect(starts()).toEqual([]);
    await time.pass(20_000);
    expect(starts()).toEqual(['main']);
  });
});

describe('a pod with a rule that restarts all containers', () => {
  const restartPolicyRules = [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [42] } }];
  const cause = { name: 'cause', restartPolicy: 'Never', restartPolicyRules };
  const preStop = { exec: { command: ['save'] } };
  const pod = podOf('Never', [{ name: 'done' }, { name: 'main', lifecycle: { preStop } }, cause], {
    initContainers: [{ name: 'init' }, { name: 'sidecar', restartPolicy: 'Always' }],
  });
  async function startAll(): Promise<void> {
    await runtime.start(pod);
    engine.exit('init');
    await time.pass(0);
    engine.exit('done');
    engine.taken();
  }
  /** The end of a killed container is noticed at the next look. */
  const LOOK_MS = 250;
  const restartsAll = async () => (await runtime.pods())[0]?.restartsAll;

  it('kills what runs, and starts from its first init container on, also what had completed', async () => {
    await startAll();
    engine.exit('cause', 42);
    expect([await restartsAll(), await stateOf('cause')]).toMatchObject([true, { kind: 'terminated', exitCode: 42 }]);
    await time.pass(LOOK_MS);
    expect(engine.taken()).toEqual(['end starts', 'SIGKILL sidecar', 'SIGKILL main', 'start init']);
    expect(events).toEqual(['sidecar', 'main'].map((name) => `Normal Killing: Stopping container ${name}`));
    expect([await restartsAll(), await shown('done')]).toMatchObject([
      false,
      { state: { kind: 'waiting', reason: 'PodInitializing' }, lastState: { exitCode: 0 }, restartCount: 0 },
    ]);
    expect(await shown('cause')).toMatchObject({ lastState: { exitCode: 42 }, lastContainerId: 'test://cause/0' });
    engine.exit('init');
    await time.pass(0);
    expect(starts()).toEqual(['sidecar', 'done', 'main', 'cause']);
    for (const name of ['init', 'sidecar', 'done', 'main', 'cause'])
      expect(await shown(name)).toHaveProperty('restartCount', 1);
  });

  it('only the cause waits, longer each time', async () => {
    await startAll();
    for (const waitSeconds of [0, 10, 20]) {
      engine.exit('cause', 42);
      await time.pass(LOOK_MS);
      engine.exit('init');
      await time.pass(0);
      expect(starts()).toEqual(['init', 'sidecar', 'done', 'main', ...(waitSeconds === 0 ? ['cause'] : [])]);
      if (waitSeconds === 0) continue;
      expect(await stateOf('cause')).toMatchObject({ reason: 'CrashLoopBackOff' });
      await time.pass(waitSeconds * 1_000 - 1);
      expect(starts()).toEqual([]);
      await time.pass(1);
      expect(starts()).toEqual(['cause']);
    }
  });

  it('tries again a kill that fails, after growing waits, with one event for each run', async () => {
    await startAll();
    engine.ignored.set('main', ['SIGKILL']);
    engine.exit('cause', 42);
    await time.pass(150_000);
    // Each attempt lasts 10 s, and then waits for 10 s, 20 s, 40 s …
    expect(engine.logged).toEqual(Array.from({ length: 4 }, () => 'warn a pod is not restarted yet'));
    expect(events).toEqual(['sidecar', 'main'].map((name) => `Normal Killing: Stopping container ${name}`));
    engine.taken();
    engine.exit('main');
    await time.pass(LOOK_MS);
    expect([await restartsAll(), starts()]).toEqual([false, ['init']]);
  });

  it('the next agent continues it', async () => {
    await startAll();
    engine.ignored.set('main', ['SIGKILL']);
    engine.exit('cause', 42);
    await time.pass(1_000);
    expect(starts()).toEqual([]);
    engine.exit('main');
    await reopen();
    await runtime.start(pod);
    await time.pass(LOOK_MS);
    expect([await restartsAll(), starts()]).toEqual([false, ['init']]);
  });

  it('no container waits after a boot', async () => {
    await startAll();
    engine.starts.set('init', (container, { onShortage }) => onShortage(container, new Error('no descriptors')));
    engine.exit('cause', 42);
    await time.pass(LOOK_MS);
    await runtime.close();
    // Of the boot before, which lasted longer.
    const file = join(rootDirectory, 'pods/u/record.json');
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(/(?<="monotonicMs":)\d+/g, '900000'));
    engine.starts.clear();
    await reopen({ boots: true });
    await runtime.start(pod);
    engine.exit('init');
    await time.pass(0);
    expect(starts().slice(-4)).toEqual(['sidecar', 'done', 'main', 'cause']);
  });

  it('a stop does not cause it', async () => {
    const exitCodes = { operator: 'In', values: [0] };
    await runtime.start(
      podOf('Never', [{ ...cause, restartPolicyRules: [{ action: 'RestartAllContainers', exitCodes }] }]),
    );
    const stopped = runtime.stop('u', 1);
    await time.pass(1_000);
    await stopped;
    expect([await restartsAll(), await stateOf('cause')]).toMatchObject([false, { exitCode: 0 }]);
  });

  it('a stop ends it', async () => {
    await startAll();
    engine.ignored.set('main', ['SIGKILL']);
    engine.exit('cause', 42);
    const stopped = runtime.stop('u', 0);
    engine.ignored.clear();
    await time.pass(1_000);
    await stopped;
    expect([await restartsAll(), starts(), await stateOf('cause')]).toMatchObject([false, [], { exitCode: 42 }]);
  });
});

describe('a container with another image', () => {
  const withImage = (image: string) => podOf('Never', [{ name: 'main', image }]);
  const acts = () => engine.taken().filter((act) => /^(?:start|SIG)/.test(act));

  it('restarts whatever its policy is, once, and the next agent has the image', async () => {
    await runtime.start(withImage('web:1'));
    await runtime.useImages?.(withImage('web:1'));
    await time.pass(1_000);
    expect(acts()).toEqual(['start main']);
    await runtime.useImages?.(withImage('web:2'));
    await runtime.useImages?.(withImage('web:2'));
    await time.pass(1_000);
    expect(acts()).toEqual(['SIGTERM main', 'start main']);
    expect(events).toEqual(['Normal Killing: Container main definition changed, will be restarted']);
    expect(await shown()).toMatchObject({ restartCount: 1, state: { kind: 'running' } });
    await reopen();
    expect((await runtime.pods())[0]?.pod?.spec?.containers).toMatchObject([{ image: 'web:2' }]);
  });

  it('does not wait for what failed with the one before', async () => {
    engine.starts.set('main', (container, { onConfigFault }) =>
      onConfigFault(container, { kind: 'notReady', reason: 'ErrImagePull', message: 'no such tag', isFinal: false }),
    );
    await runtime.start(withImage('web:typo'));
    await time.pass(500_000);
    engine.taken();
    engine.starts.clear();
    await runtime.useImages?.(withImage('web:1'));
    expect(starts()).toEqual(['main']);
  });

  it('is tried when the one before could never start', async () => {
    engine.starts.set('main', (container, { onConfigFault }) =>
      onConfigFault(container, {
        kind: 'notReady',
        reason: 'CreateContainerConfigError',
        message: 'root',
        isFinal: true,
      }),
    );
    await runtime.start(withImage('root:1'));
    engine.taken();
    engine.starts.clear();
    await runtime.useImages?.(withImage('web:1'));
    await time.pass(0);
    expect([starts(), await stateOf()]).toMatchObject([['main'], { kind: 'running' }]);
  });

  it('restarts when the one before was still pulled as the pod changed', async () => {
    let report = () => {};
    engine.starts.set('main', (container, { onStart }) => {
      report = () => {
        container.state = { kind: 'running', startedAtMs: time.nowMs() };
        container.containerId = 'test://main/0';
        onStart(container, 'web:1');
      };
    });
    await runtime.start(withImage('web:1'));
    await runtime.useImages?.(withImage('web:2'));
    report();
    await time.pass(0);
    expect(events).toEqual(['Normal Killing: Container main definition changed, will be restarted']);
  });
});

describe('a container that cannot be created', () => {
  const refuse = (isFinal: boolean) =>
    engine.starts.set('main', (container, { onConfigFault }) =>
      onConfigFault(container, {
        kind: 'notReady',
        reason: 'CreateContainerConfigError',
        message: 'secret "s" not found',
        isFinal,
      }),
    );
  const waiting = { kind: 'waiting', reason: 'CreateContainerConfigError', message: 'secret "s" not found' };

  it('is tried again when what it refers to was read again, after 10 s, 20 s … a minute', async () => {
    refuse(false);
    await runtime.start(podOf('Never'));
    expect([await stateOf(), starts(), reads]).toEqual([waiting, ['main'], []]);
    for (const waitSeconds of [10, 20, 40, 60, 60]) {
      await time.pass(waitSeconds * 1_000 - 1);
      expect([starts(), reads]).toEqual([[], []]);
      await time.pass(1);
      expect([starts(), reads.splice(0)]).toEqual([['main'], ['web']]);
    }
    engine.starts.clear();
    await time.pass(60_000);
    expect(await shown()).toMatchObject({ state: { kind: 'running' }, restartCount: 0 });
  });

  it('without its image is tried again after 10 s, 20 s … five minutes', async () => {
    engine.starts.set('main', (container, { onConfigFault }) =>
      onConfigFault(container, { kind: 'notReady', reason: 'ErrImagePull', message: 'no such tag', isFinal: false }),
    );
    await runtime.start(podOf('Never'));
    starts();
    for (const waitSeconds of [10, 20, 40, 80, 160, 300, 300]) {
      await time.pass(waitSeconds * 1_000 - 1);
      expect(starts()).toEqual([]);
      await time.pass(1);
      expect(starts()).toEqual(['main']);
    }
  });

  it('waits for good if another attempt would have the same result', async () => {
    refuse(true);
    await runtime.start(podOf('Always'));
    expect(await stateOf()).toEqual(waiting);
    await time.pass(600_000);
    expect([starts(), reads]).toEqual([['main'], []]);
  });

  it('is tried at once when the next agent has its inputs', async () => {
    refuse(false);
    await runtime.start(podOf('Never'));
    await reopen();
    engine.starts.clear();
    expect(await stateOf()).toEqual(waiting);
    await runtime.start(podOf('Never'));
    expect(await stateOf()).toMatchObject({ kind: 'running' });
  });

  it('is tried again ten seconds after the machine lacked something', async () => {
    engine.starts.set('main', (container, { onShortage }) => onShortage(container, new Error('no descriptors')));
    await runtime.start(podOf('Never'));
    expect(await stateOf()).toEqual({ kind: 'waiting', reason: 'CreateContainerError', message: 'no descriptors' });
    starts();
    await time.pass(9_999);
    expect(starts()).toEqual([]);
    await time.pass(1);
    expect([starts(), reads]).toEqual([['main'], []]);
    engine.starts.clear();
    await reopen();
    starts();
    await runtime.start(podOf('Never'));
    await time.pass(9_999);
    expect(starts()).toEqual([]);
    await time.pass(1);
    expect(starts()).toEqual(['main']);
  });

  it('is created again if the agent before ended meanwhile', async () => {
    engine.starts.set('main', (container) => {
      container.state = { kind: 'waiting', reason: 'ContainerCreating' };
      container.containerId = 'test://main/0';
    });
    await runtime.start(podOf('Never'));
    await reopen();
    starts();
    engine.starts.clear();
    await runtime.start(podOf('Never'));
    expect(starts()).toEqual(['main']);
  });
});

describe('init containers', () => {
  const initContainers = [{ name: 'one' }, { name: 'two' }];

  it.each([
    ['Always', 1, ['one', 'one']],
    ['Always', 0, ['one', 'two']],
    ['OnFailure', 1, ['one', 'one']],
    ['Never', 1, ['one']],
  ])('with the policy %s and exit code %i start %j', async (policy, exitCode, expected) => {
    await runtime.start(podOf(policy, undefined, { initContainers }));
    engine.exit('one', exitCode);
    expect(starts()).toEqual(expected);
  });

  it('run once, and the others after them', async () => {
    await runtime.start(podOf('Always', [{ name: 'main' }, { name: 'other' }], { initContainers }));
    engine.exit('one');
    engine.exit('two');
    expect(starts()).toEqual(['one', 'two', 'main', 'other']);
    engine.exit('main');
    expect(starts()).toEqual(['main']);
    await reopen();
    await runtime.start(podOf('Always', [{ name: 'main' }, { name: 'other' }], { initContainers }));
    expect(starts()).toEqual([]);
  });

  it('that are sidecars hold the next ones only while these start', async () => {
    const lifecycle = { postStart: { exec: { command: ['exit', '0'] } } };
    const sidecar: Container = { name: 'side', restartPolicy: 'Always', lifecycle };
    await runtime.start(podOf('Never', undefined, { initContainers: [sidecar, { name: 'one' }] }));
    expect(starts()).toEqual(['side']);
    await time.pass(0);
    expect(starts()).toEqual(['one']);
    engine.exit('one');
    engine.exit('side');
    expect(starts()).toEqual(['main', 'side']);
  });
});

describe('a postStart hook', () => {
  const hooked = (exitCode: number): Container => ({
    name: 'main',
    lifecycle: { postStart: { exec: { command: ['exit', String(exitCode)] } } },
  });

  it('that succeeds changes nothing', async () => {
    await runtime.start(podOf('Always', [hooked(0)]));
    await time.pass(1_000);
    expect(events).toEqual([]);
    expect(await shown()).toMatchObject({ restartCount: 0, state: { kind: 'running' } });
    expect(engine.acts).toContain('execute main exit 0');
  });

  it('that fails terminates the container, with events', async () => {
    await runtime.start(podOf('Never', [hooked(3)]));
    await time.pass(1_000);
    expect(events).toEqual([
      'Warning FailedPostStartHook: PostStartHook failed',
      'Normal Killing: FailedPostStartHook',
    ]);
    expect(engine.acts).toContain('SIGTERM main');
    expect(await stateOf()).toMatchObject({ kind: 'terminated' });
  });
});

it('a pod that must not run twice starts after a boot only when the agent says so', async () => {
  const pod = podOf('Always');
  const annotated = {
    ...pod,
    metadata: { ...pod.metadata, annotations: { 'nodekeeper.dev/offline-stop-after': '2h' } },
  };
  await runtime.start(annotated);
  engine.exit('main', 1);
  engine.exit('main', 1);
  await reopen({ boots: true });
  starts();
  runtime.useStarted?.(() => true);
  await time.pass(60_000);
  expect(starts()).toEqual([]);
  await runtime.start(annotated);
  expect(starts()).toEqual(['main']);
});

it('one container is restarted by its name, while the pod runs', async () => {
  await runtime.start(podOf('Always', [{ name: 'main' }, { name: 'other' }]));
  await runtime.restartContainer?.('u', 'none', 1, 'x');
  expect(events).toEqual([]);
  await runtime.restartContainer?.('u', 'other', 1, 'it is not alive');
  expect(events).toEqual(['Normal Killing: it is not alive']);
  expect([(await shown('main'))?.restartCount, (await shown('other'))?.restartCount]).toEqual([0, 1]);
});

it('a command runs in a running container alone', async () => {
  await runtime.start(podOf('Never'));
  const execute: NonNullable<PodRuntime['execute']> = (...args) => runtime.execute!(...args);
  expect(await execute('u', 'main', ['exit', '4'], 1_000)).toEqual({ kind: 'exited', exitCode: 4, output: '' });
  expect(await execute('u', 'other', ['exit'], 1)).toEqual({
    kind: 'failed',
    message: 'container other is not running',
  });
  const command = { container: 'main', command: ['sh'], stdin: false, tty: false };
  await expect(runtime.open!('u', command)).rejects.toThrow('opened');
  engine.exit('main');
  expect(await execute('u', 'main', ['exit'], 1)).toMatchObject({ kind: 'failed' });
  await expect(runtime.open!('u', command)).rejects.toThrow('container main is not running');
});

it('a command may wait until its time is over, and no longer', async () => {
  await runtime.start(podOf('Never'));
  await time.pass(5_000);
  await runtime.execute?.('u', 'main', ['true'], 2_000);
  const seen = [engine.mayWait?.()];
  await time.pass(1_999);
  seen.push(engine.mayWait?.());
  await time.pass(1);
  expect([...seen, engine.mayWait?.()]).toEqual([true, true, false]);
});

describe('the log of a container', () => {
  const read = async (previous = false): Promise<string> => {
    const query = { podUid: 'u', container: 'main', previous, follow: true, timestamps: false };
    const pieces: Uint8Array[] = [];
    for await (const piece of runtime.readLog!(query, new AbortController().signal)) pieces.push(piece);
    return Buffer.concat(pieces).toString();
  };

  it('may grow while that run of it runs, and this agent has the pod', async () => {
    await runtime.start(podOf('Always'));
    engine.taken();
    expect(await read()).toBe('main 0');
    expect(engine.taken()).toContain('times main');
    const first = engine.reading!;
    expect(first.isRunning()).toBe(true);
    engine.exit('main', 1);
    await time.pass(0);
    // The next run has started.
    expect([first.isRunning(), await read(), await read(true)]).toEqual([false, 'main 1', 'main 0']);
    expect(engine.reading?.isRunning()).toBe(false);
    await read();
    const second = engine.reading!;
    expect(second.isRunning()).toBe(true);
    await runtime.close();
    expect(second.isRunning()).toBe(false);
  });

  it('of a pod that waits for its restart is that of the run that has ended, also as the previous one', async () => {
    await runtime.start(podOf('Always'));
    for (let run = 0; run < 2; run += 1) engine.exit('main', 1);
    expect(await stateOf()).toMatchObject({ kind: 'waiting', reason: 'CrashLoopBackOff' });
    expect([await read(), await read(true)]).toEqual(['main 1', 'main 1']);
    expect(engine.reading?.isRunning()).toBe(false);
  });
});

it('shows init containers and sidecars beside the others', async () => {
  const init: readonly Container[] = [{ name: 'init' }, { name: 'side', restartPolicy: 'Always' }];
  await runtime.start(podOf('Never', [{ name: 'main' }, { name: 'more' }], { initContainers: init }));
  const [pod] = await runtime.pods();
  const names = (shownContainers: readonly { readonly name: string }[] = []) => shownContainers.map(({ name }) => name);
  expect([names(pod?.initContainers), names(pod?.containers)]).toEqual([
    ['init', 'side'],
    ['main', 'more'],
  ]);
  expect(pod).toMatchObject({ uid: 'u', namespace: 'shop', name: 'web' });
  expect(pod).not.toHaveProperty('ip');
});

it('the next agent ends processes of a pod that belong to no container that runs', async () => {
  await runtime.start(podOf('Never', [{ name: 'main' }, { name: 'side' }]));
  engine.exit('side');
  const mark = (pid: number, text: string) => ({ pid, mark: text });
  engine.marked = [
    mark(1, 'u/main/0'),
    mark(2, 'u/main/1'),
    mark(3, 'u/side/0'),
    mark(4, 'u2/main/1'),
    mark(5, 'u/main'),
  ];
  engine.taken();
  await reopen();
  expect(engine.taken().filter((act) => act.startsWith('SIGKILL'))).toEqual(['SIGKILL 2', 'SIGKILL 3']);
});

it('a pod is removed when it was stopped, not when it has terminated', async () => {
  await runtime.start(podOf('Never'));
  engine.exit('main');
  await expect(runtime.remove('u')).rejects.toThrow('pod u has not been stopped');
  await runtime.stop('u', 0);
  await runtime.remove('u');
  expect(await runtime.pods()).toEqual([]);
});

it('the output of a pod stays while one of its containers runs', async () => {
  await runtime.start(podOf('Never', [{ name: 'main' }, { name: 'side' }]));
  const log = join(rootDirectory, 'pods/u/main.0.log');
  writeFileSync(log, 'x');
  engine.exit('main');
  await runtime.reclaimStorage?.();
  expect(existsSync(log)).toBe(true);
  engine.exit('side');
  await runtime.reclaimStorage?.();
  expect(existsSync(log)).toBe(false);
});

it('a container that waits for good is not tried again when another one restarts', async () => {
  const fault = { kind: 'notReady', reason: 'CreateContainerConfigError', message: 'bad', isFinal: true } as const;
  engine.starts.set('main', (container, callbacks) => callbacks.onConfigFault(container, fault));
  await runtime.start(podOf('Always', [{ name: 'main' }, { name: 'other' }]));
  for (let run = 0; run < 3; run += 1) {
    engine.exit('other', 1);
    await time.pass(300_000);
  }
  expect(starts()).toEqual(['main', 'other', 'other', 'other', 'other']);
  expect([await stateOf(), reads]).toEqual([{ kind: 'waiting', reason: fault.reason, message: 'bad' }, []]);
});

describe('a resize', () => {
  const sized = (cpu: string, memory: string, more: Partial<Container> = {}): Container => ({
    name: 'main',
    ...more,
    resources: { requests: { cpu }, limits: { memory } },
  });
  const RESTART = { resizePolicy: [{ resourceName: 'memory', restartPolicy: 'RestartContainer' }] };
  const applied = { kind: 'applied' };
  const resized = async () => engine.taken().filter((act) => !act.startsWith('check'));

  it('changes the limits of a running container, and the next agent knows them', async () => {
    await runtime.start(podOf('Always', [sized('1', '1Gi')]));
    await resized();
    expect(await runtime.resize?.(podOf('Always', [sized('2', '2Gi')]))).toEqual(applied);
    expect(await resized()).toEqual(['resize main']);
    await reopen();
    const [pod] = await runtime.pods();
    expect(pod?.pod?.spec?.containers).toEqual([sized('2', '2Gi')]);
    expect(pod?.containers).toMatchObject([{ restartCount: 0, state: { kind: 'running' } }]);
    expect(pod?.containers[0]?.resources).toBeUndefined();
  });

  it('that fails is shown, also by the next agent, and continues when it is repeated', async () => {
    await runtime.start(podOf('Always', [sized('1', '1Gi')]));
    engine.faults.set('resize', 'EBUSY');
    const wanted = podOf('Always', [sized('2', '1Gi')]);
    expect(await runtime.resize?.(wanted)).toEqual({ kind: 'failed', message: expect.stringMatching(/^EBUSY/) });
    await reopen();
    expect((await shown())?.resources).toEqual(sized('1', '1Gi').resources);
    engine.faults.clear();
    expect(await runtime.resize?.(wanted)).toEqual(applied);
    expect(await shown()).not.toHaveProperty('resources');
  });

  it.each(['OnFailure', 'Always'])('restarts a container if its policy wants that, with %s', async (policy) => {
    await runtime.start(podOf(policy, [sized('1', '1Gi', RESTART)]));
    await resized();
    expect(await runtime.resize?.(podOf(policy, [sized('1', '2Gi', RESTART)]))).toEqual(applied);
    await time.pass(0);
    expect(await resized()).toEqual(['SIGTERM main', 'start main']);
    expect(events).toEqual(['Normal Killing: Container main resize requires restart']);
    expect(await shown()).toMatchObject({ restartCount: 1, state: { kind: 'running' }, lastState: { exitCode: 0 } });
    expect(await shown()).not.toHaveProperty('resources');
    // Its policy applies again.
    engine.exit('main', 0);
    await time.pass(600_000);
    expect((await resized()).includes('start main')).toBe(policy === 'Always');
  });

  it('restarts a container without a back-off, also again soon', async () => {
    const pod = (memory: string) => podOf('Always', [sized('1', memory, RESTART)]);
    await runtime.start(pod('1Gi'));
    for (const [runs, memory] of ['2Gi', '3Gi', '4Gi'].entries()) {
      await runtime.resize?.(pod(memory));
      await time.pass(0);
      expect(await shown()).toMatchObject({ restartCount: runs + 1, state: { kind: 'running' } });
    }
  });

  it('leaves an init container alone', async () => {
    const init = { initContainers: [{ ...sized('1', '1Gi'), name: 'init' }] };
    await runtime.start(podOf('Always', [sized('1', '1Gi')], init));
    await resized();
    expect(await runtime.resize?.(podOf('Always', [sized('2', '1Gi')], init))).toEqual(applied);
    expect(await resized()).toEqual([]);
    expect(await shown('init')).not.toHaveProperty('resources');
  });

  it('restarts a container only once, also if a rule restarts it first', async () => {
    const restartPolicyRules = [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [42] } }];
    const cause: Container = { name: 'cause', restartPolicy: 'Never', restartPolicyRules };
    const pod = (memory: string) => podOf('OnFailure', [sized('1', memory, RESTART), cause]);
    engine.ignored.set('main', ['SIGTERM']);
    await runtime.start(pod('1Gi'));
    await runtime.resize?.(pod('2Gi'));
    engine.exit('cause', 42);
    await time.pass(1_000);
    expect(await shown()).toMatchObject({ restartCount: 1, state: { kind: 'running' } });
    engine.exit('main', 0);
    await time.pass(600_000);
    expect(await stateOf()).toMatchObject({ kind: 'terminated' });
  });

  it('asks a container once to restart, and the next agent asks again', async () => {
    engine.ignored.set('main', ['SIGTERM']);
    await runtime.start(podOf('OnFailure', [sized('1', '1Gi', RESTART)]));
    const wanted = podOf('OnFailure', [sized('1', '2Gi', RESTART)]);
    await runtime.resize?.(wanted);
    await runtime.resize?.(wanted);
    expect((await resized()).filter((act) => act === 'SIGTERM main')).toHaveLength(1);
    expect((await shown())?.resources).toEqual(sized('1', '1Gi').resources);
    await reopen();
    await runtime.resize?.(wanted);
    expect((await resized()).filter((act) => act === 'SIGTERM main')).toHaveLength(1);
  });

  it('lowers the memory of a container before it raises that of others', async () => {
    const pod = (one: string, other: string) =>
      podOf('Always', [sized('1', one), { ...sized('1', other), name: 'other' }]);
    await runtime.start(pod('1Gi', '2Gi'));
    await resized();
    await runtime.resize?.(pod('2Gi', '1Gi'));
    expect(await resized()).toEqual(['resize other main']);
  });

  it('waits for a container that starts, and does not change a terminated one', async () => {
    engine.starts.set('main', () => undefined);
    await runtime.start(podOf('Never', [sized('1', '1Gi'), { ...sized('1', '1Gi'), name: 'other' }]));
    engine.exit('other', 0);
    await resized();
    const wanted = podOf('Never', [sized('2', '1Gi'), { ...sized('2', '1Gi'), name: 'other' }]);
    expect(await runtime.resize?.(wanted)).toEqual(applied);
    expect(await resized()).toEqual([]);
    expect((await runtime.pods())[0]?.pod).toEqual(wanted);
  });

  it('is refused for a pod that is not known', async () => {
    expect(await runtime.resize?.(podOf('Always'))).toMatchObject({ kind: 'failed' });
  });
});
