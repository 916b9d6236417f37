/** What the runtimes with records share, over an engine and a table of processes in memory. */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KubePod } from '../../../shared/kinds/types.ts';
import { MemoryEngine } from '../../../test/support/memory-engine.ts';
import { SteppedTime } from '../../../test/support/stepped-time.ts';
import type { ContainerInputSource } from '../../ports/container-inputs.ts';
import { LogUnavailableError } from '../../ports/pod-runtime.ts';
import type { PodCgroups } from '../cgroup/pod-cgroups.ts';

let rootDirectory: string;
let time: SteppedTime;
let engine: MemoryEngine;
beforeEach(() => {
  rootDirectory = mkdtempSync(join(tmpdir(), 'nodekeeper-recorded-'));
  time = new SteppedTime(1_700_000_000_000);
  engine = new MemoryEngine(rootDirectory, time);
});
afterEach(() => rmSync(rootDirectory, { recursive: true, force: true }));
const open: MemoryEngine['open'] = (more) => engine.open(more);

const podOf = (uid: string, names: readonly string[] = ['main'], spec: object = {}): KubePod => ({
  metadata: { name: uid, namespace: 'default', uid },
  spec: { restartPolicy: 'Never', containers: names.map((name) => ({ name, image: 'x' })), ...spec },
});
const recordPath = (uid: string): string => join(rootDirectory, 'pods', uid, 'record.json');
const taken = (): readonly string[] => engine.taken();

describe('a pod that is not known', () => {
  it('is not measured, stopped, removed or restarted, and nothing of it can be read or run', async () => {
    const { runtime } = open();
    expect(await runtime.usage?.('u', true)).toBeUndefined();
    await runtime.stop('u', 1);
    await runtime.remove('u');
    await runtime.restartContainer?.('u', 'main', 1, 'why');
    const message = 'pod u is not known to this node';
    expect(await runtime.execute?.('u', 'main', ['x'], 1)).toEqual({ kind: 'failed', message });
    await expect(runtime.open?.('u', { container: 'main', command: [], stdin: false, tty: false })).rejects.toThrow(
      message,
    );
    const query = { podUid: 'u', container: 'main', previous: false, follow: false, timestamps: false };
    const log = runtime.readLog!(query, new AbortController().signal);
    await expect(log[Symbol.asyncIterator]().next()).rejects.toThrow(new LogUnavailableError(message));
    expect(await runtime.pods()).toEqual([]);
    await runtime.close();
  });
});

describe('names that become paths', () => {
  it.each<[string, KubePod, RegExp | undefined]>([
    ['the longest uid', podOf(`a${'-'.repeat(252)}`), undefined],
    ['a longer uid', podOf(`a${'-'.repeat(253)}`), /cannot name a directory/],
    ['no uid', podOf(''), /^uid "" cannot name a directory$/],
    ['a uid of dots', podOf('..'), /^uid "\.\." cannot/],
    ['a uid that ends elsewhere', podOf('a/../b'), /cannot name a directory/],
    ['a uid with an odd start', podOf('-a'), /cannot name a directory/],
    ['the longest container', podOf('u', ['a'.repeat(63)]), undefined],
    ['a longer container', podOf('u', ['a'.repeat(64)]), /cannot name a file/],
    ['a container of dots', podOf('u', ['main', '..']), /^container name "\.\." cannot name a file$/],
    ['a container with a dash at its end', podOf('u', ['a-']), /cannot name a file/],
    ['a container with a path behind it', podOf('u', ['a/b']), /cannot name a file/],
    ['a container with a path before it', podOf('u', ['/a']), /cannot name a file/],
    ['an init container', podOf('u', ['main'], { initContainers: [{ name: 'A' }] }), /"A" cannot name a file/],
    ['a container without a name', podOf('u', [''])!, /^container name "" cannot name a file$/],
  ])('%s', async (_, pod, refusal) => {
    const { runtime } = open();
    if (refusal === undefined) await runtime.start(pod);
    else {
      await expect(runtime.start(pod)).rejects.toThrow(refusal);
      expect(readdirSync(join(rootDirectory, 'pods'))).toEqual([]);
    }
    await runtime.close();
  });
});

