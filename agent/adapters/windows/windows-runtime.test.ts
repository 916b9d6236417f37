/** Jobs, and pods in them, over calls in memory. `test/agent/windows.test.ts` has those of Wine. */
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { KubePod } from '../../../shared/kinds/types.ts';
import { silentLog } from '../../../test/support/agent-api.ts';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { memoryWindows } from '../../../test/support/memory-windows-native.ts';
import { SteppedTime, settle } from '../../../test/support/stepped-time.ts';
import { until } from '../../../test/support/until.ts';
import type { ContainerInputs } from '../../ports/container-inputs.ts';
import type { PodRuntime } from '../../ports/pod-runtime.ts';
import { Job, type JobCommand } from './jobs.ts';
import { windowsProcesses } from './windows-processes.ts';
import { windowsRuntime } from './windows-runtime.ts';

const links = vi.hoisted(() => ({ refused: false }));
vi.mock('../system/files.ts', async (original) => {
  const files = await original<typeof import('../system/files.ts')>();
  const symlink: typeof files.symlink = (...args) =>
    links.refused ? Promise.reject(new Error('no junctions')) : files.symlink(...args);
  return { ...files, symlink };
});

const { memory } = memoryWindows();
const { windows, processState } = memory;

const soon = { withinMs: 10_000, everyMs: 2 };
const NO_LIMITS = { memoryBytes: undefined, cpus: undefined, processesMax: undefined };
const openHandles = (): readonly string[] => [...windows.open.values()];
const onlyJob = () => [...processState.jobs.values()][0]!;
const onlyProcess = () => [...processState.processes.values()][0]!;

