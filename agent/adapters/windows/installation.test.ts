/** Installation and removal over calls in memory. `test/agent/windows.test.ts` has those of Wine. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { memoryWindows } from '../../../test/support/memory-windows-native.ts';
import { configFileOf, environmentFileOf, logFileOf, tokenFileOf } from '../../rules/windows-install.ts';
import {
  type Installation,
  InstallError,
  type InstallRequest,
  install,
  installPaths,
  uninstall,
} from './installation.ts';

const { memory } = memoryWindows();
const { windows, processState } = memory;

const SERVICE = 'nodekeeper-agent';
const CONTROL = 'SYSTEM\\CurrentControlSet\\Control';
const PROGRAM_FILES = ['koffi.node', 'nodekeeper-agent.mjs', 'service-worker.mjs', 'start-agent.mjs'];
/** With all rights. */
const OPENED = `open ${SERVICE} ${0xf01ff}`;
const STOPPED = 1;
const STARTING = 2;

let root: string;
let paths: Installation;
let request: InstallRequest;
beforeEach(() => {
  root = folderForTest();
  paths = {
    node: 'C:\\node.exe',
    program: join(root, 'Program'),
    data: join(root, 'Data'),
    build: join(root, 'build'),
  };
  mkdirSync(paths.build);
  for (const name of PROGRAM_FILES) writeFileSync(join(paths.build, name), name);
  for (const name of ['token', 'ca', 'key']) writeFileSync(join(root, name), `${name} text`);
  request = {
    endpoint: 'https://cluster',
    bootstrapTokenFile: join(root, 'token'),
    authorityFile: undefined,
    updateKeyFile: undefined,
    clusterId: undefined,
    nodeName: 'win-1',
    runtime: 'exec',
    dependencies: ['RpcSs'],
    keepsData: false,
    start: true,
    faultOf: () => undefined,
  };
  windows.keys.set(CONTROL, new Map());
  vi.useFakeTimers({ toFake: ['setTimeout'] });
});
afterEach(() => void vi.useRealTimers());

/** All that an installation changes. Names of files on Windows have backslashes here. */
const traces = (): readonly string[] => [
  ...readdirSync(root).filter((name) => !['build', 'ca', 'key', 'token'].includes(name)),
  ...windows.services.keys(),
  ...windows.open.values(),
];
const setOrder = (...order: readonly string[]) =>
  windows.keys.get(CONTROL)?.set('PreshutdownOrder', {
    type: 7,
    bytes: Buffer.from(`${order.map((name) => `${name}\0`).join('')}\0`, 'utf16le'),
  });