describe('a pod', () => {
  it('is started once, stopped, and removed only then', async () => {
    const { runtime } = open();
    const changes: string[] = [];
    runtime.onChange((uid) => changes.push(`one ${uid}`));
    runtime.onChange((uid) => changes.push(`two ${uid}`));
    await runtime.start(podOf('u'));
    await runtime.start(podOf('u'));
    expect([taken(), changes.includes('one u'), changes.includes('two u')]).toEqual([['start main'], true, true]);
    await expect(runtime.remove('u')).rejects.toThrow('pod u has not been stopped');
    await runtime.stop('u', 1);
    expect(new Set(changes)).toEqual(new Set(['one u', 'two u']));
    await runtime.remove('u');
    expect([await runtime.pods(), readdirSync(join(rootDirectory, 'pods'))]).toEqual([[], []]);
    await runtime.close();
  });

  it('reports its events to all that listen', async () => {
    const { runtime } = open();
    const events: unknown[] = [];
    for (const name of ['one', 'two'])
      runtime.onEvent?.((pod, { reason }) => events.push([name, pod.metadata.uid, reason]));
    await runtime.start(podOf('u', ['main'], { containers: [{ name: 'main' }, { name: 'other' }] }));
    await runtime.restartContainer?.('u', 'other', 1, 'unhealthy');
    expect(events).toEqual([
      ['one', 'u', 'Killing'],
      ['two', 'u', 'Killing'],
    ]);
    await runtime.close();
  });

  it('has its log, of its run and of no other', async () => {
    const { runtime } = open();
    await runtime.start(podOf('u'));
    const query = { podUid: 'u', container: 'main', previous: false, follow: false, timestamps: false };
    const read = async (more: object) => {
      const pieces: string[] = [];
      for await (const piece of runtime.readLog!({ ...query, ...more }, new AbortController().signal)) {
        pieces.push(Buffer.from(piece).toString());
      }
      return pieces;
    };
    expect(await read({})).toEqual(['main 0']);
    await expect(read({ container: 'other' })).rejects.toThrow('container "other" in pod "u" is not available');
    await expect(read({ previous: true })).rejects.toThrow('previous terminated container "main" in pod "u" not found');
    await runtime.close();
  });

  it('is placed again when the placement changes', async () => {
    const given: unknown[] = [];
    const cgroups = {
      usePlacement: (placementOf: unknown) => void given.push(placementOf),
      sweep() {},
      applyNode() {},
      discard() {},
      oomKills: () => 0,
      podsMemory: () => ({ limitBytes: 2, workingSetBytes: 1 }),
      tree: { children: () => [], processes: () => [] },
    } as unknown as PodCgroups;
    const { runtime } = open({ cgroups });
    expect(runtime.podsMemory?.()).toEqual({ limitBytes: 2, workingSetBytes: 1 });
    await runtime.start(podOf('u'));
    const placementOf = () => ({ cpus: [1], memoryNodes: [], exclusive: false });
    taken();
    runtime.usePlacement?.(placementOf);
    expect([given, taken()]).toEqual([[placementOf], ['place main']]);
    await runtime.close();
    const { runtime: without } = open();
    expect(without.podsMemory?.()).toBeUndefined();
    await without.close();
  });
});

describe('the checks in the background', () => {
  it('look at each pod every second, and at the size of its output every ten', async () => {
    const { runtime } = open();
    await runtime.start(podOf('u'));
    await runtime.start(podOf('v', ['other']));
    const output = join(rootDirectory, 'pods/u/main.0.log');
    writeFileSync(output, Buffer.alloc(10 * 1024 * 1024 + 1));
    for (let start = 0; start < 6; start += 1) writeFileSync(`${output}.${String(start).padStart(15, '0')}`, 'x');
    taken();
    await time.pass(999);
    expect(taken()).toEqual([]);
    engine.faults.set('check main', 'EIO');
    await time.pass(1);
    expect(taken()).toEqual(['check main', 'check other', 'times main', 'times other']);
    expect(engine.logged).toEqual(['error a pod could not be checked']);
    await time.pass(8_999);
    expect(readFileSync(output).length).toBeGreaterThan(0);
    await time.pass(1);
    expect(readFileSync(output)).toHaveLength(0);
    // Five files with the current one.
    expect(readdirSync(join(rootDirectory, 'pods/u')).filter((file) => file.startsWith('main.0.log'))).toHaveLength(5);
    await runtime.close();
    taken();
    await time.pass(20_000);
    expect(taken()).toEqual([]);
  });

  it('go on after an error, which is engine.logged', async () => {
    const { runtime, recorded } = open();
    recorded.checkEach = () => {
      throw new Error('broken');
    };
    await time.pass(1_000);
    await time.pass(1_000);
    expect(engine.logged.filter((each) => each === 'error pods could not be checked').length).toBeGreaterThanOrEqual(3);
    await runtime.close();
  });
});