describe('a job', () => {
  it('has the limits that are set, and ends its processes with the agent', () => {
    new Job({ memoryBytes: 5_000_000_000, cpus: cpus().length / 4, processesMax: 7 });
    expect(onlyJob()).toEqual({
      limits: { flags: 0x2208, memoryBytes: 5_000_000_000n, processesMax: 7 },
      cpuRate: 2_500,
      pids: [],
    });
  });

  it('has no other limits', () => {
    new Job(NO_LIMITS);
    expect(onlyJob()).toEqual({
      limits: { flags: 0x2000, memoryBytes: 0n, processesMax: 0 },
      cpuRate: undefined,
      pids: [],
    });
  });

  it.each([
    ['less than a hundredth of a percent', 0, 1],
    ['more than the machine has', cpus().length + 1, 10_000],
  ])('with %s of the processors has what Windows accepts', (_, share, rate) => {
    new Job({ ...NO_LIMITS, cpus: share });
    expect(onlyJob().cpuRate).toBe(rate);
  });

  it.each([
    ['CreateJobObjectW', 'CreateJobObjectW: access is denied (5)'],
    ['SetInformationJobObject', 'SetInformationJobObject: access is denied (5)'],
  ])('is not left open when %s fails', (call, message) => {
    windows.failures.set(call, 5);
    expect(() => new Job(NO_LIMITS)).toThrow(message);
    expect(openHandles()).toEqual([]);
  });

  const command: JobCommand = {
    file: 'C:\\a b\\run.exe',
    args: ['x', '', 'say "hi"', 'C:\\dir\\', 'C:\\a b\\', 'x\\"y', 'tab\there'],
    env: { zoo: '1', Path: 'C:\\bin', ALPHA: 'ü' },
    directory: 'C:\\work',
    outputFile: 'C:\\out.log',
  };

  it('starts a process that is in it before its first instruction, with its output in a file', () => {
    const job = new Job(NO_LIMITS);
    const { pid } = job.start(command);
    expect(processState.processes.get(pid)).toEqual({
      commandLine: '"C:\\a b\\run.exe" x "" "say \\"hi\\"" C:\\dir\\ "C:\\a b\\\\" "x\\\\\\"y" "tab\there"',
      environment: ['ALPHA=ü', 'Path=C:\\bin', 'zoo=1'],
      directory: 'C:\\work',
      // Suspended, in a group for Ctrl+Break, without a window; the environment is Unicode.
      flags: 0x8000604,
      streams: ['NUL 2147483648 7 3', 'C:\\out.log 4 7 4', 'C:\\out.log 4 7 4'],
      isResumed: true,
      exitCode: undefined,
    });
    expect([job.pids(), openHandles()]).toEqual([[pid], ['job', `process ${pid}`]]);
  });

  it('starts a process in the directory of the agent if it has none of its own', () => {
    new Job(NO_LIMITS).start({ ...command, directory: undefined });
    expect(onlyProcess().directory).toBeUndefined();
  });

  it.each([
    ['CreateFileW', 'C:\\out.log: access is denied (5)', undefined],
    ['CreateProcessW', 'spawn C:\\a b\\run.exe: access is denied (5)', undefined],
    ['AssignProcessToJobObject', 'AssignProcessToJobObject: access is denied (5)', 137],
  ])('has no process outside of it when %s fails', (call, message, exitCode) => {
    const job = new Job(NO_LIMITS);
    windows.failures.set(call, 5);
    expect(() => job.start(command)).toThrow(message);
    expect([openHandles(), job.pids()]).toEqual([['job'], []]);
    expect([...processState.processes.values()].map((each) => [each.exitCode, each.isResumed])).toEqual(
      exitCode === undefined ? [] : [[exitCode, false]],
    );
  });

  it.each([0, 3, 259, -1_073_741_510])('has the exit code %i of a process once it has ended', (exitCode) => {
    const process = new Job(NO_LIMITS).start(command);
    expect(process.exitCode()).toBeUndefined();
    onlyProcess().exitCode = exitCode >>> 0;
    windows.failures.set('GetExitCodeProcess', 6);
    expect(() => process.exitCode()).toThrow('GetExitCodeProcess: error 6 of Windows');
    windows.failures.clear();
    expect(process.exitCode()).toBe(exitCode);
    expect(openHandles()).toEqual(['job']);
    processState.processes.clear();
    expect(process.exitCode()).toBe(exitCode);
  });

  it('sends Ctrl+Break to a process and what it started', () => {
    const process = new Job(NO_LIMITS).start(command);
    expect([process.interrupt(), windows.calls]).toEqual([undefined, [`event 1 to ${process.pid}`]]);
    windows.failures.set('GenerateConsoleCtrlEvent', 6);
    expect(process.interrupt()).toBe('Ctrl+Break cannot be sent: error 6');
    expect(processState.attachedTo).toBeUndefined();
    windows.failures.set('AttachConsole', 5);
    expect(process.interrupt()).toBe('Ctrl+Break cannot be sent: error 5 of AttachConsole');
  });

  it('ends all of its processes, and is closed once', () => {
    const job = new Job(NO_LIMITS);
    const pids = [job.start(command).pid, job.start(command).pid];
    expect(job.pids()).toEqual(pids);
    job.end();
    const ended = () => [...processState.processes.values()].map(({ exitCode }) => exitCode);
    expect([ended(), job.pids(), openHandles()[0]]).toEqual([[137, 137], [], 'job']);
    job.close();
    expect(openHandles()).not.toContain('job');
    windows.failures.set('QueryInformationJobObject', 6);
    expect(job.pids()).toEqual([]);
    job.end();
    job.close();
    // Windows may use the handle for something else.
    expect(windows.calls).toEqual([]);
  });

  it('lists some hundred processes', () => {
    const job = new Job(NO_LIMITS);
    for (let count = 0; count < 600; count += 1) job.start(command);
    expect(job.pids()).toHaveLength(600);
  });

  it('says that its processes cannot be listed', () => {
    const job = new Job(NO_LIMITS);
    windows.failures.set('QueryInformationJobObject', 5);
    expect(() => job.pids()).toThrow('QueryInformationJobObject: access is denied (5)');
  });

  describe('and a further process with streams', () => {
    const shell = (job: Job, script: string) =>
      job.spawn('/bin/sh', ['-c', script], { stdio: ['ignore', 'pipe', 'pipe'] });

    it('has it in the job, with the right to add it alone', async () => {
      const job = new Job(NO_LIMITS);
      // Node.js would add a process of the same group to a job of its own.
      const child = shell(job, '[ "$(ps -o pgid= -p $$ | tr -d " ")" = $$ ] && echo leader; exit 3');
      expect(onlyJob().pids).toEqual([child.pid]);
      expect([windows.calls, openHandles()]).toEqual([['open process 1048833 0'], ['job']]);
      const exit = new Promise((resolve) => child.once('exit', resolve));
      expect([await text(child.stdout!), await exit]).toEqual(['leader\n', 3]);
    });

    it('does not add one that has ended, or that could not be started', async () => {
      const job = new Job(NO_LIMITS);
      windows.failures.set('OpenProcess', 87);
      expect(shell(job, 'exit 0').pid).toBeGreaterThan(0);
      windows.failures.clear();
      windows.failures.set('AssignProcessToJobObject', 5);
      windows.failures.set('WaitForSingleObject', 0);
      expect(shell(job, 'exit 0').pid).toBeGreaterThan(0);
      windows.failures.clear();
      const missing = job.spawn('no-such-program', [], {});
      const error = await new Promise((resolve) => missing.once('error', resolve));
      expect(error).toMatchObject({ code: 'ENOENT' });
      expect([onlyJob().pids, openHandles()]).toEqual([[], ['job']]);
    });

    it.each([
      ['OpenProcess', 'OpenProcess: access is denied (5)'],
      ['AssignProcessToJobObject', 'AssignProcessToJobObject: access is denied (5)'],
    ])('ends one to which no limit would apply, because %s fails', async (call, message) => {
      const job = new Job(NO_LIMITS);
      windows.failures.set(call, 5);
      const file = join(folderForTest(), 'pid');
      expect(() => shell(job, `echo $$ >${file}; sleep 60`)).toThrow(message);
      expect(openHandles()).toEqual(['job']);
    });
  });
});