const orderText = () => windows.keys.get(CONTROL)?.get('PreshutdownOrder')?.bytes.toString('utf16le');
const service = () => windows.services.get(SERVICE)!;
const refuse = (call: string, code: number) => {
  windows.failures.set(call, code);
  return {};
};
const wrongOrder = () => {
  windows.keys.get(CONTROL)?.set('PreshutdownOrder', { type: 1, bytes: Buffer.from('x\0', 'utf16le') });
  return {};
};
/** Time passes until it is over. */
async function over<Result>(result: Promise<Result>): Promise<Result> {
  const settled = vi.fn();
  void result.then(settled, settled);
  const untilMs = performance.now() + 30_000;
  while (settled.mock.calls.length === 0 && performance.now() < untilMs) {
    await vi.advanceTimersByTimeAsync(250);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return result;
}
const refusalOf = async (act: Promise<unknown>): Promise<string> => {
  const error: unknown = await over(act).then(
    () => undefined,
    (cause) => cause,
  );
  expect(error).toBeInstanceOf(InstallError);
  return (error as InstallError).message;
};

it('the directories are those of this machine', () => {
  const { node, build, ...directories } = installPaths({ ProgramFiles: 'D:\\P', ProgramData: 'D:\\D' });
  expect([node, build]).toEqual([process.execPath, import.meta.dirname]);
  expect(directories).toEqual({ program: join('D:\\P', 'nodekeeper'), data: join('D:\\D', 'nodekeeper') });
  expect(installPaths({})).toMatchObject({
    program: join('C:\\Program Files', 'nodekeeper'),
    data: join('C:\\ProgramData', 'nodekeeper'),
  });
});

describe('an installation', () => {
  it('has its files, a directory of administrators alone, and a service that runs', async () => {
    expect(await install(paths, request)).toEqual({ isKept: false });
    expect(readdirSync(paths.program).sort()).toEqual([...PROGRAM_FILES, 'preshutdown-order.json'].sort());
    expect(readFileSync(join(paths.program, 'start-agent.mjs'), 'utf8')).toBe('start-agent.mjs');
    expect(readFileSync(join(paths.program, 'preshutdown-order.json'), 'utf8')).toBe('null');
    expect(processState.directories).toEqual(new Map([[paths.data, 'O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)']]));
    expect(readFileSync(tokenFileOf(paths), 'utf8')).toBe('token text');
    expect(readFileSync(environmentFileOf(paths), 'utf8')).toContain(`STATE_DIRECTORY='${paths.data}'`);
    expect(readFileSync(configFileOf(paths), 'utf8')).toContain('endpoint: "https://cluster"');
    expect(readFileSync(configFileOf(paths), 'utf8')).not.toMatch(/certificateAuthorityFile|updatePublicKeyFile/);
    expect(service()).toMatchObject({
      settings: { display: 'Nodekeeper agent', dependencies: ['RpcSs'] },
      state: 4,
      preshutdownMs: 50_000,
      description: 'Heartbeats, status, pods and graceful shutdown of this node',
    });
    expect(service().settings['command']).toContain(`"${paths.program}\\start-agent.mjs"`);
    expect([...windows.open.values()]).toEqual([]);
  });

  it('has the authority and the key of updates that are named, the order of before, and is not started', async () => {
    setOrder('UsoSvc');
    const keys = { authorityFile: join(root, 'ca'), updateKeyFile: join(root, 'key') };
    await install(paths, { ...request, ...keys, start: false });
    expect(readFileSync(join(paths.program, 'preshutdown-order.json'), 'utf8')).toBe('["UsoSvc"]');
    expect(readFileSync(`${paths.data}\\ca.pem`, 'utf8')).toBe('ca text');
    expect(readFileSync(`${paths.data}\\update-key.pem`, 'utf8')).toBe('key text');
    expect(readFileSync(configFileOf(paths), 'utf8')).toMatch(/certificateAuthorityFile.*updatePublicKeyFile/s);
    expect([service().state, windows.calls.includes('start')]).toEqual([STOPPED, false]);
  });

  it('waits until the service runs', async () => {
    windows.stateAfterStart = STARTING;
    const installed = install(paths, request);
    await vi.waitFor(() => expect(windows.services.get(SERVICE)?.state).toBe(STARTING));
    await vi.advanceTimersByTimeAsync(39_000);
    service().state = 4;
    expect(await over(installed)).toEqual({ isKept: false });
  });

  it('replaces program files of one that was removed by hand', async () => {
    mkdirSync(paths.program);
    writeFileSync(join(paths.program, 'old'), '');
    await install(paths, request);
    expect(existsSync(join(paths.program, 'old'))).toBe(false);
  });

  it.each<[string, () => Partial<InstallRequest> | Partial<Installation>, string]>([
    [
      'the user is no administrator',
      () => refuse('OpenSCManagerW', 5),
      'this needs an administrator: open the command prompt as administrator',
    ],
    [
      'the user may not create services',
      () => {
        windows.mayInstall = false;
        return {};
      },
      'this needs an administrator: open the command prompt as administrator',
    ],
    ['the manager of services fails', () => refuse('OpenSCManagerW', 6), 'OpenSCManagerW: error 6 of Windows'],
    ['the service cannot be read', () => refuse('OpenServiceW', 6), `service ${SERVICE}: error 6 of Windows`],
    [
      'these are the installed files',
      () => ({ build: join(root, 'PROGRAM') }),
      'these files are the installed ones: run this from the directory that install was run from',
    ],
    ['there is no endpoint', () => ({ endpoint: undefined }), 'FILE: --endpoint and --bootstrap-token-file are needed'],
    [
      'there is no token',
      () => ({ bootstrapTokenFile: undefined }),
      'FILE: --endpoint and --bootstrap-token-file are needed',
    ],
    ['its token cannot be read', () => ({ bootstrapTokenFile: '/none' }), '/none cannot be read: ENOENT'],
    [
      'the order is no list',
      () => wrongOrder(),
      `${CONTROL}\\PreshutdownOrder has type 1, expected 7: correct or remove`,
    ],
    ['the order cannot be read', () => refuse('RegQueryValueExW', 5), 'this needs an administrator'],
  ])('is refused before it changes anything when %s', async (_, change, message) => {
    const changed = change();
    const refusal = await refusalOf(install({ ...paths, ...changed }, { ...request, ...changed }));
    expect(refusal).toContain(message.replace('FILE', `there is no ${configFileOf(paths)}`));
    expect([traces(), processState.directories.size]).toEqual([[], 0]);
  });

  it('is refused where there is one, or a directory that any user may have made', async () => {
    await install(paths, request);
    expect(await refusalOf(install(paths, request))).toBe(
      `service ${SERVICE} exists already; nodekeeper-agent uninstall removes it`,
    );
    const elsewhere = { ...paths, program: join(root, 'Pro') };
    expect(await refusalOf(install(elsewhere, request))).toBe(
      `service ${SERVICE} exists already, and is another program: ${service().settings['command']}`,
    );
    windows.services.clear();
    expect(await refusalOf(install(paths, request))).toBe(
      `${paths.data} exists: remove it, or look at what it has and install with --keep-data`,
    );
  });

  it.each<[string, () => Partial<InstallRequest>, string]>([
    ['the configuration is wrong', () => ({ faultOf: () => 'bad field' }), 'bad field; nothing was installed'],
    ['the service cannot be created', () => refuse('CreateServiceW', 5), 'this needs an administrator: '],
    [
      'Windows does not wait long enough',
      () => {
        windows.preshutdownMaxMs = 49_999;
        return {};
      },
      'Windows refuses a preshutdown time-out of 50000 ms: it stored 49999 ms; nothing was installed',
    ],
    [
      'the service does not start',
      () => refuse('StartServiceW', 1053),
      'the service did not answer in time (1053); no',
    ],
    [
      'the service stops at its start',
      () => {
        windows.stateAfterStart = STOPPED;
        writeFileSync(logFileOf(paths), `first\nsecond\n ${'x'.repeat(400)}\n\n`);
        return {};
      },
      `service ${SERVICE} stopped at its start; its log: ${'x'.repeat(300)}; nothing was installed`,
    ],
    [
      'the service never runs',
      () => {
        windows.stateAfterStart = STARTING;
        return {};
      },
      `service ${SERVICE} does not run 40 s after its start; nothing was installed`,
    ],
  ])('leaves nothing when %s', async (_, change, message) => {
    const changed = change();
    expect(await refusalOf(install(paths, { ...request, ...changed }))).toContain(message);
    expect(traces().filter((name) => !name.endsWith('agent.log'))).toEqual([]);
  });

  it('reverts all that it can, and says what is left', async () => {
    windows.stateAfterStart = STOPPED;
    windows.failures.set('DeleteService', 1_072);
    expect(await refusalOf(install(paths, request))).toBe(
      `service ${SERVICE} stopped at its start; not removed: service ${SERVICE}: the service is marked for deletion (1072)`,
    );
    expect(traces()).toEqual([SERVICE]);
    expect(windows.calls).toContain('control 1');
  });

  it('looks 160 times whether the service runs, and leaves no wait behind', async () => {
    windows.stateAfterStart = STARTING;
    await refusalOf(install(paths, request));
    // Beside these: start, stop, the look after it, and the removal.
    expect(windows.calls.filter((call) => call === OPENED)).toHaveLength(160 + 4);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('reverts also what was removed meanwhile', async () => {
    const faultOf = (file: string) => {
      rmSync(file);
      return 'bad';
    };
    expect(await refusalOf(install(paths, { ...request, faultOf }))).toBe('bad; nothing was installed');
  });
});

describe('an installation over data that is kept', () => {
  const keeping = () => ({ ...request, keepsData: true });
  beforeEach(() => {
    mkdirSync(join(paths.data, 'agents'), { recursive: true });
    for (const name of ['current', 'trial.json', 'v1']) writeFileSync(join(paths.data, 'agents', name), '');
    writeFileSync(join(paths.data, 'key'), '');
  });

  it('keeps the configuration, and starts the version that is installed', async () => {
    writeFileSync(configFileOf(paths), 'kept');
    writeFileSync(environmentFileOf(paths), 'own');
    expect(await install(paths, { ...keeping(), endpoint: undefined })).toEqual({ isKept: true });
    expect([configFileOf(paths), environmentFileOf(paths)].map((file) => readFileSync(file, 'utf8'))).toEqual([
      'kept',
      'own',
    ]);
    expect(readdirSync(join(paths.data, 'agents'))).toEqual(['v1']);
  });

  it('is a new one if there is no configuration', async () => {
    expect(await install(paths, keeping())).toEqual({ isKept: false });
    expect(readFileSync(configFileOf(paths), 'utf8')).toContain('endpoint: "https://cluster"');
  });

  it('needs no versions of updates, and replaces no file', async () => {
    rmSync(join(paths.data, 'agents'), { recursive: true });
    writeFileSync(tokenFileOf(paths), 'old');
    expect(await refusalOf(install(paths, keeping()))).toContain('EEXIST');
    expect(readFileSync(tokenFileOf(paths), 'utf8')).toBe('old');
    rmSync(tokenFileOf(paths));
    expect(await install(paths, keeping())).toEqual({ isKept: false });
  });

  it('that fails keeps the data', async () => {
    await refusalOf(install(paths, { ...keeping(), faultOf: () => 'bad' }));
    expect([readdirSync(paths.data), existsSync(paths.program)]).toEqual([['agents', 'key'], false]);
  });

  it.each(['', 'key', 'agents', 'agents/v1'])('is refused if %j belongs to a user', async (name) => {
    const path = join(paths.data, name);
    processState.owners.set(path, 'S-1-5-21-7');
    expect(await refusalOf(install(paths, keeping()))).toBe(
      `${path} belongs to S-1-5-21-7, not to administrators: remove it; nothing was installed`,
    );
    expect(windows.services.size).toBe(0);
  });

  it('accepts files of the system, and of the user that installs', async () => {
    processState.owners.set(join(paths.data, 'key'), 'S-1-5-18').set(join(paths.data, 'agents/v1'), 'S-1-5-21-7');
    processState.owners.set(paths.program, 'S-1-5-21-7');
    expect(await install(paths, keeping())).toEqual({ isKept: false });
  });

  it('is refused if the directory leads elsewhere', async () => {
    symlinkSync(paths.data, join(root, 'link'));
    expect(await refusalOf(install({ ...paths, data: join(root, 'link') }, keeping()))).toBe(
      `${join(root, 'link')} leads elsewhere: remove it; nothing was installed`,
    );
  });
});

describe('a removal', () => {
  const remove = (purge = false) => over(uninstall(paths, { purge }));

  it('stops the service, and removes it with its program and not with its data', async () => {
    await install(paths, request);
    await remove();
    expect([windows.services.size, existsSync(paths.program), existsSync(paths.data)]).toEqual([0, false, true]);
    expect(windows.calls.filter((call) => !call.startsWith('open'))).toEqual(['start', 'control 1']);
    await remove(true);
    expect(existsSync(paths.data)).toBe(false);
  });

  it('waits until the service has stopped, for 40 s', async () => {
    await install(paths, request);
    windows.stateAfterStop = 3;
    const calls = windows.calls.length;
    expect(await refusalOf(uninstall(paths, { purge: false }))).toBe(`service ${SERVICE} does not stop; stop it first`);
    expect([windows.services.size, existsSync(paths.program)]).toEqual([1, true]);
    expect(windows.calls.slice(calls).filter((call) => call === OPENED)).toHaveLength(161 + 1);
    const removed = uninstall(paths, { purge: false });
    await vi.advanceTimersByTimeAsync(39_000);
    service().state = STOPPED;
    await over(removed);
    expect(windows.services.size).toBe(0);
  });

  it.each<[string, readonly string[], readonly string[], string | undefined]>([
    ['is removed if there was none', [], [SERVICE, 'RpcSs'], undefined],
    ['is that of others, with what it had before', ['RpcSs'], ['Other', SERVICE, 'RpcSs'], 'Other\0RpcSs\0\0'],
  ])('the order of shutdowns %s', async (_, before, after, left) => {
    if (before.length > 0) setOrder(...before);
    await install(paths, request);
    windows.keys.set(
      `SYSTEM\\CurrentControlSet\\Services\\${SERVICE}`,
      new Map([['DependOnService', { type: 7, bytes: Buffer.from('RpcSs\0\0', 'utf16le') }]]),
    );
    setOrder(...after);
    await remove();
    expect(orderText()).toBe(left);
  });

  it('leaves the order as it is if that of before is unknown', async () => {
    await install(paths, request);
    setOrder('Other', SERVICE);
    rmSync(join(paths.program, 'preshutdown-order.json'));
    await remove();
    expect(orderText()).toBe(`Other\0${SERVICE}\0\0`);
  });

  it('is refused for another program, for the installed files, and without rights', async () => {
    await install(paths, request);
    const elsewhere = { ...paths, program: join(root, 'Pro') };
    expect(await refusalOf(uninstall(elsewhere, { purge: true }))).toBe(
      `service ${SERVICE} exists already, and is another program: ${service().settings['command']}`,
    );
    expect(await refusalOf(uninstall({ ...paths, build: paths.program }, { purge: true }))).toContain(
      'these files are the installed ones',
    );
    windows.mayInstall = false;
    expect(await refusalOf(uninstall(paths, { purge: true }))).toContain('this needs an administrator');
    expect([windows.services.size, existsSync(paths.program), existsSync(paths.data)]).toEqual([1, true, true]);
  });
});