describe('the records of the previous agent', () => {
  it('that cannot be read now are read later, and no request is answered before', async () => {
    const before = open();
    await before.runtime.start(podOf('u'));
    await before.runtime.close();
    engine.faults.set('marked', 'EMFILE');
    const { runtime, recorded } = open();
    expect(recorded.readError()).toBe("EMFILE: made to fail, read '/proc'");
    expect(runtime.complaint?.()).toBe('the records of pods cannot be read: EMFILE: made to fail');
    await expect(runtime.pods()).rejects.toThrow('the records of pods cannot be read: EMFILE');
    await expect(runtime.start(podOf('v'))).rejects.toThrow('the records of pods cannot be read: EMFILE');
    expect(recorded.known()).toEqual([]);
    await time.pass(9_999);
    engine.faults.clear();
    expect(recorded.readError()).toBeDefined();
    await time.pass(1);
    expect([recorded.readError(), runtime.complaint?.()]).toEqual([undefined, undefined]);
    expect((await runtime.pods()).map(({ uid }) => uid)).toEqual(['u']);
    await runtime.close();
  });

  it('that are lost cost the processes of that pod alone', async () => {
    const before = open();
    for (const uid of ['u', 'v']) await before.runtime.start(podOf(uid));
    await before.runtime.close();
    writeFileSync(recordPath('u'), '{"version":2}');
    engine.marked = [
      { pid: 11, mark: 'u/main/0' },
      { pid: 12, mark: 'v/main/0' },
      { pid: 13, mark: 'uu/main/0' },
      { pid: 14, mark: 'v/main/7' },
    ];
    taken();
    const { runtime } = open();
    expect(taken()).toEqual(['SIGKILL 11', 'SIGKILL 14', 'check main']);
    expect((await runtime.pods()).map(({ uid }) => uid)).toEqual(['v']);
    expect(engine.logged).toEqual(['error the record of a pod cannot be read']);
    await runtime.close();
  });

  it.each([
    ['no JSON', '{'],
    ['another version', JSON.stringify({ version: 2, containers: [], pod: { metadata: { uid: 'u' } } })],
    ['no containers', JSON.stringify({ version: 1, pod: { metadata: { uid: 'u' } } })],
    ['no uid', JSON.stringify({ version: 1, containers: [], pod: { metadata: {} } })],
    ['no pod', JSON.stringify({ version: 1, containers: [] })],
  ])('are lost with %s', async (_, text) => {
    mkdirSync(join(rootDirectory, 'pods/u'), { recursive: true });
    writeFileSync(recordPath('u'), text);
    const { runtime } = open();
    expect([await runtime.pods(), engine.logged]).toEqual([[], ['error the record of a pod cannot be read']]);
    await runtime.close();
  });
});

describe('a disk that cannot be used', () => {
  const away = () => join(rootDirectory, 'away');
  const pods = () => join(rootDirectory, 'pods');
  /** The directory of all pods is a link to itself. */
  function breakDisk(): void {
    renameSync(pods(), away());
    symlinkSync('pods', pods());
  }
  function repairDisk(): void {
    rmSync(pods());
    renameSync(away(), pods());
  }

  it('is named while a record is not written, and a new pod is not started', async () => {
    const { runtime } = open();
    await runtime.start(podOf('u'));
    breakDisk();
    await runtime.stop('u', 1);
    const complaint = 'the records of pods cannot be written: ';
    expect(runtime.complaint?.()).toMatch(new RegExp(`^${complaint}E\\w+: [^,]+$`));
    await expect(runtime.start(podOf('v'))).rejects.toThrow(/^E/);
    repairDisk();
    // A directory is where the record would be written: nothing of the pod is left.
    mkdirSync(join(pods(), 'w/record.json.tmp'), { recursive: true });
    await expect(runtime.start(podOf('w'))).rejects.toThrow(/EISDIR/);
    expect(readdirSync(pods())).toEqual(['u']);
    await time.pass(9_000);
    expect(runtime.complaint?.()).toMatch(complaint);
    await time.pass(2_000);
    expect(runtime.complaint?.()).toBeUndefined();
    expect(JSON.parse(readFileSync(recordPath('u'), 'utf8'))).toMatchObject({ stopped: true });
    expect((await runtime.pods()).map(({ uid }) => uid)).toEqual(['u']);
    await runtime.close();
  });

  it('is named while the directory of a removed pod is left, which is removed later', async () => {
    const { runtime } = open();
    await runtime.start(podOf('u'));
    await runtime.stop('u', 1);
    breakDisk();
    await runtime.remove('u');
    expect(await runtime.pods()).toEqual([]);
    expect(runtime.complaint?.()).toMatch(/^directories of removed pods cannot be removed: .*Unknown error$/);
    await time.pass(10_000);
    const errors = engine.logged.filter((each) => each === 'error the directory of a pod cannot be removed');
    expect(errors).toHaveLength(1);
    repairDisk();
    await time.pass(10_000);
    expect([runtime.complaint?.(), readdirSync(pods())]).toEqual([undefined, []]);
    await runtime.close();
  });
});