const opened: PodRuntime[] = [];
afterEach(async () => {
  for (const runtime of opened.splice(0)) await runtime.close();
});

const START_MS = 1_700_000_000_000;
const SYSTEM = { SystemRoot: 'C:\\Windows', Path: 'C:\\bin', SECRET: 'x', Temp: undefined };

function machine(podPidsMax: number | undefined = undefined) {
  const rootDirectory = folderForTest();
  const time = new SteppedTime(START_MS);
  const warnings: (readonly [string, unknown])[] = [];
  const log = { ...silentLog, warn: (message: string, fields?: object) => void warnings.push([message, fields]) };
  const open = (): PodRuntime => {
    const runtime = windowsRuntime({
      ...{ rootDirectory, time, log, podPidsMax },
      hostIp: () => '192.0.2.7',
      environment: SYSTEM,
    });
    opened.push(runtime);
    return runtime;
  };
  return { rootDirectory, time, warnings, open, runtime: open(), directory: join(rootDirectory, 'pods/u1') };
}

const podOf = (container: object = {}, spec: object = {}): KubePod => ({
  metadata: { name: 'web', namespace: 'default', uid: 'u1' },
  spec: {
    restartPolicy: 'Never',
    containers: [{ name: 'main', image: 'x', command: ['C:\\run.exe', '$(GREETING)'], ...container }],
    ...spec,
  },
});
const NOT_READY: ContainerInputs = {
  kind: 'notReady',
  reason: 'CreateContainerConfigError',
  message: 'no secret',
};
const READY: Extract<ContainerInputs, { kind: 'ready' }> = { kind: 'ready', variables: {}, mounts: [] };
const use = (runtime: PodRuntime, inputs: ContainerInputs): void =>
  runtime.useInputs?.({ inputsOf: () => inputs, readMissing: async () => undefined });

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

const stateOf = async (runtime: PodRuntime) => (await runtime.pods())[0]?.containers[0];
const stateWhen = (runtime: PodRuntime, kind: string) =>
  until(
    async () => {
      const found = await stateOf(runtime);
      return found?.state.kind === kind && found;
    },
    { ...soon, what: kind },
  );
/** Starts a pod, and returns the newest process once it runs. */
async function started({ runtime }: Pick<ReturnType<typeof machine>, 'runtime'>, pod: KubePod) {
  await runtime.start(pod);
  await stateWhen(runtime, 'running');
  return [...processState.processes.values()].at(-1)!;
}