describe('what a container starts with before the agent provides it', () => {
  const inputsOf = (spec: object) => engine.context!.inputs().inputsOf(podOf('u'), { name: 'main', ...spec } as never);
  const withVolume = (path: string, mountPath: string) => {
    const pod = podOf('u', ['main'], { volumes: [{ name: 'data', hostPath: { path } }, { name: 'other' }] });
    return engine.context!.inputs().inputsOf(pod, { name: 'main', volumeMounts: [{ name: 'data', mountPath }] });
  };

  beforeEach(async () => {
    const { runtime } = open();
    await runtime.start(podOf('u'));
    await runtime.close();
  });

  it('are its values, and directories of the machine at their own paths', async () => {
    expect(
      inputsOf({
        env: [
          { name: 'A', value: '1' },
          { name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.hostIP' } } },
        ],
      }),
    ).toEqual({
      kind: 'ready',
      variables: { A: '1', IP: '192.0.2.7' },
      mounts: [],
    });
    expect(withVolume('/srv', '/srv')).toMatchObject({ kind: 'ready' });
    expect(withVolume('/srv', '/data')).toEqual({
      kind: 'notReady',
      reason: 'CreateContainerConfigError',
      message: 'the volume of volumeMount /data is not set up yet',
    });
    const ofMap = [{ name: 'A', valueFrom: { configMapKeyRef: { name: 'm', key: 'k' } } }];
    expect(inputsOf({ env: ofMap })).toMatchObject({
      kind: 'notReady',
      reason: 'CreateContainerConfigError',
      message: expect.stringMatching(/^failed to sync configmap cache: timed out waiting for the condition$/i),
    });
    expect(await engine.context!.inputs().readMissing(podOf('u'))).toBeUndefined();
  });

  it('are replaced by those of the agent', async () => {
    const { runtime } = open();
    const source: ContainerInputSource = {
      inputsOf: () => ({ kind: 'ready', variables: {}, mounts: [] }),
      readMissing: async () => undefined,
    };
    runtime.useInputs?.(source);
    expect(engine.context?.inputs()).toBe(source);
    expect(engine.context?.mountMode()).toBe(engine.context?.mountMode());
    await runtime.close();
  });
});

it('removes the output of pods when all of their containers have terminated', async () => {
  const { runtime } = open();
  await runtime.start(podOf('u', ['a', 'b']));
  await runtime.start(podOf('v'));
  for (const file of ['u/a.0.log', 'u/b.0.log', 'v/main.0.log']) writeFileSync(join(rootDirectory, 'pods', file), 'x');
  await runtime.stop('u', 1);
  await runtime.reclaimStorage?.();
  expect(readdirSync(join(rootDirectory, 'pods/u'))).toEqual(['record.json']);
  expect(readdirSync(join(rootDirectory, 'pods/v')).sort()).toEqual(['main.0.log', 'record.json']);
  await runtime.close();
});

it('waits for the startup probes of sidecars', async () => {
  const { runtime } = open();
  const initContainers = [
    { name: 'side', restartPolicy: 'Always', startupProbe: { exec: { command: ['x'] } } },
    { name: 'free', restartPolicy: 'Always' },
  ];
  let hasStarted = false;
  runtime.useStarted?.((podUid, container) => hasStarted && podUid === 'u' && container === 'side');
  await runtime.start(podOf('u', ['main'], { initContainers }));
  expect(taken()).toEqual(['start side']);
  hasStarted = true;
  runtime.useStarted?.((podUid, container) => podUid === 'u' && container === 'side');
  expect(taken()).toEqual(['start free', 'start main']);
  await runtime.start(podOf('v', ['main'], { initContainers }));
  expect(taken()).toEqual(['start side']);
  await runtime.close();
});