describe('a pod', () => {
  it('runs in a job with its limits, with the variables that programs of Windows need', async () => {
    const here = machine(50);
    const process = await started(
      here,
      podOf({
        env: [
          { name: 'GREETING', value: 'hi there' },
          { name: 'PATH', value: 'own' },
        ],
        workingDir: 'C:\\work',
        resources: { limits: { memory: '64Mi', cpu: String(cpus().length / 2) } },
      }),
    );
    expect(onlyJob()).toMatchObject({
      limits: { flags: 0x2208, memoryBytes: 2n ** 26n, processesMax: 50 },
      cpuRate: 5_000,
    });
    const output = `${here.directory}/main.0.log 4 7 4`;
    expect(process).toMatchObject({
      commandLine: 'C:\\run.exe "hi there"',
      environment: [
        `CONTAINER_SANDBOX_MOUNT_POINT=${here.directory}/main.volumes`,
        'GREETING=hi there',
        'HOSTNAME=web',
        `NODEKEEPER_TERMINATION_LOG=${here.directory}/main.termination-log`,
        'PATH=own',
        'SystemRoot=C:\\Windows',
      ],
      directory: 'C:\\work',
      streams: [expect.any(String), output, output],
    });
    expect(await stateOf(here.runtime)).toEqual({
      name: 'main',
      state: { kind: 'running', startedAtMs: START_MS },
      restartCount: 0,
      containerId: 'exec://u1/main/0',
    });
    expect([here.warnings, readFileSync(join(here.directory, 'main.termination-log'), 'utf8')]).toEqual([[], '']);
  });

  it('has no limits that it does not name', async () => {
    const here = machine();
    await started(here, podOf());
    expect(onlyJob()).toMatchObject({ limits: { flags: 0x2000 }, cpuRate: undefined });
  });

  it.each([
    [0, 'said', 'said', 'Completed'],
    [0, '', undefined, 'Completed'],
    [3, '', 'one\ntwo', 'Error'],
  ])('that exits with %i and the message %j has %j as message', async (exitCode, said, message, reason) => {
    const here = machine();
    const process = await started(here, podOf({ terminationMessagePolicy: 'FallbackToLogsOnError' }));
    writeFileSync(join(here.directory, 'main.0.log'), 'one\ntwo');
    writeFileSync(join(here.directory, 'main.termination-log'), said);
    await here.time.pass(5_000);
    expect((await stateOf(here.runtime))?.state.kind).toBe('running');
    // When the output was seen, for the times of its lines.
    expect(existsSync(join(here.directory, 'main.0.times'))).toBe(true);
    process.exitCode = exitCode;
    await here.time.pass(1_000);
    expect((await stateOf(here.runtime))?.state).toEqual({
      kind: 'terminated',
      exitCode,
      reason,
      ...(message === undefined ? {} : { message }),
      startedAtMs: START_MS,
      finishedAtMs: START_MS + 6_000,
    });
    expect(openHandles()).toEqual([]);
  });

  it('that is restarted has a new job, and the output of its last run', async () => {
    const here = machine();
    const process = await started(here, podOf({}, { restartPolicy: 'Always' }));
    for (const run of [0, 1, 2]) {
      if (run > 0) await stateWhen(here.runtime, 'running');
      writeFileSync(join(here.directory, `main.${run}.log`), `run ${run}\n`);
      [...processState.processes.values()].at(-1)!.exitCode = 1;
      await here.time.pass(1_000);
      expect(await stateOf(here.runtime)).toMatchObject({ state: { kind: 'waiting' }, restartCount: run });
      await here.time.pass(60_000);
    }
    expect(await stateWhen(here.runtime, 'running')).toMatchObject({
      restartCount: 3,
      containerId: 'exec://u1/main/3',
    });
    expect([processState.processes.size, process.exitCode]).toEqual([4, 1]);
    const logOf = async (previous: boolean): Promise<string> => {
      const query = { podUid: 'u1', container: 'main', previous, follow: false, timestamps: false };
      const pieces: Uint8Array[] = [];
      for await (const piece of here.runtime.readLog!(query, new AbortController().signal)) pieces.push(piece);
      return Buffer.concat(pieces).toString();
    };
    writeFileSync(join(here.directory, 'main.3.log'), 'now\n');
    expect([await logOf(false), await logOf(true)]).toEqual(['now\n', 'run 2\n']);
    expect(() => readFileSync(join(here.directory, 'main.1.log'))).toThrow('ENOENT');
  });

  it.each([
    [2, 127, 'spawn C:\\run.exe: not found (2)'],
    [5, 126, 'spawn C:\\run.exe: access is denied (5)'],
    [1_455, 128, 'spawn C:\\run.exe: error 1455 of Windows'],
  ])('that cannot be started, by error %i, has the exit code %i', async (code, exitCode, message) => {
    const here = machine();
    windows.failures.set('CreateProcessW', code);
    await here.runtime.start(podOf());
    const { state } = await stateWhen(here.runtime, 'terminated');
    const times = { startedAtMs: START_MS, finishedAtMs: START_MS };
    expect(state).toEqual({ kind: 'terminated', exitCode, reason: 'ContainerCannotRun', message, ...times });
    expect(openHandles()).toEqual([]);
  });

  it.each<[string, object, object, string]>([
    ['a field of Linux', {}, { hostPID: true }, 'spec.hostPID has no meaning on Windows'],
    ['no command', { command: [] }, {}, 'no command: without images there is no default command'],
  ])('with %s waits, and is not tried again', async (_, container, spec, message) => {
    const here = machine();
    await here.runtime.start(podOf(container, spec));
    const state = { kind: 'waiting', reason: 'CreateContainerConfigError', message };
    expect((await stateOf(here.runtime))?.state).toEqual(state);
    await here.time.pass(600_000);
    expect((await stateOf(here.runtime))?.state).toEqual(state);
    expect(JSON.parse(readFileSync(join(here.directory, 'record.json'), 'utf8')).containers[0]).not.toHaveProperty(
      'restart',
    );
  });

  it('without inputs waits, and starts later', async () => {
    const here = machine();
    use(here.runtime, NOT_READY);
    await here.runtime.start(podOf());
    expect((await stateOf(here.runtime))?.state).toMatchObject({ kind: 'waiting', message: 'no secret' });
    use(here.runtime, READY);
    await here.time.pass(10_000);
    expect((await stateWhen(here.runtime, 'running')).restartCount).toBe(0);
  });

  it.each([false, true])(
    'has its volumes below its directory, as copies if there are no junctions: %s',
    async (refused) => {
      links.refused = refused;
      onTestFinished(() => {
        links.refused = false;
      });
      const here = machine();
      const source = folderForTest();
      mkdirSync(join(source, 'data/sub'), { recursive: true });
      writeFileSync(join(source, 'data/sub/file'), 'x');
      const mount = { readOnly: false, isFile: false, source: join(source, 'data') };
      const mounts = [
        { ...mount, target: 'C:\\data' },
        { ...mount, target: '/etc/conf', source: join(source, 'data/sub/file'), isFile: true },
      ];
      use(here.runtime, { ...READY, mounts });
      await started(here, podOf());
      const sandbox = join(here.directory, 'main.volumes');
      const path = join(sandbox, 'data');
      expect([existsSync(join(path, 'sub/file')), lstatSync(path).isSymbolicLink()]).toEqual([true, !refused]);
      expect(lstatSync(join(sandbox, 'etc\\conf')).isFile()).toBe(true);
      const warning = ['a volume is a copy', { podUid: 'u1', path, cause: 'no junctions' }];
      expect([readFileSync(join(sandbox, 'etc\\conf'), 'utf8'), here.warnings]).toEqual([
        'x',
        refused ? [warning] : [],
      ]);
    },
  );

  it.each<[string, (runtime: PodRuntime) => Promise<unknown>, number]>([
    ['started twice at once', async (runtime) => [await runtime.start(podOf()), await runtime.start(podOf())], 1],
    [
      'stopped before its volumes are made',
      async (runtime) => [runtime.start(podOf()), await runtime.stop('u1', 0)],
      0,
    ],
    ['left before its volumes are made', async (runtime) => [runtime.start(podOf()), await runtime.close()], 0],
  ])('that is %s has so many processes: %#', async (_, act, count) => {
    const here = machine();
    await act(here.runtime);
    const path = join(here.directory, 'main.termination-log');
    await until(() => existsSync(path), soon);
    for (let turn = 0; turn < 10; turn += 1) await settle();
    expect(processState.processes.size).toBe(count);
  });

  it('waits for a volume that is not there yet', async () => {
    const here = machine();
    const source = join(here.rootDirectory, 'later');
    use(here.runtime, { ...READY, mounts: [{ source, target: '/conf', isFile: true, readOnly: false }] });
    await here.runtime.start(podOf());
    const found = () => stateOf(here.runtime);
    const waits = await until(async () => {
      const state = (await found())?.state;
      return state?.kind === 'waiting' && state.message !== undefined && state;
    }, soon);
    expect(waits).toMatchObject({ reason: 'CreateContainerConfigError', message: expect.stringContaining('ENOENT') });
    writeFileSync(source, 'x');
    await here.time.pass(10_000);
    expect((await stateWhen(here.runtime, 'running')).restartCount).toBe(0);
  });

  it('has no process that outlives the agent', () => {
    const table = windowsProcesses(new Map());
    const identity = { pid: process.pid, startTicks: '1', bootId: 'b' };
    expect([table.identify(process.pid, 'b'), table.isAlive(identity, 'b'), table.marked()]).toEqual([
      undefined,
      false,
      [],
    ]);
  });

  it('that is asked to stop receives Ctrl+Break, and is killed after its grace period', async () => {
    const here = machine();
    const process = await started(here, podOf());
    const stopped = here.runtime.stop('u1', 5);
    await here.time.pass(4_000);
    expect([windows.calls, process.exitCode]).toEqual([['event 1 to 5000000'], undefined]);
    await here.time.pass(2_000);
    await stopped;
    expect((await stateOf(here.runtime))?.state).toMatchObject({ exitCode: 137, reason: 'Error' });
    expect([openHandles(), here.warnings]).toEqual([[], []]);
  });

  it('that cannot be asked to stop is reported, and killed as others', async () => {
    const here = machine();
    await started(here, podOf());
    windows.failures.set('AttachConsole', 5);
    const stopped = here.runtime.stop('u1', 1);
    await here.time.pass(2_000);
    await stopped;
    const refusal = 'Ctrl+Break cannot be sent: error 5 of AttachConsole';
    expect(here.warnings).toEqual([
      ['a container cannot be asked to end', { podUid: 'u1', container: 'main', refusal }],
    ]);
  });

  it('ends with the agent: the next one reports an unknown exit', async () => {
    const here = machine();
    const process = await started(here, podOf());
    await here.time.pass(500);
    await here.runtime.close();
    expect([process.exitCode, openHandles()]).toEqual([0, [expect.stringMatching(/^process/)]]);
    const next = here.open();
    await here.time.pass(1_000);
    expect((await stateOf(next))?.state).toEqual({
      kind: 'terminated',
      exitCode: 137,
      reason: 'ContainerStatusUnknown',
      message: 'The container terminated with the agent. Its exit code is unknown',
      startedAtMs: START_MS,
      finishedAtMs: START_MS + 500,
    });
  });

  it('is not ready to run where its directory cannot be written', async () => {
    const { runtime, rootDirectory } = machine();
    mkdirSync(join(rootDirectory, 'pods'), { recursive: true });
    expect([runtime.version, await runtime.health()]).toEqual(['exec://1.0.0', { kind: 'ready' }]);
    rmSync(join(rootDirectory, 'pods'), { recursive: true });
    expect(await runtime.health()).toEqual({
      kind: 'notReady',
      reason: expect.stringMatching(/^processes cannot be run: ENOENT/),
    });
  });
});

describe('a further command of a container', () => {
  const env = [{ name: 'OWN', value: 'mine' }];
  /** Time passes until the command is over. */
  async function over<Result>({ time }: ReturnType<typeof machine>, result: Promise<Result>): Promise<Result> {
    const settled = vi.fn();
    void result.then(settled, settled);
    await until(async () => {
      await time.pass(50);
      return settled.mock.calls.length > 0;
    }, soon);
    return result;
  }
  const sh = (script: string): readonly string[] => ['/bin/sh', '-c', script];

  it('has its variables, its directory, its output and its exit code, in its job', async () => {
    const here = machine();
    await started(here, podOf({ env, workingDir: '/' }));
    const script = 'echo "$OWN $PWD $HOSTNAME $SECRET"; echo err >&2; exit 3';
    const result = await over(here, here.runtime.execute!('u1', 'main', sh(script), 60_000));
    expect(result).toEqual({ kind: 'exited', exitCode: 3, output: expect.stringMatching(/^mine \/ web \nerr\n$/) });
    expect(onlyJob().pids).toHaveLength(2);
  });

  it('is killed when its time is over', async () => {
    const here = machine();
    await started(here, podOf());
    const file = join(here.rootDirectory, 'pid');
    const result = here.runtime.execute!('u1', 'main', sh(`echo $$ >${file}; exec sleep 60`), 1_000);
    const pid = await until(
      () => /^\d+\n/.test(readFileSync(file, 'utf8')) && Number(readFileSync(file, 'utf8')),
      soon,
    );
    await here.time.pass(1_000);
    expect(await result).toEqual({ kind: 'timedOut' });
    await until(() => !isAlive(pid), soon);
  });

  it('of a hook writes to the log of the container', async () => {
    const here = machine();
    await here.runtime.start(podOf({ lifecycle: { postStart: { exec: { command: sh('echo hook; echo err >&2') } } } }));
    const log = join(here.directory, 'main.0.log');
    await until(() => readFileSync(log, 'utf8') === 'hook\nerr\n', soon);
  });

  it.each<[string, (here: ReturnType<typeof machine>) => void, string]>([
    ['the container has no inputs', ({ runtime }) => use(runtime, NOT_READY), 'no secret'],
    ['its command cannot be run', ({ runtime }) => use(runtime, READY), 'spawn no-such-program ENOENT'],
    ['Windows refuses its job', () => windows.failures.set('OpenProcess', 5), 'OpenProcess: access is denied (5)'],
  ])('fails when %s', async (why, change, message) => {
    const here = machine();
    await started(here, podOf());
    change(here);
    const words = why.startsWith('Windows') ? sh('exit 0') : ['no-such-program'];
    expect(await over(here, here.runtime.execute!('u1', 'main', words, 60_000))).toEqual({ kind: 'failed', message });
  });

  describe('that somebody follows', () => {
    const follow = (runtime: PodRuntime, script: string, { stdin = false, tty = false } = {}) =>
      runtime.open!('u1', { container: 'main', command: sh(script), stdin, tty });

    it('has streams of its own', async () => {
      const here = machine();
      await started(here, podOf({ env }));
      const command = await follow(here.runtime, 'cat; echo "$OWN" >&2; exit 4', { stdin: true });
      await command.write(Buffer.from('in'));
      command.endInput();
      expect(await Promise.all([text(command.stdout), text(command.stderr), command.exitCode])).toEqual([
        'in',
        'mine\n',
        4,
      ]);
      await command.write(Buffer.from('late'));
      command.endInput();
      command.kill();
    });

    it('has no input that is not wanted, and can be killed', async () => {
      const here = machine();
      await started(here, podOf());
      const command = await follow(here.runtime, 'cat; echo ready; exec sleep 60');
      await command.write(Buffer.from('in'));
      command.endInput();
      command.resize({ columns: 80, rows: 24 });
      for await (const piece of command.stdout) {
        expect(Buffer.from(piece).toString()).toBe('ready\n');
        command.kill();
      }
      expect(await command.exitCode).toBe(137);
    });

    it('has no terminal, and needs a program that exists', async () => {
      const here = machine();
      await started(here, podOf());
      await expect(follow(here.runtime, 'cat', { tty: true })).rejects.toThrow(
        'a node with Windows has no terminals: leave out -t',
      );
      const command = { container: 'main', command: ['no-such-program'], stdin: true, tty: false };
      const missing = await here.runtime.open!('u1', command);
      await expect(missing.exitCode).rejects.toThrow('spawn no-such-program ENOENT');
    });
  });
});
